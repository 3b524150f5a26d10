"""Kalman filters of the torque balance without a fault, and what a loss of thrust would add to their innovations.

For each body axis, with T the thrusts by command, g = G / J the acceleration by each, a and w the angular acceleration and
velocity,

    g.T = b + beta a + k w + c p + v           x = (b, beta, k, c),  random walks

b is the steady offset (centre of mass, wind moment), beta the ratio of inertia over thrust to that of the airframe, k the
damping, p the product of the other two rates, and c the error of the gyroscopic torque in a, which is computed with the
inertia of the airframe: unmodelled, it hides losses about yaw. The commands are regressed on the motion, and not the other way
round: commands that are logged slowly, or that shake, have errors, which would bias beta, and with it the effect of a loss.
How fast b wanders is unknown: a few filters with other drift rates run side by side, and the one that predicts best is used,
for each axis. The variance of v is estimated from the innovations.

A rotor i that loses the share delta of its thrust from row s on is commanded to more: delta h, h = g_i T_i, is added to g.T.
Its effect on the innovations e of the filter, and on the filter's own estimate, is linear in delta and is propagated beside it:

    nu = h - H xi,      xi <- xi + K nu,      S += nu^2 / V,      D += nu e / V

delta = D / S is the estimate under this hypothesis, D^2 / S twice its log-likelihood ratio. A second set of hypotheses has the
share grow from s on, over `RAMP`: what the air does to a vehicle that accelerates, turns or meets a gust comes gradually.
Source: A. Willsky, H. Jones, A
generalized likelihood ratio approach to the detection and estimation of jumps in linear systems, IEEE TAC 21 (1976).

V comes from the past, and gusts are neither steady nor white. The residuals e - delta nu since s tell both: with their variance
sigma^2 (over V) and autocorrelation r, S and D count (1 - r) / (1 + r) / sigma^2, as for an autoregressive noise. Both are
averaged with those before the onset, which count `PRIOR_ROWS`, and never taken as smaller than these.

A row is computed in C (`codegen/c/rotor_faults.c`), and without a compiler in NumPy.
"""

from __future__ import annotations

import ctypes
import math
from typing import Final

import numpy as np
from jaxtyping import Bool, Float, Int

from rotorid.codegen.native import pointer
from rotorid.estimators.rotor_faults.library import fault_library

DRIFTS: Final = np.array([1e-4, 3e-3, 1e-1])
"""Variance of the change of b in a second, over the variance of v."""

RAMP: Final = 1.5
"""Time in which a gradual change is complete, s."""

PRIOR_ROWS: Final = 10
"""Rows as which the variance and autocorrelation of the innovations before an onset count."""

_BETA_STD: Final = 0.4
_BETA_DRIFT: Final = 0.01  # per square root of s
_OFFSET_STD: Final = 0.5  # of the acceleration by the mean thrust of one rotor
_DAMPING_STD: Final = 1.0  # 1/s
_DAMPING_DRIFT: Final = 0.02  # 1/s per square root of s
_GYROSCOPIC_STD: Final = 0.1  # of c
_STATES: Final = 4
_FIRST_NOISE: Final = 0.1  # of the acceleration by the mean thrust of one rotor
_NOISE_TIME: Final = 10.0  # s, over which the variance of v is averaged
_LIKELIHOOD_TIME: Final = 20.0  # s
_MOST_CORRELATED: Final = 0.9
_OUTLIER: Final = 9.0  # of e^2 / V, what the variance of v follows at most


class QuietRows(ctypes.Structure):
    """Use of rows while no loss shows (`quiet_rows` of rotor_faults.c).

    rows: how many were used. every: rows from onset to onset. next, used, count: of the bank. is_enough: whether the last row
    shows enough evidence. since: time since the start, s. learning: time without onsets, s. enough: evidence that ends it.
    """

    rows: int
    every: int
    next: int
    used: int
    count: int
    is_enough: int
    since: float
    learning: float
    enough: float
    _fields_ = [
        *((name, ctypes.c_int64) for name in ("rows", "every", "next", "used", "count", "is_enough")),
        *((name, ctypes.c_double) for name in ("since", "learning", "enough")),
    ]


class FilterBank:
    """The filters, and the hypotheses of a loss of each rotor from each of the last rows on.

    Args:
        g: acceleration about each axis by the thrust of each rotor, rad/s^2 per N.
        thrust: of one rotor in hover, N.
        rows: number of onsets that are kept.

    onsets: time of each onset, s; NaN for none. kept: an onset that is not replaced by a later one; -1 for none.
    """

    def __init__(self, g: Float[np.ndarray, "3 rotors"], thrust: float, rows: int) -> None:
        self.g, self.rows, self.rotors = np.ascontiguousarray(g, float), rows, g.shape[1]
        self._scale = np.maximum(np.linalg.norm(g, axis=1) * thrust / math.sqrt(self.rotors), 1e-9)
        q, s = len(DRIFTS), self._scale[:, None]
        self.x = np.zeros((3, q, _STATES))
        self.x[:, :, 1] = 1.0
        self.P = np.zeros((3, q, _STATES, _STATES))
        self.P[:, :, 1, 1] = _BETA_STD**2
        self.P[:, :, 2, 2] = _DAMPING_STD**2
        self.P[:, :, 3, 3] = _GYROSCOPIC_STD**2
        self.R = np.broadcast_to((_FIRST_NOISE * s) ** 2, (3, q)).copy()
        self.likelihood = np.zeros((3, q))
        self.correlation, self.power = np.zeros((3, q)), np.ones((3, q))
        self.last_e = np.zeros((3, q))
        self.correlation_before, self.power_before = np.zeros((rows, 3, q)), np.ones((rows, 3, q))
        self.R_before = np.empty((rows, 3, q))
        self.rows_since, self.onsets = np.empty(rows), np.empty(rows)
        self.E, self.lagged_E = np.empty((3, q, rows)), np.empty((3, q, rows))
        # for each axis and filter: of sudden and of gradual losses, by onset and rotor
        shape = (3, q, 2, rows, self.rotors)
        self.S, self.D, self.last_nu = np.empty(shape), np.empty(shape), np.empty(shape)
        self.lagged_S, self.lagged_D = np.empty(shape), np.empty(shape)
        self.xi = np.empty((3, q, _STATES, 2, rows, self.rotors))
        self.count = 0
        self._in_c = _InC(self) if fault_library() is not None else None
        self.restart()

    def restart(self) -> None:
        """Forget the offsets, but not inertia, damping and noise, after a gap."""
        s = self._scale[:, None]
        self.x[:, :, 0] = 0.0
        self.P[:, :, 0, :] = self.P[:, :, :, 0] = 0.0
        self.P[:, :, 0, 0] = (_OFFSET_STD * s) ** 2
        self.last_e[:] = 0.0
        self._forget_hypotheses()

    def _forget_hypotheses(self) -> None:
        self.R_before[:] = self.R
        self.onsets[:] = np.nan
        self._next, self.used, self.kept = 0, 0, -1
        for sums in (self.rows_since, self.E, self.lagged_E, *self._sums):
            sums[:] = 0.0

    @property
    def _sums(self) -> tuple[np.ndarray, ...]:
        return self.xi, self.S, self.D, self.last_nu, self.lagged_S, self.lagged_D

    @property
    def best(self) -> Int[np.ndarray, " 3"]:
        """The filter that predicts best, of each axis."""
        return np.argmax(self.likelihood, axis=1)

    @property
    def is_compiled(self) -> bool:
        """Whether rows are computed in C."""
        return self._in_c is not None

    def step(
        self,
        t: float,
        dt: float,
        acceleration: Float[np.ndarray, " 3"],
        thrust: Float[np.ndarray, " rotors"],
        rate: Float[np.ndarray, " 3"],
        products: Float[np.ndarray, " 3"],
        *,
        is_onset: bool = True,
        loss: tuple[int, int, float] | None = None,
    ) -> None:
        """Use one row. dt: since the row before, s. is_onset: whether a loss may begin with it. loss: slot, rotor and share of
        one that is taken as true, whose effect is no noise."""
        slot = -1
        if is_onset:
            slot = self._next if self._next != self.kept else (self._next + 1) % self.rows
            self._next, self.used = (slot + 1) % self.rows, max(self.used, slot + 1)
        self.count += 1
        row = np.concatenate([acceleration, thrust, rate, products])
        if self._in_c is not None:
            self._in_c.step(self, slot, t, dt, row, loss)
        else:
            self._step_in_numpy(slot, t, dt, row, loss)

    def _step_in_numpy(
        self,
        slot: int,
        t: float,
        dt: float,
        row: Float[np.ndarray, " row"],
        loss: tuple[int, int, float] | None,
    ) -> None:
        if slot >= 0:
            self.onsets[slot] = t
            self.correlation_before[slot], self.power_before[slot] = self.correlation, self.power
            self.R_before[slot] = self.R
            for sums in self._sums:
                sums[..., slot, :] = 0.0
            self.rows_since[slot] = 0.0
            self.E[..., slot] = self.lagged_E[..., slot] = 0.0
        acceleration, thrust, rate, products = np.split(row, (3, 3 + self.rotors, 6 + self.rotors))
        H = np.ones((3, _STATES))
        H[:, 1], H[:, 2], H[:, 3] = acceleration, rate, products
        P, x = self.P, self.x
        P[:, :, 0, 0] += DRIFTS * self.R * dt
        P[:, :, 1, 1] += _BETA_DRIFT**2 * dt
        P[:, :, 2, 2] += _DAMPING_DRIFT**2 * dt
        PH = np.matmul(P, H[:, None, :, None])[..., 0]
        V = np.sum(PH * H[:, None], axis=2) + self.R
        e = (self.g @ thrust)[:, None] - np.sum(x * H[:, None], axis=2)
        K = PH / V[:, :, None]
        normalised, deviation = e / np.sqrt(V), np.sqrt(V)[..., None, None, None]
        shape = np.zeros((2, self.rows))  # 0 for onsets that are not used yet: NaN is not above 0
        np.greater_equal((t + 0.5 * dt - self.onsets) / RAMP, 0.0, out=shape[0])
        np.fmin((t + 0.5 * dt - self.onsets) / RAMP, shape[0], out=shape[1])
        added = shape[None, :, :, None] * (self.g * thrust)[:, None, None, :]
        known = np.matmul(H[:, None, None], self.xi.reshape(3, len(DRIFTS), _STATES, -1))
        nu = added[:, None] - known.reshape(self.S.shape)
        scaled = nu / deviation
        now, before = normalised[..., None, None, None], self.last_e[..., None, None, None]
        self.S += scaled * scaled
        self.D += scaled * now
        self.lagged_S += scaled * self.last_nu
        self.lagged_D += 0.5 * (scaled * before + self.last_nu * now)
        self.xi += K[..., None, None, None] * nu[:, :, None]
        self.E[..., : self.used] += normalised[..., None] ** 2
        self.lagged_E[..., : self.used] += (normalised * self.last_e)[..., None]
        self.rows_since[: self.used] += 1.0
        noise, last_noise = normalised, self.last_e.copy()
        if loss is not None:
            slot, rotor, delta = loss
            noise = normalised - delta * scaled[:, :, 0, slot, rotor]
            last_noise = self.last_e - delta * self.last_nu[:, :, 0, slot, rotor]
        self.last_nu[:], self.last_e[:] = scaled, normalised
        x += K * e[..., None]
        P -= K[..., :, None] * PH[..., None, :]
        ratio = np.minimum(noise**2, _OUTLIER)
        share = max(dt / _NOISE_TIME, 1.0 / (self.count + 2.0))
        self.R *= 1.0 + share * (ratio - 1.0)
        self.correlation += share * (np.clip(noise * last_noise, -_OUTLIER, _OUTLIER) - self.correlation)
        self.power += share * (ratio - self.power)
        self.likelihood *= math.exp(-dt / _LIKELIHOOD_TIME)
        self.likelihood -= 0.5 * (np.log(V) + ratio)

    def use_quiet_rows(
        self,
        rows: Float[np.ndarray, "n columns"],
        effectiveness: Float[np.ndarray, " rotors"],
        has_torque: Bool[np.ndarray, "3 rotors"],
        quiet: QuietRows,
    ) -> int:
        """Use rows without a loss as long as none shows enough evidence of one, and the one that does. Only if `is_compiled`.

        Args:
            rows: `FlightRows.values`.
            effectiveness: share of its thrust that each rotor has left.
            has_torque: see `most_evidence`.
            quiet: settings, and how far the detector has come, which is brought up to date.
        Returns:
            How many were used.
        """
        assert self._in_c is not None
        quiet.next, quiet.used, quiet.count = self._next, self.used, self.count
        used = self._in_c.use_quiet_rows(rows, effectiveness, has_torque, quiet)
        self._next, self.used, self.count = quiet.next, quiet.used, quiet.count
        return used

    def statistics(self, kind: int = 0) -> tuple[np.ndarray, np.ndarray]:
        """S and D of each onset, rotor and axis, by the best filters. kind: 0 for sudden losses, 1 for gradual ones."""
        pick = (np.arange(3), self.best)
        S, D, lagged_S, lagged_D = (
            np.moveaxis(sums[(*pick, kind)], 0, -1) for sums in (self.S, self.D, self.lagged_S, self.lagged_D)
        )
        E, lagged_E = (sums[pick].T[:, None] for sums in (self.E, self.lagged_E))
        total = S.sum(axis=2, keepdims=True)
        delta = D.sum(axis=2, keepdims=True) / np.where(total > 0.0, total, np.inf)
        residual = E - 2.0 * delta * D + delta**2 * S
        lagged = lagged_E - 2.0 * delta * lagged_D + delta**2 * lagged_S
        rows = self.rows_since[:, None, None] + PRIOR_ROWS
        power, correlation = (
            np.maximum(self.power_before[(..., *pick)], 1.0)[:, None],
            self.correlation_before[(..., *pick)][:, None],
        )
        variance = np.maximum((residual + PRIOR_ROWS * power) / rows, power)
        r = np.maximum((lagged + PRIOR_ROWS * correlation) / rows / variance, correlation / power)
        r = np.clip(r, 0.0, _MOST_CORRELATED)
        weight = (1.0 - r) / (1.0 + r) / variance
        return weight * S, weight * D

    def most_evidence(self, has_torque: Bool[np.ndarray, "3 rotors"]) -> float:
        """Bound of the evidence D^2 / S, summed over the axes that each rotor turns the body about, of all onsets and rotors.

        The weights of `statistics` are at most 1, and no share that is common to the axes explains more than one of each axis.
        """
        if self._in_c is not None:
            return self._in_c.most_evidence(self, has_torque)
        pick = (np.arange(3), self.best, 0)
        S, D = self.S[pick], self.D[pick]
        evidence = np.where(has_torque[:, None], D * D / np.maximum(S, 1e-300), 0.0)
        return float(evidence.sum(axis=0).max())

    def restore_noise(self, slot: int) -> None:
        """Take the noise as it was before an onset: a loss has raised it since."""
        self.R[:], self.power[:] = self.R_before[slot], self.power_before[slot]
        self.correlation[:] = self.correlation_before[slot]

    def compensate(self, slot: int, rotor: int, share: float, std: float) -> None:
        """Remove the effect of a loss of a rotor from the filters, and all hypotheses."""
        xi = self.xi[..., 0, slot, rotor]
        self.x -= share * xi
        self.P += (std * xi)[..., :, None] * (std * xi)[..., None, :]
        self._forget_hypotheses()


class _Bank(ctypes.Structure):
    """`bank` of rotor_faults.c."""

    _SIZES = ("filters", "rows", "rotors")
    _ARRAYS = (
        "g", "drifts", "x", "P", "R", "likelihood", "correlation", "power", "last_e", "correlation_before", "power_before",
        "R_before", "rows_since", "E", "lagged_E", "onsets", "S", "D", "last_nu", "lagged_S", "lagged_D", "xi",
    )  # fmt: skip
    _CONSTANTS = ("ramp", "beta_drift", "damping_drift", "noise_time", "likelihood_time", "outlier")
    _fields_ = [
        *((name, ctypes.c_int64) for name in _SIZES),
        *((name, ctypes.c_double) for name in _CONSTANTS),
        *((name, ctypes.c_void_p) for name in _ARRAYS),
    ]


class _InC:
    """The functions of rotor_faults.c for the arrays of a bank, which stay where they are."""

    def __init__(self, bank: FilterBank) -> None:
        library = fault_library()
        assert library is not None
        self._step, self._evidence = library.rotor_fault_step, library.rotor_fault_evidence
        self._quiet_rows = library.rotor_fault_quiet_rows
        self._room = room = np.empty(2 * bank.rows + bank.rotors)
        arrays = vars(bank) | {"drifts": DRIFTS}
        places = [arrays[name].ctypes.data for name in _Bank._ARRAYS]
        constants = RAMP, _BETA_DRIFT, _DAMPING_DRIFT, _NOISE_TIME, _LIKELIHOOD_TIME, _OUTLIER
        self._bank = _Bank(len(DRIFTS), bank.rows, bank.rotors, *constants, *places)
        self._scratch = pointer(room), pointer(room[2 * bank.rows :])

    def step(
        self,
        bank: FilterBank,
        slot: int,
        t: float,
        dt: float,
        row: Float[np.ndarray, " row"],
        loss: tuple[int, int, float] | None,
    ) -> None:
        """`FilterBank.step`. row: acceleration, thrust, rate and products. slot: of an onset, or -1."""
        loss_slot, rotor, delta = loss or (-1, 0, 0.0)
        self._step(
            ctypes.byref(self._bank), *map(ctypes.c_int64, (bank.used, slot)), ctypes.c_double(t), ctypes.c_double(dt),
            pointer(row), ctypes.c_int64(loss_slot), ctypes.c_int64(rotor),
            ctypes.c_double(delta), ctypes.c_double(bank.count), *self._scratch,
        )  # fmt: skip

    def most_evidence(self, bank: FilterBank, has_torque: Bool[np.ndarray, "3 rotors"]) -> float:
        """`FilterBank.most_evidence`."""
        return self._evidence(ctypes.byref(self._bank), ctypes.c_int64(bank.used), pointer(has_torque))

    def use_quiet_rows(
        self,
        rows: Float[np.ndarray, "n columns"],
        effectiveness: Float[np.ndarray, " rotors"],
        has_torque: Bool[np.ndarray, "3 rotors"],
        quiet: QuietRows,
    ) -> int:
        """`FilterBank.use_quiet_rows`."""
        room = np.empty(rows.shape[1])
        return self._quiet_rows(
            ctypes.byref(self._bank), ctypes.byref(quiet), ctypes.c_int64(len(rows)), pointer(rows),
            pointer(effectiveness), pointer(has_torque), *self._scratch, pointer(room),
        )  # fmt: skip
