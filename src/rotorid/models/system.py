"""A System: x' = f(x, u, p), y = h(x, u, p), with named blocks and named parameters.

This is all that rotorid asks of a model (SESAME D2.2, eqs. 1-2). A model of one's own is a few lines:

    class Pendulum(System):
        states = Space.of(angle=Scalar("rad"), rate=Scalar("rad/s", noise=0.02))
        inputs = Space.of(torque=Scalar("N m"))
        outputs = Space.of(angle=Scalar("rad", noise=0.01))
        parameters = (Parameter("length", 1.0, std=0.3, unit="m", bounds=(0.0, math.inf)),)

        def dynamics(self, x, u, p):
            return {"angle": x["rate"], "rate": u["torque"] / p["length"] ** 2 - 9.81 / p["length"] * jnp.sin(x["angle"])}

        def observe(self, x, u, p):
            return {"angle": x["angle"]}
"""

from __future__ import annotations

import dataclasses
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from rotorid.errors import SettingError
from rotorid.geometry.gravity import GRAVITY as GRAVITY
from rotorid.geometry.spaces import Space
from rotorid.numerics.integrators import Solved

Values = Mapping[str, Float[Array, " ..."]]
"""Named values of a space, or of the parameters."""


@dataclasses.dataclass(frozen=True)
class Parameter:
    """A named number or vector that a model depends on.

    name: a valid name of a keyword. value: prior mean, in unit. std: standard deviation of the prior, in unit; 0 fixes the
    parameter at its value. unit: SI unit. bounds: open interval of the parameter. Estimators work in coordinates that keep it
    there: the logarithm above a lower bound, the logit between two, the parameter itself without bounds. drift: standard
    deviation of its random walk in one second, in unit per square root of s; 0 for a constant. frame: coordinate frame, "-"
    for none. soft: whether the coordinate is the inverse of softplus, scaled by the prior's value, in place of the logarithm;
    it is linear far above the bound, which suits a force law with a wide prior. onset: time from the start, s, in which the
    drift is a tenth of that, because the prior still holds (a vehicle takes off with the mass that was weighed).
    """

    name: str
    value: float | tuple[float, ...]
    std: float = 0.0
    unit: str = "1"
    bounds: tuple[float, float] = (-math.inf, math.inf)
    drift: float = 0.0
    frame: str = "-"
    soft: bool = False
    onset: float = 0.0

    def __post_init__(self) -> None:
        lower, upper = self.bounds
        if self.soft and not (math.isfinite(lower) and math.isinf(upper)):
            raise SettingError(f"parameter {self.name!r}: soft needs a lower bound alone")
        if not all(lower < v < upper for v in self.values) and self.std > 0:
            raise SettingError(
                f"parameter {self.name!r}: value {self.value} {self.unit} is not inside its bounds {lower}, {upper}"
            )
        if min(self.std, self.drift, self.onset) < 0:
            raise SettingError(f"parameter {self.name!r}: std, drift and onset must be 0 or more")
        if not all(math.isfinite(v) for v in (*self.values, self.std, self.drift)):
            raise SettingError(f"parameter {self.name!r}: value, std and drift must be finite numbers")

    @property
    def values(self) -> tuple[float, ...]:
        return self.value if isinstance(self.value, tuple) else (float(self.value),)

    @property
    def tracked(self) -> bool:
        """Whether an estimator estimates it; otherwise it is constant."""
        return self.std > 0

    @property
    def quantities(self) -> tuple[str, ...]:
        """Names of its numbers: "mass", or "wind_x", "wind_y" and "wind_z", and so on (see `quantity_names`)."""
        return quantity_names(self.name, len(self.values))

    def with_prior(
        self,
        value: float | tuple[float, ...] | None = None,
        std: float | None = None,
        drift: float | None = None,
    ) -> Parameter:
        """A copy with another prior; None leaves an entry as it is."""
        return dataclasses.replace(
            self,
            value=self.value if value is None else value,
            std=self.std if std is None else std,
            drift=self.drift if drift is None else drift,
        )


class System(ABC):
    """Base of all models. Subclasses give the four spaces, as class attributes or as properties, and the functions `dynamics`
    and `observe`.

    A System is static to JAX: it must be immutable and hash by value, as a class without fields or a frozen dataclass does.
    Numbers that change from call to call belong into the parameters. In all methods x are the states, u the inputs and p the
    parameters, by block or parameter name.

    states: blocks that the dynamics change. inputs: blocks that are known at each time (commands, measured rates). outputs:
    blocks that are measured. parameters: constants, or random walks. The std and noise of blocks are the defaults of
    estimators. hidden: names of states that no output measures; a fit estimates them in each window, starting from 0.
    """

    states: Space
    inputs: Space
    outputs: Space
    parameters: tuple[Parameter, ...]
    hidden: tuple[str, ...] = ()

    @abstractmethod
    def dynamics(self, x: Values, u: Values, p: Values) -> Values:
        """Rate of each state block per second; of a rotation, its body rate in rad/s."""

    @abstractmethod
    def observe(self, x: Values, u: Values, p: Values) -> Values:
        """Value of each output block."""

    def solve_lags(self, x: Values, u: Values, p: Values, dt: Float[Array, ""] | float) -> Solved:
        """States that follow a target with a first-order lag, in closed form: the value of each after dt (s) and its mean until
        then, while the inputs are constant. Estimators use these in place of an explicit step, which diverges if dt is longer
        than the lag. dt may be 0. By default no state has a lag.
        """
        return {}

    def holds(self, u: Values) -> Bool[Array, ""] | bool:
        """Whether the model is valid for these inputs, by default always. Where it is not (actuators at their limit),
        estimators follow the measurements, give the model little weight, and report `OUT_OF_RANGE`.
        """
        return True

    def process_noise(self, x: Values, u: Values, p: Values) -> Values:
        """Noise of the state blocks where it depends on states, inputs or parameters, in place of the blocks' own.

        Standard deviations per square root of s in a block's unit (rad for a rotation): a number, or one per tangent dimension.
        By default none depends. Particle filters take it; estimators for which noise is constant refuse such a System.
        """
        return {}

    def measurement_noise(self, x: Values, u: Values, p: Values) -> Values:
        """As `process_noise`, of the output blocks: standard deviations of one measurement, in a block's unit."""
        return {}

    def regressors(self, x: Values, u: Values, p: Values) -> Values:
        """Quantities that a learned residual may depend on, by name; by default the states and the inputs."""
        return {**u, **x}

    def derive(self, x: Values, p: Values) -> Values:
        """Further numbers by name that follow from states and parameters. They are reported with their uncertainty."""
        return {}

    @property
    def derived_units(self) -> Mapping[str, str]:
        """Unit of each number of `derive`, in order."""
        return {}

    @property
    def structure(self) -> System:
        """A System with the same functions, which is equal for all Systems that differ in the priors of their parameters only.
        They share one compiled program. By default the System itself, since its functions may depend on priors.
        """
        return self

    def parameter(self, name: str) -> Parameter:
        """The parameter of that name."""
        for parameter in self.parameters:
            if parameter.name == name:
                return parameter
        names = ", ".join(p.name for p in self.parameters)
        raise SettingError(f"{type(self).__name__} has no parameter {name!r} (it has {names})")


def parameter_values(
    system: System, **override: float | tuple[float, ...]
) -> dict[str, Float[Array, " ..."]]:
    """Collect the prior means of all parameters: the p of `dynamics` and `observe`.

    Args:
        system: any System.
        override: values that replace prior means, by parameter name, in its unit.
    Returns:
        A value (number or vector, in its unit) by parameter name.
    Raises:
        SettingError: the System has no parameter of that name.
    """
    for name in override:
        system.parameter(name)
    return {p.name: jnp.asarray(override.get(p.name, p.value), dtype=float) for p in system.parameters}


_NUMBERED = ("thrust_curve", "rotor_scale")
_PAIRS = ("products_of_inertia",)


def quantity_names(name: str, count: int) -> tuple[str, ...]:
    """The names of the numbers of a parameter: "mass", "inertia_x", "products_of_inertia_xy", "thrust_curve_0".

    They end with the axis, or with the pair of axes; with the index where they belong to no axis, or are more than three.
    """
    if name not in _NUMBERED and count == 1:
        return (name,)
    ends = range(count)
    if name not in _NUMBERED and count <= 3:
        ends = ("xy", "xz", "yz") if name in _PAIRS else "xyz"
    return tuple(f"{name}_{end}" for end in ends[:count])


def by_vectors(names: Sequence[str]) -> tuple[str, ...]:
    """The same names, with the name of a vector in place of those of all its axes."""
    result = []
    for name in names:
        vector, _, end = name.rpartition("_")
        axes = quantity_names(vector, 3)
        result.append(vector if end.isalpha() and name in axes and set(axes) <= set(names) else name)
    return tuple(dict.fromkeys(result))
