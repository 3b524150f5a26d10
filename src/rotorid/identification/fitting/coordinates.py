"""Coordinates of the free parameters without bounds, and their priors.

    theta = phi^-1(c + s z),    e = z             positive: phi = log; between two bounds: logit; else the number itself

e are the errors of the prior, each normal with mean 0 and variance 1. Parameters with joint coordinates, such as the inertia of
a rigid body, are a `CoordinateGroup`. One-sided parameters, such as drag, have a lower bound of 0 at which an estimate may end.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Mapping
from functools import cached_property
from typing import Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from rotorid.models.joint import to_coordinate, to_value
from rotorid.models.system import Parameter


@runtime_checkable
class CoordinateGroup(Protocol):
    """Parameters with joint coordinates; hashable. z, centre: of the group's parameters, by name."""

    def is_log(self, name: str) -> bool:
        """Whether the prior of a parameter is one of its logarithm."""
        ...

    def quantities(
        self, name: str, z: Mapping[str, Float[Array, " k"]], centre: Mapping[str, Float[Array, " k"]]
    ) -> Float[Array, " k"]:
        """Values of a parameter, in its unit."""
        ...

    def lower_bounds(
        self, centre: Mapping[str, Float[np.ndarray, " k"]]
    ) -> Mapping[str, Float[np.ndarray, " k"]]:
        """The least z of the numbers of parameters that have lower bounds."""
        ...


@dataclasses.dataclass(frozen=True)
class Prior:
    """Prior of a free parameter.

    Attributes:
        parameter: its name, unit and bounds.
        value, std: in the parameter's unit, one each per number.
        is_one_sided: whether the lower bound is 0, at which the estimate may end.
        group: of parameters with joint coordinates; None for most.
    """

    parameter: Parameter
    value: tuple[float, ...]
    std: tuple[float, ...]
    is_one_sided: bool = False
    group: CoordinateGroup | None = None


@dataclasses.dataclass(frozen=True)
class Coordinates:
    """The map from coordinates z to the free parameters. It holds their kinds; their priors' numbers are arguments.

    Attributes:
        parameters: the free ones in order, with their bounds.
        one_sided: names of those that may end at 0.
        groups: of those with joint coordinates, by name.
    """

    parameters: tuple[Parameter, ...]
    one_sided: tuple[str, ...]
    groups: tuple[tuple[str, CoordinateGroup], ...]

    @cached_property
    def slices(self) -> dict[str, slice]:
        """Slice of the numbers of each parameter."""
        found, start = {}, 0
        for p in self.parameters:
            found[p.name] = slice(start, start + len(p.values))
            start += len(p.values)
        return found

    @cached_property
    def size(self) -> int:
        return sum(len(p.values) for p in self.parameters)

    @cached_property
    def is_log(self) -> tuple[bool, ...]:
        """Of each number, whether its prior is one of its logarithm."""
        groups = dict(self.groups)
        return tuple(
            (p.name in groups and groups[p.name].is_log(p.name))
            or (math.isfinite(p.bounds[0]) and math.isinf(p.bounds[1]))
            for p in self.parameters
            for _ in p.values
        )

    def quantities(
        self, z: Float[Array, " free"], centre: Float[Array, " free"], scale: Float[Array, " free"]
    ) -> Float[Array, " free"]:
        """The free parameters in their units."""
        parts, groups = [], dict(self.groups)
        for p in self.parameters:
            place = self.slices[p.name]
            if p.name in groups:
                group = groups[p.name]
                parts.append(group.quantities(p.name, self._members(group, z), self._members(group, centre)))
            else:
                parts.append(to_value(p, centre[place] + scale[place] * z[place]))
        return jnp.concatenate(parts)

    def prior_errors(
        self, z: Float[Array, " free"], centre: Float[Array, " free"], scale: Float[Array, " free"]
    ) -> Float[Array, " free"]:
        """e: deviation of the parameters from their priors, in standard deviations."""
        parts, groups = [], dict(self.groups)
        for p in self.parameters:
            place = self.slices[p.name]
            if p.name in groups:
                group = groups[p.name]
                value = group.quantities(p.name, self._members(group, z), self._members(group, centre))
                value = jnp.log(value) if group.is_log(p.name) else value
                parts.append((value - centre[place]) / scale[place])
            else:
                parts.append(z[place])
        return jnp.concatenate(parts)

    def lower_bounds(
        self, centre: Float[np.ndarray, " free"], scale: Float[np.ndarray, " free"]
    ) -> Float[np.ndarray, " free"]:
        """The least z that each number may have."""
        found = np.full(self.size, -np.inf)
        for group in dict.fromkeys(group for _, group in self.groups):
            for name, bounds in group.lower_bounds(self._members(group, centre)).items():
                found[self.slices[name]] = bounds
        for name in self.one_sided:
            place = self.slices[name]
            found[place] = -centre[place] / scale[place]
        return found

    def _members(self, group: CoordinateGroup, numbers):
        """Numbers of a group's parameters, by name."""
        return {name: numbers[self.slices[name]] for name, of in self.groups if of == group}


@functools.partial(jax.jit, static_argnums=0)
def evaluate_coordinates(
    coordinates: Coordinates,
    z: Float[Array, " free"],
    centre: Float[Array, " free"],
    scale: Float[Array, " free"],
) -> tuple[
    Float[Array, " free"], Float[Array, "free free"], Float[Array, " free"], Float[Array, "free free"]
]:
    """e and de/dz, the free parameters in their units and their derivatives by z."""
    errors = functools.partial(coordinates.prior_errors, centre=centre, scale=scale)
    quantities = functools.partial(coordinates.quantities, centre=centre, scale=scale)
    return errors(z), jax.jacfwd(errors)(z), quantities(z), jax.jacfwd(quantities)(z)


def coordinates_from_priors(
    priors: tuple[Prior, ...],
) -> tuple[Coordinates, Float[np.ndarray, " free"], Float[np.ndarray, " free"]]:
    """The coordinates of these parameters, and centre c and scale s of their priors."""
    kinds, centre, scale = [], [], []
    for prior in priors:
        p = prior.parameter
        blank = (0.0,) * len(p.values) if isinstance(p.value, tuple) else 0.0
        bounds = (-math.inf, math.inf) if prior.is_one_sided else p.bounds
        kind = Parameter(p.name, blank, bounds=bounds)
        kinds.append(kind)
        for value, std in zip(prior.value, prior.std, strict=True):
            if prior.group is not None and prior.group.is_log(p.name):
                centre.append(math.log(value))
                scale.append(std / value)
                continue
            c = to_coordinate(kind, value)
            centre.append(c)
            scale.append(std / _derivative(kind, value))
    one_sided = tuple(p.parameter.name for p in priors if p.is_one_sided)
    groups = tuple((p.parameter.name, p.group) for p in priors if p.group is not None)
    return Coordinates(tuple(kinds), one_sided, groups), np.array(centre), np.array(scale)


def _derivative(kind: Parameter, value: float) -> float:
    """d value / d coordinate."""
    lower, upper = kind.bounds
    if math.isinf(lower) and math.isinf(upper):
        return 1.0
    if math.isinf(upper):
        return value - lower
    if math.isinf(lower):
        return upper - value
    return (value - lower) * (upper - value) / (upper - lower)
