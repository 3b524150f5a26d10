"""A System and its tracked parameters as one state, as filters see it (SESAME D2.2, eqs. 42-43).

The joint point is the state followed by the tracked parameters in estimation coordinates: the logarithm of a positive
parameter, the logit of one between two finite bounds, the parameter itself otherwise. Parameters are constant (p' = 0) except
for the random walk that a filter adds.
"""

from __future__ import annotations

import dataclasses
import math
from functools import cached_property, lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from rotorid.errors import SettingError
from rotorid.geometry.spaces import Space, Vector
from rotorid.models.system import Parameter, System, Values, parameter_values
from rotorid.numerics import integrators
from rotorid.numerics.products import product

_LEAST_SQUARE = 1e-12  # of a measured quaternion's length


@dataclasses.dataclass(frozen=True)
class Joint:
    """The joint model of states and tracked parameters, on which estimators work.

    Its point z has the states, then the tracked parameters in estimation coordinates (see `Parameter`), then the rates of
    some of them. In all methods u are the inputs and values the prior means of all parameters (see `values`), both packed.

    system: any System. method: integrator of a step. rates: names of tracked parameters whose rates (of the coordinate, per
    second) are states too.
    """

    system: System
    method: integrators.Method = "midpoint"
    rates: tuple[str, ...] = ()

    @cached_property
    def tracked(self) -> tuple[Parameter, ...]:
        return tuple(p for p in self.system.parameters if p.tracked)

    @cached_property
    def space(self) -> Space:
        """States, then tracked parameters, then the rates of some."""
        parameters = tuple((p.name, Vector(len(p.values), p.unit)) for p in self.tracked)
        rates = tuple(
            (f"{p.name} rate", Vector(len(p.values), "1/s")) for p in self.tracked if p.name in self.rates
        )
        return Space(self.system.states.blocks + parameters + rates)

    @cached_property
    def quantities(self) -> tuple[str, ...]:
        """Names of the tracked numbers, in order."""
        return tuple(q for p in self.tracked for q in p.quantities)

    @cached_property
    def units(self) -> tuple[str, ...]:
        """Units of the tracked numbers, in order."""
        return tuple(p.unit for p in self.tracked for _ in p.quantities)

    @cached_property
    def varying_noise(self) -> tuple[str, ...]:
        """Names of the blocks whose noise depends on states, inputs or parameters."""
        return _varying_noise(self.system)

    @cached_property
    def states_dim(self) -> int:
        return self.system.states.dim

    def parameters(
        self, z: Float[Array, " size"], values: Float[Array, " all"]
    ) -> dict[str, Float[Array, " ..."]]:
        """All parameters by name, in their units: the tracked ones from z, the others from values (see `values`)."""
        parts = [to_value(p, z[self.space.stored[p.name]]) for p in self.tracked]
        return self.with_tracked(jnp.concatenate(parts) if parts else jnp.zeros(0, z.dtype), values)

    def with_tracked(
        self, tracked: Float[Array, " parameters"], values: Float[Array, " all"]
    ) -> dict[str, Float[Array, " ..."]]:
        """All parameters by name, in their units: the tracked ones given in their units, the others from values."""
        parameters, start, tracked_start = {}, 0, 0
        for p in self.system.parameters:
            count = len(p.values)
            part = (
                tracked[tracked_start : tracked_start + count] if p.tracked else values[start : start + count]
            )
            parameters[p.name] = part if isinstance(p.value, tuple) else part[0]
            start += count
            tracked_start += count if p.tracked else 0
        return parameters

    def derived(
        self,
        tracked: Float[Array, " parameters"],
        states: Float[Array, " states"],
        covariance: Float[Array, "parameters parameters"],
        values: Float[Array, " all"],
    ) -> tuple[Float[Array, " derived"], Float[Array, " derived"], Float[Array, "derived parameters"]]:
        """Numbers that the System derives, in the order of `derived_units`. Their covariance is `J P J^T`, to first order.


        Args:
            tracked: values of the tracked parameters, in their units.
            states: states of the System, packed.
            covariance: covariance P of the tracked parameters.
            values: values of all parameters, packed.
        Returns:
            The numbers, their standard deviations, and their derivatives J with respect to the tracked parameters.
        """

        def derive(tracked: Float[Array, " parameters"]) -> Float[Array, " derived"]:
            derived = self.system.derive(
                self.system.states.unpack(states), self.with_tracked(tracked, values)
            )
            return jnp.stack([derived[name] for name in self.system.derived_units])

        J = jax.jacfwd(derive)(tracked)
        return derive(tracked), jnp.sqrt(jnp.diag(J @ covariance @ J.T)), J

    def values(self) -> Float[np.ndarray, " all"]:
        """Prior means of all parameters, flat, in their units."""
        return np.array([v for p in self.system.parameters for v in p.values], dtype=float)

    def rate(
        self, z: Float[Array, " size"], u: Float[Array, " inputs"], values: Float[Array, " all"]
    ) -> Float[Array, " dim"]:
        """Tangent rate of the joint point per second; zero for parameters without a rate."""
        system = self.system
        x = system.states.unpack(z[: system.states.size])
        rate = system.dynamics(x, self.inputs(u), self.parameters(z, values))
        state_rate = system.states.pack_tangent(rate).astype(z.dtype)
        if not self.rates:
            return jnp.concatenate([state_rate, jnp.zeros(len(self.quantities), z.dtype)])
        parts = [
            z[self.space.stored[f"{p.name} rate"]]
            if p.name in self.rates
            else jnp.zeros(len(p.values), z.dtype)
            for p in self.tracked
        ]
        zeros = jnp.zeros(self.space.dim - self.states_dim - len(self.quantities), z.dtype)
        return jnp.concatenate([state_rate, *parts, zeros])

    def step(
        self,
        z: Float[Array, " size"],
        u: Float[Array, " inputs"],
        values: Float[Array, " all"],
        dt: Float[Array, ""] | float,
    ) -> Float[Array, " size"]:
        """The joint point dt seconds later, the inputs held; states with a lag by their closed form."""
        solved = self._solve_lags(z, u, values, dt)
        return integrators.step_with_solved(
            self.space, lambda point: self.rate(point, u, values), z, dt, solved, self.method
        )

    def step_states(
        self,
        space: Space,
        x: Float[Array, " states"],
        u: Float[Array, " inputs"],
        p: Values,
        dt: Float[Array, ""] | float,
    ) -> Float[Array, " states"]:
        """The states alone after dt (s), with the parameters p by name. space: space of the states."""
        system, inputs = self.system, self.inputs(u)

        def rate(point):
            return space.pack_tangent(system.dynamics(space.unpack(point), inputs, p)).astype(x.dtype)

        solved = system.solve_lags(space.unpack(x), inputs, p, dt)
        return integrators.step_with_solved(space, rate, x, dt, solved, self.method)

    def _solve_lags(
        self,
        z: Float[Array, " size"],
        u: Float[Array, " inputs"],
        values: Float[Array, " all"],
        dt: Float[Array, ""] | float,
    ) -> integrators.Solved:
        system = self.system
        x = system.states.unpack(z[: system.states.size])
        return system.solve_lags(x, self.inputs(u), self.parameters(z, values), dt)

    def transition(
        self,
        z: Float[Array, " size"],
        u: Float[Array, " inputs"],
        values: Float[Array, " all"],
        dt: Float[Array, ""] | float,
    ) -> tuple[Float[Array, " size"], Float[Array, "dim dim"]]:
        """The point dt later and the transition matrix of its error: F = exp(J dt), to the order of the integrator.

        J is the Jacobian of the error's rate (SESAME D2.2, eqs. 4-5) in the middle of the step (with "euler", at its
        start). On a linear system F is the integrator's own matrix. States with a lag have their exact rows: with s the means
        that the others see and e their ends, F <- F + F_s (ds/dz - I_s), and de/dz in the rows of s.
        """
        z_next = self.step(z, u, values, dt)
        solved = self._solve_lags(z, u, values, dt)
        z_mean = integrators.with_states(self.space, z, {name: mean for name, (_, mean) in solved.items()})
        slope = integrators.without_rates(self.space, lambda point: self.rate(point, u, values), solved)
        middle = z_mean if self.method == "euler" else self.space.plus(z_mean, 0.5 * dt * slope(z_mean))

        def rate(delta):
            return jax.jvp(slope, (middle,), (self.space.lift(middle, delta),))

        rate_at_middle, columns = jax.vmap(rate, out_axes=(None, -1))(jnp.eye(self.space.dim, dtype=z.dtype))
        J = (columns + self.space.frame_rotation_jacobian(rate_at_middle)) * dt
        term = J
        F = jnp.eye(self.space.dim, dtype=z.dtype) + J
        for k in range(2, {"euler": 1, "midpoint": 2, "rk4": 4}[self.method] + 1):
            term = (1.0 / k) * product(J, term)
            F = F + term
        return z_next, self._with_lag_rows(F, z, u, values, dt) if solved else F

    def _with_lag_rows(
        self,
        F: Float[Array, "dim dim"],
        z: Float[Array, " size"],
        u: Float[Array, " inputs"],
        values: Float[Array, " all"],
        dt: Float[Array, ""] | float,
    ) -> Float[Array, "dim dim"]:
        """The transition matrix F, in which states with a lag are constant, with their lag."""
        names = tuple(self._solve_lags(z, u, values, dt))

        def ends_and_means(point):
            solved = self._solve_lags(point, u, values, dt)
            return jnp.stack([jnp.concatenate([jnp.ravel(solved[n][k]) for n in names]) for k in range(2)])

        def column(delta):
            return jax.jvp(ends_and_means, (z,), (self.space.lift(z, delta),))[1]

        identity = jnp.eye(self.space.dim, dtype=z.dtype)
        end, mean = jax.vmap(column, out_axes=-1)(identity).astype(z.dtype)
        rows = np.concatenate([np.arange(self.space.dim)[self.space.tangent[n]] for n in names])
        F = F + product(F[:, rows], mean - identity[rows])
        return F.at[rows].set(end)

    def values_and_slopes(
        self, coordinates: Float[Array, " parameters"]
    ) -> tuple[Float[Array, " parameters"], Float[Array, " parameters"]]:
        """The tracked parameters in their units, and their derivatives by their coordinates."""
        values, slopes, start = [], [], 0
        for p in self.tracked:
            value = to_value(p, coordinates[start : start + len(p.values)])
            values.append(value)
            slopes.append(slope(p, value))
            start += len(p.values)
        if not values:
            return coordinates, coordinates
        return jnp.concatenate(values), jnp.concatenate(slopes)

    def take_measured(
        self, z: Float[Array, " size"], is_taken: Bool[Array, " blocks"], y: Float[Array, " outputs"]
    ) -> Float[Array, " size"]:
        """The point with some states replaced by the measurements of the output blocks with the same names; a rotation is
        replaced by the unit quaternion nearest to its measurement.
        """
        states, outputs = self.system.states, self.system.outputs
        for i, (name, slot) in enumerate(outputs.stored.items()):
            if name in states and states[name].shape == outputs[name].shape:
                target, value = states.stored[name], y[slot]
                if states[name].rotation:
                    value = value / jnp.sqrt(jnp.maximum(jnp.sum(value * value), _LEAST_SQUARE))
                z = z.at[target].set(jnp.where(is_taken[i], value, z[target]))
        return z

    def states_measured(self, blocks: Bool[Array, " blocks"]) -> Bool[Array, " tangent"]:
        """Tangent dimensions of the states that have the names of some output blocks."""
        outputs = list(self.system.outputs)
        return jnp.concatenate(
            [
                jnp.broadcast_to(blocks[outputs.index(name)] if name in outputs else False, (block.dim,))
                for name, block in self.system.states.blocks
            ]
        )

    def holds(self, u: Float[Array, " inputs"]) -> Bool[Array, ""]:
        """Whether the System holds for these inputs, and all of them are possible."""
        return jnp.asarray(self.system.holds(self.inputs(u)), bool) & jnp.all(self._is_possible(u))

    def inputs(self, u: Float[Array, " inputs"]) -> Values:
        """The inputs by name; the initial value of its block in place of each number that is not possible."""
        space = self.system.inputs
        initial = jnp.asarray(space.initial(), u.dtype)
        return space.unpack(jnp.where(self._is_possible(u), u, initial))

    def _is_possible(self, u: Float[Array, " inputs"]) -> Bool[Array, " inputs"]:
        limit = np.minimum(self.system.inputs.limit(), float(jnp.finfo(u.dtype).max))
        return jnp.abs(u) <= jnp.asarray(limit, u.dtype)

    def observe(
        self, z: Float[Array, " size"], u: Float[Array, " inputs"], values: Float[Array, " all"]
    ) -> Float[Array, " outputs"]:
        """The outputs, packed."""
        system = self.system
        x = system.states.unpack(z[: system.states.size])
        outputs = system.observe(x, self.inputs(u), self.parameters(z, values))
        return system.outputs.pack(outputs).astype(z.dtype)

    def sensitivity(
        self, z: Float[Array, " size"], u: Float[Array, " inputs"], values: Float[Array, " all"]
    ) -> tuple[Float[Array, " outputs"], Float[Array, "measured dim"]]:
        """The outputs and H, their tangent Jacobian with respect to an error of z.

        An output that is a state itself has the identity as its Jacobian.
        """
        outputs, states = self.system.outputs, self.system.states

        def column(delta):
            y, change = jax.jvp(lambda p: self.observe(p, u, values), (z,), (self.space.lift(z, delta),))
            return y, outputs.project(y, change)

        identity = jnp.eye(self.space.dim, dtype=z.dtype)
        y, H = jax.vmap(column, out_axes=(None, -1))(identity)
        for name in self.observed_states(z, u, values):
            H = H.at[outputs.tangent[name]].set(identity[states.tangent[name]])
        return y, H

    def observed_states(
        self, z: Float[Array, " size"], u: Float[Array, " inputs"], values: Float[Array, " all"]
    ) -> tuple[str, ...]:
        """Names of the outputs that are the states of the same names themselves, at any point."""
        outputs, states = self.system.outputs, self.system.states
        x = states.unpack(z[: states.size])
        observed = self.system.observe(x, self.inputs(u), self.parameters(z, values))
        return tuple(
            name
            for name in outputs
            if name in states
            and states[name].rotation == outputs[name].rotation
            and observed[name] is x[name]
        )


def to_value(p: Parameter, coordinate: Float[Array, " ..."]) -> Float[Array, " ..."]:
    """A parameter in its unit from its estimation coordinate."""
    lower, upper = p.bounds
    if math.isinf(lower) and math.isinf(upper):
        return coordinate
    if p.soft:
        return lower + _soft_scale(p) * jax.nn.softplus(coordinate)
    if math.isinf(upper):
        return lower + jnp.exp(coordinate)
    if math.isinf(lower):
        return upper - jnp.exp(-coordinate)
    return lower + (upper - lower) * jax.nn.sigmoid(coordinate)


def to_coordinate(p: Parameter, value: float) -> float:
    """The estimation coordinate of a parameter from its value in its unit."""
    lower, upper = p.bounds
    if math.isinf(lower) and math.isinf(upper):
        return value
    if p.soft:
        return math.log(math.expm1((value - lower) / _soft_scale(p)))
    if math.isinf(upper):
        return math.log(value - lower)
    if math.isinf(lower):
        return -math.log(upper - value)
    return math.log((value - lower) / (upper - value))


def slope(
    p: Parameter, value: Float[Array | np.ndarray, " ..."] | float, xp: Any = jnp
) -> Float[Array | np.ndarray, " ..."] | float:
    """d value / d coordinate at a value in its unit: turns a standard deviation of the coordinate into one in the unit.

    xp: array namespace, `jax.numpy` or, for numbers, `numpy`.
    """
    lower, upper = p.bounds
    if math.isinf(lower) and math.isinf(upper):
        return xp.ones_like(value)
    if p.soft:
        scale = _soft_scale(p)
        return -scale * xp.expm1(-(value - lower) / scale)
    if math.isinf(upper):
        return value - lower
    if math.isinf(lower):
        return upper - value
    return (value - lower) * (upper - value) / (upper - lower)


def _soft_scale(p: Parameter) -> float:
    return min(p.values) - p.bounds[0]


@lru_cache(maxsize=32)
def _varying_noise(system: System) -> tuple[str, ...]:
    """See `Joint.varying_noise`."""

    def noises():
        x, u = (s.unpack(jnp.asarray(s.initial(), float)) for s in (system.states, system.inputs))
        p = parameter_values(system)
        return system.process_noise(x, u, p), system.measurement_noise(x, u, p)

    state_names, output_names = jax.eval_shape(noises)
    for names, space, kind in (
        (state_names, system.states, "state"),
        (output_names, system.outputs, "output"),
    ):
        for name in names:
            if name not in space:
                raise SettingError(
                    f"{type(system).__name__} gives noise of {name!r}, which is no {kind} (there are {', '.join(space)})"
                )
    return (*state_names, *output_names)
