"""The free parameters of an estimation: their priors, coordinates without bounds, and the rules of a kind of System.

    theta = phi^-1(c + s z),    e = z             positive: phi = log; between two bounds: logit; else the number itself

e are the errors of the prior, each normal with mean 0 and variance 1. Parameters with joint coordinates, such as the inertia of
a rigid body, are a `CoordinateGroup`. One-sided parameters, such as drag, have a lower bound of 0 at which an estimate may end.

Prior standard deviations are the caller's, else the System's, else those of the rules of its kind, `SystemRules`. The rules
also say which rows of a flight can be used.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Final, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from rotorid.errors import SettingError
from rotorid.models.joint import to_coordinate, to_value
from rotorid.models.system import Parameter, System


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
        slices, start = {}, 0
        for p in self.parameters:
            slices[p.name] = slice(start, start + len(p.values))
            start += len(p.values)
        return slices

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
        lower = np.full(self.size, -np.inf)
        for group in dict.fromkeys(group for _, group in self.groups):
            for name, bounds in group.lower_bounds(self._members(group, centre)).items():
                lower[self.slices[name]] = bounds
        for name in self.one_sided:
            place = self.slices[name]
            lower[place] = -centre[place] / scale[place]
        return lower

    def _members(self, group: CoordinateGroup, numbers):
        """Numbers of a group's parameters, by name."""
        return {
            name: numbers[self.slices[name]] for name, name_of_group in self.groups if name_of_group == group
        }


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
        zeros = (0.0,) * len(p.values) if isinstance(p.value, tuple) else 0.0
        bounds = (-math.inf, math.inf) if prior.is_one_sided else p.bounds
        kind = Parameter(p.name, zeros, bounds=bounds)
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


Numbers = float | tuple[float, ...]
"""A parameter's number or numbers, in its unit."""

Means = Mapping[str, tuple[float, ...]]
"""Prior means of all parameters of a System, by name."""


@runtime_checkable
class SystemRules(Protocol):
    """Rules of a kind of System."""

    def complete(self, free: dict[str, Numbers | None], means: Means) -> None:
        """Add parameters that have to be free with these. Raises SettingError where one cannot be free alone."""
        ...

    def is_positive(self, name: str) -> bool:
        """Whether a free parameter is above 0, whatever its bounds."""
        ...

    def is_one_sided(self, name: str) -> bool:
        """Whether an estimate of the parameter may end at 0, its lower bound."""
        ...

    def default_std(self, parameter: Parameter, means: Means) -> Numbers | None:
        """Default prior standard deviation, None where there is none."""
        ...

    def group(self, name: str, free: Mapping[str, Numbers | None]) -> CoordinateGroup | None:
        """The group of parameters with joint coordinates that a free parameter belongs to."""
        ...

    def check_inputs(self, flight: int, u: Float[np.ndarray, "n inputs"]) -> None:
        """Raise SignalError where the inputs of a flight (its number) cannot be used."""
        ...

    def usable_rows(self, u: Float[np.ndarray, "n inputs"]) -> Bool[np.ndarray, " n"]:
        """Rows whose inputs can be used."""
        ...


@dataclasses.dataclass(frozen=True)
class GenericRules:
    """Rules of a System about which nothing else is known: no default priors, all rows can be used."""

    def complete(self, free: dict[str, Numbers | None], means: Means) -> None:
        pass

    def is_positive(self, name: str) -> bool:
        return False

    def is_one_sided(self, name: str) -> bool:
        return False

    def default_std(self, parameter: Parameter, means: Means) -> Numbers | None:
        return None

    def group(self, name: str, free: Mapping[str, Numbers | None]) -> CoordinateGroup | None:
        return None

    def check_inputs(self, flight: int, u: Float[np.ndarray, "n inputs"]) -> None:
        pass

    def usable_rows(self, u: Float[np.ndarray, "n inputs"]) -> Bool[np.ndarray, " n"]:
        return np.ones(len(u), bool)


GENERIC: Final = GenericRules()
"""The default rules."""


def make_priors(
    system: System,
    free: Sequence[str] | Mapping[str, Numbers | None],
    values: Mapping[str, Numbers],
    rules: SystemRules = GENERIC,
) -> tuple[Prior, ...]:
    """The priors of the free parameters, in the System's order.

    Args:
        system: the model.
        free: names of the free parameters, or prior standard deviations by name, in their units (None: the System's, else the
            default of the rules).
        values: prior means that replace the System's.
        rules: of this kind of System.
    Raises:
        SettingError: a name is unknown, or a prior is not valid.
    """
    if isinstance(free, str):
        raise SettingError(f"free parameters {free!r}: give a list of names")
    requested = dict(free) if isinstance(free, Mapping) else dict.fromkeys(free)
    if not requested:
        raise SettingError("no free parameter: name at least one to estimate")
    for name in (*requested, *values):
        system.parameter(name)
    means = {p.name: _prior_numbers(p, "value", values.get(p.name, p.value)) for p in system.parameters}
    rules.complete(requested, means)
    return tuple(_prior(p, requested, means, rules) for p in system.parameters if p.name in requested)


def _prior(p: Parameter, free: Mapping[str, Numbers | None], means: Means, rules: SystemRules) -> Prior:
    value, std, one_sided = means[p.name], free[p.name], rules.is_one_sided(p.name)
    if rules.is_positive(p.name):
        p = dataclasses.replace(p, bounds=(0.0, math.inf))
    if std is None:
        std = p.std or rules.default_std(p, means)
    if std is None:
        raise SettingError(f"{p.name}: no prior std; give one, as in free={{{p.name!r}: 0.1}} (in {p.unit})")
    numbers = _prior_numbers(p, "std", std)
    if min(numbers) <= 0:
        raise SettingError(
            f"{p.name}: a prior std of {min(numbers):g} {p.unit}; a free parameter needs one above 0"
        )
    lower, upper = p.bounds
    if not all(lower < v < upper for v in value) or (one_sided and min(value) < 0):
        raise SettingError(
            f"{p.name}: its prior value {', '.join(f'{v:g}' for v in value)} {p.unit} cannot be; give one within its bounds"
        )
    return Prior(p, value, numbers, one_sided, rules.group(p.name, free))


def _prior_numbers(p: Parameter, kind: str, value: Numbers) -> tuple[float, ...]:
    numbers = tuple(float(v) for v in np.ravel(value))
    if len(numbers) == 1:
        numbers = numbers * (len(p.values) if kind == "std" else 1)
    if len(numbers) != len(p.values) or not all(math.isfinite(v) for v in numbers):
        raise SettingError(
            f"{p.name}: {kind} {value!r}; {len(p.values)} finite numbers are needed, in {p.unit}"
        )
    return numbers
