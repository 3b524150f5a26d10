"""Terminal output of `rotorid live`: current estimates, state of the link and events; at the end a summary."""

from __future__ import annotations

from collections import deque
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from rotorid.live.snapshot import PHASE_TEXTS
from rotorid.results.text import duration_text, percent, plus_minus, title, value_text
from rotorid.terminal.console import empty_table

if TYPE_CHECKING:
    from rich.console import Console, Group

    from rotorid.live.link.clock import ClockState
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
_MAX_PPM_DRIFT: Final = 1e-2  # above, the drift of a clock is shown as a ratio


class LiveView:
    """The terminal as a consumer of snapshots. If stdout is not a terminal, only events are printed, one per line."""

    def __init__(self, console: Console, heading: str) -> None:
        from rich.live import Live

        self._console, self._heading = console, heading
        self._snapshot: Snapshot | None = None
        self._events: deque[Event] = deque(maxlen=_MAX_EVENTS)
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
        if snapshot.events:
            self._events.extend(snapshot.events)
            if self._live is None:
                for event in snapshot.events:
                    self._console.print(event_text(event), soft_wrap=True, markup=False)

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
        health = PHASE_TEXTS.get(snapshot.health, snapshot.health.replace("_", " "))
        style = "green" if snapshot.health == "ok" else "yellow"
        duration = f"   {duration_text(snapshot.t)}   "
        lines: list[Any] = [
            Text(""),
            Text.assemble((self._heading, "bold"), duration, (health, style)),
            Text(""),
        ]
        if snapshot.readings:
            lines += [readings_table(dict(snapshot.readings)), Text("")]
        link = snapshot.link
        text = (
            f"{link.rate:.0f} messages/s, {_lost(link)} lost, latency from message to estimate "
            f"{1e3 * link.latency:.1f} ms"
        )
        lines += [Text(text, style="dim"), *_link_notes(link)]
        lines += [Text(event_text(e), style="dim") for e in list(self._events)]
        lines += [Text(""), Text("Press Ctrl-C to stop.", style="dim")]
        return Group(*(Padding(line, (0, 2)) for line in lines), Text(""))


def event_text(event: Event) -> str:
    """An event with its time, in one line."""
    return f"{event.t:8.1f} s  {event.text}"


def _lost(link: LinkState) -> str:
    return percent(link.lost / max(link.received + link.lost, 1))


def _link_notes(link: LinkState) -> list[Any]:
    """Lines about skipped messages and the vehicle's clock, where they apply."""
    from rich.text import Text

    notes = [Text(skipped_text(link.skipped), style="yellow")] if link.skipped else []
    return notes + ([] if link.clock is None else [Text(clock_text(link.clock), style="dim")])


def skipped_text(count: int) -> str:
    """Number of skipped messages, in one line."""
    return f"computer overloaded: {count} messages were recorded but not used by the estimators"


def clock_text(clock: ClockState) -> str:
    """Offset and drift of the vehicle's clock and the transmission delay, in one line."""
    boot = datetime.fromtimestamp(clock.offset, UTC).strftime("%H:%M:%S.%f")[:-2]
    rate, std = 1.0 - clock.drift, clock.drift_std
    drift = f"rate {plus_minus(rate, std)}"
    if abs(clock.drift) < _MAX_PPM_DRIFT:
        drift = f"drift {plus_minus(-1e6 * clock.drift, 1e6 * std, 'ppm', signed=True)}"
    return (
        f"vehicle clock: zero at {boot} UTC ± {_ms(clock.offset_std)}, {drift}; transmission delay: "
        f"{_ms(clock.delay)} above the minimum"
    )


def _ms(value: float) -> str:
    return f"{1e3 * value:.2g} ms" if value < 0.01 else f"{1e3 * value:.0f} ms"


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
    lines: list[Any] = [Text(f"{heading}: no estimate; the vehicle did not fly long enough")]
    if snapshot is not None:
        link, latency = snapshot.link, result.latencies
        counts = f"{result.estimates} estimates from {link.received} messages; {_lost(link)} of the messages were lost"
        median, high = (_ms(latency.quantile(share)) for share in (0.5, 0.99))
        times = f"latency from message to estimate: median {median}, 99 % below {high}"
        lines = [
            Text(f"{heading}, after {duration_text(snapshot.t)}", style="bold"),
            Text(""),
            readings_table(dict(snapshot.readings)),
            Text(counts, style="dim"),
            Text(times, style="dim"),
            *_link_notes(link),
        ]
    if recording:
        lines += [Text(""), Text.assemble("Recording: ", (recording, "bold"))]
    console.print()
    for line in lines:
        console.print(Padding(line, (0, 2)))
