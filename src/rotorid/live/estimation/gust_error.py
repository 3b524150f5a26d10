"""Uncertainty of the mass by gusts, causally; `workflows.track.model_errors` has the same term for a whole flight.

A gust acts up and down as well as across. With f the tracked wind force across, its departure from its own mean weighted by
exp(-age / 10 s), beyond what the standard deviation of its estimate explains, has the variance sigma_f^2 in that mean. The
force along the rotor axis varies by 0.7 r sigma_f, with r the axial drag ratio, and the mass by as much over the weight.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np
from jaxtyping import Float

_MEMORY: Final = 10.0  # s
_VERTICAL: Final = 0.7  # of horizontal gusts; 0.5 to 0.6 below 30 m (MIL-F-8785C), 1 far above the ground
_NAMES: Final = ("wind_force_x", "wind_force_y")


class GustError:
    """Relative standard deviation of the mass by gusts.

    Args:
        quantities: names of the tracked quantities.
        weight: of the vehicle, N.
    """

    def __init__(self, quantities: Sequence[str], weight: float) -> None:
        names = list(quantities)
        self._forces = [names.index(name) for name in _NAMES] if set(_NAMES) <= set(names) else []
        self._ratio = names.index("axial_drag_ratio") if "axial_drag_ratio" in names else None
        self._weight = weight
        self._rows = 0.0
        self._mean, self._variance = [0.0, 0.0], 0.0

    def update(
        self, dt: float, value: Float[np.ndarray, " quantities"], std: Float[np.ndarray, " quantities"]
    ) -> float:
        """The relative standard deviation after one more row. dt: s since the previous row."""
        force = [float(value[k]) for k in self._forces]
        if not force or not all(map(math.isfinite, force)):
            return 0.0
        self._rows = math.exp(-dt / _MEMORY) * self._rows + 1.0
        excess = 0.0
        for k, f in enumerate(force):
            departure = f - self._mean[k]
            self._mean[k] += departure / self._rows
            excess += 0.5 * (departure * (f - self._mean[k]) - float(std[self._forces[k]]) ** 2)
        self._variance += (excess - self._variance) / self._rows
        ratio = 1.0 if self._ratio is None else abs(float(value[self._ratio]))
        return _VERTICAL * ratio * math.sqrt(max(self._variance, 0.0)) / self._weight
