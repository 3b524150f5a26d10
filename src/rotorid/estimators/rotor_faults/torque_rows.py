"""Rows of the torque balance, averaged over short stretches as the samples come.

    J (w_k - w_{k-1}) / W + mean (w x J w) = torque of the rotors        w_k: mean of w over stretch k of W seconds

The difference of two means of w is the torque averaged with a triangle over two stretches. Thrusts and products of rates are
averaged alike, as differences of means of their integrals. No signal is differentiated from sample to sample.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from jaxtyping import Float


class TorqueRow(NamedTuple):
    """t: middle of the row, s. acceleration: J^-1 times the torque on the body, rad/s^2, body frame. thrust: of each rotor
    after the motor lag, N. rate: angular velocity, rad/s, body frame. products: y z, z x and x y of the angular velocity,
    (rad/s)^2. step: since the row before, s. end: time of the last sample that it needs, s."""

    t: float
    acceleration: Float[np.ndarray, " 3"]
    thrust: Float[np.ndarray, " rotors"]
    rate: Float[np.ndarray, " 3"]
    products: Float[np.ndarray, " 3"]
    step: float
    end: float


class TorqueRows:
    """Averages samples into rows.

    Args:
        inertia: about body x, y and z, kg m^2.
        lag: of the thrust behind its command, s.
        stretch: W, s, at least.
    """

    def __init__(self, inertia: Float[np.ndarray, " 3"], lag: float, stretch: float) -> None:
        J = inertia
        self._gyroscopic = np.array([J[2] - J[1], J[0] - J[2], J[1] - J[0]]) / J
        self._lag, self._stretch = lag, stretch
        self._thrust: np.ndarray | None = None
        self.restart()

    def restart(self) -> None:
        """Forget the stretch before, after a gap. The thrust of the rotors is kept."""
        self._previous: np.ndarray | None = None
        self._integral: np.ndarray | None = None
        self._begin_stretch()

    def _begin_stretch(self) -> None:
        self._sum: np.ndarray | None = None
        self._count, self._length = 0, 0.0

    def push(
        self, t: float, dt: float, rate: Float[np.ndarray, " 3"], command: Float[np.ndarray, " rotors"]
    ) -> TorqueRow | None:
        """Add a sample.

        Args:
            t: s.
            dt: s, over which `rate` (rad/s, body) and `command` are means.
            rate: angular velocity.
            command: commanded thrust of each rotor, N, without lag.
        Returns:
            The row that this sample completes, else None.
        """
        if self._thrust is None or dt <= 0.0 or dt > 4.0 * self._stretch:
            self._thrust = np.array(command, float)
            self.restart()
            return None
        decay = math.exp(-dt / self._lag) if self._lag > 0.0 else 0.0
        thrust = command + (self._thrust - command) * decay
        mean = command + (self._thrust - command) * (self._lag / dt) * (1.0 - decay)
        self._thrust = thrust
        products = [rate[1] * rate[2], rate[2] * rate[0], rate[0] * rate[1]]
        change = dt * np.concatenate([mean, products, rate])
        if self._integral is None:
            self._integral = np.zeros_like(change)
        sample = np.concatenate([self._integral + 0.5 * change, rate, [t - 0.5 * dt]])
        self._integral = self._integral + change
        self._sum = sample if self._sum is None else self._sum + sample
        self._count += 1
        self._length += dt
        if self._length < self._stretch - 0.25 * dt:
            return None
        stretch_mean = self._sum / self._count
        previous, self._previous = self._previous, stretch_mean
        self._begin_stretch()
        if previous is None:
            return None
        n = len(command)
        d = stretch_mean - previous
        step = float(d[-1])
        products = d[n : n + 3] / step
        return TorqueRow(
            0.5 * float(stretch_mean[-1] + previous[-1]),
            d[n + 6 : n + 9] / step + self._gyroscopic * products,
            d[:n] / step,
            d[n + 3 : n + 6] / step,
            products,
            step,
            t,
        )
