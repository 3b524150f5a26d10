"""The measurement noise of a flight, at least the assumed one.

A filter whose assumed noise is smaller than the vibration of the vehicle follows the vibration; `measured_noise` raises the
assumed noise. It never lowers it, since assumed noise also stands for model errors, which differences do not show.

What varies within some rows (gusts that the autopilot answers, slow vibration) is not white: taken for white noise, it counts
once for each row, and a closed loop makes it look like the response to a command. It is replaced by the white noise whose means
over `_BLOCK` s vary as much. What the commands explain is no noise, and subtracted before.

Brief gusts need more than that: they are as fast as the answer of the autopilot, which is correlated with the gusts before.
With a wrong correlation time of the noise, the response to the commands is estimated wrong (L. Ljung, System Identification,
2nd ed., sections 8.4 and 13.4). `brief_gust` finds theirs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

import numpy as np
from jaxtyping import Bool, Float

from rotorid.geometry.spaces import Space
from rotorid.signals.samples import Samples
from rotorid.signals.series import white_noise

_MIN_ROWS = 50
_BLOCK: Final = 0.2  # s
_BLOCK_ROWS: Final = 3
_PART: Final = 10.0  # s; the noise is that of the noisier parts, which a filter has to bear
_QUANTILE: Final = 0.75
_MIN_BLOCKS: Final = 8
_LONGEST_DISTANCE: Final = 0.3  # s between the rows of a difference
_LEAST_DISTANCE: Final = 0.02  # s
_DISTANCES: Final = 8
LONGEST_CORRELATION: Final = 0.5
"""Longest correlation time that `correlated_noise` finds, s."""
_BRIEF: Final = 0.1  # s
_DOUBT: Final = 0.7  # standard deviation of the share before the flight
_CORRELATIONS: Final = np.geomspace(0.02, LONGEST_CORRELATION, 14)  # s


def measured_noise(
    samples: Samples, outputs: Space, coloured: Mapping[str, Float[np.ndarray, " k"]] | None = None
) -> dict[str, tuple[float, ...]]:
    """Estimate the measurement noise of vector outputs; it is never below the assumed noise.

    Args:
        samples: n rows of the outputs.
        outputs: blocks of the outputs with their assumed noise.
        coloured: standard deviation of noise that is not white, by output, in its unit.
    Returns:
        The standard deviation of each component by output, in its unit; it is the largest of the estimated, the coloured and
        the assumed one. Rotations, and outputs with fewer than 50 measurements, are left out.
    """
    y, mask = np.asarray(samples.y), np.asarray(samples.mask)
    coloured = coloured or {}
    noise = {}
    for name, block in outputs.items():
        rows = mask[:, outputs.tangent[name]].all(axis=1)
        if block.rotation or rows.sum() < _MIN_ROWS:
            continue
        values = y[rows][:, outputs.stored[name]]
        estimate = np.maximum(white_noise(values), block.noise_vector)
        if name in coloured:
            estimate = np.maximum(estimate, coloured[name])
        noise[name] = tuple(float(v) for v in estimate)
    return noise


def coloured_noise(t: Float[np.ndarray, " n"], y: Float[np.ndarray, "n k"]) -> Float[np.ndarray, " k"]:
    """Standard deviation of the white noise of rows whose means over 0.2 s vary as those of y do, in the unit of y.

    What is slower than about a second is left out. Zeros where rows or time are too few. t: of the rows, s.
    """
    block = np.floor((t - t[0]) / _BLOCK).astype(int)
    starts = np.flatnonzero(np.diff(block, prepend=-1))
    counts = np.diff(starts, append=len(t))
    full: Bool[np.ndarray, " blocks"] = counts >= _BLOCK_ROWS
    if full.sum() < _MIN_BLOCKS:
        return np.zeros(y.shape[1])
    means = np.add.reduceat(y, starts, axis=0)[full] / counts[full, None]
    parts = max(len(means) // round(_PART / _BLOCK), 1)
    stds = [white_noise(part) for part in np.array_split(means, parts)]
    return np.quantile(stds, _QUANTILE, axis=0) * np.sqrt(np.median(counts[full]))


def correlated_noise(t: Float[np.ndarray, " n"], y: Float[np.ndarray, " n"]) -> tuple[float, float]:
    """Standard deviation and correlation time of first-order noise beside white noise.

    The variance of y(t + 2h) - 2 y(t + h) + y(t) is 6 sigma_w^2 + sigma^2 (6 - 8 rho + 2 rho^2) with rho = exp(-h / tau). Both
    variances are fitted to those of distances h up to 0.3 s, tau is the best of some from 0.02 to `LONGEST_CORRELATION` s. The
    variances are those by the median, so that single steps do not count.

    Args:
        t: of the rows, s.
        y: any unit.
    Returns:
        sigma, in the unit of y, and tau, s; sigma is 0 where rows or time are too few.
    """
    step = float(np.median(np.diff(t)))
    distances = np.geomspace(max(step, _LEAST_DISTANCE), max(_LONGEST_DISTANCE, 2.0 * step), _DISTANCES)
    counts = np.unique(np.round(distances / step).astype(int))
    variances = []
    for k in counts.tolist():
        is_even = np.abs(t[2 * k :] - t[: len(t) - 2 * k] - 2 * k * step) < step
        difference = (y[2 * k :] - 2.0 * y[k:-k] + y[: len(y) - 2 * k])[is_even]
        if len(difference) < _MIN_ROWS:
            return 0.0, LONGEST_CORRELATION
        parts = np.array_split(difference, max(round(len(difference) * step / _PART), 1))
        variances.append(np.quantile([(1.4826 * np.median(np.abs(p))) ** 2 for p in parts], _QUANTILE))
    expected = np.array(variances)
    if not np.all(expected > 0.0):
        return 0.0, LONGEST_CORRELATION
    fits = []
    for tau in _CORRELATIONS.tolist():
        rho = np.exp(-counts * step / tau)
        columns = np.column_stack([np.full(len(rho), 6.0), 6.0 - 8.0 * rho + 2.0 * rho**2])
        (_, variance), error = _fit_shares(columns / expected[:, None], np.ones(len(rho)))
        fits.append((error, math.sqrt(variance), tau))
    _, sigma, tau = min(fits)
    return sigma, tau


def _fit_shares(
    columns: Float[np.ndarray, "n 2"], y: Float[np.ndarray, " n"]
) -> tuple[Float[np.ndarray, " 2"], float]:
    """Coefficients of least squares, none of them negative, and the norm of what they leave. columns, y: positive."""
    shares = np.linalg.lstsq(columns, y, rcond=None)[0]
    if (shares < 0.0).any():  # the best of one column alone
        alone = columns.T @ y / np.sum(columns**2, axis=0)
        errors = np.linalg.norm(y[:, None] - columns * alone, axis=0)
        shares = np.where(np.arange(2) == errors.argmin(), alone, 0.0)
    return shares, float(np.linalg.norm(y - columns @ shares))


def held_rows(
    values: Float[np.ndarray, "n k"], is_measured: Bool[np.ndarray, " n"]
) -> Float[np.ndarray, "n k"]:
    """Each row's latest measured values; before the first ones, those."""
    measured = np.flatnonzero(is_measured)
    latest = np.searchsorted(measured, np.arange(len(values)), side="right") - 1
    return values[measured[np.maximum(latest, 0)]]


def brief_gust(
    t: Float[np.ndarray, " n"], vertical: Float[np.ndarray, " n"], moving: float, assumed: float
) -> tuple[float, float] | None:
    """Brief vertical gusts, of less than 0.1 s, beyond the assumed noise.

    Args:
        t: of the rows, s.
        vertical: unexplained acceleration, m/s^2.
        moving: share of its variance that moves the vehicle, see `moving_share`.
        assumed: white noise of a row, m/s^2.
    Returns:
        Standard deviation, m/s^2, and correlation time, s; None without such gusts.
    """
    std, time = correlated_noise(t, vertical)
    density = 2.0 * moving * std**2 * time
    excess = density - assumed**2 * float(np.median(np.diff(t)))
    if time > _BRIEF or excess <= 0.0:
        return None
    return std * math.sqrt(moving * excess / density), time


def moving_share(
    t: Float[np.ndarray, " n"],
    residual: Float[np.ndarray, " n"],
    velocity: Float[np.ndarray, " n"],
    explained: Float[np.ndarray, " n"],
) -> float:
    """Share of the variance of unexplained accelerations that moves the vehicle, from 0 (vibration) to 1 (gusts).

    With e and c the means over 0.2 s of the unexplained and the explained acceleration, and V that of the velocity,
    V_(k+1) - V_k is 0.2 s times the mean of (e + c)_k and (e + c)_(k+1). The share is the slope of the differences of
    V_(k+1) - V_k, less those of c, over those of e. It is joined with the expectation that gusts are gusts, 1 +- `_DOUBT`:
    two seconds tell little of it, and a gust that is taken for vibration makes a filter too sure.

    Args:
        t: of the rows, s.
        residual: unexplained acceleration, m/s^2.
        velocity: in the same direction, m/s.
        explained: acceleration, m/s^2, but for a constant.
    Returns:
        The share; 1 where rows or time are too few.
    """
    block = np.floor((t - t[0]) / _BLOCK).astype(int) if len(t) else np.zeros(0, int)
    counts = np.bincount(block)
    full = counts > 0
    if full.sum() < _MIN_BLOCKS:
        return 1.0
    e, v, c = (np.bincount(block, x) / np.maximum(counts, 1) for x in (residual, velocity, explained))
    is_pair = full[1:] & full[:-1]
    triple = is_pair[1:] & is_pair[:-1]
    own = np.diff(0.5 * (e[1:] + e[:-1]))[triple]
    moved = np.diff(np.diff(v) / _BLOCK - 0.5 * (c[1:] + c[:-1]))[triple]
    variance = float(own @ own)
    if variance == 0.0:
        return 1.0
    share = float(own @ moved) / variance
    trust = _DOUBT**2 / (_DOUBT**2 + float(np.mean((moved - share * own) ** 2)) / variance)
    return min(max(1.0 + trust * (share - 1.0), 0.0), 1.0)
