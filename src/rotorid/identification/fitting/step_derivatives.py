"""One row of a window: the step to the next row, the error of its outputs, and their exact derivatives.

    x_{k+1} = RK4(x_k, u_{k+1}, p),    F = d x_{k+1} / d x_k,    G = d x_{k+1} / d p
    e_k = h(x_k, u_k, p) [-] y_k,      H = d e_k / d x_k,        E = d e_k / d p

all in tangent spaces. The System is traced to CasADi scalars, differentiated there, and compiled to C where there is a
compiler, without zeros. A System that cannot be traced, or is too large to be unrolled, runs in JAX, with the same
numbers up to rounding.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import NamedTuple

import casadi as ca
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from rotorid.codegen.casadi import UnsupportedPrimitiveError, scalar_operations, to_casadi
from rotorid.codegen.native import compiled
from rotorid.codegen.vectorised import compile_over_rows
from rotorid.models.system import System, Values
from rotorid.numerics import integrators

_MAX_OPERATIONS = 20_000  # scalar operations of a step up to which its derivatives are worth writing out
_BATCH = 128  # rows whose derivatives JAX takes at once: what fits into the cache


class StepDerivatives(NamedTuple):
    """Derivatives of rows; symbols as in the module's equations."""

    F: Float[np.ndarray, "n states states"]
    G: Float[np.ndarray, "n states numbers"]
    H: Float[np.ndarray, "n measured states"]
    E: Float[np.ndarray, "n measured numbers"]


@dataclasses.dataclass(frozen=True)
class StepModel:
    """One step of a System and its output error, as functions of arrays.

    Attributes:
        system: the model.
        compared: output blocks that are compared.
        parameter_indices: which numbers of the parameters to differentiate by.
        has_input_derivatives: whether to differentiate by the inputs, too; these derivatives come after those by parameters.
    """

    system: System
    compared: tuple[str, ...]
    parameter_indices: tuple[int, ...]
    has_input_derivatives: bool = False

    @property
    def derivative_count(self) -> int:
        """Number of scalars to differentiate by."""
        return len(self.parameter_indices) + (self.system.inputs.size if self.has_input_derivatives else 0)

    @functools.cached_property
    def compared_indices(self) -> np.ndarray:
        """Tangent indices of the compared outputs."""
        places = self.system.outputs.tangent
        return np.concatenate([np.arange(places[n].start, places[n].stop) for n in self.compared])

    def parameter_values(self, p: Float[Array, " all"]) -> Values:
        """The parameters by name, from all their numbers one after the other."""
        values, start = {}, 0
        for parameter in self.system.parameters:
            count = len(parameter.values)
            values[parameter.name] = (
                p[start : start + count] if isinstance(parameter.value, tuple) else p[start]
            )
            start += count
        return values

    def step(self, x: Array, u: Array, dt: Array, p: Array) -> Float[Array, " states"]:
        """The state after dt seconds."""
        system, values = self.system, self.parameter_values(p)
        inputs = system.inputs.unpack(u)

        def rate(x):
            return system.states.pack_tangent(system.dynamics(system.states.unpack(x), inputs, values))

        return integrators.step(system.states, rate, x, dt, "rk4")

    def error(self, x: Array, u: Array, y: Array, p: Array) -> Float[Array, " compared_indices"]:
        """e: predicted less measured output, in tangent coordinates."""
        system = self.system
        outputs = system.observe(system.states.unpack(x), system.inputs.unpack(u), self.parameter_values(p))
        return system.outputs.minus(system.outputs.pack(outputs), y)[self.compared_indices]

    def correct(
        self, x: Array, u: Array, y: Array, weight: Array, K: Array, p: Array
    ) -> Float[Array, " states"]:
        """The state after a measurement, x [-] K e; weight: 1 for measured outputs, else 0. K: row by row."""
        e = weight * self.error(x, u, y, p)
        gain = K.reshape(self.system.states.dim, -1)
        return self.system.states.plus(x, -jnp.sum(gain * e, axis=1))

    def step_in_tangent(
        self, d: Array, p: Array, x: Array, x_next: Array, u: Array, dt: Array
    ) -> Float[Array, " tangent"]:
        """The step from x [+] d, relative to `x_next`, the step from x."""
        space = self.system.states
        return space.minus(self.step(space.plus(x, d), u, dt, p), x_next)

    def error_in_tangent(
        self, d: Array, p: Array, x: Array, u: Array, y: Array
    ) -> Float[Array, " compared_indices"]:
        """e at x [+] d."""
        return self.error(self.system.states.plus(x, d), u, y, p)


class StepFunctions(NamedTuple):
    """Vectorised functions of a step model.

    Attributes:
        simulate: states of all rows of windows, from (x of their first rows, u, dt, p); the first row of u and dt is not used.
        simulate_corrected: the same with a correction by measurements in each row, from (x, u, y, weight, dt, K, p): the states
            before and after the correction.
        error: `StepModel.error` of many rows.
        derivatives: of (x, corrected x, next x, u, y, next u, next dt, p).
        plus: states moved by tangent vectors.
    """

    simulate: Callable[..., Float[np.ndarray, "w rows states"]]
    simulate_corrected: Callable[
        ..., tuple[Float[np.ndarray, "w rows states"], Float[np.ndarray, "w rows states"]]
    ]
    error: Callable[..., Float[np.ndarray, "n measured"]]
    derivatives: Callable[..., StepDerivatives]
    plus: Callable[..., Float[np.ndarray, "n states"]]


def step_functions(rows: StepModel) -> StepFunctions:
    """The functions of a step model, through CasADi and C where possible, else through JAX."""
    return _step_functions(dataclasses.replace(rows, system=rows.system.structure))


@functools.lru_cache(maxsize=32)
def _step_functions(rows: StepModel) -> StepFunctions:
    with jax.enable_x64(True):
        x, u, _, p, dt = _examples(rows)
        if scalar_operations(jax.make_jaxpr(rows.step)(x, u, dt, p).jaxpr) > _MAX_OPERATIONS:
            return jax_step_functions(rows)
    try:
        return casadi_step_functions(rows)
    except UnsupportedPrimitiveError:
        return jax_step_functions(rows)


def _examples(rows: StepModel) -> tuple[np.ndarray, ...]:
    system = rows.system
    p = np.concatenate([np.ravel(p.value) for p in system.parameters])
    x, y = np.array(system.states.initial()), np.array(system.outputs.initial())
    return x, np.ones(system.inputs.size), y, p, np.array(0.01)


def casadi_step_functions(rows: StepModel) -> StepFunctions:
    """The functions of a step model traced to CasADi.

    Raises:
        UnsupportedPrimitiveError: the System uses an operation that cannot be traced.
    """
    x, u, y, p, dt = _examples(rows)
    n, m, s = rows.system.states.dim, len(rows.compared_indices), rows.derivative_count
    d = np.zeros(n)
    step = compiled(to_casadi(rows.step, x, u, dt, p, name="step"))

    def one(x, u, y, weight, u_next, dt, K, p):
        x_next = rows.correct(x, u, y, weight, K, p)
        return rows.step(x_next, u_next, dt, p), x_next

    @functools.cache
    def filtering():
        return compiled(to_casadi(one, x, u, y, np.ones(m), u, dt, np.zeros(n * m), p, name="filtered"))

    error = vectorise(compiled(to_casadi(rows.error, x, u, y, p, name="error")))
    along = _vectorise_in_c(
        _jacobian(to_casadi(rows.step_in_tangent, d, p, x, x, u, dt), rows, 4, "step_slope")
    )
    across = _vectorise_in_c(
        _jacobian(to_casadi(rows.error_in_tangent, d, p, x, u, y), rows, 3, "error_slope")
    )

    def slopes(x, corrected, x_next, u, y, u_next, dt_next, p) -> StepDerivatives:
        one = np.swapaxes(along(p, corrected, x_next, u_next, dt_next).reshape(-1, n + s, n), 1, 2)
        two = np.swapaxes(across(p, x, u, y).reshape(-1, n + s, m), 1, 2)
        return StepDerivatives(one[..., :n], one[..., n:], two[..., :n], two[..., n:])

    plus = vectorise(to_casadi(rows.system.states.plus, x, d, name="plus"))
    return StepFunctions(_simulator(step), _correcting_simulator(filtering), error, slopes, plus)


def _jacobian(function: ca.Function, rows: StepModel, inputs: int, name: str) -> ca.Function:
    """(p, ...) -> Jacobian of a function (d, p, ...) by d at 0 and by the step model's parameters. inputs: index of the
    inputs."""
    symbols = [ca.SX.sym(f"in{k}", *function.size_in(k)) for k in range(function.n_in())]
    value = function(*symbols)
    driven = [symbols[inputs]] if rows.has_input_derivatives else []
    J = ca.jacobian(value, ca.vertcat(symbols[0], *[symbols[1][i] for i in rows.parameter_indices], *driven))
    J = ca.densify(ca.substitute(J, symbols[0], ca.SX.zeros(*symbols[0].shape)))
    return ca.Function(name, symbols[1:], ca.cse([J]))


def _vectorise_in_c(function: ca.Function) -> Callable[..., Float[np.ndarray, "n size"]]:
    """A function over rows in C, several rows at once; by CasADi without a compiler."""
    return compile_over_rows(function) or vectorise(function)


def _simulator(step: ca.Function) -> Callable[..., Float[np.ndarray, "w rows states"]]:
    """Chained steps of many windows at once."""

    @functools.lru_cache(maxsize=8)
    def of(count: int) -> Callable[..., Float[np.ndarray, "w path"]]:
        return vectorise(step.mapaccum("path", count))

    def path(x, u, dt, p):
        w, rows = dt.shape
        found = np.empty((w, rows, x.shape[1]))
        found[:, 0] = x
        if rows > 1:
            repeated = np.tile(p, rows - 1)
            found[:, 1:] = of(rows - 1)(x, u[:, 1:], dt[:, 1:], repeated).reshape(w, rows - 1, -1)
        return found

    return path


def _correcting_simulator(
    one: Callable[[], ca.Function],
) -> Callable[..., tuple[Float[np.ndarray, "w rows states"], Float[np.ndarray, "w rows states"]]]:
    """Chained steps of many windows at once, with a correction before each step."""

    @functools.lru_cache(maxsize=8)
    def of(count: int) -> Callable[..., Float[np.ndarray, "w path"]]:
        chained = one().mapaccum("filtered_path", count)
        symbols = [ca.MX.sym(f"in{k}", *chained.size_in(k)) for k in range(chained.n_in())]
        both = ca.vertcat(*(ca.vec(v) for v in chained(*symbols)))
        return vectorise(ca.Function("both", symbols, [both]))

    def filtered(x, u, y, weight, dt, K, p):
        (w, rows), size = dt.shape, x.shape[1]
        before, x_next = np.empty((w, rows, size)), np.empty((w, rows, size))
        before[:, 0] = x
        if rows > 1:
            h = rows - 1
            gains, numbers = np.tile(K.ravel(), h), np.tile(p, h)
            found = of(h)(x, u[:, :-1], y[:, :-1], weight[:, :-1], u[:, 1:], dt[:, 1:], gains, numbers)
            before[:, 1:], x_next[:, :-1] = np.moveaxis(found.reshape(w, 2, h, size), 1, 0)
        x_next[:, -1] = before[:, -1]
        return before, x_next

    return filtered


def vectorise(function: ca.Function) -> Callable[..., Float[np.ndarray, "n size"]]:
    """A CasADi function over rows: arrays with a leading axis in and out; arguments without one are the same for all rows."""
    sizes = [function.numel_in(k) for k in range(function.n_in())]
    width = function.numel_out(0)
    mapped = functools.lru_cache(maxsize=8)(function.map)

    def run(*arguments: Float[np.ndarray, " ..."]) -> Float[np.ndarray, "n size"]:
        n = max(np.size(a) // size for a, size in zip(arguments, sizes, strict=True) if size)
        buffer, call = mapped(n).buffer()
        full = [
            np.ascontiguousarray(np.broadcast_to(np.reshape(a, (-1, size)), (n, size)), dtype=float)
            for a, size in zip(arguments, sizes, strict=True)
        ]
        for k, a in enumerate(full):
            buffer.set_arg(k, memoryview(a))  # pyright: ignore
        found = np.zeros((n, width))
        buffer.set_res(0, memoryview(found))  # pyright: ignore
        call()
        return found

    return run


def jax_step_functions(rows: StepModel) -> StepFunctions:
    """The functions of a step model compiled and differentiated by JAX."""

    def path(x, u, dt, p):
        found = [np.asarray(x)]
        for k in range(1, dt.shape[1]):
            found.append(np.asarray(_step(rows, *map(jnp.asarray, (found[-1], u[:, k], dt[:, k], p)))))
        return np.stack(found, axis=1)

    def filtered(x, u, y, weight, dt, K, p):
        before, x_next = [np.asarray(x)], []
        for k in range(1, dt.shape[1]):
            columns = map(jnp.asarray, (before[-1], u[:, k - 1], y[:, k - 1], weight[:, k - 1], K, p))
            x_next.append(np.asarray(_corrected(rows, *columns)))
            before.append(np.asarray(_step(rows, *map(jnp.asarray, (x_next[-1], u[:, k], dt[:, k], p)))))
        return np.stack(before, axis=1), np.stack([*x_next, before[-1]], axis=1)

    def error(x, u, y, p):
        return np.asarray(_error(rows, *map(jnp.asarray, (x, u, y, p))))

    def slopes(x, corrected, x_next, u, y, u_next, dt_next, p) -> StepDerivatives:
        count = len(x)
        parts = -(-count // _BATCH)
        which = np.minimum(np.arange(parts * _BATCH), count - 1).reshape(parts, _BATCH)
        found = _derivatives(
            rows,
            tuple(jnp.asarray(v[which]) for v in (x, corrected, x_next, u, y, u_next, dt_next)),
            jnp.asarray(p),
        )
        return StepDerivatives(*(np.asarray(v).reshape(-1, *v.shape[2:])[:count] for v in found))

    def plus(x, delta):
        return np.asarray(_plus(rows, jnp.asarray(x), jnp.asarray(delta)))

    return StepFunctions(path, filtered, error, slopes, plus)


@functools.partial(jax.jit, static_argnums=0)
def _plus(rows: StepModel, x, delta):
    return jax.vmap(rows.system.states.plus)(x, delta)


@functools.partial(jax.jit, static_argnums=0)
def _step(rows: StepModel, x, u, dt, p):
    return jax.vmap(rows.step, (0, 0, 0, None))(x, u, dt, p)


@functools.partial(jax.jit, static_argnums=0)
def _corrected(rows: StepModel, x, u, y, weight, K, p):
    return jax.vmap(rows.correct, (0, 0, 0, 0, None, None))(x, u, y, weight, K.ravel(), p)


@functools.partial(jax.jit, static_argnums=0)
def _error(rows: StepModel, x, u, y, p):
    return jax.vmap(rows.error, (0, 0, 0, None))(x, u, y, p)


@functools.partial(jax.jit, static_argnums=0)
def _derivatives(rows: StepModel, many, p):
    which = np.array(rows.parameter_indices, dtype=int)
    zero = jnp.zeros(rows.system.states.dim)

    def one(x, corrected, x_next, u, y, u_next, dt_next):
        def both(d, numbers, more):
            q = p.at[which].set(numbers)
            ahead = rows.step_in_tangent(d, q, corrected, x_next, u_next + more, dt_next)
            return ahead, rows.error_in_tangent(d, q, x, u + more, y)

        by = (0, 1, 2) if rows.has_input_derivatives else (0, 1)
        (F, *G), (H, *E) = jax.jacfwd(both, by)(zero, p[which], jnp.zeros_like(u))
        return F, jnp.concatenate(G, axis=1), H, jnp.concatenate(E, axis=1)

    return jax.lax.map(lambda part: jax.vmap(one)(*part), many)
