"""Times in which the autopilot's estimator reported faults, from rows of its status."""

from __future__ import annotations

from typing import Final

import numpy as np
from jaxtyping import Bool, Float64

from rotorid.logs.reader_base import Collector

_MARGIN: Final = 1.0  # s before and after, in which the estimate is wrong already, or still


def add_fault_times(
    collector: Collector,
    times: Float64[np.ndarray, " n"],
    is_faulty: Bool[np.ndarray, " n"],
    least: float = 0.0,
) -> None:
    """Add the times of faults to a flight, and a note with their beginnings.

    Args:
        collector: of the flight.
        times: of the rows, in order, s after the collector's clock.
        is_faulty: whether the estimator reports a fault in a row.
        least: duration of a fault that counts, s.
    """
    edges = np.flatnonzero(np.diff(np.concatenate(([False], is_faulty, [False])).astype(int)))
    intervals: list[tuple[float, float]] = []
    for first, end in edges.reshape(-1, 2).tolist():
        start, last = float(times[first]) - _MARGIN, float(times[end - 1])
        if last - float(times[first]) < least:
            continue
        if intervals and start <= intervals[-1][1]:
            start = intervals.pop()[0]
        intervals.append((start, last + _MARGIN))
    if intervals:
        collector.estimator_faults = intervals
        starts = np.array([start + _MARGIN for start, _ in intervals])
        text = "the autopilot's estimator reported faults from {times} s on: its velocity and attitude are not to be believed"
        collector.note_times(text, starts)
