"""Means of a signal over short windows, in the order of time.

A logged rate is filtered: the noise of samples that are closer than the memory of the filter is correlated. Means over windows
that are longer are nearly uncorrelated.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Iterator
from typing import Final

import numpy as np
from jaxtyping import Float64

_STALE: Final = 0.5  # s
_KEPT: Final = 256

Values = tuple[float, ...]


class WindowMeans:
    """Means of samples. length: of a window, s; a window has one sample at least."""

    def __init__(self, length: float) -> None:
        self._length = length
        self._samples: list[tuple[float, Values]] = []

    def add(self, t: float, values: Values) -> None:
        """Add a sample. t: s."""
        insort(self._samples, (t, values))

    def take(self, until: float) -> Iterator[tuple[float, Values]]:
        """Mean time and mean of each complete window up to a time, s; its samples are discarded."""
        samples = self._samples
        while samples:
            end = samples[0][0] + self._length
            count = next((k for k, (t, _) in enumerate(samples) if t >= end - 1e-6), 0)
            if not count or samples[count - 1][0] > until:
                return
            window, samples[:] = samples[:count], samples[count:]
            yield (
                sum(t for t, _ in window) / count,
                tuple(sum(column) / count for column in zip(*(v for _, v in window), strict=True)),
            )


class RecentValues:
    """Latest values of a signal, interpolated linearly. size: of a value."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._times: list[float] = []
        self._values: list[np.ndarray] = []

    def add(self, t: float, values: Values) -> None:
        """Add a value. t: s; values that are late are ignored."""
        if self._times and t <= self._times[-1]:
            return
        self._times.append(t)
        self._values.append(np.array(values))
        if len(self._times) > _KEPT:
            del self._times[: _KEPT // 2], self._values[: _KEPT // 2]

    def at(self, t: float) -> Float64[np.ndarray, " size"] | None:
        """Value at t, s; the nearest where t is not between two values; None where that is too old."""
        times = self._times
        k = bisect_right(times, t)
        if k == 0 or k == len(times):
            near = min(k, len(times) - 1)
            return self._values[near] if times and abs(t - times[near]) < _STALE else None
        before, after = times[k - 1], times[k]
        if after - before > _STALE:
            return None
        share = (t - before) / (after - before)
        return (1.0 - share) * self._values[k - 1] + share * self._values[k]
