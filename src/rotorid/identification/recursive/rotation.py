"""Response of the body rate about x or y to the moment of the rotors, by a bank over lag, delay and noise.

    w' = theta (M(t; tau, d) + e M_psi(t; tau, d) - kappa M_delta(t; tau, d)) / J_0 - nu w + g + c_0 + c

M is the moment of the lagged thrusts, M_psi that of psi, by which another thrust curve differs (see `hover_shape`), M_delta
that of delta, by which a lag of the speeds differs from one of the thrusts (see `lagged_thrusts`), J_0 the moment of inertia of
the airframe file, g the gyroscopic acceleration, c_0 + c an unmodelled angular acceleration: a constant and a first-order
coloured noise. States: w, theta, theta e, theta kappa, nu, c_0, c. The bank combines noises, delays and lags.
"""

from __future__ import annotations

import itertools
from typing import Final

import numpy as np
from jaxtyping import Float64

from rotorid.identification.recursive.filter_bank import DIFFUSE, FilterBank, Posterior

RATE, GAIN, SHAPE, SPEED, DAMPING, OFFSET, DISTURBANCE = range(7)

_RATE_NOISES: Final = (0.02, 0.15, 0.8, 3.0)  # of the rate after a reference step, over that of the gyro
_DISTURBANCES: Final = (0.3, 5.0, 60.0)  # std of c times its correlation time, over the noise of the gyro
_CORRELATION: Final = 0.4  # s
_REFERENCE: Final = 0.01  # s
_DAMPING: Final = (0.5, 2.0)  # of nu, 1/s, mean and std of the prior


class RotationBank:
    """Filters of one axis. shape: number of delays and of lags."""

    def __init__(self, shape: tuple[int, int]) -> None:
        self._shape = shape
        noises = np.array(list(itertools.product(_RATE_NOISES, _DISTURBANCES)))
        nodes = shape[0] * shape[1]
        self._noises = len(noises)
        self._rate_noise = np.repeat(noises[:, 0], nodes) ** 2 / _REFERENCE
        self._disturbance = (np.repeat(noises[:, 1], nodes) / _CORRELATION) ** 2
        variances = np.array([DIFFUSE] * DISTURBANCE + [0.0])
        self.filters = FilterBank(variances, len(self._rate_noise))
        self.filters.P[DISTURBANCE, DISTURBANCE] = self._disturbance
        self._last_rate = 0.0
        self._warm_up = 6  # measurements that determine the diffuse states

    def restart(self) -> None:
        """Forget the rate and the coloured noise, after a gap."""
        self.filters.set_unknown(RATE)
        self.filters.set_unknown(DISTURBANCE)
        self.filters.P[DISTURBANCE, DISTURBANCE] = self._disturbance
        self._warm_up = max(self._warm_up, 1)

    def step(
        self, rate: float, moments: Float64[np.ndarray, "delays lags 3"] | None, gyroscopic: float, dt: float
    ) -> None:
        """Use a rate.

        Args:
            rate: rad/s.
            moments: integrals of M, M_psi and -M_delta over J_0 since the previous rate, rad/s; None after a gap.
            gyroscopic: g, rad/s^2.
            dt: time since then, s.
        """
        x, P = self.filters.x, self.filters.P
        if moments is None:
            self.restart()
        else:
            U, V, D = (np.tile(moments[..., k].ravel(), self._noises) for k in range(3))
            w = self._last_rate * dt
            for a in (x, P, P.swapaxes(0, 1)):
                a[RATE] += U * a[GAIN] + V * a[SHAPE] + D * a[SPEED] - w * a[DAMPING]
                a[RATE] += dt * (a[OFFSET] + a[DISTURBANCE])
            x[RATE] += dt * gyroscopic
            decay = float(np.exp(-dt / _CORRELATION))
            x[DISTURBANCE] *= decay
            P[DISTURBANCE] *= decay
            P[:, DISTURBANCE] *= decay
            P[RATE, RATE] += self._rate_noise * dt
            P[DISTURBANCE, DISTURBANCE] += (1.0 - decay * decay) * self._disturbance
        self.filters.update(rate, RATE, counts=self._warm_up == 0)
        self._warm_up = max(self._warm_up - 1, 0)
        self._last_rate = rate

    def posterior(
        self, gain: tuple[float, float], shape: tuple[float, float], speed: tuple[float, float]
    ) -> Posterior:
        """theta, theta e, theta kappa and nu of all hypotheses.

        Args:
            gain: mean and standard deviation of the prior of theta.
            shape: the same of e.
            speed: the same of kappa.
        """
        (theta, theta_std), (e, e_std), (kappa, kappa_std) = gain, shape, speed
        ratio = np.array([1.0, e, kappa])
        covariance = np.zeros((4, 4))
        covariance[:3, :3] = theta_std**2 * np.multiply.outer(ratio, ratio) + theta**2 * np.diag(
            [0.0, e_std**2, kappa_std**2]
        )
        covariance[3, 3] = _DAMPING[1] ** 2
        mean = np.array([*(theta * ratio), _DAMPING[0]])
        return self.filters.posterior((GAIN, SHAPE, SPEED, DAMPING), mean, covariance)
