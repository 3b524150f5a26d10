"""Functions of one point applied to many, with the axis of the points last.

XLA computes n x 3 numbers in loops of three, and 3 x n in loops of n. `jax.vmap` moves the axis of the points to the front
wherever numbers are put side by side, whatever `in_axes` says. Here the traced function is evaluated operation by operation,
and each keeps that axis last; operations without a rule of their own take that of `jax.vmap`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, jaxpr_as_fun
from jaxtyping import Array, Shaped


class _Value(NamedTuple):
    """An array. is_batched: whether its last axis is that of the points."""

    array: Shaped[Array, ...]
    is_batched: bool


_ELEMENTWISE: Final = frozenset((
    "abs", "add", "and", "atan2", "clamp", "convert_element_type", "copy", "cos", "div", "eq", "exp", "ge", "gt", "integer_pow",
    "is_finite", "le", "log", "log1p", "lt", "max", "min", "mul", "ne", "neg", "not", "or", "pow", "rsqrt", "select_n", "sign",
    "sin", "sqrt", "square", "stop_gradient", "sub", "tan", "tanh",
))  # fmt: skip
_ALONG_OTHER_AXES: Final = frozenset(
    ("reduce_and", "reduce_max", "reduce_min", "reduce_or", "reduce_sum", "rev")
)
_CALLS: Final = frozenset(("closed_call", "jit", "pjit"))


def batch_last(function: Callable[..., Any]) -> Callable[..., Any]:
    """As `jax.vmap(function, in_axes=-1, out_axes=-1)`: all arrays have the axis of the points last."""

    def of_many(*arguments: Any) -> Any:
        leaves = jax.tree.leaves(arguments)
        count = leaves[0].shape[-1]
        one = jax.tree.map(lambda a: jax.ShapeDtypeStruct(a.shape[:-1], a.dtype), arguments)
        closed, shapes = jax.make_jaxpr(function, return_shape=True)(*one)
        values = [_Value(leaf, True) for leaf in leaves]
        results = _evaluate(closed.jaxpr, closed.consts, values, count)
        return jax.tree.unflatten(jax.tree.structure(shapes), [_batched(r, count) for r in results])

    return of_many


def _evaluate(jaxpr: Jaxpr, consts: Sequence[Any], arguments: Sequence[_Value], count: int) -> list[_Value]:
    known: dict[Any, _Value] = {
        variable: _Value(const, False) for variable, const in zip(jaxpr.constvars, consts, strict=True)
    }
    known |= zip(jaxpr.invars, arguments, strict=True)

    def value_of(atom: Any) -> _Value:
        return _Value(jnp.asarray(atom.val), False) if isinstance(atom, Literal) else known[atom]

    for equation in jaxpr.eqns:
        operands = [value_of(atom) for atom in equation.invars]
        known |= zip(equation.outvars, _results(equation, operands, count), strict=True)
    return [value_of(atom) for atom in jaxpr.outvars]


def _results(equation: JaxprEqn, operands: list[_Value], count: int) -> list[_Value]:
    name, parameters = equation.primitive.name, equation.params
    if name in _CALLS:
        inner: ClosedJaxpr = parameters["jaxpr" if "jaxpr" in parameters else "call_jaxpr"]
        return _evaluate(inner.jaxpr, inner.consts, operands, count)
    is_batched = any(operand.is_batched for operand in operands)
    if is_batched and (array := _with_own_rule(equation, operands, count)) is not None:
        return [_Value(array, True)]
    variables = {
        atom: operand
        for atom, operand in zip(equation.invars, operands, strict=True)
        if not isinstance(atom, Literal)
    }
    alone = jaxpr_as_fun(ClosedJaxpr(Jaxpr((), list(variables), equation.outvars, [equation]), ()))
    if is_batched:
        alone = jax.vmap(alone, tuple(-1 if v.is_batched else None for v in variables.values()), -1)
    return [_Value(array, is_batched) for array in alone(*(v.array for v in variables.values()))]


def _with_own_rule(equation: JaxprEqn, operands: list[_Value], count: int) -> Shaped[Array, ...] | None:
    """The result of an operation with a rule, None of another one."""
    name, parameters = equation.primitive.name, equation.params
    first = operands[0].array
    if name in _ELEMENTWISE:
        shape = (*jnp.broadcast_shapes(*(_shape(operand) for operand in operands)), count)
        arrays = (_broadcast(operand, shape) for operand in operands)
        return equation.primitive.bind(*arrays, **parameters)
    if name in _ALONG_OTHER_AXES:
        return equation.primitive.bind(first, **parameters)
    if name == "concatenate":
        return lax.concatenate([_batched(operand, count) for operand in operands], parameters["dimension"])
    if name == "stack":
        return jnp.stack([_batched(operand, count) for operand in operands], parameters["axis"])
    if name == "slice":
        strides = parameters["strides"]
        return lax.slice(
            first, (*parameters["start_indices"], 0), (*parameters["limit_indices"], count),
            None if strides is None else (*strides, 1),
        )  # fmt: skip
    if name == "squeeze":
        return lax.squeeze(first, parameters["dimensions"])
    if name == "reshape" and parameters["dimensions"] is None:
        return lax.reshape(first, (*parameters["new_sizes"], count))
    if name == "transpose":
        return lax.transpose(first, (*parameters["permutation"], first.ndim - 1))
    if name == "broadcast_in_dim" and len(operands) == 1:
        shape = parameters["shape"]
        return lax.broadcast_in_dim(first, (*shape, count), (*parameters["broadcast_dimensions"], len(shape)))
    return _product(operands, parameters) if name == "dot_general" else None


def _product(operands: list[_Value], parameters: dict[str, Any]) -> Shaped[Array, ...] | None:
    """A product of tensors; None where it has batch axes of its own."""
    left, right = operands
    contracted, own_batch = parameters["dimension_numbers"]
    if own_batch[0]:
        return None
    if left.is_batched and right.is_batched:
        free = [
            [axis for axis in range(side.array.ndim - 1) if axis not in axes]
            for side, axes in zip(operands, contracted, strict=True)
        ]
        a, b = (
            side.array.transpose(*axes, *kept, side.array.ndim - 1)
            for side, axes, kept in zip(operands, contracted, free, strict=True)
        )
        k = len(contracted[0])
        a = a.reshape(*a.shape[:-1], *(1 for _ in free[1]), a.shape[-1])
        b = b.reshape(*b.shape[:k], *(1 for _ in free[0]), *b.shape[k:])
        return jnp.sum(a * b, axis=tuple(range(k)))
    product = lax.dot_general(
        left.array, right.array, parameters["dimension_numbers"], parameters["precision"],
        parameters["preferred_element_type"],
    )  # fmt: skip
    if left.is_batched:
        product = jnp.moveaxis(product, left.array.ndim - 1 - len(contracted[0]), -1)
    return product


def _shape(value: _Value) -> tuple[int, ...]:
    """The shape without the axis of the points."""
    return value.array.shape[:-1] if value.is_batched else value.array.shape


def _batched(value: _Value, count: int) -> Shaped[Array, ...]:
    """The array with the axis of the points."""
    array = value.array
    return array if value.is_batched else jnp.broadcast_to(array[..., None], (*array.shape, count))


def _broadcast(value: _Value, shape: tuple[int, ...]) -> Shaped[Array, ...]:
    array = _batched(value, shape[-1])
    return jnp.broadcast_to(array.reshape(*(1,) * (len(shape) - array.ndim), *array.shape), shape)
