"""Terminal output of `rotorid live`: current estimates, state of the link and events; at the end a summary."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

from rotorid.findings import Severity
from rotorid.live.text import (
    clock_text,
    event_text,
    flight_course_text,
    health_text,
    milliseconds_text,
    skipped_text,
)
from rotorid.results.text import duration_text, percent, plus_minus, title, value_text
from rotorid.terminal.console import empty_table
from rotorid.workflows.track.phases.text import course_values

if TYPE_CHECKING:
    from rich.console import Console, Group

    from rotorid.live.runner import SessionResult
    from rotorid.live.snapshot import Event, LinkState, Reading, Snapshot

_MAX_EVENTS: Final = 6
_INTERVAL: Final = 0.25  # s between two updates
_VECTORS: Final = {"wind": ("wind_x", "wind_y"), "force": ("force_x", "force_y", "force_z")} | {
    "torque": ("torque_x", "torque_y", "torque_z")
}
_AXES: Final = {
    "wind": ("east", "north"),
    "force": ("east", "north", "up"),
    "torque": ("forward", "left", "up"),
}
_HIDDEN: Final = ("accelerometer_bias", "wind_force")
_STYLES: Final = {
    Severity.OK: "dim",
    Severity.NOTE: "dim",
    Severity.WARNING: "yellow",
    Severity.ERROR: "red",
}
"""Style of an event."""


class LiveView:
    """The terminal as a consumer of snapshots. If stdout is not a terminal, only events are printed, one per line."""

    def __init__(self, console: Console, heading: str) -> None:
        from rich.live import Live

        self._console, self._heading = console, heading
        self._snapshot: Snapshot | None = None
        self._vehicles: dict[str, Snapshot] = {}  # the latest by vehicle, where there are several
        self._events: deque[tuple[str, Event]] = deque(maxlen=_MAX_EVENTS)
        self._live: Any = None
        if console.is_terminal:
            self._live = Live(
                get_renderable=self._render,
                console=console,
                refresh_per_second=1.0 / _INTERVAL,
                transient=True,
            )
            self._live.start()

    def show(self, snapshot: Snapshot) -> None:
        """Keep a snapshot for the next update."""
        self._snapshot = snapshot
        if snapshot.vehicle:
            self._vehicles[snapshot.vehicle] = snapshot
        if snapshot.events:
            self._events.extend((snapshot.vehicle, event) for event in snapshot.events)
            if self._live is None:
                for event in snapshot.events:
                    self._console.print(event_line(event, snapshot.vehicle), soft_wrap=True, markup=False)

    def close(self) -> None:
        """Restore the terminal."""
        if self._live is not None:
            self._live.stop()

    def _render(self) -> Group:
        from rich.console import Group
        from rich.padding import Padding
        from rich.text import Text

        snapshot = self._snapshot
        if snapshot is None:
            text = f"{self._heading}: waiting for messages"
            return Group(Text(""), Padding(Text(text, style="dim"), (0, 2)))
        lines = self._team_lines() if self._vehicles else self._vehicle_lines(snapshot)
        lines += [
            Text(event_line(e, vehicle), style=_STYLES[e.severity]) for vehicle, e in list(self._events)
        ]
        lines += [Text(""), Text("Press Ctrl-C to stop.", style="dim")]
        return Group(*(Padding(line, (0, 2)) for line in lines), Text(""))

    def _vehicle_lines(self, snapshot: Snapshot) -> list[Any]:
        from rich.text import Text

        style = "green" if snapshot.health == "ok" else "yellow"
        duration = f"   {duration_text(snapshot.t)}   "
        lines: list[Any] = [
            Text(""),
            Text.assemble((self._heading, "bold"), duration, (health_text(snapshot.health), style)),
            Text(""),
        ]
        if snapshot.readings:
            lines += [readings_table(dict(snapshot.readings)), Text("")]
        link = snapshot.link
        text = (
            f"{link.rate:.0f} messages/s, {_lost(link)} lost, latency from message to estimate "
            f"{1e3 * link.latency:.1f} ms"
        )
        return [*lines, Text(text, style="dim"), *_link_notes(link)]

    def _team_lines(self) -> list[Any]:
        from rich.text import Text

        snapshots = dict(self._vehicles)
        return [
            Text(""),
            Text.assemble((self._heading, "bold"), f"   {len(snapshots)} vehicles"),
            Text(""),
            team_table(snapshots),
            Text(""),
        ]


def event_line(event: Event, vehicle: str = "") -> str:
    """An event with its time, and its vehicle where there are several."""
    return f"{event.t:8.1f} s  {f'{vehicle}: ' if vehicle else ''}{event_text(event)}"


def team_table(snapshots: Mapping[str, Snapshot]) -> Any:
    """A table of several vehicles, a row each, with the main quantity. snapshots: the latest by vehicle."""
    table = empty_table()
    for heading in ("vehicle", "state", "", "value ± std", "messages/s", "lost"):
        table.add_column(heading, no_wrap=True)
    for vehicle, snapshot in sorted(snapshots.items()):
        name, reading = next(iter(snapshot.readings.items()), ("", None))
        value = "" if reading is None else plus_minus(reading.value, reading.std, reading.unit)
        link = snapshot.link
        state = health_text(snapshot.health)
        table.add_row(vehicle, state, title(name), value, f"{link.rate:.0f}", _lost(link))
    return table


def _lost(link: LinkState) -> str:
    return percent(link.lost / max(link.received + link.lost, 1))


def _link_notes(link: LinkState) -> list[Any]:
    """Lines about skipped messages and the vehicle's clock, where they apply."""
    from rich.text import Text

    notes = [Text(skipped_text(link.skipped), style="yellow")] if link.skipped else []
    return notes + ([] if link.clock is None else [Text(clock_text(link.clock), style="dim")])


def readings_table(readings: dict[str, Reading]) -> Any:
    """A table of estimates, one row for each scalar or vector."""
    table = empty_table()
    table.add_column("quantity")
    table.add_column("value ± std", no_wrap=True)
    components = {name for names in _VECTORS.values() for name in names}
    for name, r in readings.items():
        if name not in components and not name.startswith(_HIDDEN):
            table.add_row(title(name), plus_minus(r.value, r.std, r.unit))
    for name, names in _VECTORS.items():
        values = [readings[n] for n in names if n in readings]
        if values:
            numbers = ",  ".join(
                f"{value_text(r.value, r.std, signed=True)} ± {value_text(r.std, r.std)}" for r in values
            )
            axes = ", ".join(_AXES[name][: len(values)])
            table.add_row(f"{title(name)} ({axes})", f"{numbers} {values[0].unit}")
    return table


def parameter_line(result: SessionResult) -> str:
    """What a session wrote to a parameter of the vehicle; "" if it was not to write any."""
    if result.parameter is None:
        return ""
    from rotorid.live.snapshot import Event

    return event_text(Event(0.0, "parameter_summary", values=asdict(result.parameter)))


def print_summary(result: SessionResult, heading: str, recording: str, console: Console) -> None:
    """Print the final estimates of a session.

    Args:
        result: of the session.
        heading: link and vehicle.
        recording: path of the recording, "" for none.
        console: where to print.
    """
    from rich.padding import Padding
    from rich.text import Text

    snapshot = result.last
    if snapshot is not None and snapshot.vehicle:
        print_team_summary(result, heading, recording, console)
        return
    lines: list[Any] = [Text(f"{heading}: no estimate; the vehicle did not fly long enough")]
    if snapshot is not None:
        link, latency = snapshot.link, result.latencies
        counts = f"{result.estimates} estimates from {link.received} messages; {_lost(link)} of the messages were lost"
        median, high = (milliseconds_text(latency.quantile(share)) for share in (0.5, 0.99))
        times = f"latency from message to estimate: median {median}, 99 % below {high}"
        lines = [
            Text(f"{heading}, after {duration_text(snapshot.t)}", style="bold"),
            Text(""),
            readings_table(dict(snapshot.readings)),
            *_course_lines(result, snapshot),
            Text(counts, style="dim"),
            Text(times, style="dim"),
            *_link_notes(link),
        ]
    if recording:
        lines += [Text(""), Text.assemble("Recording: ", (recording, "bold"))]
    console.print()
    for line in lines:
        console.print(Padding(line, (0, 2)))


def print_team_summary(result: SessionResult, heading: str, recording: str, console: Console) -> None:
    """Print the final estimates of each vehicle. Arguments as of `print_summary`."""
    from rich.padding import Padding
    from rich.text import Text

    lines: list[Any] = [Text(heading, style="bold")]
    for vehicle, snapshot in sorted(result.last_of_vehicles.items()):
        link = snapshot.link
        counts = f"{link.received} messages; {_lost(link)} of them were lost"
        heading_of_vehicle = f"{vehicle}, after {duration_text(snapshot.t)}"
        table = readings_table(dict(snapshot.readings))
        lines += [
            Text(""),
            Text(heading_of_vehicle, style="bold"),
            Text(""),
            table,
            *_course_lines(result, snapshot),
            Text(counts, style="dim"),
        ]
    if recording:
        lines += [Text(""), Text.assemble("Recording: ", (recording, "bold"))]
    console.print()
    for line in lines:
        console.print(Padding(line, (0, 2)))


def _course_lines(result: SessionResult, snapshot: Snapshot) -> list[Any]:
    """The main quantity at take-off, its changes and at landing, a line for each flight."""
    from rich.text import Text

    courses = result.courses.get(snapshot.vehicle, ())
    name = next(iter(snapshot.readings))
    unit = snapshot.readings[name].unit
    lines = []
    for flight, course in courses:
        values = None if course is None else course_values(course)
        text = flight_course_text(flight, name, values, unit)
        lines.append(Text(text[:1].upper() + text[1:]))
    return [*lines, Text("")] if lines else []
