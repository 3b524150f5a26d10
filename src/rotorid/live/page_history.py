"""The past that a page may ask for: bounded, whole where it is new, thin where it is old.

Rows are numbered from 1 in the order of their coming. The newest are kept as they came. When they fill their room,
the older half of them is thinned, one row of each s, and joins the old ones; s doubles, and the old ones are halved,
whenever those need more than their room. So an hour takes no more memory than a minute.

Of each group that becomes one row there remain the last values, the least and greatest, the worst health, and whether a gap
lies in it: a curve of the thinned rows reaches as far as one of all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from jaxtyping import Bool, Float32, Float64, Int

from rotorid.live.moment import Moment

GAP: Final = 1.0
"""Seconds without a moment that break a curve."""

BACK: Final = 5.0
"""Seconds by which time must go back for the history to begin anew. By less, a moment is taken to be as late as the last."""


@dataclass(frozen=True)
class Rows:
    """Rows in the order of time. number: from 1. t: s. health: index into the words of the history. gap: whether the
    curve is broken before the row. value, std, least, greatest: by quantity, NaN where there was none."""

    number: Int[np.ndarray, " n"]
    t: Float64[np.ndarray, " n"]
    health: Int[np.ndarray, " n"]
    gap: Bool[np.ndarray, " n"]
    value: Float32[np.ndarray, "n quantities"]
    std: Float32[np.ndarray, "n quantities"]
    least: Float32[np.ndarray, "n quantities"]
    greatest: Float32[np.ndarray, "n quantities"]

    @staticmethod
    def empty(n: int, quantities: int) -> Rows:
        """Room for n rows."""
        nothing = (np.full((n, quantities), np.nan, np.float32) for _ in range(4))
        return Rows(np.zeros(n, np.int64), np.zeros(n), np.zeros(n, np.int16), np.zeros(n, bool), *nothing)

    def arrays(self) -> tuple[np.ndarray, ...]:
        """All of them."""
        return tuple(getattr(self, name) for name in self.__dataclass_fields__)

    def __len__(self) -> int:
        return len(self.t)

    def part(self, rows: slice) -> Rows:
        """Some of the rows, in arrays of their own."""
        return Rows(*(a[rows].copy() for a in self.arrays()))

    def then(self, later: Rows) -> Rows:
        """These and later ones."""
        return Rows(*(np.concatenate(pair) for pair in zip(self.arrays(), later.arrays(), strict=True)))

    def widened(self) -> Rows:
        """With one quantity more, that no row has."""
        wider = (np.pad(a, ((0, 0), (0, 1)), constant_values=np.nan) for a in self.arrays()[4:])
        return Rows(*self.arrays()[:4], *wider)

    def thinned(self, k: int) -> Rows:
        """One row of each k; the last group may be smaller."""
        if k < 2 or not len(self):
            return self
        starts = np.arange(0, len(self), k)
        last = np.minimum(starts + k, len(self)) - 1
        had = np.where(np.isnan(self.value), -1, np.arange(len(self))[:, None])
        latest = np.maximum.reduceat(had, starts)  # row of each group that has the last value of a quantity
        latest = np.where(latest < 0, last[:, None], latest)
        return Rows(
            self.number[last],
            self.t[last],
            np.maximum.reduceat(self.health, starts),
            np.logical_or.reduceat(self.gap, starts),
            np.take_along_axis(self.value, latest, axis=0),
            np.take_along_axis(self.std, latest, axis=0),
            np.fmin.reduceat(self.least, starts),
            np.fmax.reduceat(self.greatest, starts),
        )


class History:
    """Moments as rows of numbers.

    words: of health, from the best to the worst; one that is not among them counts as worse than those. room: how many
    new rows are kept, and how many old ones.
    """

    def __init__(self, words: Sequence[str], room: int = 8192) -> None:
        self.words = list(words)
        self.units: dict[str, str] = {}
        self.number = 0
        self._room = room
        self._begin()

    def _begin(self) -> None:
        self.first = self.number + 1
        """Number of the first row since the clock was last set back."""
        self._old = Rows.empty(0, len(self.units))
        self._new = Rows.empty(self._room, len(self.units))
        self._size, self._every = 0, 1

    def add(self, moment: Moment) -> None:
        """Append a row."""
        last = float(self._new.t[self._size - 1]) if self._size else moment.t
        if moment.t < last - BACK:
            self._begin()
            last = moment.t
        t = max(moment.t, last)
        for name in moment.readings:
            if name not in self.units:
                self.units[name] = moment.readings[name].unit
                self._old, self._new = self._old.widened(), self._new.widened()
        if moment.health not in self.words:
            self.words.append(moment.health)
        if self._size == self._room:
            self._retire()
        at, new = self._size, self._new
        self.number += 1
        self._size += 1
        new.number[at], new.t[at] = self.number, t
        new.health[at], new.gap[at] = self.words.index(moment.health), t - last > GAP
        for array in new.arrays()[4:]:
            array[at] = np.nan
        for k, name in enumerate(self.units):
            if (reading := moment.readings.get(name)) is not None:
                new.value[at, k] = new.least[at, k] = new.greatest[at, k] = reading.value
                new.std[at, k] = reading.std

    def _retire(self) -> None:
        """The older half of the new rows joins the old ones."""
        half = self._room // 2
        leaving = self._new.part(slice(0, half)).thinned(self._every)
        while len(self._old) + len(leaving) > self._room:
            self._old, leaving = self._old.thinned(2), leaving.thinned(2)
            self._every *= 2
        self._old = self._old.then(leaving)
        self._size -= half
        for array in self._new.arrays():
            array[: self._size] = array[half:].copy()

    def after(self, number: int, most: int) -> Rows:
        """Copies of the rows after that one, thinned evenly to at most so many."""
        new = self._new.number[: self._size]
        rows = self._old.part(slice(int(np.searchsorted(self._old.number, number, "right")), None))
        rows = rows.then(self._new.part(slice(int(np.searchsorted(new, number, "right")), self._size)))
        return rows.thinned(-(-len(rows) // most))
