"""One row of a flight: the step that leads to the next one, the error of its measurement, and their exact derivatives.

    x_{k+1} = RK4(x_k, u_{k+1}, p),    F = d x_{k+1} / d x_k,    G = d x_{k+1} / d p
    e_k = h(x_k, u_k, p) [-] y_k,      H = d e_k / d x_k,        E = d e_k / d p

all in tangent spaces. The System is traced to CasADi scalars, differentiated there and compiled to C where there is a compiler:
each derivative once, zeros left out. A System that cannot be traced, or is too large to be unrolled, runs by JAX, to the same
numbers but for rounding.
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

from rotorid.export.casadi import UnsupportedPrimitiveError, scalar_operations, to_casadi
from rotorid.export.native import compiled
from rotorid.export.side_by_side import side_by_side
from rotorid.models.system import System, Values
from rotorid.numerics import integrators

_UNROLLED = 20_000  # scalar operations of a step up to which its derivatives are worth writing out
_AT_ONCE = 128  # rows whose derivatives JAX takes at once: what fits into the cache


class Slopes(NamedTuple):
    """Derivatives of rows; see the module."""

    F: Float[np.ndarray, "n states states"]
    G: Float[np.ndarray, "n states numbers"]
    H: Float[np.ndarray, "n measured states"]
    E: Float[np.ndarray, "n measured numbers"]


@dataclasses.dataclass(frozen=True)
class Rows:
    """A System's rows. used: output blocks that are compared. numbers: which of the parameters' numbers to differentiate by.

    driven: whether to differentiate by all numbers of the inputs, too; they come after those of the parameters.
    """

    system: System
    used: tuple[str, ...]
    numbers: tuple[int, ...]
    driven: bool = False

    @property
    def columns(self) -> int:
        """How many numbers to differentiate by."""
        return len(self.numbers) + (self.system.inputs.size if self.driven else 0)

    @functools.cached_property
    def measured(self) -> np.ndarray:
        """Tangent dimensions of the outputs that are compared."""
        places = self.system.outputs.tangent
        return np.concatenate([np.arange(places[n].start, places[n].stop) for n in self.used])

    def values(self, p: Float[Array, " all"]) -> Values:
        """The parameters by name, from all their numbers one after the other."""
        found, start = {}, 0
        for parameter in self.system.parameters:
            count = len(parameter.values)
            found[parameter.name] = (
                p[start : start + count] if isinstance(parameter.value, tuple) else p[start]
            )
            start += count
        return found

    def step(self, x: Array, u: Array, dt: Array, p: Array) -> Float[Array, " states"]:
        """The state dt later."""
        system, values = self.system, self.values(p)
        inputs = system.inputs.unpack(u)

        def rate(x):
            return system.states.pack_tangent(system.dynamics(system.states.unpack(x), inputs, values))

        return integrators.step(system.states, rate, x, dt, "rk4")

    def error(self, x: Array, u: Array, y: Array, p: Array) -> Float[Array, " measured"]:
        """e."""
        system = self.system
        seen = system.observe(system.states.unpack(x), system.inputs.unpack(u), self.values(p))
        return system.outputs.minus(system.outputs.pack(seen), y)[self.measured]

    def corrected(
        self, x: Array, u: Array, y: Array, weight: Array, K: Array, p: Array
    ) -> Float[Array, " states"]:
        """The state after a measurement: x [-] K e, of what was measured (weight 1, else 0). K: row by row."""
        e = weight * self.error(x, u, y, p)
        gain = K.reshape(self.system.states.dim, -1)
        return self.system.states.plus(x, -jnp.sum(gain * e, axis=1))

    def moved_step(
        self, d: Array, p: Array, x: Array, after: Array, u: Array, dt: Array
    ) -> Float[Array, " tangent"]:
        """The step from x [+] d, as seen from where it leads with d = 0."""
        space = self.system.states
        return space.minus(self.step(space.plus(x, d), u, dt, p), after)

    def moved_error(self, d: Array, p: Array, x: Array, u: Array, y: Array) -> Float[Array, " measured"]:
        """e at x [+] d."""
        return self.error(self.system.states.plus(x, d), u, y, p)


class Engine(NamedTuple):
    """Many rows at once. path: states of the rows of windows, from (x of their first rows, u, dt, p), where the first row of u
    and dt does not count. filtered: (x, u, y, weight, dt, K, p) -> likewise, where each row's state is corrected by what was
    measured before it steps on: the states before and after that. error: as of `Rows`, with a leading axis. slopes: of (x,
    corrected x, after, u, y, u_next, dt_next, p). plus: of states and tangent vectors."""

    path: Callable[..., Float[np.ndarray, "w rows states"]]
    filtered: Callable[..., tuple[Float[np.ndarray, "w rows states"], Float[np.ndarray, "w rows states"]]]
    error: Callable[..., Float[np.ndarray, "n measured"]]
    slopes: Callable[..., Slopes]
    plus: Callable[..., Float[np.ndarray, "n states"]]


@functools.lru_cache(maxsize=32)
def engine(rows: Rows) -> Engine:
    """The compiled engine of a System where it can be had, else JAX's."""
    with jax.enable_x64(True):
        x, u, _, p, dt = _examples(rows)
        if scalar_operations(jax.make_jaxpr(rows.step)(x, u, dt, p).jaxpr) > _UNROLLED:
            return by_jax(rows)
    try:
        return by_casadi(rows)
    except UnsupportedPrimitiveError:
        return by_jax(rows)


def _examples(rows: Rows) -> tuple[np.ndarray, ...]:
    system = rows.system
    p = np.concatenate([np.ravel(p.value) for p in system.parameters])
    x, y = np.array(system.states.initial()), np.array(system.outputs.initial())
    return x, np.ones(system.inputs.size), y, p, np.array(0.01)


def by_casadi(rows: Rows) -> Engine:
    """The engine whose functions are traced to CasADi. Raises UnsupportedPrimitiveError where that cannot be."""
    x, u, y, p, dt = _examples(rows)
    n, m, s = rows.system.states.dim, len(rows.measured), rows.columns
    d = np.zeros(n)
    step = compiled(to_casadi(rows.step, x, u, dt, p, name="step"))

    def one(x, u, y, weight, u_next, dt, K, p):
        after = rows.corrected(x, u, y, weight, K, p)
        return rows.step(after, u_next, dt, p), after

    @functools.cache
    def filtering():
        return compiled(to_casadi(one, x, u, y, np.ones(m), u, dt, np.zeros(n * m), p, name="filtered"))

    error = many(compiled(to_casadi(rows.error, x, u, y, p, name="error")))
    along = _quick(_slope(to_casadi(rows.moved_step, d, p, x, x, u, dt), rows, 4, "step_slope"))
    across = _quick(_slope(to_casadi(rows.moved_error, d, p, x, u, y), rows, 3, "error_slope"))

    def slopes(x, corrected, after, u, y, u_next, dt_next, p) -> Slopes:
        one = np.swapaxes(along(p, corrected, after, u_next, dt_next).reshape(-1, n + s, n), 1, 2)
        two = np.swapaxes(across(p, x, u, y).reshape(-1, n + s, m), 1, 2)
        return Slopes(one[..., :n], one[..., n:], two[..., :n], two[..., n:])

    plus = many(to_casadi(rows.system.states.plus, x, d, name="plus"))
    return Engine(_paths(step), _filtered(filtering), error, slopes, plus)


def _slope(function: ca.Function, rows: Rows, inputs: int, name: str) -> ca.Function:
    """(p, ...) -> Jacobian of a function (d, p, ...) by d, at 0, and by what the rows ask for. inputs: their argument."""
    symbols = [ca.SX.sym(f"in{k}", *function.size_in(k)) for k in range(function.n_in())]
    value = function(*symbols)
    driven = [symbols[inputs]] if rows.driven else []
    J = ca.jacobian(value, ca.vertcat(symbols[0], *[symbols[1][i] for i in rows.numbers], *driven))
    J = ca.densify(ca.substitute(J, symbols[0], ca.SX.zeros(*symbols[0].shape)))
    return ca.Function(name, symbols[1:], ca.cse([J]))


def _quick(function: ca.Function) -> Callable[..., Float[np.ndarray, "n size"]]:
    """A function over rows as C, several of them at once; by CasADi where there is no compiler."""
    return side_by_side(function) or many(function)


def _paths(step: ca.Function) -> Callable[..., Float[np.ndarray, "w rows states"]]:
    """Steps one after the other, of many windows at once."""

    @functools.lru_cache(maxsize=8)
    def of(count: int) -> Callable[..., Float[np.ndarray, "w path"]]:
        return many(step.mapaccum("path", count))

    def path(x, u, dt, p):
        w, rows = dt.shape
        found = np.empty((w, rows, x.shape[1]))
        found[:, 0] = x
        if rows > 1:
            repeated = np.tile(p, rows - 1)
            found[:, 1:] = of(rows - 1)(x, u[:, 1:], dt[:, 1:], repeated).reshape(w, rows - 1, -1)
        return found

    return path


def _filtered(
    one: Callable[[], ca.Function],
) -> Callable[..., tuple[Float[np.ndarray, "w rows states"], Float[np.ndarray, "w rows states"]]]:
    """Steps with a correction before each, of many windows at once."""

    @functools.lru_cache(maxsize=8)
    def of(count: int) -> Callable[..., Float[np.ndarray, "w path"]]:
        chained = one().mapaccum("filtered_path", count)
        symbols = [ca.MX.sym(f"in{k}", *chained.size_in(k)) for k in range(chained.n_in())]
        both = ca.vertcat(*(ca.vec(v) for v in chained(*symbols)))
        return many(ca.Function("both", symbols, [both]))

    def filtered(x, u, y, weight, dt, K, p):
        (w, rows), size = dt.shape, x.shape[1]
        before, after = np.empty((w, rows, size)), np.empty((w, rows, size))
        before[:, 0] = x
        if rows > 1:
            h = rows - 1
            gains, numbers = np.tile(K.ravel(), h), np.tile(p, h)
            found = of(h)(x, u[:, :-1], y[:, :-1], weight[:, :-1], u[:, 1:], dt[:, 1:], gains, numbers)
            before[:, 1:], after[:, :-1] = np.moveaxis(found.reshape(w, 2, h, size), 1, 0)
        after[:, -1] = before[:, -1]
        return before, after

    return filtered


def many(function: ca.Function) -> Callable[..., Float[np.ndarray, "n size"]]:
    """A function over rows: arrays with a leading axis in and out; those without it are the same for all rows."""
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


def by_jax(rows: Rows) -> Engine:
    """The engine whose functions JAX compiles and differentiates."""

    def path(x, u, dt, p):
        found = [np.asarray(x)]
        for k in range(1, dt.shape[1]):
            found.append(np.asarray(_step(rows, *map(jnp.asarray, (found[-1], u[:, k], dt[:, k], p)))))
        return np.stack(found, axis=1)

    def filtered(x, u, y, weight, dt, K, p):
        before, after = [np.asarray(x)], []
        for k in range(1, dt.shape[1]):
            columns = map(jnp.asarray, (before[-1], u[:, k - 1], y[:, k - 1], weight[:, k - 1], K, p))
            after.append(np.asarray(_corrected(rows, *columns)))
            before.append(np.asarray(_step(rows, *map(jnp.asarray, (after[-1], u[:, k], dt[:, k], p)))))
        return np.stack(before, axis=1), np.stack([*after, before[-1]], axis=1)

    def error(x, u, y, p):
        return np.asarray(_error(rows, *map(jnp.asarray, (x, u, y, p))))

    def slopes(x, corrected, after, u, y, u_next, dt_next, p) -> Slopes:
        count = len(x)
        parts = -(-count // _AT_ONCE)
        which = np.minimum(np.arange(parts * _AT_ONCE), count - 1).reshape(parts, _AT_ONCE)
        found = _slopes(
            rows,
            tuple(jnp.asarray(v[which]) for v in (x, corrected, after, u, y, u_next, dt_next)),
            jnp.asarray(p),
        )
        return Slopes(*(np.asarray(v).reshape(-1, *v.shape[2:])[:count] for v in found))

    def plus(x, delta):
        return np.asarray(_plus(rows, jnp.asarray(x), jnp.asarray(delta)))

    return Engine(path, filtered, error, slopes, plus)


@functools.partial(jax.jit, static_argnums=0)
def _plus(rows: Rows, x, delta):
    return jax.vmap(rows.system.states.plus)(x, delta)


@functools.partial(jax.jit, static_argnums=0)
def _step(rows: Rows, x, u, dt, p):
    return jax.vmap(rows.step, (0, 0, 0, None))(x, u, dt, p)


@functools.partial(jax.jit, static_argnums=0)
def _corrected(rows: Rows, x, u, y, weight, K, p):
    return jax.vmap(rows.corrected, (0, 0, 0, 0, None, None))(x, u, y, weight, K.ravel(), p)


@functools.partial(jax.jit, static_argnums=0)
def _error(rows: Rows, x, u, y, p):
    return jax.vmap(rows.error, (0, 0, 0, None))(x, u, y, p)


@functools.partial(jax.jit, static_argnums=0)
def _slopes(rows: Rows, many, p):
    which = np.array(rows.numbers, dtype=int)
    zero = jnp.zeros(rows.system.states.dim)

    def one(x, corrected, after, u, y, u_next, dt_next):
        def both(d, numbers, more):
            q = p.at[which].set(numbers)
            ahead = rows.moved_step(d, q, corrected, after, u_next + more, dt_next)
            return ahead, rows.moved_error(d, q, x, u + more, y)

        by = (0, 1, 2) if rows.driven else (0, 1)
        (F, *G), (H, *E) = jax.jacfwd(both, by)(zero, p[which], jnp.zeros_like(u))
        return F, jnp.concatenate(G, axis=1), H, jnp.concatenate(E, axis=1)

    return jax.lax.map(lambda part: jax.vmap(one)(*part), many)
