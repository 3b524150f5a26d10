"""Losses of thrust of single rotors, detected as the samples come.

The torque balance of the vehicle is filtered without a fault (`filter_bank`); each onset within the last seconds and each rotor
is a hypothesis. A loss is reported where

    evidence      2 log likelihood ratio of a rotor's loss is large, summed over the axes and about each of them; of a large
                  loss, which turns the vehicle over, about two, if the third could not show it. Later than 2 s after the onset
                  it takes more about each axis: a load in the ratio of a rotor in roll and pitch then had time for a yaw
                  torque by chance
    pattern       the share that is lost is the same about roll, pitch and yaw, within its uncertainty. A shift of the centre of
                  mass, a load on one side or a push gives other torques about yaw than a rotor that pulls less. The share of a
                  large loss about yaw is less sure: the torque ratio is known about hover only, and a rotor next to it may be
                  at its limit
    alternative   no other rotor explains nearly as much; beside a large loss, no other one from the same onset on, or with
                  evidence and pattern too: a rotor without a torque about an axis need not explain what happens there
    suddenness    a loss that grows does not explain more: gusts and what the air does in a manoeuvre come gradually
    duration      it lasts: longer for a small loss than for a stopped motor

A rotor that turns slower than commanded, by its measured speed, needs less evidence: as much as a large loss.

The share is then refined for some seconds, and the thrust of the rotor is corrected by it, so that further losses are found.
Steady offsets and the ratio of thrust over inertia are learned in the first seconds: the airframe's inertia is only a prior.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Final

import numpy as np
from jaxtyping import Float

from rotorid.estimators.rotor_faults.filter_bank import FilterBank, QuietRows
from rotorid.estimators.rotor_faults.rotor_speeds import Cause
from rotorid.estimators.rotor_faults.torque_rows import FlightRows, TorqueRow

LEARNING: Final = 3.0
"""Time in which offsets and gains are learned before a loss can be detected, s, at least."""

MEMORY: Final = 4.0
"""Age of the oldest onset that is considered, s."""

LONG_MEMORY: Final = 10.0
"""Age up to which one onset is kept that explains much, but not yet a torque about each axis, s."""

LEAST_LOSS: Final = 0.09
"""Smallest share of its thrust that is reported."""

STOPPED: Final = 0.7
"""Share of its thrust from which on a motor is taken to have stopped."""

_LEARNING_ROWS: Final = 30
_EVIDENCE, _EVIDENCE_OF_LARGE = 60.0, 36.0
_AXIS, _AXIS_OF_LARGE = 7.5, 3.0  # evidence about each axis
_AXIS_LATE = 12.0  # after `_LATE`
_LATE: Final = 2.0  # s after the onset
_CONSISTENT: Final = (
    4.0  # chi-square of the shares about the axes; 86 % where they differ by their uncertainty alone
)
_PATTERN_STD, _PATTERN_STD_OF_LARGE = (0.08, 0.08, 0.08), (0.15, 0.15, 0.35)  # of the share, between the axes
_OTHER: Final = 0.7  # of the evidence, that another rotor may have
_NO_TORQUE: Final = 0.2  # of the largest torque about an axis, below which a rotor has none
_LARGE: Final = 0.5  # share from which on a loss is large
_LONG, _SHORT = 0.9, 0.15  # s, that a small loss and a stopped motor last
_OF_SLOW: Final = 0.4  # s, that a loss of a rotor lasts that turns slower than commanded
_SHADOW: Final = (
    2.0  # s after an onset that was given up, in which later ones explain a part of the same change
)
_REFINED: Final = 3.0  # s after the detection
_MODEL_STD: Final = 0.05  # of the share: lag, thrust curve between the two commands
_LEAST_STD: Final = 0.01
_CONFIRMED: Final = 3  # rows
_MOST: Final = 0.99  # of the share, in the correction


@dataclasses.dataclass(frozen=True)
class RotorFault:
    """A rotor that lost thrust. rotor: counted from 0. onset: s. detected: s. share: of its thrust that was lost, with std.
    cause: by the measured speeds."""

    rotor: int
    onset: float
    detected: float
    share: float
    std: float
    cause: Cause = ""

    @property
    def is_stopped(self) -> bool:
        """Whether the motor gives next to no thrust."""
        return self.share >= STOPPED


class RotorFaultDetector:
    """Detects losses of thrust of single rotors.

    Args:
        g: acceleration about each body axis by the thrust of each rotor, rad/s^2 per N.
        thrust: of one rotor in hover, N.
        step: between two rows, s.
        faults: that are known already.

    faults: as found so far, oldest first; the last one is refined for some seconds. suspected: rotor and share of a loss that
    has not lasted long enough, None without one.
    """

    def __init__(
        self,
        g: Float[np.ndarray, "3 rotors"],
        thrust: float,
        step: float,
        faults: Sequence[RotorFault] = (),
    ) -> None:
        self._every = max(round(0.05 / step), 1)
        self._bank = FilterBank(g, thrust, max(round(MEMORY / (step * self._every)), 4))
        largest = np.abs(g).max(axis=1, keepdims=True)
        self._has_torque = np.abs(g) > _NO_TORQUE * largest
        self.faults: list[RotorFault] = list(faults)
        self.effectiveness = np.ones(g.shape[1])
        for fault in self.faults:
            self.effectiveness[fault.rotor] *= 1.0 - min(fault.share, _MOST)
        self.suspected: tuple[int, float] | None = None
        self._since, self._learning = 0.0, max(LEARNING, _LEARNING_ROWS * step)
        self._rows = 0
        self._confirmed, self._usable_from = (-1, 0), -math.inf
        self._open: tuple[int, int] | None = None  # onset slot and rotor of the fault that is refined
        self._is_stop_reported = False

    def forget(self) -> None:
        """Forget all faults, and learn the offsets again."""
        self.faults.clear()
        self.effectiveness[:] = 1.0
        self.restart()

    def restart(self) -> None:
        """After a gap: learn the offsets again."""
        self._bank.restart()
        if self._open is not None:
            self._close()
        self._since, self._open, self._confirmed, self.suspected = 0.0, None, (-1, 0), None

    @property
    def _is_over(self) -> bool:
        """Whether a motor stopped, and how much thrust it lost is known."""
        return self._open is None and any(fault.is_stopped for fault in self.faults)

    def step(self, row: TorqueRow, slow: int | None = None) -> RotorFault | None:
        """Use a row. slow: a rotor that turns slower than commanded. Returns a loss when it is detected, and again if it is
        found later that the motor stopped. After the share of a motor that stopped is refined, no further loss is looked for:
        the vehicle falls."""
        if self._is_over:
            return None
        self._rows += 1
        self._since += row.step
        is_onset = self._since > self._learning and self._rows % self._every == 0 and self._open is None
        bank = self._bank
        bank.step(
            row.t,
            row.step,
            row.acceleration,
            self.effectiveness * row.thrust,
            row.rate,
            row.products,
            is_onset=is_onset,
            loss=None if self._open is None else (*self._open, self.faults[-1].share),
        )
        return self._judge(row, slow)

    def use_rows(self, rows: FlightRows) -> None:
        """Use rows without a gap, as by `step` of each."""
        first = 0
        while first < len(rows.values):
            if self._is_over:
                return
            if self._bank.is_compiled and self._open is None and self._bank.kept < 0:
                first = self._use_quiet_rows(rows, first)
            else:
                self.step(rows.row(first))
                first += 1

    def _use_quiet_rows(self, rows: FlightRows, first: int) -> int:
        """Use rows from one on as long as none shows enough evidence of a loss, and the one that does; returns how many are
        used then."""
        quiet = QuietRows(
            rows=self._rows,
            every=self._every,
            since=self._since,
            learning=self._learning,
            enough=_EVIDENCE_OF_LARGE,
        )
        last = first + self._bank.use_quiet_rows(
            rows.values[first:], self.effectiveness, self._has_torque, quiet
        )
        self._rows, self._since = quiet.rows, quiet.since
        if last - first > quiet.is_enough:
            self.suspected, self._confirmed = None, (-1, 0)
        if quiet.is_enough:
            self._judge(rows.row(last - 1), None)
        return last

    def _judge(self, row: TorqueRow, slow: int | None) -> RotorFault | None:
        """See `step`, after the filters have used the row."""
        bank = self._bank
        if self._open is not None:
            self._refine(row.end)
            return self._new_stop()
        if self._since <= self._learning:
            return None
        found = self._detect(row.t, slow)
        if found is None:
            self._confirmed = (-1, 0)
            return None
        slot, rotor = found
        count = self._confirmed[1] + 1 if self._confirmed[0] == rotor else 1
        self._confirmed = (rotor, count)
        if count < _CONFIRMED:
            return None
        self._open = found
        bank.restore_noise(slot)
        share, std = self._share(slot, rotor)
        self.suspected = None
        self.faults.append(RotorFault(rotor, float(bank.onsets[slot]), row.end, share, std))
        self._is_stop_reported = self.faults[-1].is_stopped
        return self.faults[-1]

    def _new_stop(self) -> RotorFault | None:
        """The last fault, if it is found only now that its motor stopped."""
        if self._is_stop_reported or not self.faults[-1].is_stopped:
            return None
        self._is_stop_reported = True
        return self.faults[-1]

    def _detect(self, t: float, slow: int | None) -> tuple[int, int] | None:
        self.suspected = None
        if self._bank.most_evidence(self._has_torque) < _EVIDENCE_OF_LARGE:
            self._give_up(t)
            self._bank.kept = -1
            return None
        used = self._has_torque.T[None]
        S, D = self._bank.statistics()
        S, D = np.where(used, S, 0.0), np.where(used, D, 0.0)
        s, d = S.sum(axis=2), D.sum(axis=2)
        with np.errstate(divide="ignore", invalid="ignore"):
            evidence = np.where((d > 0.0) & (s > 0.0), d**2 / s, 0.0)
            share = np.where(s > 0.0, d / s, 0.0)
            own = np.where(S > 0.0, D / S, 0.0)
            is_large = share > _LARGE
            is_likely = is_large | (np.arange(share.shape[1]) == slow)
            pattern_std = (
                np.where(is_large[..., None], _PATTERN_STD_OF_LARGE, _PATTERN_STD) * share[..., None]
            )
            variance = np.where(S > 0.0, 1.0 / S, np.inf) + pattern_std**2
            z = np.where(S > 0.0, D / np.sqrt(S), 0.0)
        is_same = np.sum((own - share[..., None]) ** 2 / variance, axis=2, where=used) < _CONSISTENT
        age = t - self._bank.onsets[:, None]
        of_small = np.where(age > _LATE, _AXIS_LATE, _AXIS)
        of_axis = np.where(is_likely, _AXIS_OF_LARGE, of_small)[..., None]
        shows = used & (z > 0.0) & (z**2 > of_axis)
        least = share[..., None] - np.where(is_large[..., None], 2.0 * pattern_std, 0.0)  # about an axis
        cannot_show = is_likely[..., None] & (least**2 * S < of_axis)
        is_evident = np.all(~used | shows | cannot_show, axis=2) & (shows.sum(axis=2) >= 2)
        is_evident &= evidence > np.where(is_likely, _EVIDENCE_OF_LARGE, _EVIDENCE)
        needed = np.where(is_large, _SHORT, np.where(is_likely, _OF_SLOW, _LONG))
        shown = is_same & is_evident & (share > LEAST_LOSS)
        if shown.any():
            k = np.unravel_index(np.argmax(np.where(shown, evidence, 0.0)), evidence.shape)
            self.suspected = int(k[1]), min(float(share[k]), 1.0)
        self._keep(np.where(is_same & (evidence > _EVIDENCE) & (share > LEAST_LOSS), evidence, 0.0), t)
        usable = shown & (age >= needed) & (self._bank.onsets[:, None] >= self._usable_from)
        S, D = self._bank.statistics(1)
        gradual = np.where(used, D, 0.0).sum(axis=2) ** 2 / np.maximum(
            np.where(used, S, 0.0).sum(axis=2), 1e-300
        )
        usable &= is_likely | (evidence > gradual.max(axis=0))
        if not usable.any():
            return None
        slot, rotor = np.unravel_index(np.argmax(np.where(usable, evidence, 0.0)), evidence.shape)
        is_rival = shown | ~is_large[slot, rotor]
        is_rival[slot] = True
        others = np.delete(np.where(is_rival, evidence, 0.0), rotor, axis=1)
        if others.size and others.max() > _OTHER * evidence[slot, rotor]:
            return None
        return int(slot), int(rotor)

    def _keep(self, evidence: Float[np.ndarray, "onsets rotors"], t: float) -> None:
        """Keep the onset with the most evidence, up to `LONG_MEMORY`."""
        self._give_up(t)
        bank = self._bank
        is_young = t - bank.onsets <= LONG_MEMORY
        best = np.where(is_young, evidence.max(axis=1), 0.0)
        bank.kept = int(np.argmax(best)) if best.max() > 0.0 else -1

    def _give_up(self, t: float) -> None:
        """Do not use later onsets that explain a part of the same change as a kept one that is too old."""
        bank = self._bank
        if bank.kept >= 0 and t - bank.onsets[bank.kept] > LONG_MEMORY:
            self._usable_from = float(bank.onsets[bank.kept]) + _SHADOW

    def _share(self, slot: int, rotor: int) -> tuple[float, float]:
        S, D = self._bank.statistics()
        s, d = float(S[slot, rotor].sum()), float(D[slot, rotor].sum())
        share = d / s
        return min(share, 1.0), math.sqrt(1.0 / s + (_MODEL_STD * share) ** 2 + _LEAST_STD**2)

    def set_cause(self, cause: Cause) -> None:
        """Set the cause of the last fault."""
        self.faults[-1] = dataclasses.replace(self.faults[-1], cause=cause)

    def _refine(self, t: float) -> None:
        assert self._open is not None
        rotor = self._open[1]
        S, D = self._bank.statistics()
        s, d = S[:, rotor].sum(axis=1), D[:, rotor].sum(axis=1)
        slot = int(np.argmax(np.where((s > 0.0) & (d > 0.0), d**2 / np.maximum(s, 1e-300), 0.0)))
        self._open = slot, rotor
        share, std = self._share(slot, rotor)
        onset = float(self._bank.onsets[slot])
        self.faults[-1] = dataclasses.replace(self.faults[-1], onset=onset, share=share, std=std)
        if t - self.faults[-1].detected > _REFINED:
            self._bank.compensate(slot, rotor, share, std)
            self._close()

    def _close(self) -> None:
        """End the refinement of the last fault."""
        fault = self.faults[-1]
        self.effectiveness[fault.rotor] *= 1.0 - min(fault.share, _MOST)
        self._open, self._confirmed = None, (-1, 0)
