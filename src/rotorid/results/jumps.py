"""Jumps of the main quantity: the changes that an estimator saw, less those that its own track does not bear out.

An estimator that looks for changes (`Track.changes`) also sees some in gusts, contacts and noise. The size J of a change at
t_c is the step in a straight line through the track's values around it, beside those of other changes there,

    v(t) = a + b (t - t_c) + J [t > t_c] + sum_k J_k ([t > t_k] - [t_c > t_k]),        t_c - 2 s <= t <= t_c + 3 s,

by least squares (segmented regression of an interrupted time series: Wagner et al., J. Clin. Pharm. Ther. 27, 2002): a
steady drift is no jump. Left out are rows without information, those of a restart, those past a gap, and those from
0.1 s before to 0.25 s after each change, in which the estimator makes up its mind. Half of that window will do where the
change is twice as clear in it, for the estimator may have missed another one further off. As long as the weakest change is
less than 4 of its standard deviations, or does not show in the 0.5 s next to it, it is dropped and the others are measured
again. A change within 0.5 s of take-off, landing or a gap is none that could be told.
"""

from __future__ import annotations

import dataclasses
from typing import Final

import numpy as np
from jaxtyping import Bool, Float

from rotorid.estimators.base import Health
from rotorid.results.track import Track

STANDS_OUT: Final = 4.0
"""Standard deviations that a jump has at least."""

_BEFORE, _AFTER = 2.0, 3.0  # s
_UNDECIDED: Final = (0.1, 0.25)  # s before and after a change
_NEAR: Final = 0.5  # s; changes that are closer are one, and what shows for a shorter time is none
_GAP: Final = 0.5  # s
_FEWEST: Final = 3  # rows on each side
_RESTARTING: Final = (Health.RECOVERING, Health.DIVERGED)


@dataclasses.dataclass(frozen=True)
class Jump:
    """A jump of the main quantity at `time`, s from the start of the flight; the rest in the quantity's unit.

    before, after: where the line through the track's values meets the jump, from either side. before_std, after_std: medians
    of the track's standard deviation there, and the scatter of its values about the line. size: after less before, with its
    size_std, in which neither has the part that is a common factor of all values (a thrust scale's).
    """

    time: float
    before: float
    before_std: float
    after: float
    after_std: float
    size: float
    size_std: float


def jumps(track: Track) -> tuple[Jump, ...] | None:
    """The jumps of a track's main quantity, by time; None of an estimator that does not look for changes."""
    if track.changes is None:
        return None
    around = _Around(track)
    times = [time for time in sorted(track.changes) if around.is_inside(time)]
    known: dict[tuple[float, ...], tuple[Jump, float] | None] = {}
    while times:
        found = []
        for time in times:
            others = tuple(o for o in times if o != time and -_BEFORE < o - time < _AFTER)
            if (time, *others) not in known:
                known[time, *others] = around.clearest(time, others)
            found.append(known[time, *others])
        clarity = [0.0 if one is None else one[1] for one in found]
        for i in range(1, len(times)):
            if times[i] - times[i - 1] <= _NEAR:
                clarity[i if clarity[i] <= clarity[i - 1] else i - 1] = 0.0
        weakest = len(times) - 1 - int(np.argmin(clarity[::-1]))
        if clarity[weakest] >= STANDS_OUT:
            return tuple(one[0] for one in found if one is not None)
        del times[weakest]
    return ()


class _Around:
    """The rows of a track's main quantity that can tell a jump, and what they tell of one."""

    def __init__(self, track: Track) -> None:
        quantity = track.quantities[track.main]
        rows = quantity.informed & np.isfinite(quantity.value) & np.isfinite(quantity.std)
        rows &= ~np.isin(track.health, _RESTARTING)
        stretch = np.cumsum(np.diff(track.t, prepend=track.t[:1]) > _GAP)
        self.t, self.stretch = track.t[rows], stretch[rows]
        self.value, self.std = quantity.value[rows], quantity.std[rows]
        self.common = quantity.common

    def _window(self, time: float, before: float, after: float) -> slice:
        """Rows around a time, up to the next gaps."""
        first, middle, last = np.searchsorted(self.t, [time - before, time, time + after])
        same = self.stretch[first:last] == self.stretch[min(middle, len(self.t) - 1)]
        index = first + np.flatnonzero(same)
        return slice(index[0], index[-1] + 1) if len(index) else slice(0, 0)

    def is_inside(self, time: float) -> bool:
        """Whether half a second before and after a time is known."""
        if not len(self.t):
            return False
        t = self.t[self._window(time, _BEFORE, _AFTER)]
        return bool(len(t) and t[0] <= time - _NEAR and t[-1] >= time + _NEAR)

    def clearest(self, time: float, others: tuple[float, ...]) -> tuple[Jump, float] | None:
        """The jump at a time and how clear it is, in standard deviations; None where too few rows tell it."""
        far = self._jump(time, others, 1.0)
        if far is None or far[1] < STANDS_OUT:
            near = self._jump(time, others, 0.5)
            if near is not None and near[1] >= 2.0 * STANDS_OUT:
                return near
        return far

    def _jump(self, time: float, others: tuple[float, ...], reach: float) -> tuple[Jump, float] | None:
        """The same, from this share of the rows around it."""
        window = self._window(time, reach * _BEFORE, reach * _AFTER)
        t, value, std = self.t[window], self.value[window], self.std[window]
        decided = np.ones(len(t), bool)
        for other in (time, *others):
            decided &= (t < other - _UNDECIDED[0]) | (t > other + _UNDECIDED[1])
        t, value, std = t[decided], value[decided], std[decided]
        after = t > time
        if min(after.sum(), (~after).sum()) < _FEWEST:
            return None
        apart = [o for o in others if abs(o - time) > _NEAR]
        columns = [np.ones(len(t)), t - time, after, *((t > o) * 1.0 - (o < time) for o in apart)]
        line = np.stack(columns, axis=1)
        solution = np.linalg.lstsq(line, value, rcond=None)[0]
        before_value, size = float(solution[0]), float(solution[2])
        scatter = value - line @ solution
        own = np.sqrt(np.maximum(std**2 - (self.common * value) ** 2, 0.0))
        stds = [
            [float(np.hypot(np.median(s[side]), np.std(scatter[side]))) for s in (std, own)]
            for side in (~after, after)
        ]
        size_std = float(np.hypot(np.hypot(stds[0][1], stds[1][1]), self.common * size))
        jump = Jump(time, before_value, stds[0][0], before_value + size, stds[1][0], size, size_std)
        shown = np.sign(size) * self._difference(t, value, after)
        return jump, float(min(abs(size), shown) / max(size_std, 1e-12))

    @staticmethod
    def _difference(
        t: Float[np.ndarray, " n"], value: Float[np.ndarray, " n"], after: Bool[np.ndarray, " n"]
    ) -> float:
        """Median of the half second just after, less that of the one just before."""
        next_, last = t[after][0], t[~after][-1]
        late, early = after & (t <= next_ + _NEAR), ~after & (t >= last - _NEAR)
        return float(np.median(value[late]) - np.median(value[early]))
