"""Signals of the time in the air on one grid, cut into blocks, and the delete-block jackknife.

Signals are interpolated to the grid of the fastest one, low-pass filtered and decimated to one rate, each by the same
filter, which leaves the relations between them as they are. Blocks are adjacent parts of equal length. Of an estimate
from B blocks, those from all but one block give the standard deviation (Kunsch, "The jackknife and the bootstrap for
general stationary observations", Annals of Statistics 17, 1989):

    s^2 = (B - 1) / B sum_b |x_b - mean x|^2
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Sequence
from typing import Final

import numpy as np
from jaxtyping import Float64, Shaped

from rotorid.logs.flight import Flight
from rotorid.signals.series import Intervals, interpolate_linear, total_length

LONGEST: Final = 240.0
"""Longest time of a flight that is used, s: of a longer one, parts that are spread evenly over it."""

_PART: Final = 30.0  # s
_MARGIN: Final = 4  # samples after decimation that the filter spoils
_CUTOFF: Final = 0.42  # of the rate after decimation
_LARGEST_GAP: Final = 0.1  # s


@dataclasses.dataclass(frozen=True)
class Segment:
    """Adjacent samples without a gap. start: s. values: by signal, a row a sample."""

    start: float
    values: dict[str, Float64[np.ndarray, "n _"]]

    def __len__(self) -> int:
        return len(next(iter(self.values.values())))


@dataclasses.dataclass(frozen=True)
class Record:
    """Segments on grids of the same step. dt: this step, s. sample: step of the slowest signal in the log, s."""

    dt: float
    sample: float
    segments: tuple[Segment, ...]

    @property
    def duration(self) -> float:
        """Length of all segments, s."""
        return self.dt * sum(map(len, self.segments))

    def blocks(self, length: float, count: int) -> list[tuple[Segment, slice]]:
        """Blocks of `length` s, or shorter ones so that there are `count`; the rest of a segment belongs to its last one."""
        samples = max(1, round(min(length, self.duration / count) / self.dt))
        blocks = []
        for segment in self.segments:
            number = len(segment) // samples
            edges = [k * samples for k in range(number)] + [len(segment)]
            blocks += [(segment, slice(a, b)) for a, b in itertools.pairwise(edges)]
        return blocks


def record(flight: Flight, names: Sequence[str], flying: Intervals, rate: float) -> Record:
    """Signals in the air on a common grid.

    Args:
        flight: with these signals.
        names: of signals.
        flying: start and end of each airborne interval, s.
        rate: highest rate of the grid, Hz; it is lower where a signal is slower.
    """
    fastest = max(flight[name].rate for name in names)
    rate = min(rate, *(flight[name].rate for name in names))
    step = max(1, round(fastest / max(rate, 1e-9)))
    fine = 1.0 / fastest
    segments = []
    for start, end in _spread(_without_gaps(flight, names, flying)):
        count = int((end - start) / fine) + 1
        times = start + fine * np.arange(count)
        if count < (2 * _MARGIN + 8) * step:
            continue
        values = {
            name: _decimated(interpolate_linear(times, flight[name].times, flight[name].values), step)
            for name in names
        }
        segments.append(Segment(start + (_MARGIN * step * fine if step > 1 else 0.0), values))
    slowest = min(flight[name].rate for name in names)
    return Record(fine * step, 1.0 / slowest, tuple(segments))


def _without_gaps(flight: Flight, names: Sequence[str], flying: Intervals) -> Intervals:
    """The intervals without the gaps of any of the signals."""
    intervals = list(flying)
    for name in names:
        times = flight[name].times
        steps = np.diff(times)
        holes = np.flatnonzero(steps > max(_LARGEST_GAP, 5.0 * float(np.median(steps))))
        inside = [(times[0], times[-1])]
        edges = [times[0], *(t for i in holes for t in (times[i], times[i + 1])), times[-1]]
        inside = list(zip(edges[::2], edges[1::2], strict=True))
        intervals = [
            (max(a, c), min(b, d)) for a, b in intervals for c, d in inside if min(b, d) - max(a, c) > 1.0
        ]
    return intervals


def _spread(intervals: Intervals) -> Intervals:
    """At most `LONGEST` s of the intervals, in parts that are spread over them."""
    total = total_length(intervals)
    if total <= LONGEST:
        return intervals
    parts = []
    for start, end in intervals:
        number = max(1, int((end - start) / _PART))
        edges = np.linspace(start, end, number + 1)
        parts += list(zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True))
    chosen = np.unique(np.linspace(0, len(parts) - 1, max(1, int(LONGEST / _PART))).round().astype(int))
    return [parts[i] for i in chosen]


def _decimated(values: Float64[np.ndarray, "n k"], step: int) -> Float64[np.ndarray, "m k"]:
    """Every `step`-th row after a low-pass filter without phase, without the ends that the filter spoils."""
    if step == 1:
        return values
    half = _MARGIN * step
    k = np.arange(-half, half + 1)
    taps = np.sinc(2.0 * _CUTOFF / step * k) * np.hamming(len(k))
    taps /= taps.sum()
    size = 1 << (len(values) + len(taps) - 1).bit_length()
    mean = values.mean(axis=0)
    spectrum = np.fft.rfft(values - mean, size, axis=0) * np.fft.rfft(taps, size)[:, None]
    filtered = np.fft.irfft(spectrum, size, axis=0)[2 * half : len(values)]
    return filtered[::step] + mean


def jackknife_std(deleted: Shaped[np.ndarray, "blocks ..."]) -> Float64[np.ndarray, ...]:
    """Standard deviation of an estimate from those without one block each, for 95 % within two standard deviations.

    With few blocks the standard deviation is itself uncertain; it is widened by the quantile of Student's distribution.
    """
    count = len(deleted)
    deviation = deleted - deleted.mean(axis=0)
    variance = (count - 1) / count * (np.abs(deviation) ** 2).sum(axis=0)
    return np.sqrt(variance) * student_factor(count - 1)


def student_factor(degrees: int) -> float:
    """Quantile of Student's distribution over that of the normal one, at two of its standard deviations (Cornish-Fisher)."""
    z, n = 2.0, float(max(degrees, 2))
    terms = (z**3 + z) / (4 * n) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * n**2)
    return 1.0 + (terms + (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * n**3)) / z
