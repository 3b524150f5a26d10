"""Kalman filters of one scalar measurement, one for each hypothesis of a bank, whose noise has an unknown size.

    x_k = F_k x_(k-1) + w_k,    y_k = h_k x_k + v_k,    var(v) = sigma^2,  cov(w) = sigma^2 Q

All covariances are in units of sigma^2. With the prior density 1 / sigma^2 of the variance, the likelihood of the
measurements of a hypothesis is

    log p(y_1..y_n) = -1/2 sum log S_k - n/2 log(sum e_k^2 / S_k) + constant

and the variance sum e_k^2 / S_k / n (Harvey, "Forecasting, structural time series models and the Kalman filter", 1989,
section 3.4). Innovations do not depend on how the inputs came about: feedback does not bias the likelihood, where the model of
the disturbances holds (Ljung, "System identification", 1999, section 13.4).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float64, Shaped

DIFFUSE = 1e9
"""Variance of an unknown state in units of sigma^2."""


def ordered_sum(terms: Shaped[np.ndarray, "n ..."]) -> Any:
    """Sum over the first axis, one after the other.

    Products by BLAS or `einsum` may round differently from run to run, with the places of their arguments in memory. Replays
    give identical numbers only without them.
    """
    total = terms[0].copy() if terms.ndim > 1 else terms[0]
    for term in terms[1:]:
        total = total + term
    return total


class FilterBank:
    """States and covariances of all hypotheses.

    Args:
        variances: of the states at the start, in units of sigma^2.
        hypotheses: their number.

    x: states. P: covariances, in units of sigma^2. count: measurements. squares: sum of e^2 / S. log_determinant: sum of log S.
    """

    def __init__(self, variances: Float64[np.ndarray, " n"], hypotheses: int) -> None:
        n = len(variances)
        self.x = np.zeros((n, hypotheses))
        self.P = np.zeros((n, n, hypotheses))
        self.P[np.arange(n), np.arange(n)] = np.asarray(variances)[:, None]
        self.count = 0
        self.squares = np.zeros(hypotheses)
        self.log_determinant = np.zeros(hypotheses)
        self._buffer = np.empty_like(self.P)

    def set_unknown(self, state: int, variance: float = DIFFUSE) -> None:
        """Forget a state. variance: in units of sigma^2."""
        self.P[state] = self.P[:, state] = 0.0
        self.P[state, state] = variance

    def update(
        self, y: Float64[np.ndarray, " h"] | float, h: Float64[np.ndarray, "n h"] | int, counts: bool = True
    ) -> None:
        """Use a measurement. h: of each hypothesis, or the number of the state that is measured. counts: whether it is
        evidence."""
        if isinstance(h, int):
            error, Ph = y - self.x[h], self.P[:, h].copy()
            S = Ph[h] + 1.0
        else:
            error = y - ordered_sum(h * self.x)
            Ph = ordered_sum(self.P * h[:, None])  # P is symmetric
            S = ordered_sum(h * Ph) + 1.0
        gain = Ph / S
        self.x += gain * error
        np.multiply(gain[:, None], Ph[None], out=self._buffer)
        self.P -= self._buffer
        if counts:
            self.count += 1
            self.squares += error * error / S
            self.log_determinant += np.log(S)

    def variance(self) -> Float64[np.ndarray, " h"]:
        """sigma^2 of each hypothesis."""
        return np.maximum(self.squares, 1e-300) / max(self.count, 1)

    def posterior(
        self,
        states: Sequence[int],
        mean: Float64[np.ndarray, " k"],
        covariance: Float64[np.ndarray, "k k"],
    ) -> Posterior:
        """Some states, with a normal prior that their diffuse start has left out.

        Args:
            states: their numbers.
            mean, covariance: of the prior, in the units of the states.
        """
        pick = list(states)
        P = np.moveaxis(self.P[np.ix_(pick, pick)], -1, 0) * self.variance()[:, None, None]
        error = self.x[pick].T - mean
        total = P + covariance
        weight = np.linalg.solve(total, np.broadcast_to(covariance, P.shape)).swapaxes(-1, -2)
        combined = mean + ordered_sum(np.moveaxis(weight, 2, 0) * error.T[:, :, None])
        spread = covariance - ordered_sum(np.moveaxis(weight, 2, 0)[..., None] * covariance[:, None, None])
        quadratic = ordered_sum((error * np.linalg.solve(total, error[..., None])[..., 0]).T)
        other = -0.5 * self.log_determinant - 0.5 * quadratic - 0.5 * np.log(np.linalg.det(total))
        half_count = 0.5 * max(self.count, 1)
        return Posterior(half_count, np.maximum(self.squares, 1e-300), other, combined, spread)


class Posterior(NamedTuple):
    """Of some states, by hypothesis. The logarithm of the evidence is other - half_count log(squares), up to a constant."""

    half_count: float
    squares: Float64[np.ndarray, " h"]
    other: Float64[np.ndarray, " h"]
    mean: Float64[np.ndarray, "h k"]
    covariance: Float64[np.ndarray, "h k k"]

    @property
    def log_evidence(self) -> Float64[np.ndarray, " h"]:
        """Up to a constant."""
        return self.other - self.half_count * np.log(self.squares)

    def mixture(self) -> tuple[Float64[np.ndarray, " k"], Float64[np.ndarray, "k k"]]:
        """Mean and covariance over all hypotheses."""
        weight = np.exp(self.log_evidence - self.log_evidence.max())
        weight /= weight.sum()
        mean = ordered_sum(weight[:, None] * self.mean)
        deviation = self.mean - mean
        spread = self.covariance + deviation[:, :, None] * deviation[:, None, :]
        return mean, ordered_sum(weight[:, None, None] * spread)
