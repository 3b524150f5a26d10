"""Clocks: order of the time stamps, gaps, and how regular the samples come."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from rotorid.logs.flight import Flight, Signal
from rotorid.signals.inspection.findings import Finding, Severity
from rotorid.signals.series import Intervals

_EVENTS: Final = ("airborne", "true_mass", "true_force", "true_torque", "battery_voltage")
"""Signals that come when something changes, or slowly: no gaps are looked for."""

_LONG: Final = 1.0


def _steady(flight: Flight) -> list[Signal]:
    return [s for n, s in flight.signals.items() if n not in _EVENTS and len(s.times) > 20]


def order(flight: Flight, flying: Intervals) -> Iterator[Finding]:
    """Time stamps must grow."""
    wrong = [
        (n, s.times) for n, s in flight.signals.items() if len(s.times) > 1 and (np.diff(s.times) <= 0).any()
    ]
    for name, times in wrong:
        back = np.flatnonzero(np.diff(times) <= 0)
        yield Finding(
            "time order",
            Severity.ERROR,
            f"{name}: time stands still or runs backwards {len(back)} times, first at {times[back[0]]:.3f} s",
            (name,),
            "sort the rows, or cut the log where its clock was set",
        )
    if flight.signals and not wrong:
        yield Finding("time order", Severity.OK, "time stamps of every signal grow")


def signal_gaps(signal: Signal) -> list[tuple[float, float]]:
    """Start and end, s, of each stretch without samples: ten times the usual step, and 0.1 s at least."""
    steps = np.diff(signal.times)
    if len(steps) < 2:
        return []
    wide = np.flatnonzero(steps > max(10.0 * float(np.median(steps)), 0.1))
    return [(float(signal.times[i]), float(signal.times[i + 1])) for i in wide]


def gaps(flight: Flight, flying: Intervals) -> Iterator[Finding]:
    """Stretches without samples: of the whole log (a logger that stopped) or of single signals."""
    steady = _steady(flight)
    found = {s.name: signal_gaps(s) for s in steady}
    shared: list[tuple[float, float]] = []
    if len(steady) > 1:
        first = next(iter(found.values()))
        shared = [g for g in first if all(any(_same(g, h) for h in other) for other in found.values())]
    if shared:
        yield _gap_finding("the whole log", shared, tuple(found), flying)
    for name, own in found.items():
        rest = [g for g in own if not any(_same(g, h) for h in shared)]
        if rest:
            yield _gap_finding(name, rest, (name,), flying)
    if steady and not any(found.values()):
        yield Finding("gaps", Severity.OK, "no gaps")


def _same(a: tuple[float, float], b: tuple[float, float]) -> bool:
    overlap = min(a[1], b[1]) - max(a[0], b[0])
    return overlap > 0.5 * min(a[1] - a[0], b[1] - b[0])


def _gap_finding(
    what: str, found: list[tuple[float, float]], signals: tuple[str, ...], flying: Intervals
) -> Finding:
    start, end = max(found, key=lambda g: g[1] - g[0])
    in_flight = [g for g in found if any(g[0] < e and g[1] > s for s, e in flying)]
    longest = max((e - s for s, e in in_flight), default=0.0)
    total = sum(e - s for s, e in found)
    count = (
        f"{len(found)} gaps, {total:.2f} s in all, the longest {end - start:.2f} s"
        if len(found) > 1
        else f"a gap of {end - start:.2f} s"
    )
    where = "in flight" if in_flight else "on the ground"
    return Finding(
        "gaps",
        Severity.WARNING if longest >= _LONG else Severity.NOTE,
        f"{what}: {count} from {start:.2f} to {end:.2f} s, {where}",
        signals,
        "estimates widen in a gap; log to a faster card or fewer topics" if in_flight else "",
    )


def regularity(flight: Flight, flying: Intervals) -> Iterator[Finding]:
    """Samples that do not come at a steady rate, and rates that change in the flight."""
    for signal in _steady(flight):
        steps = np.diff(signal.times)
        median = float(np.median(steps))
        usual = steps < 10.0 * median
        uneven = float((np.abs(steps[usual] - median) > 0.5 * median).mean())
        first = signal.times[1:] < 0.5 * (signal.times[0] + signal.times[-1])
        if min((usual & first).sum(), (usual & ~first).sum()) < 10:
            continue
        early, late = float(np.median(steps[usual & first])), float(np.median(steps[usual & ~first]))
        if not 0.67 < early / late < 1.5:
            message = f"{signal.name}: its rate changes from {1 / early:.0f} to {1 / late:.0f} Hz"
        elif uneven > 0.2:
            message = (
                f"{signal.name}: {100 * uneven:.0f} % of its samples come more than half a step early or late"
            )
        else:
            continue
        yield Finding("regularity", Severity.NOTE, message, (signal.name,))
