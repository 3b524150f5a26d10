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
    space = system.states
    x, u = jnp.asarray(space.initial()), jnp.asarray(system.inputs.initial())
    known = (dict(p), [{name: w[name] for name in FIXED if name in w} for w in fixed])
    tangents = [space.tangent[head.output] for head in heads]
    outputs = [t.stop - t.start for t in tangents]
    sizes = [w["mean"].shape[0] for w in fixed]

    def values_of(x: Array, u: Array, p: Values) -> tuple[dict[str, Array], Values]:
        values, inputs = space.unpack(x), system.inputs.unpack(u)
        return dict(system.dynamics(values, inputs, p)), system.regressors(values, inputs, p)

    def inputs(known: Any, x: Array, u: Array) -> Float[Array, " z"]:
        regressors = system.regressors(space.unpack(x), system.inputs.unpack(u), known[0])
        return jnp.concatenate(
            [network_inputs(h, w, regressors) for h, w in zip(heads, known[1], strict=True)]
        )

    def slope(known: Any, x: Array, u: Array, z: Array, o: Array) -> Float[Array, " size"]:
        derivatives, regressors = values_of(x, u, known[0])
        for head, w, own_z, own_o in zip(heads, known[1], _split(z, sizes), _split(o, outputs), strict=True):
            derivatives[head.output] = derivatives[head.output] + rate_of_output(
                head, w, regressors, own_z, own_o
            )
        return space.lift(x, space.pack_tangent(derivatives))

    def cost(x: Array, measured: Array, w: Array) -> Float[Array, ""]:
        difference = space.minus(x, measured)
        return jnp.sum(w * jnp.stack([jnp.sum(difference[t] ** 2) for t in tangents]))

    def slope_adjoint(known: Any, x: Array, u: Array, z: Array, o: Array, bar: Array) -> Any:
        return jax.vjp(lambda x, z, o: slope(known, x, u, z, o), x, z, o)[1](bar)

    def inputs_adjoint(known: Any, x: Array, u: Array, bar: Array) -> Any:
        return jax.vjp(lambda x: inputs(known, x, u), x)[1](bar)

    def cost_and_gradient(x: Array, measured: Array, w: Array) -> Any:
        return jax.value_and_grad(cost)(x, measured, w)

    def end_adjoint(y: Array, bar: Array) -> Any:
        return jax.vjp(space.normalise, y)[1](bar)

    z, o = jnp.zeros(sum(sizes)), jnp.zeros(sum(outputs))
    n_x, n_z, n_o = len(x), len(z), len(o)
    SX = {
        name: ca.SX.sym(name, n)
        for name, n in (("x", n_x), ("u", len(u)), ("z", n_z), ("o", n_o), ("bar", n_x))
    }
    leaves = [ca.SX.sym(f"p{k}", *_shape(leaf)) for k, leaf in enumerate(jax.tree.leaves(known))]
    all_inputs = to_casadi(inputs, known, x, u)(*leaves, SX["x"], SX["u"])
    varies = [ca.depends_on(all_inputs[i], SX["x"]) for i in range(n_z)]
    varying = [i for i in range(n_z) if varies[i]]
    held = [i for i in range(n_z) if not varies[i]]
    own_z = ca.vertcat(*[SX["z"][i] if varies[i] else all_inputs[i] for i in range(n_z)])
    z_bar = ca.SX.sym("z_bar", len(varying))
    full_z_bar = ca.SX(n_z, 1)
    full_z_bar[varying] = z_bar
    arguments = (*leaves, SX["x"], SX["u"], own_z, SX["o"])
    k = to_casadi(slope, known, x, u, z, o)(*arguments)
    bars = to_casadi(slope_adjoint, known, x, u, z, o, x)(*arguments, SX["bar"])
    x_bar = to_casadi(inputs_adjoint, known, x, u, z)(*leaves, SX["x"], SX["u"], full_z_bar)
    columns = _by_level(
        [
            all_inputs[held],
            all_inputs[varying],
            k,
            ca.vertcat(bars[0], bars[1][varying], bars[2]),
            x_bar,
        ],
        ca.vertcat(*map(ca.vec, leaves)),
        SX["u"],
    )
    _, inputs_column, slope_column, slope_bar_column, inputs_bar_column = columns.expressions
    c, h, own = columns.constants, columns.held, [SX["x"], SX["z"][varying], SX["o"]]
    y, state_bar = ca.SX.sym("y", n_x), SX["bar"]
    measured, w = ca.SX.sym("measured", n_x), ca.SX.sym("w", len(heads))
    value, gradient = to_casadi(cost_and_gradient, x, x, jnp.zeros(len(heads)))(y, measured, w)
    return StageFunctions(
        constants=ca.Function("constants", leaves, [columns.constant_values]),
        held=ca.Function("held", [c, SX["u"]], [columns.held_values]),
        inputs=ca.Function("inputs", [c, h, SX["x"]], [inputs_column]),
        slope=ca.Function("slope", [c, h, *own], [slope_column]),
        slope_adjoint=ca.Function("slope_adjoint", [c, h, *own, state_bar], [slope_bar_column]),
        inputs_adjoint=ca.Function("inputs_adjoint", [c, h, SX["x"], z_bar], [inputs_bar_column]),
        end=ca.Function("end", [y], [to_casadi(space.normalise, x)(y)]),
        end_adjoint=ca.Function("end_adjoint", [y, state_bar], [to_casadi(end_adjoint, x, x)(y, state_bar)]),
        cost=ca.Function("cost", [y, measured, w], [ca.vertcat(value, gradient)]),
        heads=_layouts(heads, sizes, outputs, varies),
    )


@dataclasses.dataclass(frozen=True)
class _Columns:
    """Expressions of constants and held values, and what these are."""

    expressions: list[ca.SX]
    constants: ca.SX
    constant_values: ca.SX
    held: ca.SX
    held_values: ca.SX


def _by_level(expressions: Sequence[ca.SX], known: ca.SX, u: ca.SX) -> _Columns:
    """Take what depends on `known` alone, and on `known` and u alone, out of expressions. All of the first one is held."""
    sizes = [ca.vec(e).numel() for e in expressions]
    column = ca.cse(ca.densify(ca.vertcat(*map(ca.vec, expressions))))
    first, rest = column[: sizes[0]], column[sizes[0] :]
    rest, symbols, values = ca.extract_parametric(rest, ca.vertcat(known, u), {})
    held = [(ca.SX.sym("h"), first[i]) for i in range(sizes[0])]
    constants = []
    for symbol, value in zip(symbols, values, strict=True):
        (held if ca.depends_on(value, u) else constants).append((symbol, value))
    raw = [symbol for symbol in ca.symvar(rest) if _is_in(symbol, u)]
    renamed = [(ca.SX.sym("h"), symbol) for symbol in raw]
    if raw:
        rest = ca.substitute(rest, ca.vertcat(*raw), ca.vertcat(*(symbol for symbol, _ in renamed)))
    held += renamed
    held_values = ca.cse(ca.vertcat(ca.SX(0, 1), *(value for _, value in held)))
    held_values, symbols, values = ca.extract_parametric(held_values, known, {})
    constants += zip(symbols, values, strict=True)
    used = [symbol for symbol in ca.symvar(ca.vertcat(rest, held_values)) if _is_in(symbol, known)]
    constants += [(symbol, symbol) for symbol in used]
    edges = [sum(sizes[1:k]) for k in range(1, len(sizes) + 1)]
    parts = [rest[a:b] for a, b in itertools.pairwise(edges)]
    empty = ca.SX(0, 1)
    return _Columns(
        [ca.SX(0, 1), *parts],
        ca.vertcat(empty, *(symbol for symbol, _ in constants)),
        ca.vertcat(empty, *(value for _, value in constants)),
        ca.vertcat(empty, *(symbol for symbol, _ in held)),
        held_values,
    )


def _is_in(symbol: ca.SX, column: ca.SX) -> bool:
    return ca.depends_on(symbol, column)


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


def _split(column: Array, sizes: Sequence[int]) -> list[Array]:
    edges = [sum(sizes[:k]) for k in range(len(sizes) + 1)]
    return [column[a:b] for a, b in itertools.pairwise(edges)]


def _shape(leaf: Any) -> tuple[int, int]:
    rows, columns = (*jnp.shape(leaf), 1, 1)[:2]
    return rows, columns
