"""Where a program's arrays lie in its memory: what is needed no more makes room for what comes.

While a program is written, every array has a span of numbers of its own, and a number between it and the next, so that two
of them are never neighbours. When it is known which lines touch which spans, those that are not needed at the same time
share places: the largest first, each as far in front as it fits (greedy by size: Pisarchyk and Lee, "Efficient memory
management for deep neural net inference", 2020, section 5).
"""

from __future__ import annotations

import bisect
from collections.abc import Collection, Sequence

import numpy as np
from jaxtyping import Int

Life = tuple[int, int]
"""First and last line of a program at which a span is needed."""


class Spans:
    """Spans by number, with their first places for now and their sizes."""

    def __init__(self) -> None:
        self.starts: list[int] = []
        self.sizes: list[int] = []
        self._end = 0

    def reserve(self, size: int) -> int:
        """The place of a new span's first number."""
        start = self._end
        if size:
            self.starts.append(start)
            self.sizes.append(size)
            self._end += size + 1
        return start

    def of(self, place: int) -> int:
        """The number of the span that a place is in."""
        return bisect.bisect_right(self.starts, place) - 1


def lives(touched: Sequence[Collection[int]], loops: Sequence[Life], count: int) -> list[Life]:
    """When each of `count` spans is needed. touched: the spans that each line reads or writes. loops: first and last lines.

    What a loop touches and what is touched outside it, too, is needed in all of its turns. What is touched in a loop alone is
    taken to be written in each turn before it is read. A span that nothing touches is needed nowhere: (0, -1).
    """
    found = [(0, -1)] * count
    for line, spans in enumerate(touched):
        for span in spans:
            first, last = found[span]
            found[span] = (line, line) if last < first else (first, line)
    for first, last in loops:
        for span, (start, end) in enumerate(found):
            if start < first <= end <= last:
                found[span] = start, last
            elif first <= start <= last < end:
                found[span] = first, end
    return found


class Packed:
    """Places of spans in one memory. total: numbers in it."""

    def __init__(self, sizes: Sequence[int], lives: Sequence[Life]) -> None:
        self.total = 0
        self._taken = np.zeros((0, 4), int)
        self.places = np.zeros(len(sizes), int)
        for span in sorted(range(len(sizes)), key=lambda k: (-sizes[k], lives[k])):
            self.places[span] = self.fit(sizes[span], lives[span], keep=True)

    def fit(self, size: int, life: Life, *, keep: bool = False) -> int:
        """The first place at which so many numbers are free all that life. keep: whether they are taken from now on."""
        first, last = life
        if last < first:
            return 0
        others: Int[np.ndarray, "spans 4"] = self._taken
        busy = others[(others[:, 0] <= last) & (others[:, 1] >= first)]
        place = 0
        for start, end in busy[np.argsort(busy[:, 2]), 2:].tolist():
            if start - place >= size:
                break
            place = max(place, end)
        self.total = max(self.total, place + size)
        if keep:
            self._taken = np.concatenate([others, [[first, last, place, place + size]]])
        return place
