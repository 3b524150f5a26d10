"""Residuals of a fit: of its windows by output, and their autocorrelation.

    r_l = sum_k e_k e_{k+l} / sqrt(sum_k e_k^2 sum_k e_{k+l}^2)

over the n_l pairs of rows of one window that are l rows apart; both sums of squares are over these pairs, so that outputs with
few pairs at a lag are normalised by those pairs. Of white residuals, 95 % of the r_l are within 1.96 / sqrt(n_l) of 0.

Reference: L. Ljung, System identification, 2nd ed. (1999), ch. 16.6.
"""

from __future__ import annotations

import dataclasses

import jax
import numpy as np
from jaxtyping import Float, Int

from rotorid.identification.fitting.estimation import Estimation, output_slices

_LAGS = 40  # rows, at most
_LEAST = 20  # pairs
_SIGMAS = 1.96


@dataclasses.dataclass(frozen=True)
class OutputResiduals:
    """Residuals of one output in the windows of a fit; NaN where it was not measured.

    Attributes:
        name, unit: of the output block.
        t: s of its flight.
        flight: number of each window's flight.
        measured: the measurements.
        error: predicted less measured.
    """

    name: str
    unit: str
    t: Float[np.ndarray, "w rows"]
    flight: Int[np.ndarray, " w"]
    measured: Float[np.ndarray, "w rows stored"]
    error: Float[np.ndarray, "w rows dim"]


@dataclasses.dataclass(frozen=True)
class Autocorrelation:
    """Autocorrelation of the residuals of one output, an axis a column; NaN with too few pairs.

    Attributes:
        name: of the output.
        lag: s.
        value: r_l.
        band: half width of the 95 % band of white residuals.
        share_outside: share of the values outside of the band.
    """

    name: str
    lag: Float[np.ndarray, " lags"]
    value: Float[np.ndarray, "lags dim"]
    band: Float[np.ndarray, "lags dim"]
    share_outside: float


def output_residuals(solved: Estimation) -> tuple[OutputResiduals, ...]:
    """Residuals of every compared output."""
    problem = solved.problem
    with jax.enable_x64(True):
        error, data = window_residuals(solved)
    after = np.concatenate([np.zeros((len(data.dt), 1)), np.cumsum(data.dt[:, 1:], axis=1)], axis=1)
    system, used = problem.shooting.system, problem.shooting.compared
    seen = data.mask[..., problem.shooting.step_model.compared_indices]
    found = []
    for name, place in output_slices(system, used).items():
        there = np.asarray(seen[..., place].all(axis=2))
        found.append(
            OutputResiduals(
                name,
                system.outputs[name].unit,
                data.start[:, None] + after,
                data.flight,
                np.where(there[..., None], data.y[..., system.outputs.stored[name]], np.nan),
                np.where(seen[..., place], error[..., place], np.nan),
            )
        )
    return tuple(found)


def window_residuals(solved: Estimation):
    """Residuals of all windows in the outputs' units, and the windows."""
    problem = solved.problem
    r = problem.predict(solved.x, solved.z, solved.sigma).residuals
    return r * solved.sigma, problem.data


def autocorrelation(of: OutputResiduals) -> Autocorrelation:
    """Autocorrelation of the residuals of one output."""
    e = of.error
    rows = e.shape[1]
    there = np.isfinite(e)
    e = np.where(there, e, 0.0)
    lags = np.arange(1, max(2, min(_LAGS, rows // 2) + 1))
    value = np.full((len(lags), e.shape[2]), np.nan)
    band = value.copy()
    for k, lag in enumerate(lags[lags < rows]):
        both = there[:, lag:] & there[:, :-lag]
        before, after = np.where(both, e[:, :-lag], 0.0), np.where(both, e[:, lag:], 0.0)
        pairs = both.sum(axis=(0, 1))
        size = np.sqrt(np.sum(before**2, axis=(0, 1)) * np.sum(after**2, axis=(0, 1)))
        enough = (pairs >= _LEAST) & (size > 0)
        product = np.sum(before * after, axis=(0, 1))
        value[k] = np.where(enough, product / np.where(size > 0, size, 1.0), np.nan)
        band[k] = np.where(enough, _SIGMAS / np.sqrt(np.maximum(pairs, 1)), np.nan)
    known = np.isfinite(value)
    outside = float(np.mean(np.abs(value[known]) > band[known])) if known.any() else float("nan")
    step = float(np.median(np.diff(of.t, axis=1))) if rows > 1 else 0.0
    return Autocorrelation(of.name, lags * step, value, band, outside)
