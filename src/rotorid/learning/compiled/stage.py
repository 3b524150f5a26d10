"""The parts of a training step that differ from System to System, traced by JAX as functions of CasADi scalars.

A stage of a Runge-Kutta step at x, with inputs u that are constant over the step:

    z = (inputs of the heads - mean) / scale,    o = network(z),    k = lift(x, f(x, u, p) + phi(o))

The networks are written by hand (see `network`). What depends on p and the fixed weights alone is computed once for a training
(`constants`), what depends on u too once for a step (`held`): the thrusts, for example, and their places in z.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Sequence
from typing import Any

import casadi as ca
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from rotorid.codegen.casadi import to_casadi
from rotorid.models.residual import Head, network_inputs, rate_of_output
from rotorid.models.system import System, Values

FIXED = ("mean", "scale", "unit", "V", "edge")
"""The fixed weights that a training uses."""


@dataclasses.dataclass(frozen=True)
class HeadLayout:
    """The inputs of a head by their numbers in z: those that vary within a step and those that are held over it.

    first_varying, first_held, first_output: its first number among those of all heads.
    """

    head: Head
    varying: tuple[int, ...]
    held: tuple[int, ...]
    outputs: int
    first_varying: int
    first_held: int
    first_output: int


@dataclasses.dataclass(frozen=True)
class StageFunctions:
    """Functions of a stage, each of columns and with one column as result.

    constants(p, fixed weights) -> c             held(c, u) -> h, the held inputs of the heads first
    inputs(c, h, x) -> z, the varying            slope(c, h, x, z, o) -> k
    slope_adjoint(c, h, x, z, o, k') -> x', z', o'    inputs_adjoint(c, h, x, z') -> x'
    end(y) -> x, of length 1                     end_adjoint(y, x') -> y'
    cost(x, measured, w) -> the sum of w_b |x_b - measured_b|^2 over the blocks b of the heads, and its gradient
    """

    constants: ca.Function
    held: ca.Function
    inputs: ca.Function
    slope: ca.Function
    slope_adjoint: ca.Function
    inputs_adjoint: ca.Function
    end: ca.Function
    end_adjoint: ca.Function
    cost: ca.Function
    heads: tuple[HeadLayout, ...]


def stage_functions(
    system: System, heads: Sequence[Head], p: Values, fixed: Sequence[Values]
) -> StageFunctions:
    """Trace the functions of a stage.

    Args:
        system: the physics.
        heads: of the residual.
        p, fixed: parameters and fixed weights, of which only the shapes matter.
    Returns:
        The functions.
    Raises:
        UnsupportedPrimitiveError: an operation of the System has no CasADi form.
    """
    traced = _Traced(system, tuple(heads), fixed)
    space, known = system.states, known_values(p, fixed)
    x, u = jnp.asarray(space.initial()), jnp.asarray(system.inputs.initial())
    z, o, w = jnp.zeros(sum(traced.sizes)), jnp.zeros(sum(traced.outputs)), jnp.zeros(len(heads))
    leaves = [ca.SX.sym(f"p{k}", *_shape(leaf)) for k, leaf in enumerate(jax.tree.leaves(known))]
    sx, su, so = ca.SX.sym("x", len(x)), ca.SX.sym("u", len(u)), ca.SX.sym("o", len(o))
    z_of_x = to_casadi(traced.inputs, known, x, u)(*leaves, sx, su)
    varies = [ca.depends_on(z_of_x[i], sx) for i in range(len(z))]
    varying, held = ([i for i, v in enumerate(varies) if v is wanted] for wanted in (True, False))
    sz, z_bar, bar = ca.SX.sym("z", len(varying)), ca.SX.sym("z_bar", len(varying)), ca.SX.sym("bar", len(x))
    all_z, all_z_bar = ca.SX(z_of_x), ca.SX(len(z), 1)
    all_z[varying], all_z_bar[varying] = sz, z_bar
    arguments = (*leaves, sx, su, all_z, so)
    slope = to_casadi(traced.slope, known, x, u, z, o)(*arguments)
    bars = to_casadi(traced.slope_adjoint, known, x, u, z, o, x)(*arguments, bar)
    x_bar = to_casadi(traced.inputs_adjoint, known, x, u, z)(*leaves, sx, su, all_z_bar)
    slope_bars = ca.vertcat(bars[0], bars[1][varying], bars[2])
    columns = _by_level(
        z_of_x[held], [z_of_x[varying], slope, slope_bars, x_bar], ca.vertcat(*map(ca.vec, leaves)), su
    )
    c, h = columns.constants, columns.held
    y, measured, sw = ca.SX.sym("y", len(x)), ca.SX.sym("measured", len(x)), ca.SX.sym("w", len(heads))
    of_stage = [c, h, sx, sz, so]
    results = columns.expressions
    return StageFunctions(
        constants=ca.Function("constants", leaves, [columns.constant_values]),
        held=ca.Function("held", [c, su], [columns.held_values]),
        inputs=ca.Function("inputs", [c, h, sx], [results[0]]),
        slope=ca.Function("slope", of_stage, [results[1]]),
        slope_adjoint=ca.Function("slope_adjoint", [*of_stage, bar], [results[2]]),
        inputs_adjoint=ca.Function("inputs_adjoint", [c, h, sx, z_bar], [results[3]]),
        end=ca.Function("end", [y], [to_casadi(space.normalise, x)(y)]),
        end_adjoint=ca.Function("end_adjoint", [y, bar], [to_casadi(traced.end_adjoint, x, x)(y, bar)]),
        cost=ca.Function(
            "cost", [y, measured, sw], [ca.vertcat(*to_casadi(traced.cost, x, x, w)(y, measured, sw))]
        ),
        heads=_layouts(heads, traced.sizes, traced.outputs, varies),
    )


def known_values(p: Values, fixed: Sequence[Values]) -> Any:
    """What `StageFunctions.constants` takes; its arguments are the leaves."""
    return dict(p), [{name: w[name] for name in FIXED if name in w} for w in fixed]


class _Traced:
    """The functions of a stage in JAX. known: see `known_values`."""

    def __init__(self, system: System, heads: tuple[Head, ...], fixed: Sequence[Values]) -> None:
        self._system, self._heads = system, heads
        self._blocks = [system.states.tangent[head.output] for head in heads]
        self.outputs = [block.stop - block.start for block in self._blocks]
        self.sizes = [w["mean"].shape[0] for w in fixed]

    def inputs(self, known: Any, x: Array, u: Array) -> Float[Array, " inputs"]:
        p, fixed = known
        regressors = self._system.regressors(self._system.states.unpack(x), self._system.inputs.unpack(u), p)
        parts = [network_inputs(head, w, regressors) for head, w in zip(self._heads, fixed, strict=True)]
        return jnp.concatenate(parts)

    def slope(self, known: Any, x: Array, u: Array, z: Array, o: Array) -> Float[Array, " size"]:
        p, fixed = known
        system, space = self._system, self._system.states
        values, inputs = space.unpack(x), system.inputs.unpack(u)
        derivatives, regressors = (
            dict(system.dynamics(values, inputs, p)),
            system.regressors(values, inputs, p),
        )
        parts = (split(z, self.sizes), split(o, self.outputs))
        for head, w, own_z, own_o in zip(self._heads, fixed, *parts, strict=True):
            phi = rate_of_output(head, w, regressors, own_z, own_o)
            derivatives[head.output] = derivatives[head.output] + phi
        return space.lift(x, space.pack_tangent(derivatives))

    def slope_adjoint(self, known: Any, x: Array, u: Array, z: Array, o: Array, bar: Array) -> Any:
        return jax.vjp(lambda x, z, o: self.slope(known, x, u, z, o), x, z, o)[1](bar)

    def inputs_adjoint(self, known: Any, x: Array, u: Array, bar: Array) -> Any:
        return jax.vjp(lambda x: self.inputs(known, x, u), x)[1](bar)

    def end_adjoint(self, y: Array, bar: Array) -> Any:
        return jax.vjp(self._system.states.normalise, y)[1](bar)

    def cost(self, x: Array, measured: Array, w: Array) -> Any:
        def squares(x: Array) -> Float[Array, ""]:
            difference = self._system.states.minus(x, measured)
            return jnp.sum(w * jnp.stack([jnp.sum(difference[block] ** 2) for block in self._blocks]))

        return jax.value_and_grad(squares)(x)


@dataclasses.dataclass(frozen=True)
class _Columns:
    """Expressions of constants and held values, and what these are."""

    expressions: list[ca.SX]
    constants: ca.SX
    constant_values: ca.SX
    held: ca.SX
    held_values: ca.SX


def _by_level(first: ca.SX, expressions: Sequence[ca.SX], known: ca.SX, u: ca.SX) -> _Columns:
    """Take what depends on `known` alone, and on `known` and u alone, out of expressions. first: the first held values."""
    sizes = [e.numel() for e in expressions]
    column = ca.cse(ca.densify(ca.vertcat(first, *expressions)))
    start = first.numel()
    rest, symbols, values = ca.extract_parametric(column[start:], ca.vertcat(known, u), {})
    held = [(ca.SX.sym("h"), column[i]) for i in range(start)]
    constants = []
    for symbol, value in zip(symbols, values, strict=True):
        (held if ca.depends_on(value, u) else constants).append((symbol, value))
    unchanged = [(ca.SX.sym("h"), symbol) for symbol in ca.symvar(rest) if ca.depends_on(symbol, u)]
    if unchanged:
        new, old = (ca.vertcat(*symbols) for symbols in zip(*unchanged, strict=True))
        rest = ca.substitute(rest, old, new)
    held += unchanged
    empty = ca.SX(0, 1)
    held_values = ca.cse(ca.vertcat(empty, *(value for _, value in held)))
    held_values, symbols, values = ca.extract_parametric(held_values, known, {})
    constants += zip(symbols, values, strict=True)
    used = [symbol for symbol in ca.symvar(ca.vertcat(rest, held_values)) if ca.depends_on(symbol, known)]
    constants += [(symbol, symbol) for symbol in used]
    return _Columns(
        split(rest, sizes),
        ca.vertcat(empty, *(symbol for symbol, _ in constants)),
        ca.vertcat(empty, *(value for _, value in constants)),
        ca.vertcat(empty, *(symbol for symbol, _ in held)),
        held_values,
    )


def _layouts(
    heads: Sequence[Head], sizes: Sequence[int], outputs: Sequence[int], varies: Sequence[bool]
) -> tuple[HeadLayout, ...]:
    layouts, first, first_output = [], 0, 0
    for head, size, count in zip(heads, sizes, outputs, strict=True):
        before, own = varies[:first], varies[first : first + size]
        layouts.append(
            HeadLayout(
                head,
                tuple(i for i, v in enumerate(own) if v),
                tuple(i for i, v in enumerate(own) if not v),
                count,
                sum(before),
                len(before) - sum(before),
                first_output,
            )
        )
        first, first_output = first + size, first_output + count
    return tuple(layouts)


def split(column: Any, sizes: Sequence[int]) -> list[Any]:
    """The parts of a column, of these sizes."""
    return [column[a:b] for a, b in itertools.pairwise([0, *itertools.accumulate(sizes)])]


def _shape(leaf: Any) -> tuple[int, int]:
    rows, columns = (*jnp.shape(leaf), 1, 1)[:2]
    return rows, columns
