"""The measurement noise of a flight, at least the assumed one.

A filter whose assumed noise is smaller than the vibration of the vehicle follows the vibration; `measured_noise` raises the
assumed noise. It never lowers it, since assumed noise also stands for model errors, which differences do not show.
"""

from __future__ import annotations

import numpy as np

from rotorid.geometry.spaces import Space
from rotorid.signals.samples import Samples
from rotorid.signals.series import white_noise

_MIN_ROWS = 50


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
    noise = {}
    for name, block in outputs.items():
        rows = mask[:, outputs.tangent[name]].all(axis=1)
        if block.rotation or rows.sum() < _MIN_ROWS:
            continue
        estimate = white_noise(y[rows][:, outputs.stored[name]])
        noise[name] = tuple(float(v) for v in np.maximum(estimate, block.noise_vector))
    return noise
