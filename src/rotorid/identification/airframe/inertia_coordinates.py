"""Coordinates in which every inertia is that of a rigid body.

    J = tr(Sigma) I - Sigma,    Sigma = L L^T,    L = L_0 + z,    e = (log J - log J_0) / s

Sigma is the second moment of the mass about its centre (diagonal, Sigma = Sigma_0 + z, without products of inertia). The
principal moments of J satisfy the triangle inequalities if and only if Sigma is positive definite, so the diagonal of L has a
lower bound, at which an estimate may end.

References: P. M. Wensing, S. Kim, J.-J. Slotine, Linear matrix inequalities for physically consistent inertial parameter
identification, RA-L 3 (2018); C. Rucker, P. M. Wensing, Smooth parameterization of rigid-body inertia, RA-L 7 (2022).
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

INERTIA, PRODUCTS = "inertia", "products_of_inertia"

_FLAT = 0.01  # least second moment of the prior, over their sum; that of a flat body is 0
_THINNEST = 0.001  # least second moment of an estimate, over that sum


@dataclasses.dataclass(frozen=True)
class InertiaCoordinates:
    """A `CoordinateGroup` of the inertia, kg m^2, and of its products (xy, xz, yz) where they are free."""

    has_products: bool

    def is_log(self, name: str) -> bool:
        """Whether the prior of a parameter is one of its logarithm."""
        return name == INERTIA

    def quantities(
        self, name: str, z: Mapping[str, Float[Array, " k"]], centre: Mapping[str, Float[Array, " k"]]
    ) -> Float[Array, " 3"]:
        """The inertia's diagonal, or its products, kg m^2."""
        return self._moments(z, centre)[0 if name == INERTIA else 1]

    def lower_bounds(
        self, centre: Mapping[str, Float[np.ndarray, " k"]]
    ) -> dict[str, Float[np.ndarray, " 3"]]:
        """The least z of each number; a body is not quite flat."""
        size, diagonal, _ = self._second_moments({name: jnp.asarray(c) for name, c in centre.items()})
        thinnest = math.sqrt(_THINNEST) if self.has_products else _THINNEST
        return {INERTIA: thinnest - np.asarray(diagonal) / float(size)}

    def _moments(
        self, z: Mapping[str, Float[Array, " k"]], centre: Mapping[str, Float[Array, " k"]]
    ) -> tuple[Float[Array, " 3"], Float[Array, " 3"]]:
        """J in kg m^2: diagonal, and (xy, xz, yz)."""
        size, diagonal, lower = self._second_moments(centre)
        diagonal = diagonal + size * z[INERTIA]
        if not self.has_products:
            return jnp.sum(diagonal) - diagonal, jnp.zeros(3)
        a, d, f = diagonal
        b, c, e = lower + size * z[PRODUCTS]
        s = jnp.stack([a * a, b * b + d * d, c * c + e * e + f * f])
        return jnp.sum(s) - s, -jnp.stack([a * b, a * c, b * c + d * e])

    def _second_moments(
        self, centre: Mapping[str, Float[Array, " k"]]
    ) -> tuple[Float[Array, ""], Float[Array, " 3"], Float[Array, " 3"]]:
        """Of the prior: the scale of z, the diagonal of Sigma (of L, with products), and the entries of L below its diagonal.

        A prior that is not the inertia of a body is replaced by a similar one that is.
        """
        J0 = jnp.exp(centre[INERTIA])
        trace = 0.5 * jnp.sum(J0)
        moments = jnp.maximum(trace - J0, _FLAT * trace)
        if not self.has_products:
            return trace, moments, jnp.zeros(3)
        xy, xz, yz = centre[PRODUCTS]
        a = jnp.sqrt(moments[0])
        b, c = -xy / a, -xz / a
        d = jnp.sqrt(jnp.maximum(moments[1] - b * b, _FLAT * trace))
        e = (-yz - b * c) / d
        f = jnp.sqrt(jnp.maximum(moments[2] - c * c - e * e, _FLAT * trace))
        return jnp.sqrt(trace), jnp.stack([a, d, f]), jnp.stack([b, c, e])
