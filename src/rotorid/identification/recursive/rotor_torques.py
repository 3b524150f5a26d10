"""Torque of each rotor per newton about each axis, measurement by measurement.

    w' = sum_i theta_i T_i - kappa w + c_0 + c        for each axis

as in `rotation`, with one gain a rotor, by a bank over lag and noise. The measured torques J_0 theta_i contradict rotors that
are at another place, in another order, or turn the other way (see `rotor_geometry`), however wrong thrust and inertia are.

The torques about z are small, and those of single rotors are hardly known after an ordinary take-off. Their common size

    g = sum_i G_zi J_z theta_i / sum_i G_zi^2,      G: torques of the airframe

is: it is negative where all rotors turn in the other direction.

Thrusts are known to a share eta only (thrust curve, delay, sampling of the commands). In a direction in which the rotors hardly
move, this error of the other directions decides the torques. Their covariance has the additional part

    eta^2 |J theta|^2 tr(C) C^-1,        C = mean of d d^T,    d: thrusts less their mean over the last 0.4 s
"""

from __future__ import annotations

import dataclasses
import math
from typing import Final

import numpy as np
from jaxtyping import Float64

from rotorid.identification.recursive.excitation import Activity
from rotorid.identification.recursive.filter_bank import DIFFUSE, FilterBank
from rotorid.identification.rotor_geometry.conflict import GeometryConflict, WrongTorque, arms_conflict
from rotorid.identification.rotor_geometry.lever_arms import LeverArms
from rotorid.models.airframe.airframe import Airframe

_LAGS: Final = range(1, 14, 2)
"""Indices of the lags of the bank in `LAGS`."""

_NOISES: Final = (0.05, 0.3, 1.5, 6.0)  # of the rate after a reference step, over that of the gyro
_REFERENCE: Final = 0.01  # s
_DISTURBANCE: Final = 20.0  # std of c times its correlation time, over the noise of the gyro
_CORRELATION: Final = 0.4  # s
_DAMPING: Final = (0.5, 2.0)  # 1/s
_PRIOR: Final = 3.0  # std of a torque over the largest one of the airframe
_MODEL_STD: Final = (0.08, 0.08, 0.12)  # by axis, of the largest torque of the airframe
_ROWS: Final = (30, 30, 250)  # of each axis
_NOISE_FACTORS: Final = (1.0, 1.0, 2.0)  # of the noise of each axis
_MOTION: Final = (0.08, 0.08, 0.3)  # rad/s, least motion about each axis
_THRUST_ERROR: Final = 0.02  # eta
_PLAUSIBLE: Final = 4.0  # largest torque over that of the airframe
_LEAST_YAW_ROWS: Final = 50  # of the common size
_SIGMAS: Final = 5.0  # of the common size
_UNKNOWN_STD: Final = 10.0  # of the torques of the airframe, about an axis that is not known


class RotorTorques:
    """Filters of all axes.

    Args:
        airframe: of the vehicle, by its file.
        torques: of its rotors per newton, N m per N, by axis.
        inertia: kg m^2.
    """

    def __init__(
        self,
        airframe: Airframe,
        torques: Float64[np.ndarray, "3 rotors"],
        inertia: Float64[np.ndarray, " 3"],
    ) -> None:
        self._airframe, self._inertia = airframe, inertia
        self._torques = torques
        self._sizes = np.abs(torques).max(axis=1)
        self._axes = tuple(_Axis(torques.shape[1], motion) for motion in _MOTION)

    def restart(self) -> None:
        """Forget the rates, after a gap."""
        for axis in self._axes:
            axis.activity.restart()

    def step(self, rates: tuple[float, ...], impulses: Float64[np.ndarray, "lags rotors"], dt: float) -> None:
        """Use rates. rates: rad/s. impulses: at all lags since the previous ones, N s. dt: time since then, s."""
        impulses = impulses[_LAGS]
        for axis, rate, J in zip(self._axes, rates, self._inertia, strict=False):
            axis.step(rate, impulses / J, dt)

    def arms(self, relative_std: float = 0.0) -> LeverArms | None:
        """The torques; those of the airframe, with a wide band, about an axis that has not moved enough; None if none has.

        Args:
            relative_std: of all torques, by the sampling of the commands.
        """
        value, std = (
            self._torques.copy(),
            np.tile(_UNKNOWN_STD * self._sizes[:, None], (1, self._torques.shape[1])),
        )
        is_known = False
        for k, axis in enumerate(self._axes):
            if axis.filters.count < _ROWS[k]:
                continue
            gains, covariance = axis.gains(_PRIOR * self._sizes[k])
            if np.abs(gains).max() > _PLAUSIBLE * self._sizes[k]:
                continue
            is_known, value[k] = True, gains
            noise = _NOISE_FACTORS[k] * np.sqrt(np.diag(covariance))
            std[k] = np.hypot(noise, np.hypot(_MODEL_STD[k] * self._sizes[k], relative_std * gains))
        return LeverArms(value, std) if is_known else None

    def conflict(self, relative_std: float = 0.0) -> GeometryConflict | None:
        """What contradicts the rotors of the airframe so far; None where nothing does. Argument as of `arms`."""
        arms = self.arms(relative_std)
        if arms is None:
            return None
        return arms_conflict(arms, self._airframe) or self._direction_conflict()

    def direction(self) -> int:
        """1 where the rotors turn in the directions of the airframe, -1 where all turn in the other ones, 0 where the flight
        does not show it."""
        gain, std = self._yaw_gain()
        return int(math.copysign(1.0, gain)) if abs(gain) > _SIGMAS * std else 0

    def _yaw_gain(self) -> tuple[float, float]:
        """g and its standard deviation."""
        axis, G = self._axes[2], self._torques[2]
        if axis.filters.count < _LEAST_YAW_ROWS or not G.any():
            return 1.0, math.inf
        gains, covariance = axis.gains(_PRIOR * self._sizes[2])
        weights = G / float(np.sum(G**2))
        variance = float(np.sum(weights[:, None] * covariance * weights))
        return float(np.sum(weights * gains)), _NOISE_FACTORS[2] * math.sqrt(variance)

    def _direction_conflict(self) -> GeometryConflict | None:
        """All rotors turn in the other directions."""
        if self.direction() >= 0:
            return None
        (gain, std), G = self._yaw_gain(), self._torques[2]
        everyone = tuple(range(len(G)))
        wrong = (WrongTorque(i, 2, gain * G[i], std * abs(G[i]), float(G[i]), True) for i in everyone)
        turned = tuple(
            dataclasses.replace(rotor, direction="cw" if rotor.direction == "ccw" else "ccw")
            for rotor in self._airframe.rotors
        )
        return GeometryConflict(tuple(wrong), turned, everyone, everyone)


class _Axis:
    """Filters of one axis. States: w, theta_0 .. theta_(n-1), kappa, c_0, c."""

    def __init__(self, rotors: int, motion: float) -> None:
        self.rotors = rotors
        self.activity = Activity(motion)
        variances = np.full(rotors + 4, DIFFUSE)
        variances[-1] = self._disturbance = (_DISTURBANCE / _CORRELATION) ** 2
        self._noise = np.repeat(np.array(_NOISES) ** 2 / _REFERENCE, len(_LAGS))
        self.filters = FilterBank(variances, len(self._noise))
        self._warm_up, self._last_rate = rotors + 3, 0.0
        self._mean = np.zeros(rotors)
        self._motion = np.zeros((rotors, rotors))

    def step(self, rate: float, change: Float64[np.ndarray, "lags rotors"], dt: float) -> None:
        self._add_motion(change[len(_LAGS) // 2] / dt, dt)
        was_active = self.activity.is_active
        if not self.activity.update(rate, dt):
            return
        x, P, n = self.filters.x, self.filters.P, self.rotors
        if was_active:
            row = [*np.tile(change, (len(_NOISES), 1)).T, -self._last_rate * dt, dt, dt]
            for a in (x, P, P.swapaxes(0, 1)):
                for i, factor in enumerate(row):
                    a[0] += factor * a[i + 1]
            decay = float(np.exp(-dt / _CORRELATION))
            x[n + 3] *= decay
            P[n + 3] *= decay
            P[:, n + 3] *= decay
            P[0, 0] += self._noise * dt
            P[n + 3, n + 3] += (1.0 - decay * decay) * self._disturbance
        else:
            self.filters.set_unknown(0)
            self.filters.set_unknown(n + 3, self._disturbance)
            self._warm_up = max(self._warm_up, 1)
        self.filters.update(rate, 0, counts=self._warm_up == 0)
        self._warm_up = max(self._warm_up - 1, 0)
        self._last_rate = rate

    def _add_motion(self, thrust: Float64[np.ndarray, " rotors"], dt: float) -> None:
        if not self._motion.any() and not self._mean.any():
            self._mean = thrust
        self._mean = self._mean - math.expm1(-dt / _CORRELATION) * (thrust - self._mean)
        if self.activity.is_active:
            d = thrust - self._mean
            self._motion += dt * np.multiply.outer(d, d)

    def gains(
        self, size: float
    ) -> tuple[Float64[np.ndarray, " rotors"], Float64[np.ndarray, "rotors rotors"]]:
        """Torques per newton over the inertia of the file, and their covariance. size: of the prior."""
        n = self.rotors
        mean = np.append(np.zeros(n), _DAMPING[0])
        covariance = np.diag(np.append(np.full(n, size**2), _DAMPING[1] ** 2))
        value, spread = self.filters.posterior(range(1, n + 2), mean, covariance).mixture()
        total = float(np.trace(self._motion))
        floor = np.linalg.inv(self._motion / total + 1e-6 * np.eye(n)) if total > 0.0 else np.eye(n)
        error = _THRUST_ERROR**2 * float(np.sum(value[:n] ** 2))
        return value[:n], spread[:n, :n] + error * floor
