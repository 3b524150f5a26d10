"""What a fit leaves unexplained: the residuals of its windows, what was predicted, and whether they hang together over time.

    r_l = sum_k e_k e_{k+l} / sqrt(sum_k e_k^2 sum_k e_{k+l}^2)

over pairs of rows of one window that lie l rows apart, n_l of them: of a log in which two rows rarely have a measurement that
lie so far apart, these few are compared with themselves. Of white residuals, 95 % of the r_l lie within
1.96 / sqrt(n_l) of 0.

Reference: L. Ljung, System identification, 2nd ed. (1999), ch. 16.6.
"""

from __future__ import annotations

import dataclasses

import jax
import numpy as np
from jaxtyping import Float, Int

from rotorid.identification.solving import Solved, places

_LAGS = 40  # rows, at most
_LEAST = 20  # pairs
_SIGMAS = 1.96


@dataclasses.dataclass(frozen=True)
class Predicted:
    """One output in the windows of a fit, NaN where it was not measured. error: predicted less measured.

    name, unit: of the output block. t: s of its flight. flight: number of each window's.
    """

    name: str
    unit: str
    t: Float[np.ndarray, "w rows"]
    flight: Int[np.ndarray, " w"]
    measured: Float[np.ndarray, "w rows stored"]
    error: Float[np.ndarray, "w rows dim"]


@dataclasses.dataclass(frozen=True)
class Autocorrelation:
    """Of the residuals of one output, an axis a column; NaN where there are too few pairs.

    lag: s. band: half the width of the 95 % band of white ones. outside: share of all numbers that lie outside.
    """

    name: str
    lag: Float[np.ndarray, " lags"]
    value: Float[np.ndarray, "lags dim"]
    band: Float[np.ndarray, "lags dim"]
    outside: float


def predicted(solved: Solved) -> tuple[Predicted, ...]:
    """Every output that was compared, as the fit predicts it."""
    problem = solved.problem
    with jax.enable_x64(True):
        error, data = residuals_of(solved)
    after = np.concatenate([np.zeros((len(data.dt), 1)), np.cumsum(data.dt[:, 1:], axis=1)], axis=1)
    system, used = problem.shooting.system, problem.shooting.used
    seen = data.mask[..., problem.shooting.rows.measured]
    found = []
    for name, place in places(system, used).items():
        there = np.asarray(seen[..., place].all(axis=2))
        found.append(
            Predicted(
                name,
                system.outputs[name].unit,
                data.start[:, None] + after,
                data.flight,
                np.where(there[..., None], data.y[..., system.outputs.stored[name]], np.nan),
                np.where(seen[..., place], error[..., place], np.nan),
            )
        )
    return tuple(found)


def residuals_of(solved: Solved):
    """Residuals of all windows in the outputs' units, and the windows."""
    problem = solved.problem
    r = problem.run(solved.x, solved.z, solved.sigma).residuals
    return r * solved.sigma, problem.data


def autocorrelation(of: Predicted) -> Autocorrelation:
    """How the residuals of one output hang together."""
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
    told = np.isfinite(value)
    outside = float(np.mean(np.abs(value[told]) > band[told])) if told.any() else float("nan")
    step = float(np.median(np.diff(of.t, axis=1))) if rows > 1 else 0.0
    return Autocorrelation(of.name, lags * step, value, band, outside)
