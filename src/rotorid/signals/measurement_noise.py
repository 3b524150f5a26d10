"""The measurement noise of a flight, at least the assumed one.

A filter whose assumed noise is smaller than the vibration of the vehicle follows the vibration; `measured_noise` raises the
assumed noise. It never lowers it, since assumed noise also stands for model errors, which differences do not show.

What varies within some rows (gusts that the autopilot answers, slow vibration) is not white: taken for white noise, it counts
once for each row, and a closed loop makes it look like the response to a command. It is replaced by the white noise whose means
over `_BLOCK` s vary as much. What the commands explain is no noise, and subtracted before.
"""

from __future__ import annotations

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


def measured_noise(
    samples: Samples, outputs: Space, coloured: Mapping[str, Float[np.ndarray, " k"]] | None = None
) -> dict[str, tuple[float, ...]]:
    """Estimate the measurement noise of vector outputs; it is never below the assumed noise.

    Args:
        samples: n rows of the outputs.
        outputs: their blocks with the assumed noise.
        coloured: by output, the standard deviation of noise that is not white, see `coloured_noise`, in its unit.
    Returns:
        Standard deviation of each component by output, in its unit: the largest of the estimated, the coloured and the
        assumed one. Rotations, and outputs with fewer than 50 measurements, are left out.
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


def moving_share(
    t: Float[np.ndarray, " n"],
    residual: Float[np.ndarray, " n"],
    velocity: Float[np.ndarray, " n"],
    explained: Float[np.ndarray, " n"],
) -> float:
    """Share of the variance of unexplained accelerations that moves the vehicle, from 0 (vibration) to 1 (gusts).

    With e and c the means over 0.2 s of the unexplained and the explained acceleration, and V that of the velocity,
    V_(k+1) - V_k is 0.2 s times the mean of (e + c)_k and (e + c)_(k+1). The share is the slope of the differences of
    V_(k+1) - V_k, less those of c, over those of e.

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
    return 1.0 if variance == 0.0 else min(max(float(own @ moved) / variance, 0.0), 1.0)
