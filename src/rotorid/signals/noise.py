"""How noisy the measurements of a flight are, from the flight itself.

The third difference of a sampled signal removes what moves slowly and keeps white noise, with 1 + 9 + 9 + 1 = 20 times its
variance. The median absolute third difference is not moved by steps and outliers, and gives

    sigma = 1.4826 median |y_k - 3 y_{k-1} + 3 y_{k-2} - y_{k-3}| / sqrt(20).

Of samples that are not evenly apart it is the third divided difference, sum_i y_i w_i, w_i = 1 / prod_{j != i} (t_i - t_j),
over the root of sum_i w_i^2: it removes the same.

A filter whose assumed noise is smaller than that of a shaking vehicle believes the vibration; `measured_noise` raises
it. It never lowers it: assumed noise stands for the model's errors too, which no difference shows.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from rotorid.geometry.spaces import Space
from rotorid.signals.samples import Samples

_FEWEST = 50
_ORDER = 3  # of the difference


def white_noise(
    y: Float[np.ndarray, "n k"], t: Float[np.ndarray, " n"] | None = None
) -> Float[np.ndarray, " k"]:
    """Standard deviation of the white part of columns, in their unit. t: of the rows, s; None: they are evenly sampled."""
    if t is None or len(t) <= _ORDER:
        third = np.diff(y, n=_ORDER, axis=0)
        return 1.4826 * np.median(np.abs(third), axis=0) / np.sqrt(20.0)
    near = np.lib.stride_tricks.sliding_window_view(t, _ORDER + 1)
    near = near / (near[:, -1:] - near[:, :1])
    w = 1.0 / np.prod(near[:, :, None] - near[:, None, :] + np.eye(_ORDER + 1), axis=2)
    w = w / np.linalg.norm(w, axis=1, keepdims=True)
    rows = np.lib.stride_tricks.sliding_window_view(y, _ORDER + 1, axis=0)
    return 1.4826 * np.median(np.abs(np.einsum("nki,ni->nk", rows, w)), axis=0)


def measured_noise(samples: Samples, outputs: Space) -> dict[str, tuple[float, ...]]:
    """Estimate the measurement noise of vector outputs; it is never below the assumed noise.

    Args:
        samples: n rows of the outputs.
        outputs: their blocks with the assumed noise.
    Returns:
        Standard deviation of each component by output, in its unit: the larger of the estimated and the
        assumed one. Rotations, and outputs with fewer than 50 measurements, are left out.
    """
    y, mask = np.asarray(samples.y), np.asarray(samples.mask)
    found = {}
    for name, block in outputs.items():
        rows = mask[:, outputs.tangent[name]].all(axis=1)
        if block.rotation or rows.sum() < _FEWEST:
            continue
        shown = white_noise(y[rows][:, outputs.stored[name]])
        found[name] = tuple(float(v) for v in np.maximum(shown, block.noise_vector))
    return found
