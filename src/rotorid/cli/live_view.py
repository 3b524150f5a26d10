"""What `rotorid live` shows in the terminal: the numbers as they are now, the link, and what happened; at the end, a
summary."""

from __future__ import annotations

from collections import deque
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from rotorid.cli.verdict_page import empty_table
from rotorid.results.words import percent, plus_minus, seconds, title, value_text

if TYPE_CHECKING:
    from rich.console import Console, Group

    from rotorid.live.clock import ClockState
    from rotorid.live.moment import Event, Moment, Reading
    from rotorid.live.runner import Outcome

_EVENTS: Final = 6
_SHOWN_EVERY: Final = 0.25  # s
_VECTORS: Final = {"wind": ("wind_x", "wind_y"), "force": ("force_x", "force_y", "force_z")} | {
    "torque": ("torque_x", "torque_y", "torque_z")
}
_LEFT_OUT: Final = ("accelerometer_bias", "wind_force")
_WORDS: Final = {
    "waiting": "waiting for messages",
    "on_ground": "on the ground",
    "listening": "in the air, listening for two seconds",
}


class LiveView:
    """The terminal, as a consumer of moments. Where stdout is no terminal, events are printed line by line, and
    nothing else."""

    def __init__(self, console: Console, heading: str) -> None:
        from rich.live import Live

        self._console, self._heading = console, heading
        self._moment: Moment | None = None
        self._events: deque[Event] = deque(maxlen=_EVENTS)
        self._live: Any = None
        if console.is_terminal:
            self._live = Live(
                get_renderable=self._page,
                console=console,
                refresh_per_second=1.0 / _SHOWN_EVERY,
                transient=True,
            )
            self._live.start()

    def show(self, moment: Moment) -> None:
        """Keep a moment for the next look."""
        self._moment = moment
        if moment.events:
            self._events.extend(moment.events)
            if self._live is None:
                for event in moment.events:
                    self._console.print(f"{event.t:8.1f} s  {event.text}", soft_wrap=True, markup=False)

    def close(self) -> None:
        """Give the terminal back."""
        if self._live is not None:
            self._live.stop()

    def _page(self) -> Group:
        from rich.console import Group
        from rich.padding import Padding
        from rich.text import Text

        moment = self._moment
        if moment is None:
            return Group(
                Text(""), Padding(Text(f"{self._heading}: waiting for messages", style="dim"), (0, 2))
            )
        health = _WORDS.get(moment.health, moment.health.replace("_", " "))
        style = "green" if moment.health == "ok" else "yellow"
        head = Text.assemble((self._heading, "bold"), f"   {seconds(moment.t)}   ", (health, style))
        link = moment.link
        parts: list[Any] = [Text(""), Padding(head, (0, 2)), Text("")]
        if moment.readings:
            parts += [Padding(readings_table(dict(moment.readings)), (0, 2)), Text("")]
        lost = percent(link.lost / max(link.received + link.lost, 1))
        words = (
            f"{link.rate:.0f} messages/s, {lost} lost, {1e3 * link.latency:.1f} ms from message to estimate"
        )
        parts.append(Padding(Text(words, style="dim"), (0, 2)))
        if link.skipped:
            parts.append(Padding(Text(skipped_words(link.skipped), style="yellow"), (0, 2)))
        if link.clock is not None:
            parts.append(Padding(Text(clock_words(link.clock), style="dim"), (0, 2)))
        parts += [Padding(Text(f"{e.t:8.1f} s  {e.text}", style="dim"), (0, 2)) for e in list(self._events)]
        return Group(*parts, Padding(Text("Ctrl-C ends", style="dim"), (1, 2)))


def skipped_words(count: int) -> str:
    """What was left out of the estimates, in a line."""
    return (
        f"{count} messages were not estimated with, since this computer was too slow; the recording has them"
    )


def clock_words(clock: ClockState) -> str:
    """How the vehicle's clock stands to ours, in a line."""
    boot = datetime.fromtimestamp(clock.offset, UTC).strftime("%H:%M:%S.%f")[:-2]
    rate, std = 1.0 - clock.drift, clock.drift_std
    runs = f"runs at {plus_minus(rate, std)} of ours"
    if abs(clock.drift) < 1e-2:
        runs = f"gains {plus_minus(-1e6 * clock.drift, 1e6 * std, 'ppm', signed=True)} on ours"
    return (
        f"the vehicle's clock began at {boot} UTC ± {_ms(clock.offset_std)} and {runs}; messages take {_ms(clock.delay)} "
        "longer than the fastest"
    )


def _ms(value: float) -> str:
    return f"{1e3 * value:.2g} ms" if value < 0.01 else f"{1e3 * value:.0f} ms"


def readings_table(readings: dict[str, Reading]) -> Any:
    """A table of estimated numbers, vectors in one row."""
    table = empty_table()
    table.add_column("quantity")
    table.add_column("value ± std", no_wrap=True)
    of_vectors = {name for names in _VECTORS.values() for name in names}
    for name, r in readings.items():
        if name not in of_vectors and not name.startswith(_LEFT_OUT):
            table.add_row(title(name), plus_minus(r.value, r.std, r.unit))
    for name, parts in _VECTORS.items():
        found = [readings[p] for p in parts if p in readings]
        if found:
            axes = "east, north, up" if name != "torque" else "forward, left, up"
            numbers = ",  ".join(
                f"{value_text(r.value, r.std, signed=True)} ± {value_text(r.std, r.std)}" for r in found
            )
            table.add_row(
                f"{title(name)} ({', '.join(axes.split(', ')[: len(found)])})", f"{numbers} {found[0].unit}"
            )
    return table


def summary(outcome: Outcome, heading: str, recorded: str, console: Console) -> None:
    """What a session came to."""
    from rich.padding import Padding
    from rich.text import Text

    moment = outcome.last
    console.print()
    if moment is None:
        console.print(
            Padding(Text(f"{heading}: no estimate, the vehicle did not fly for long enough"), (0, 2))
        )
    else:
        link = moment.link
        console.print(Padding(Text(f"{heading}, after {seconds(moment.t)}", style="bold"), (0, 2)))
        console.print()
        console.print(Padding(readings_table(dict(moment.readings)), (0, 2)))
        lost = percent(link.lost / max(link.received + link.lost, 1))
        text = (
            f"{outcome.estimates} estimates from {link.received} messages; {lost} of the messages were lost"
        )
        console.print(Padding(Text(text, style="dim"), (0, 2)))
        if link.skipped:
            console.print(Padding(Text(skipped_words(link.skipped), style="yellow"), (0, 2)))
        late = outcome.latencies
        text = f"from message to estimate {_ms(late.quantile(0.5))}, in 99 % under {_ms(late.quantile(0.99))}"
        console.print(Padding(Text(text, style="dim"), (0, 2)))
        if link.clock is not None:
            console.print(Padding(Text(clock_words(link.clock), style="dim"), (0, 2)))
    if recorded:
        console.print()
        console.print(Padding(Text.assemble("Recording: ", (recorded, "bold")), (0, 2)))
