"""Checks of the clocks: order of the time stamps, gaps, and regularity of the samples."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from rotorid.findings import Finding, Severity
from rotorid.logs.flight import Flight, Signal
from rotorid.signals.series import Intervals

Gap = tuple[float, float]
"""Start and end of an interval without samples, s."""

_IRREGULAR: Final = (
    *("airborne", "true_mass", "true_force", "true_torque"),
    *("battery_voltage", "battery_current", "battery_remaining"),
)
"""Signals that are logged on change or slowly: not checked for gaps."""

_LONG_GAP: Final = 1.0  # s: a warning from this duration on
_LARGEST_UNEVEN_SHARE: Final = 0.2
_LARGEST_RATE_RATIO: Final = (0.67, 1.5)


def check_time_order(flight: Flight, flying: Intervals) -> Iterator[Finding]:
    """Time stamps must increase."""
    is_increasing = True
    for name, signal in flight.signals.items():
        backward = np.flatnonzero(np.diff(signal.times) <= 0)
        if len(backward):
            is_increasing = False
            values = {"count": len(backward), "first": float(signal.times[backward[0]])}
            yield Finding("time_not_increasing", Severity.ERROR, values, (name,))
    if flight.signals and is_increasing:
        yield Finding("time_increasing", Severity.OK)


def signal_gaps(signal: Signal) -> list[Gap]:
    """The gaps of a signal: intervals of more than ten median steps, and of more than 0.1 s."""
    steps = np.diff(signal.times)
    if len(steps) < 2:
        return []
    at = np.flatnonzero(steps > max(10.0 * float(np.median(steps)), 0.1))
    return [(float(signal.times[i]), float(signal.times[i + 1])) for i in at]


def check_gaps(flight: Flight, flying: Intervals) -> Iterator[Finding]:
    """Gaps of all signals at once, as when logging stopped, and gaps of single signals."""
    gaps = {signal.name: signal_gaps(signal) for signal in _regular_signals(flight)}
    common: list[Gap] = []
    if len(gaps) > 1:
        first = next(iter(gaps.values()))
        common = [gap for gap in first if all(any(_overlap(gap, g) for g in own) for own in gaps.values())]
    if common:
        yield _gap_finding("gaps_in_all_signals", common, tuple(gaps), flying)
    for name, own in gaps.items():
        rest = [gap for gap in own if not any(_overlap(gap, g) for g in common)]
        if rest:
            yield _gap_finding("gaps_in_signal", rest, (name,), flying)
    if gaps and not any(gaps.values()):
        yield Finding("no_gaps", Severity.OK)


def _regular_signals(flight: Flight) -> list[Signal]:
    return [s for name, s in flight.signals.items() if name not in _IRREGULAR and len(s.times) > 20]


def _overlap(a: Gap, b: Gap) -> bool:
    """Whether two gaps overlap by more than half of the shorter one."""
    overlap = min(a[1], b[1]) - max(a[0], b[0])
    return overlap > 0.5 * min(a[1] - a[0], b[1] - b[0])


def _gap_finding(code: str, gaps: Sequence[Gap], signals: tuple[str, ...], flying: Intervals) -> Finding:
    start, end = max(gaps, key=lambda gap: gap[1] - gap[0])
    in_flight = [gap for gap in gaps if any(gap[0] < e and gap[1] > s for s, e in flying)]
    longest_in_flight = max((e - s for s, e in in_flight), default=0.0)
    values = {
        "count": len(gaps),
        "total": sum(e - s for s, e in gaps),
        "longest": end - start,
        "start": start,
        "end": end,
        "is_in_flight": bool(in_flight),
    }
    return Finding(
        code, Severity.WARNING if longest_in_flight >= _LONG_GAP else Severity.NOTE, values, signals
    )


def check_regularity(flight: Flight, flying: Intervals) -> Iterator[Finding]:
    """Sampling rates that change during the log, and samples that are not evenly spaced."""
    for signal in _regular_signals(flight):
        steps = np.diff(signal.times)
        median = float(np.median(steps))
        usual = steps < 10.0 * median
        uneven = float((np.abs(steps[usual] - median) > 0.5 * median).mean())
        first_half = signal.times[1:] < 0.5 * (signal.times[0] + signal.times[-1])
        if min((usual & first_half).sum(), (usual & ~first_half).sum()) < 10:
            continue
        early, late = (
            float(np.median(steps[usual & first_half])),
            float(np.median(steps[usual & ~first_half])),
        )
        low, high = _LARGEST_RATE_RATIO
        if not low < early / late < high:
            values = {"before": 1 / early, "after": 1 / late}
            yield Finding("rate_changes", Severity.NOTE, values, (signal.name,))
        elif uneven > _LARGEST_UNEVEN_SHARE:
            yield Finding("samples_uneven", Severity.NOTE, {"share": uneven}, (signal.name,))
