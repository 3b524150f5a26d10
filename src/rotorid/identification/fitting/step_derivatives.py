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
from collections.abc import Callable, Sequence
from typing import NamedTuple

import casadi as ca
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from rotorid.codegen.casadi import UnsupportedPrimitiveError, scalar_operations, to_casadi
from rotorid.codegen.vectorised import compile_over_rows, compile_over_windows
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

    def predict(
        self,
        x: Array,
        is_first: Array,
        u: Array,
        y: Array,
        weight: Array,
        dt: Array,
        p: Array,
        sigma: Array,
        K: Array | None,
    ) -> tuple[Array, Array, Array]:
        """One row of a window.

        Args:
            x: state after the previous row; of the first row, the initial state.
            is_first: 1 in the first row, else 0.
            u, y, weight, dt: inputs, measurements, 1 for measured outputs and else 0, s since the previous row.
            p: values of all parameters.
            sigma: noise of the compared outputs.
            K: gain of the correction, row by row; None: no correction.
        Returns:
            The state x_k; the residuals e / sigma, 0 where nothing is measured; the corrected state x_k [-] K e.
        """
        before = jnp.where(is_first > 0, x, self.step(x, u, dt, p))
        e = self.error(before, u, y, p)
        residual = jnp.where(weight > 0, e / sigma, 0.0)
        if K is None:
            return before, residual, before
        gain = K.reshape(self.system.states.dim, -1)
        return before, residual, self.system.states.plus(before, -jnp.sum(gain * (weight * e), axis=1))

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
        predict: predicts windows into memory (states, residuals, corrected states), from (x of their first rows, u, y, weight,
            dt, p, sigma, K or None); see `StepModel.predict`. In the last row, corrected states are not corrected.
        derivatives: of (x, corrected x, next x, u, y, next u, next dt, p).
        plus: states moved by tangent vectors.
    """

    predict: Callable[..., None]
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
    predictions = functools.cache(lambda is_corrected: _row_function(rows, is_corrected))

    def predict(found, x, u, y, weight, dt, p, sigma, K):
        *found, corrected = found
        shared = np.concatenate([sigma, p, [] if K is None else K.ravel()])
        results = found if K is None else [corrected, *found]
        predictions(K is not None)(results, shared, x, u, y, weight, dt)
        last = np.s_[:] if K is None else np.s_[:, -1]
        corrected[last] = found[0][last]

    d = np.zeros(n)
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
    return StepFunctions(predict, slopes, plus)


def _row_function(rows: StepModel, is_corrected: bool) -> Callable[..., None]:
    """`StepModel.predict` over windows (see `compile_over_windows`): of sigma, p and K one after the other."""
    x, u, y, p, dt = _examples(rows)
    n, m = rows.system.states.dim, len(rows.compared_indices)
    shared = np.concatenate([np.ones(m), p, np.zeros(n * m if is_corrected else 0)])
    edges = m, m + len(p)

    def row(shared, x, is_first, u, y, weight, dt):
        sigma, p, K = jnp.split(shared, edges)
        gain = K if is_corrected else None
        before, residual, after = rows.predict(x, is_first, u, y, weight, dt, p, sigma, gain)
        return jnp.concatenate([after, before, residual] if is_corrected else [before, residual])

    function = to_casadi(row, shared, x, np.ones(()), u, y, np.ones(m), dt, name="row")
    sizes = (len(x), len(x), m) if is_corrected else (len(x), m)
    return compile_over_windows(function, sizes) or _row_by_row(function, sizes)


def _row_by_row(function: ca.Function, outputs: Sequence[int]) -> Callable[..., None]:
    """A function of one row over windows (see `compile_over_windows`), by CasADi."""
    one, edges = vectorise(function), np.cumsum(outputs)[:-1]

    def run(results, shared, state, *columns):
        for k in range(columns[0].shape[1]):
            found = one(shared, state, np.full(len(state), float(k == 0)), *(c[:, k] for c in columns))
            for result, part in zip(results, np.split(found, edges, axis=1), strict=True):
                result[:, k] = part
            state = results[0][:, k]

    return run


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

    def predict(found, x, u, y, weight, dt, p, sigma, K):
        for k in range(dt.shape[1]):
            columns = (v[:, k] for v in (u, y, weight, dt))
            row = _predict(rows, jnp.asarray(x), float(k == 0), *map(jnp.asarray, (*columns, p, sigma)), K)
            for result, part in zip(found, row, strict=True):
                result[:, k] = part
            x = row[2]
        found[2][:, -1] = found[0][:, -1]

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

    return StepFunctions(predict, slopes, plus)


@functools.partial(jax.jit, static_argnums=0)
def _plus(rows: StepModel, x, delta):
    return jax.vmap(rows.system.states.plus)(x, delta)


@functools.partial(jax.jit, static_argnums=0)
def _predict(rows: StepModel, x, is_first, u, y, weight, dt, p, sigma, K):
    def one(x, u, y, weight, dt):
        return rows.predict(x, is_first, u, y, weight, dt, p, sigma, None if K is None else K.ravel())

    return jax.vmap(one)(x, u, y, weight, dt)


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
