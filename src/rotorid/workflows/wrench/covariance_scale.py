"""The scale of the covariance of an observed wrench, measured by its scatter in the flight.

The noise that the System assumes is that of a poor estimate of position and velocity, and represents model errors too. Many
autopilots are much better, and some models are worse. The covariance P of the noise is therefore scaled, for the force and for
the torque by one number c each: the median over blocks of 5 s. In a block, c is the least number for which

    median and upper quartile of e^T (c P + D D^T)^-1 e  are at most those of chi-square with 3 degrees of freedom
    c >= variance of the normalised innovations

e is the wrench minus its median over the block, D the contribution of the parameters' errors minus its median. Contacts during
a quarter of the time and slow changes (wind, a load) do not change c; gusts during the whole flight or a poor model increase
it, and widen the band.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
from jaxtyping import Bool, Float, Int

from rotorid.estimators.base import Health

GAP: Final = 0.5
"""Longest step, s, between two rows without a gap."""

_SETTLING: Final = 5.0  # time constants of the observer
BLOCK: Final = 5.0
"""s, for the band."""

OF_BLOCKS: Final = 50.0
"""Percentile over the blocks, for the band."""

_FEWEST: Final = 20  # rows of a block
_PERCENTILES: Final = (25, 50)
_CHI_SQUARE: Final = (1.213, 2.366)  # at these percentiles, with 3 degrees of freedom
_LEAST, _MOST = 1e-6, 1e6
_HALVINGS: Final = 24
_UNUSABLE: Final = (Health.NO_INFORMATION, Health.RECOVERING, Health.DIVERGED)


def usable_rows(
    t: Float[np.ndarray, " n"],
    wrench: Float[np.ndarray, "n 6"],
    health: Int[np.ndarray, " n"],
    gain: float,
) -> Bool[np.ndarray, " n"]:
    """Rows whose wrench is used: not those without information, or within 5 time constants of a start or restart.

    All rows where none would be left. t: s. gain: of the observer, 1/s.
    """
    is_valid = ~np.isin(health, _UNUSABLE) & np.isfinite(wrench).all(axis=1)
    starts = np.concatenate([[True], (np.diff(t) > GAP) | ~is_valid[:-1]])
    start_time = t[np.maximum.accumulate(np.where(starts, np.arange(len(t)), 0))]
    rows = is_valid & (t >= start_time + _SETTLING / gain)
    return rows if rows.any() else np.ones(len(t), bool)


def covariance_scale(
    t: Float[np.ndarray, " n"],
    wrench: Float[np.ndarray, "n k"],
    P: Float[np.ndarray, "n k k"],
    errors: Float[np.ndarray, "n k causes"],
    normalised: Float[np.ndarray, "n k"] | None = None,
    *,
    block: float = BLOCK,
    percentile: float = OF_BLOCKS,
) -> float:
    """c of force or torque. t: s, of the usable rows. errors: due to the parameters. normalised: innovations divided by their
    standard deviations, NaN where nothing was measured. block: s. percentile: over the blocks."""
    if normalised is None:
        normalised = np.full_like(wrench, np.nan)
    count = max(1, round(float(t[-1] - t[0]) / block))
    place = np.minimum((t - t[0]) / max(float(t[-1] - t[0]), 1e-9) * count, count - 1).astype(int)
    parts = [rows for k in range(count) if (rows := np.flatnonzero(place == k)).size >= _FEWEST]
    parts = parts or [np.arange(len(t))]
    scales = [_block_scale(wrench[rows], P[rows], errors[rows], normalised[rows]) for rows in parts]
    return float(np.percentile(scales, percentile))


def _block_scale(wrench: np.ndarray, P: np.ndarray, errors: np.ndarray, normalised: np.ndarray) -> float:
    e, D = wrench - np.median(wrench, axis=0), errors - np.median(errors, axis=0)
    square_of = _scaled_distances(e, P, D @ D.transpose(0, 2, 1))
    low, high = np.log(_LEAST), np.log(_MOST)
    innovations = normalised[np.isfinite(normalised).all(axis=1)]
    if len(innovations):
        spread = 1.4826 * np.median(np.abs(innovations - np.median(innovations, axis=0)), axis=0)
        low = float(np.log(np.clip(np.max(spread) ** 2, _LEAST, _MOST)))

    def fits(log_c: float) -> bool:
        return bool(np.all(np.percentile(square_of(np.exp(log_c)), _PERCENTILES) <= _CHI_SQUARE))

    if fits(low):
        return float(np.exp(low))
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if fits(middle) else (middle, high)
    return float(np.exp(high))


def _scaled_distances(
    e: Float[np.ndarray, "n k"], P: Float[np.ndarray, "n k k"], Q: Float[np.ndarray, "n k k"]
) -> Callable[[float], Float[np.ndarray, " n"]]:
    """e^T (c P + Q)^-1 e of each row, as a function of c > 0.

    With P + Q = L L^T and L^-1 P L^-T = V diag(p) V^T, it is the sum of (V^T L^-1 e)^2 / (c p + 1 - p).
    """
    L = np.linalg.cholesky(P + Q)
    half = np.linalg.solve(L, P)
    p, V = np.linalg.eigh(np.linalg.solve(L, half.transpose(0, 2, 1)))
    square = np.einsum("nij,ni->nj", V, np.linalg.solve(L, e[..., None])[..., 0]) ** 2
    return lambda c: np.sum(square / (c * p + (1.0 - p)), axis=1)


def squared_distances(e: Float[np.ndarray, "n k"], S: Float[np.ndarray, "n k k"]) -> Float[np.ndarray, " n"]:
    """Squared Mahalanobis distance e^T S^-1 e of each row."""
    return np.einsum("ni,ni->n", e, np.linalg.solve(S, e[..., None])[..., 0])
