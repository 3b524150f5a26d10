"""JAX to CasADi: trace a function to its jaxpr and run that on CasADi scalars.

A traced value is a numpy array: of numbers where it is known while tracing (constants are folded), of dtype
object with one CasADi SX scalar an element where it depends on an input. Loops (`scan`, and `while` with a
condition known at trace time) are unrolled; a branch on a traced value computes both sides and chooses, as
CasADi evaluates everything.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import casadi as ca
import jax
import jax.extend
import numpy as np

from rotorid.codegen.primitives import IN_NUMPY, RULES, Run, UnsupportedPrimitiveError, Value, is_traced
from rotorid.errors import SettingError

__all__ = [
    "UnsupportedPrimitiveError",
    "evaluate",
    "inner_jaxprs",
    "runner",
    "scalar_operations",
    "to_casadi",
    "value_of",
]


def to_casadi(function: Callable[..., Any], *examples: Any, name: str = "f") -> ca.Function:
    """The CasADi function that computes the same as a JAX function, in float64; a truth value is 1 or 0.

    examples: arguments of the shapes to trace for (arrays, numbers or pytrees of them; their values do not
    matter). Each leaf becomes an input (in0, in1_mass, ...), and each leaf of the result an output (out0,
    ...), of at most two dimensions; a vector is a column.
    """
    with jax.enable_x64(True):
        examples = jax.tree.map(_example, examples)
        closed = jax.make_jaxpr(function)(*examples)
        leaves = jax.tree.leaves_with_path(examples)
        names = [_input_name(path) for path, _ in leaves]
        symbols = [ca.SX.sym(n, *_matrix(leaf.shape)) for n, (_, leaf) in zip(names, leaves, strict=True)]
        arguments = [_from_sx(symbol, leaf.shape) for symbol, (_, leaf) in zip(symbols, leaves, strict=True)]
        outputs = [_to_sx(value) for value in runner()(closed.jaxpr, closed.consts, arguments)]
    return ca.Function(name, symbols, outputs, names, [f"out{i}" for i in range(len(outputs))])


def scalar_operations(part: Any) -> int:
    """The approximate number of scalar operations of a jaxpr or an equation with its loops unrolled."""
    if hasattr(part, "eqns"):
        return sum(map(scalar_operations, part.eqns))
    inner = inner_jaxprs(part)
    if inner:
        return part.params.get("length", 1) * sum(map(scalar_operations, inner))
    size = sum(math.prod(v.aval.shape) for v in part.outvars)
    if part.primitive.name == "dot_general":
        (contracted, _), _ = part.params["dimension_numbers"]
        size *= math.prod(part.invars[0].aval.shape[axis] for axis in contracted)
    return size


def inner_jaxprs(equation: Any, *, closed: bool = False) -> list[Any]:
    """The jaxprs among an equation's parameters. closed: with their constants."""
    jaxprs = [
        item
        for value in equation.params.values()
        for item in (value if isinstance(value, tuple | list) else (value,))
        if isinstance(item, _JAXPRS)
    ]
    return [j if closed else getattr(j, "jaxpr", j) for j in jaxprs]


_JAXPRS = (jax.extend.core.Jaxpr, jax.extend.core.ClosedJaxpr)


Constant = Callable[[Any, Any], Value]
"""From a literal or a constant variable of a jaxpr, and its number or array, to its value."""


def _known(atom: Any, constant: Any) -> Value:
    return np.asarray(constant)


def runner(constant: Constant = _known) -> Run:
    """The function that evaluates a jaxpr on traced values. constant: gives the values of its constants."""

    def run(jaxpr: Any, constants: Sequence[Any], arguments: Sequence[Value]) -> list[Value]:
        environment: dict[Any, Value] = dict(
            zip(jaxpr.constvars, map(constant, jaxpr.constvars, constants), strict=True)
        )
        environment |= zip(jaxpr.invars, arguments, strict=True)
        for equation in jaxpr.eqns:
            inputs = [value_of(atom, environment, constant) for atom in equation.invars]
            environment |= zip(equation.outvars, evaluate(equation, inputs, run), strict=True)
        return [value_of(atom, environment, constant) for atom in jaxpr.outvars]

    return run


def value_of(atom: Any, environment: dict[Any, Value], constant: Constant) -> Value:
    """The value of a variable or of a literal."""
    return constant(atom, atom.val) if isinstance(atom, jax.extend.core.Literal) else environment[atom]


def evaluate(equation: Any, inputs: Sequence[Value], run: Run) -> list[Value]:
    """The outputs of one equation of a jaxpr on traced values. run: evaluates the jaxprs inside it (see `runner`)."""
    rule = RULES.get(equation.primitive.name)
    is_symbolic = any(map(is_traced, inputs))
    if rule is not None and (is_symbolic or rule.always):
        outputs = rule.apply(run, equation, *inputs)
    elif not is_symbolic and equation.primitive.name in IN_NUMPY:
        outputs = IN_NUMPY[equation.primitive.name](*inputs)
    elif not is_symbolic and equation.primitive.name == "convert_element_type":
        outputs = inputs[0].astype(equation.params["new_dtype"])
    elif not is_symbolic:
        outputs = equation.primitive.bind(*inputs, **equation.params)
    else:
        raise UnsupportedPrimitiveError(
            f"the JAX primitive {equation.primitive.name!r} has no CasADi counterpart in rotorid: "
            "write the function without it, or add a rule to rotorid.codegen.primitives"
        )
    outputs = outputs if equation.primitive.multiple_results else [outputs]
    return [_fold(output, variable.aval) for variable, output in zip(equation.outvars, outputs, strict=True)]


def _fold(value: Any, aval: Any) -> Value:
    """As an array of the right shape, of numbers where no element is symbolic."""
    value = np.asarray(value).reshape(aval.shape)
    if is_traced(value) and not any(isinstance(e, ca.SX) for e in value.flat):
        return value.astype(aval.dtype)
    return value


def _example(leaf: Any) -> np.ndarray:
    """An argument in float64, or unchanged if it is an array of truth values or integers."""
    is_discrete = hasattr(leaf, "dtype") and np.dtype(leaf.dtype).kind in "biu"
    return np.asarray(leaf) if is_discrete or isinstance(leaf, bool) else np.asarray(leaf, dtype=np.float64)


def _input_name(path: tuple[Any, ...]) -> str:
    """A CasADi identifier of a leaf of the arguments: in0, in1_mass, ..."""
    keys = [str(getattr(k, "key", getattr(k, "name", getattr(k, "idx", k)))) for k in path]
    return "in" + "_".join("".join(c for c in key if c.isalnum()) for key in keys)


def _matrix(shape: Sequence[int]) -> tuple[int, int]:
    if len(shape) > 2:
        raise SettingError(
            f"an input or output of shape {tuple(shape)} has more than the two dimensions of CasADi"
        )
    rows, columns = (*shape, 1, 1)[:2]
    return rows, columns


def _from_sx(symbol: ca.SX, shape: tuple[int, ...]) -> Value:
    flat = np.empty(symbol.numel(), dtype=object)
    for i in range(flat.size):
        flat[i] = symbol[divmod(i, symbol.shape[1])]
    return flat.reshape(shape)


def _to_sx(value: Value) -> ca.SX:
    rows, columns = _matrix(value.shape)
    if value.size == 0:
        return ca.SX(rows, columns)
    return ca.reshape(ca.vertcat(*[ca.SX(e) for e in value.ravel().tolist()]), columns, rows).T
