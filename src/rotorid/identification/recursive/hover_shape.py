"""A thrust curve with another size and another slope in hover.

    T(c) = s (T_0(c) + e psi(c)),      psi(c) = T_0'(c_h) c (c - c_h) / c_h

T_0 is the curve of the airframe file, and c_h the command in hover by it. psi is 0 in hover, with the slope of T_0: e is the
relative change of the slope. A quadratic curve without a constant is any other one by some s and e.
"""

from __future__ import annotations

import dataclasses
import math
from typing import NamedTuple

import numpy as np
from jaxtyping import Float64

from rotorid.models.multirotor.thrust import ThrustCurve
from rotorid.numerics.bisection import bisect

_GRID = 512
_LARGEST_CORRELATION = 0.99


class Hover(NamedTuple):
    """Thrust at the command that carries the vehicle, and slope there, over those of the file, with standard deviations.

    command: normalised, without the dead zone. shape_slope: that of psi over that of the curve of the file, at the command.
    """

    command: float
    scale: float
    scale_std: float
    slope: float
    slope_std: float
    shape_slope: float


class HoverShape:
    """Curves about that of an airframe. thrust: of a rotor in hover, N."""

    def __init__(self, curve: ThrustCurve, thrust: float) -> None:
        self._curve, self._thrust = curve, thrust
        self._polynomial = np.polynomial.Polynomial(curve.coefficients)
        self._derivative = self._polynomial.deriv()
        self._grid = np.linspace(0.0, 1.2, _GRID)
        self._thrusts = np.maximum.accumulate(self._polynomial(self._grid))
        self.command = self._command(lambda c: self._polynomial(c))
        self._slope = float(self._derivative(self.command))

    def _command(self, thrust) -> float:
        low, high = bisect(lambda c: thrust(c) < self._thrust, np.full(1, 0.02), np.ones(1), 40)
        return 0.5 * float(low[0] + high[0])

    def _psi(self, c):
        return self._slope * c * (c - self.command) / self.command

    def _psi_slope(self, c: float) -> float:
        return self._slope * (2.0 * c - self.command) / self.command

    def of_thrust(self, thrust: Float64[np.ndarray, "*n"]) -> Float64[np.ndarray, "*n"]:
        """psi in N where the curve of the file gives a thrust, N."""
        return self._psi(np.interp(thrust, self._thrusts, self._grid))

    @property
    def prior_std(self) -> float:
        """Standard deviation of e by those of the coefficients of the file; NaN where it has none.

        A coefficient that is wrong by d changes thrust and slope by d c^k / T and d k c^(k - 1) / T'. The standard deviations
        are added: where the hover is known better than each coefficient, their errors compensate each other.
        """
        if not self._curve.std:
            return math.nan
        c, k = self.command, np.arange(len(self._curve.std))
        change = k * c ** np.maximum(k - 1, 0) / self._slope - c**k / self._thrust
        return float(np.sum(np.abs(np.array(self._curve.std) * change)))

    def at_hover(self, s: float, se: float, covariance: Float64[np.ndarray, "2 2"]) -> Hover:
        """The hover of a curve. s, se: s and s e. covariance: of both."""
        c = self._command(lambda c: s * self._polynomial(c) + se * self._psi(c))
        thrust, slope = float(self._polynomial(c)), float(self._derivative(c))
        psi, psi_slope = float(self._psi(c)), self._psi_slope(c)
        by_thrust, by_slope = np.array([1.0, psi / thrust]), np.array([1.0, psi_slope / slope])
        values = np.array([s, se])
        return Hover(
            c,
            float(by_thrust @ values),
            math.sqrt(float(by_thrust @ covariance @ by_thrust)),
            float(by_slope @ values),
            math.sqrt(float(by_slope @ covariance @ by_slope)),
            psi_slope / slope,
        )

    def weaken(
        self,
        s: float,
        se: float,
        covariance: Float64[np.ndarray, "2 2"],
        prior_std: float,
        error_std: float,
    ) -> tuple[float, float, Float64[np.ndarray, "2 2"]]:
        """s, s e and their covariance where the measurement of e has a further error; the thrust in hover stays as it is.

        Args:
            s, se, covariance: by prior and measurement.
            prior_std: of e, whose prior is 0.
            error_std: of the measurement of e, beside that in the covariance.
        """
        e, prior = se / s, prior_std**2
        to_e = np.array([[1.0, 0.0], [-e / s, 1.0 / s]])
        C = to_e @ covariance @ to_e.T
        measured = 1.0 / (1.0 / min(C[1, 1], 0.999 * prior) - 1.0 / prior)  # variance without the prior
        share = (measured + prior) / (measured + prior + error_std**2)
        C[1, 1] = prior * (1.0 - prior / (measured + prior + error_std**2))
        largest = _LARGEST_CORRELATION * math.sqrt(C[0, 0] * C[1, 1])
        C[0, 1] = C[1, 0] = min(max(share * C[0, 1], -largest), largest)
        command = self._command(lambda c: s * self._polynomial(c) + se * self._psi(c))
        r = float(self._psi(command) / self._polynomial(command))
        s, e = s * (1.0 + e * r) / (1.0 + share * e * r), share * e
        back = np.array([[1.0, 0.0], [e, s]])
        return s, s * e, back @ C @ back.T

    def curve(self, s: float, se: float) -> ThrustCurve:
        """The curve as coefficients."""
        size = max(3, len(self._curve.coefficients))
        old = np.zeros(size)
        old[: len(self._curve.coefficients)] = self._curve.coefficients
        new = s * old
        new[1] -= se * self._slope
        new[2] += se * self._slope / self.command
        return dataclasses.replace(self._curve, coefficients=tuple(float(v) for v in new))

    def coefficient_stds(self, covariance: Float64[np.ndarray, "2 2"]) -> tuple[float, ...]:
        """Standard deviations of the coefficients of `curve`, N. covariance: of s and s e."""
        columns = np.array([self.curve(1.0, 0.0).coefficients, self.curve(0.0, 1.0).coefficients])
        return tuple(float(v) for v in np.sqrt(np.einsum("ik,ij,jk->k", columns, covariance, columns)))
