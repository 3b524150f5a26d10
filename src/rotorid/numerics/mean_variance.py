"""Variance of the mean of a first-order noise.

Over T seconds the mean of a noise with the autocovariance s^2 exp(-|t| / tau) has the variance

    s^2 r,    r = 2 tau / T (1 - tau / T (1 - exp(-T / tau)))

Reference: A. Papoulis, S. U. Pillai, Probability, random variables and stochastic processes, 4th ed. (2002), ch. 12.1.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float


def mean_variance(ratio: Float[np.ndarray, "*n"]) -> Float[np.ndarray, "*n"]:
    """r. ratio: tau over T."""
    return np.asarray(2.0 * ratio * (1.0 + ratio * np.expm1(-1.0 / ratio)))
