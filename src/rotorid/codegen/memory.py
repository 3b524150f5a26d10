"""Memory allocation: arrays of a program that are not live at the same time share addresses.

While a program is written, every array has its own span, with one unused number after it, so that two spans are never
contiguous. When the program is complete, spans are packed by their live ranges: the largest first, each at the lowest free
address (greedy by size: Pisarchyk and Lee, "Efficient memory management for deep neural net inference", 2020, section 5).
"""

from __future__ import annotations

import bisect
from collections.abc import Collection, Sequence

import numpy as np
from jaxtyping import Int

LiveRange = tuple[int, int]
"""First and last line of a program at which a span is live."""


class Spans:
    """Spans by number, with their first addresses and sizes while the program is written."""

    def __init__(self) -> None:
        self.starts: list[int] = []
        self.sizes: list[int] = []
        self._end = 0

    def reserve(self, size: int) -> int:
        """Add a span, and return its first address."""
        start = self._end
        if size:
            self.starts.append(start)
            self.sizes.append(size)
            self._end += size + 1
        return start

    def span_at(self, place: int) -> int:
        """The number of the span that contains an address."""
        return bisect.bisect_right(self.starts, place) - 1


def live_ranges(
    spans_of_lines: Sequence[Collection[int]], loops: Sequence[LiveRange], count: int
) -> list[LiveRange]:
    """The live ranges of `count` spans.

    A span that is used inside and outside of a loop is live in all of its iterations. A span that is used inside only is
    written in each iteration before it is read.

    Args:
        used: the spans that each line reads or writes.
        loops: first and last line of each loop, inner loops first.
        count: number of spans.
    Returns:
        First and last line at which each span is live, (0, -1) for a span that is not used.
    """
    ranges = [(0, -1)] * count
    for line, spans in enumerate(spans_of_lines):
        for span in spans:
            first, last = ranges[span]
            ranges[span] = (line, line) if last < first else (first, line)
    for first, last in loops:
        for span, (start, end) in enumerate(ranges):
            if start < first <= end <= last:
                ranges[span] = start, last
            elif first <= start <= last < end:
                ranges[span] = first, end
    return ranges


class Packed:
    """Final addresses of spans (`addresses`), and the size of the memory (`total`)."""

    def __init__(self, sizes: Sequence[int], ranges: Sequence[LiveRange]) -> None:
        self.total = 0
        self._allocations = np.zeros((0, 4), int)
        self.addresses = np.zeros(len(sizes), int)
        for span in sorted(range(len(sizes)), key=lambda k: (-sizes[k], ranges[k])):
            self.addresses[span] = self.fit(sizes[span], ranges[span], reserve=True)

    def fit(self, size: int, live_range: LiveRange, *, reserve: bool = False) -> int:
        """The lowest address at which `size` numbers are free over a live range. reserve: whether to allocate them."""
        first, last = live_range
        if last < first:
            return 0
        allocations: Int[np.ndarray, "spans 4"] = self._allocations
        overlapping = allocations[(allocations[:, 0] <= last) & (allocations[:, 1] >= first)]
        place = 0
        for start, end in overlapping[np.argsort(overlapping[:, 2]), 2:].tolist():
            if start - place >= size:
                break
            place = max(place, end)
        self.total = max(self.total, place + size)
        if reserve:
            self._allocations = np.concatenate([allocations, [[first, last, place, place + size]]])
        return place
