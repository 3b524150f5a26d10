"""Metrics of a track: its error against truth, and the consistency of its innovations."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Int


def rmspe(estimate: Float[np.ndarray, " n"], truth: Float[np.ndarray, " n"]) -> float:
    """Root mean square percentage error.

    Args:
        estimate: estimates of one quantity, n rows.
        truth: true values, in the same unit.
    Returns:
        The root mean square of `(estimate - truth) / truth`, %.
    Source: SESAME D2.2, eq. 48.
    """
    return float(100.0 * np.sqrt(np.mean(((estimate - truth) / truth) ** 2)))


def coverage(
    estimate: Float[np.ndarray, " n"],
    std: Float[np.ndarray, " n"],
    truth: Float[np.ndarray, " n"],
    sigmas: float = 1.96,
) -> float:
    """The share of rows whose interval contains the truth.

    Args:
        estimate: estimates of one quantity, n rows.
        std: standard deviations of the estimates, in the same unit.
        truth: true values, in the same unit.
        sigmas: half the width of the interval, in standard deviations; 1.96 gives the 95 % interval of a normal distribution.
    Returns:
        Share from 0 to 1.
    """
    return float(np.mean(np.abs(estimate - truth) <= sigmas * std))


def consistency(nis: Float[np.ndarray, " n"], dof: Int[np.ndarray, " n"]) -> float:
    """The mean normalised innovation squared per degree of freedom.

    Args:
        nis: normalised innovation squared of n updates.
        dof: dimension of each innovation, 0 where nothing was measured.
    Returns:
        1 for a consistent filter, more where its covariances are too small; NaN without measurements.
    Source: Bar-Shalom, Li and Kirubarajan, Estimation with Applications to Tracking and Navigation (2001), section 5.4.
    """
    used = dof > 0
    return float(np.sum(nis[used]) / np.sum(dof[used])) if np.any(used) else float("nan")
