"""How noisy the measurements of a flight are, from the flight itself.

The third difference of a sampled signal removes what moves slowly and keeps white noise, with 1 + 9 + 9 + 1 = 20 times its
variance. The median absolute third difference is not moved by steps and outliers, and gives

    sigma = 1.4826 median |y_k - 3 y_{k-1} + 3 y_{k-2} - y_{k-3}| / sqrt(20).

A filter whose assumed noise is smaller than that of a shaking vehicle believes the vibration; `measured_noise` raises
it. It never lowers it: assumed noise stands for the model's errors too, which no difference shows.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from rotorid.geometry.spaces import Space
from rotorid.signals.samples import Samples

_FEWEST = 50


def white_noise(y: Float[np.ndarray, "n k"]) -> Float[np.ndarray, " k"]:
    """Standard deviation of the white part of evenly sampled columns, in their unit."""
    third = np.diff(y, n=3, axis=0)
    return 1.4826 * np.median(np.abs(third), axis=0) / np.sqrt(20.0)


def measured_noise(samples: Samples, outputs: Space) -> dict[str, tuple[float, ...]]:
    """Noise of each vector output: what its block assumes or what the flight shows, whichever is more, per dimension."""
    y, mask = np.asarray(samples.y), np.asarray(samples.mask)
    found = {}
    for name, block in outputs.items():
        rows = mask[:, outputs.tangent[name]].all(axis=1)
        if block.rotation or rows.sum() < _FEWEST:
            continue
        shown = white_noise(y[rows][:, outputs.stored[name]])
        found[name] = tuple(float(v) for v in np.maximum(shown, block.noise_vector))
    return found
