"""The inertia of an airframe as a matrix."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from rotorid.models.airframe import Airframe


def inertia_of(airframe: Airframe) -> Float[np.ndarray, "3 3"]:
    """J in kg m^2, about the centre of mass, body frame, of an airframe that has it."""
    x, y, z = airframe.quantities["inertia"].value
    xy, xz, yz = airframe.vector("products_of_inertia")
    return np.array([[x, xy, xz], [xy, y, yz], [xz, yz, z]])
