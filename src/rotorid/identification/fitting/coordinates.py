"""Coordinates of the free parameters, in which any number is a body that can be, and their priors.

    theta = phi^-1(c + s z),    e = z             positive: phi = log; between two bounds: logit; else the number itself
    J = tr(Sigma) I - Sigma,    Sigma = L L^T     inertia, with L = L_0 + z,    e = (log J - log J_0) / s

e are the errors of the prior, each normal with mean 0 and variance 1. Sigma is the second moment of the mass about its centre
(diagonal, with z added to it, where there are no products of inertia). Where it is positive definite, and only there, the
principal moments of J satisfy the triangle inequalities: so the diagonal of L has a least value, at which an estimate may
come to rest, as drag may at 0.

References: P. M. Wensing, S. Kim, J.-J. Slotine, Linear matrix inequalities for physically consistent inertial parameter
identification, RA-L 3 (2018); C. Rucker, P. M. Wensing, Smooth parameterization of rigid-body inertia, RA-L 7 (2022).
"""

from __future__ import annotations

import dataclasses
import functools
import math
from functools import cached_property

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from rotorid.models.joint import to_coordinate, to_value
from rotorid.models.system import Parameter

INERTIA, PRODUCTS = "inertia", "products_of_inertia"
_FLAT = 0.01  # least second moment at the start, of their sum: that of a flat body would be 0

_THINNEST = 0.001  # least second moment, of that sum


@dataclasses.dataclass(frozen=True)
class Prior:
    """What is believed of a free parameter before the flights. value, std: in the parameter's unit, one each per number.

    one_sided: not below 0, where the estimate may come to rest. body: whether it is a rigid body's inertia or its products.
    """

    parameter: Parameter
    value: tuple[float, ...]
    std: tuple[float, ...]
    one_sided: bool = False
    body: bool = False


@dataclasses.dataclass(frozen=True)
class Coordinates:
    """The map from coordinates z to the free parameters. It knows their kinds, not their numbers, which come as arrays.

    parameters: the free ones in order, with their bounds. one_sided: those that rest at 0. body: those of an inertia.
    """

    parameters: tuple[Parameter, ...]
    one_sided: tuple[str, ...]
    body: tuple[str, ...]

    @cached_property
    def places(self) -> dict[str, slice]:
        """Where the numbers of each parameter lie."""
        found, start = {}, 0
        for p in self.parameters:
            found[p.name] = slice(start, start + len(p.values))
            start += len(p.values)
        return found

    @cached_property
    def size(self) -> int:
        return sum(len(p.values) for p in self.parameters)

    @cached_property
    def positive(self) -> tuple[bool, ...]:
        """Of each number, whether its prior is one of its logarithm."""
        return tuple(
            (p.name == INERTIA and p.name in self.body)
            or (math.isfinite(p.bounds[0]) and math.isinf(p.bounds[1]))
            for p in self.parameters
            for _ in p.values
        )

    def numbers(
        self, z: Float[Array, " free"], centre: Float[Array, " free"], scale: Float[Array, " free"]
    ) -> Float[Array, " free"]:
        """The free parameters in their units."""
        parts = []
        for p in self.parameters:
            place = self.places[p.name]
            if p.name in self.body and p.name == INERTIA:
                parts.append(self._moments(z, centre)[0])
            elif p.name in self.body:
                parts.append(self._moments(z, centre)[1])
            else:
                parts.append(to_value(p, centre[place] + scale[place] * z[place]))
        return jnp.concatenate(parts)

    def prior_errors(
        self, z: Float[Array, " free"], centre: Float[Array, " free"], scale: Float[Array, " free"]
    ) -> Float[Array, " free"]:
        """e: how far from their priors the parameters are, in standard deviations."""
        parts = []
        for p in self.parameters:
            place = self.places[p.name]
            if p.name in self.body and p.name == INERTIA:
                parts.append((jnp.log(self._moments(z, centre)[0]) - centre[place]) / scale[place])
            elif p.name in self.body:
                parts.append((self._moments(z, centre)[1] - centre[place]) / scale[place])
            else:
                parts.append(z[place])
        return jnp.concatenate(parts)

    def least(
        self, centre: Float[np.ndarray, " free"], scale: Float[np.ndarray, " free"]
    ) -> Float[np.ndarray, " free"]:
        """The least z that each number may have. A body is not quite flat."""
        found = np.full(self.size, -np.inf)
        if INERTIA in self.body:
            place = self.places[INERTIA]
            size, diagonal, _ = self._second_moments(jnp.asarray(centre))
            thinnest = _THINNEST if PRODUCTS not in self.body else math.sqrt(_THINNEST)
            found[place] = thinnest - np.asarray(diagonal) / float(size)
        for name in self.one_sided:
            place = self.places[name]
            found[place] = -centre[place] / scale[place]
        return found

    def _moments(
        self, z: Float[Array, " free"], centre: Float[Array, " free"]
    ) -> tuple[Float[Array, " 3"], Float[Array, " 3"]]:
        """J in kg m^2: diagonal, and (xy, xz, yz)."""
        size, diagonal, lower = self._second_moments(centre)
        diagonal = diagonal + size * z[self.places[INERTIA]]
        if PRODUCTS not in self.body:
            return jnp.sum(diagonal) - diagonal, jnp.zeros(3)
        a, d, f = diagonal
        b, c, e = lower + size * z[self.places[PRODUCTS]]
        s = jnp.stack([a * a, b * b + d * d, c * c + e * e + f * f])
        return jnp.sum(s) - s, -jnp.stack([a * b, a * c, b * c + d * e])

    def _second_moments(
        self, centre: Float[Array, " free"]
    ) -> tuple[Float[Array, ""], Float[Array, " 3"], Float[Array, " 3"]]:
        """Of the prior: the size by which z is scaled, the diagonal of Sigma (of L, with products), and what is below L's.

        A prior that no body has is moved to the nearest kind that one can have.
        """
        J0 = jnp.exp(centre[self.places[INERTIA]])
        trace = 0.5 * jnp.sum(J0)
        moments = jnp.maximum(trace - J0, _FLAT * trace)
        if PRODUCTS not in self.body:
            return trace, moments, jnp.zeros(3)
        xy, xz, yz = centre[self.places[PRODUCTS]]
        a = jnp.sqrt(moments[0])
        b, c = -xy / a, -xz / a
        d = jnp.sqrt(jnp.maximum(moments[1] - b * b, _FLAT * trace))
        e = (-yz - b * c) / d
        f = jnp.sqrt(jnp.maximum(moments[2] - c * c - e * e, _FLAT * trace))
        return jnp.sqrt(trace), jnp.stack([a, d, f]), jnp.stack([b, c, e])


@functools.partial(jax.jit, static_argnums=0)
def mapped(
    coordinates: Coordinates,
    z: Float[Array, " free"],
    centre: Float[Array, " free"],
    scale: Float[Array, " free"],
) -> tuple[
    Float[Array, " free"], Float[Array, "free free"], Float[Array, " free"], Float[Array, "free free"]
]:
    """e and de/dz, the free parameters in their units and how they grow with z."""
    errors = functools.partial(coordinates.prior_errors, centre=centre, scale=scale)
    numbers = functools.partial(coordinates.numbers, centre=centre, scale=scale)
    return errors(z), jax.jacfwd(errors)(z), numbers(z), jax.jacfwd(numbers)(z)


def coordinates_of(
    priors: tuple[Prior, ...],
) -> tuple[Coordinates, Float[np.ndarray, " free"], Float[np.ndarray, " free"]]:
    """The coordinates of these parameters, and centre c and scale s of their priors."""
    kinds, centre, scale = [], [], []
    for prior in priors:
        p = prior.parameter
        blank = (0.0,) * len(p.values) if isinstance(p.value, tuple) else 0.0
        bounds = (-math.inf, math.inf) if prior.one_sided else p.bounds
        kind = Parameter(p.name, blank, bounds=bounds)
        kinds.append(kind)
        for value, std in zip(prior.value, prior.std, strict=True):
            if prior.body and p.name == INERTIA:
                centre.append(math.log(value))
                scale.append(std / value)
                continue
            c = to_coordinate(kind, value)
            centre.append(c)
            scale.append(std / _slope(kind, value))
    one_sided, body = (
        tuple(p.parameter.name for p in priors if getattr(p, kind)) for kind in ("one_sided", "body")
    )
    found = Coordinates(tuple(kinds), one_sided, body)
    return found, np.array(centre), np.array(scale)


def _slope(kind: Parameter, value: float) -> float:
    """d value / d coordinate."""
    lower, upper = kind.bounds
    if math.isinf(lower) and math.isinf(upper):
        return 1.0
    if math.isinf(upper):
        return value - lower
    if math.isinf(lower):
        return upper - value
    return (value - lower) * (upper - value) / (upper - lower)
