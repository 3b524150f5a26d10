"""Figures of merit of a track against truth, and of its own consistency."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Int


def rmspe(estimate: Float[np.ndarray, " n"], truth: Float[np.ndarray, " n"]) -> float:
    """Root mean square percentage error in percent (seed 000, eq. 48)."""
    return float(100.0 * np.sqrt(np.mean(((estimate - truth) / truth) ** 2)))


def coverage(
    estimate: Float[np.ndarray, " n"],
    std: Float[np.ndarray, " n"],
    truth: Float[np.ndarray, " n"],
    sigmas: float = 1.96,
) -> float:
    """Share of the times at which the band of +-sigmas standard deviations holds the truth."""
    return float(np.mean(np.abs(estimate - truth) <= sigmas * std))


def consistency(nis: Float[np.ndarray, " n"], dof: Int[np.ndarray, " n"]) -> float:
    """Normalised innovation squared over its dimension: 1 of a consistent filter, above of one that is too sure."""
    used = dof > 0
    return float(np.sum(nis[used]) / np.sum(dof[used])) if np.any(used) else float("nan")
