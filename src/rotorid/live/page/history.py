"""Bounded history of snapshots: complete where it is new, decimated where it is old.

Rows are numbered from 1 in order of arrival. The newest are kept unchanged. When their buffer is full, its older half is
decimated by a factor s and appended to the old rows. Whenever the old rows exceed their buffer, s is doubled and every second
of them is removed. The memory therefore does not grow with the duration of a session.

Each row that represents a group has the group's last values, its minimum and maximum, its worst health, and whether it contains
a gap. A curve of decimated rows has the same range as one of all rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from jaxtyping import Bool, Float32, Float64, Int

from rotorid.live.snapshot import Snapshot

GAP: Final = 1.0
"""Time without a snapshot that interrupts a curve, s."""

BACK: Final = 5.0
"""Step back in time from which the history starts again, s. After a smaller one, a row gets the time of the previous one."""


@dataclass(frozen=True)
class HistoryRows:
    """Rows in order of time.

    number: from 1. t: session time, s. health: index into `History.health_names`. gap: whether the curve is interrupted before
    the row. value, std, minimum, maximum: by quantity, NaN if missing.
    """

    number: Int[np.ndarray, " n"]
    t: Float64[np.ndarray, " n"]
    health: Int[np.ndarray, " n"]
    gap: Bool[np.ndarray, " n"]
    value: Float32[np.ndarray, "n quantities"]
    std: Float32[np.ndarray, "n quantities"]
    minimum: Float32[np.ndarray, "n quantities"]
    maximum: Float32[np.ndarray, "n quantities"]

    @staticmethod
    def empty(n: int, quantities: int) -> HistoryRows:
        """Rows without values."""
        missing = (np.full((n, quantities), np.nan, np.float32) for _ in range(4))
        return HistoryRows(
            np.zeros(n, np.int64), np.zeros(n), np.zeros(n, np.int16), np.zeros(n, bool), *missing
        )

    def arrays(self) -> tuple[np.ndarray, ...]:
        """All fields."""
        return tuple(getattr(self, name) for name in self.__dataclass_fields__)

    def __len__(self) -> int:
        return len(self.t)

    def select(self, rows: slice) -> HistoryRows:
        """A copy of some rows."""
        return HistoryRows(*(a[rows].copy() for a in self.arrays()))

    def append(self, later: HistoryRows) -> HistoryRows:
        """These rows followed by later ones."""
        return HistoryRows(
            *(np.concatenate(pair) for pair in zip(self.arrays(), later.arrays(), strict=True))
        )

    def with_quantity(self) -> HistoryRows:
        """With one more quantity, which is missing in all rows."""
        values = (np.pad(a, ((0, 0), (0, 1)), constant_values=np.nan) for a in self.arrays()[4:])
        return HistoryRows(*self.arrays()[:4], *values)

    def decimate(self, k: int) -> HistoryRows:
        """One row for each group of k; the last group may be smaller."""
        if k < 2 or not len(self):
            return self
        starts = np.arange(0, len(self), k)
        last = np.minimum(starts + k, len(self)) - 1
        present = np.where(np.isnan(self.value), -1, np.arange(len(self))[:, None])
        latest = np.maximum.reduceat(
            present, starts
        )  # row of each group that has the last value of a quantity
        latest = np.where(latest < 0, last[:, None], latest)
        return HistoryRows(
            self.number[last],
            self.t[last],
            np.maximum.reduceat(self.health, starts),
            np.logical_or.reduceat(self.gap, starts),
            np.take_along_axis(self.value, latest, axis=0),
            np.take_along_axis(self.std, latest, axis=0),
            np.fmin.reduceat(self.minimum, starts),
            np.fmax.reduceat(self.maximum, starts),
        )


class History:
    """History of snapshots as rows.

    Args:
        health_names: names of health from best to worst; unknown names are appended as worse.
        capacity: of the buffer of new rows, and of that of old rows.

    units: by quantity. number: of the latest row. first: of the first row since the time was last set back.
    """

    def __init__(self, health_names: Sequence[str], capacity: int = 8192) -> None:
        self.health_names = list(health_names)
        self.units: dict[str, str] = {}
        self.number = 0
        self._capacity = capacity
        self._clear()

    def _clear(self) -> None:
        self.first = self.number + 1
        self._old = HistoryRows.empty(0, len(self.units))
        self._new = HistoryRows.empty(self._capacity, len(self.units))
        self._size, self._factor = 0, 1

    def add(self, snapshot: Snapshot) -> None:
        """Append a row."""
        last = float(self._new.t[self._size - 1]) if self._size else snapshot.t
        if snapshot.t < last - BACK:
            self._clear()
            last = snapshot.t
        t = max(snapshot.t, last)
        for name in snapshot.readings:
            if name not in self.units:
                self.units[name] = snapshot.readings[name].unit
                self._old, self._new = self._old.with_quantity(), self._new.with_quantity()
        if snapshot.health not in self.health_names:
            self.health_names.append(snapshot.health)
        if self._size == self._capacity:
            self._move_to_old()
        at, new = self._size, self._new
        self.number += 1
        self._size += 1
        new.number[at], new.t[at] = self.number, t
        new.health[at], new.gap[at] = self.health_names.index(snapshot.health), t - last > GAP
        for array in new.arrays()[4:]:
            array[at] = np.nan
        for k, name in enumerate(self.units):
            if (reading := snapshot.readings.get(name)) is not None:
                new.value[at, k] = new.minimum[at, k] = new.maximum[at, k] = reading.value
                new.std[at, k] = reading.std

    def _move_to_old(self) -> None:
        """Move the older half of the new rows to the old rows."""
        half = self._capacity // 2
        older = self._new.select(slice(0, half)).decimate(self._factor)
        while len(self._old) + len(older) > self._capacity:
            self._old, older = self._old.decimate(2), older.decimate(2)
            self._factor *= 2
        self._old = self._old.append(older)
        self._size -= half
        for array in self._new.arrays():
            array[: self._size] = array[half:].copy()

    def after(self, number: int, maximum: int) -> HistoryRows:
        """A copy of the rows after `number`, decimated evenly to at most `maximum`."""
        new = self._new.number[: self._size]
        rows = self._old.select(slice(int(np.searchsorted(self._old.number, number, "right")), None))
        rows = rows.append(self._new.select(slice(int(np.searchsorted(new, number, "right")), self._size)))
        return rows.decimate(-(-len(rows) // maximum))
