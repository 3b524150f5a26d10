"""JAX primitives on arrays of CasADi scalars: the rules that `rotorid.codegen.casadi` runs a jaxpr by.

Their kinds:

    structural      move elements only (reshape, slice, gather, ...): run on the elements, or on their indices
    elementwise     one formula on scalars (sin, mul, select_n, ...): a table
    reductions      a binary formula along axes
    linear algebra  dot_general; Cholesky, triangular solves and QR of small matrices, unrolled
    calls           jit, custom derivatives, cond, scan, while: the inner jaxpr is run in turn
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import math
import operator
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from typing import Any, no_type_check

import casadi as ca
import numpy as np

from rotorid.codegen import unrolled
from rotorid.codegen.scalars import dot, minus, over, plus, times
from rotorid.errors import SettingError

Value = np.ndarray
"""Numbers, or an object array of SX scalars and numbers."""

Run = Callable[[Any, Sequence[Any], Sequence[Value]], list[Value]]
"""Evaluates a jaxpr with its constants on arguments."""


class UnsupportedPrimitiveError(SettingError):
    """A JAX function uses a primitive that has no CasADi counterpart here."""


@dataclasses.dataclass(frozen=True)
class Rule:
    """How one primitive is run.

    apply(run, equation, *inputs) gives the output, or the outputs of a primitive that has several. always: whether
    it applies even if every input is known: inner jaxprs are run, elements are moved without XLA."""

    apply: Callable[..., Any]
    always: bool = False


def is_traced(value: Value) -> bool:
    """Whether the value depends on an input."""
    return value.dtype == object


# --- structural ---------------------------------------------------------------------------------------------


def _by_index(*data: int) -> Callable[..., Value]:
    """Runs the primitive itself on the indices of the elements of its data arguments; the other arguments must
    be known."""

    def rule(run: Run, equation: Any, *inputs: Value) -> Value:
        if any(is_traced(v) for i, v in enumerate(inputs) if i not in data):
            raise UnsupportedPrimitiveError(
                f"the JAX primitive {equation.primitive.name!r} takes an index that depends on an input; "
                "CasADi needs indices that are known while tracing"
            )
        arguments, pool = list(inputs), []
        for i in data:
            arguments[i] = (len(pool) + np.arange(inputs[i].size, dtype=np.float64)).reshape(inputs[i].shape)
            pool += inputs[i].ravel().tolist()
        index = np.asarray(equation.primitive.bind(*arguments, **equation.params))
        flat = np.empty(index.size, dtype=object)
        for i, j in enumerate(index.ravel()):
            flat[i] = np.nan if np.isnan(j) else pool[int(j)]
        return flat.reshape(index.shape)

    return rule


def _scatter_add(run: Run, equation: Any, operand: Value, indices: Value, updates: Value) -> Value:
    """operand + S updates, with S found by scattering unit vectors."""
    result = operand.ravel().astype(object)
    zeros = np.zeros(operand.shape)
    for i, update in enumerate(updates.ravel().tolist()):
        unit = (np.arange(updates.size) == i).astype(np.float64).reshape(updates.shape)
        for j in np.flatnonzero(np.asarray(equation.primitive.bind(zeros, indices, unit, **equation.params))):
            result[j] = result[j] + update
    return result.reshape(operand.shape)


def _slice(run: Run, equation: Any, x: Value) -> Value:
    p = equation.params
    strides = p["strides"] or (1,) * x.ndim
    return x[tuple(map(slice, p["start_indices"], p["limit_indices"], strides))]


def _broadcast(run: Run, equation: Any, x: Value) -> Value:
    shape, dimensions = equation.params["shape"], equation.params["broadcast_dimensions"]
    expanded = [x.shape[dimensions.index(i)] if i in dimensions else 1 for i in range(len(shape))]
    return np.broadcast_to(x.reshape(expanded), shape)


def _iota(run: Run, equation: Any) -> Value:
    p = equation.params
    shape = [-1 if i == p["dimension"] else 1 for i in range(len(p["shape"]))]
    indices = np.arange(p["shape"][p["dimension"]], dtype=p["dtype"]).reshape(shape)
    return np.broadcast_to(indices, p["shape"])


def _split(run: Run, equation: Any, x: Value) -> list[Value]:
    return np.split(x, np.cumsum(equation.params["sizes"])[:-1], axis=equation.params["axis"])


def _unstack(run: Run, equation: Any, x: Value) -> list[Value]:
    return (
        list(np.moveaxis(x, equation.params["axis"], 0))
        if x.ndim > 1
        else [x[i : i + 1] for i in range(len(x))]
    )


def _identity(run: Run, equation: Any, x: Value) -> Value:
    return x  # _run gives it the shape of the output


def _of_parameters(function: Callable[..., Value], **names: str) -> Callable[..., Value]:
    return lambda run, equation, x: function(
        x, **{argument: equation.params[parameter] for argument, parameter in names.items()}
    )


_STRUCTURAL: dict[str, Callable[..., Any]] = {
    **dict.fromkeys(
        ("reshape", "squeeze", "expand_dims", "copy", "copy_p", "stop_gradient", "device_put"), _identity
    ),
    **dict.fromkeys(("reduce_precision", "optimization_barrier", "sharding_constraint"), _identity),
    "slice": _slice,
    "broadcast_in_dim": _broadcast,
    "split": _split,
    "unstack": _unstack,
    "transpose": _of_parameters(np.transpose, axes="permutation"),
    "tile": _of_parameters(np.tile, reps="reps"),
    "rev": _of_parameters(np.flip, axis="dimensions"),
    "iota": _iota,
    "concatenate": lambda run, eqn, *xs: np.concatenate(
        [x.astype(object) for x in xs], axis=eqn.params["dimension"]
    ),
    "stack": lambda run, eqn, *xs: np.stack([x.astype(object) for x in xs], axis=eqn.params["axis"]),
}
_INDEXED: dict[str, Callable[..., Any]] = {
    "gather": _by_index(0),
    "dynamic_slice": _by_index(0),
    "dynamic_update_slice": _by_index(0, 1),
    "pad": _by_index(0, 1),
    "scatter": _by_index(0, 2),
    "scatter-add": _scatter_add,
}

# --- elementwise --------------------------------------------------------------------------------------------


def _map(function: Callable[..., Any], *values: Value) -> Value:
    """Elementwise on flat arrays, so that numpy never looks into an SX."""
    shape = np.broadcast_shapes(*(v.shape for v in values))
    flat = [np.broadcast_to(v, shape).ravel().astype(object) for v in values]
    return np.frompyfunc(function, len(values), 1)(*flat).reshape(shape)


def _elementwise(function: Callable[..., Any]) -> Callable[..., Value]:
    return lambda run, equation, *values: _map(function, *values)


@no_type_check  # called for every scalar
def _power(base: Any, exponent: int) -> Any:
    """base**exponent by repeated multiplication."""
    if exponent < 0:
        return 1.0 / _power(base, -exponent)
    return functools.reduce(times, [base] * exponent, 1.0)


_ZERO: ContextVar[Any] = ContextVar("zero", default=0.0)


@contextlib.contextmanager
def zero_as(symbol: ca.SX) -> Iterator[None]:
    """Trace choices between a value and zero with a symbol for zero within the block.

    CasADi writes a product with such a choice as a choice of the product: where a row of a matrix is masked, every product with
    its elements would be a choice again.
    """
    token = _ZERO.set(symbol)
    try:
        yield
    finally:
        _ZERO.reset(token)


@no_type_check  # called for every scalar
def _choose(selector: Any, *cases: Any) -> Any:
    if not isinstance(selector, ca.SX):
        return cases[int(selector)]
    is_zero = [
        case.is_zero() if isinstance(case, ca.SX) else type(case) is float and case == 0.0 for case in cases
    ]
    if all(is_zero):
        return 0.0
    zero = _ZERO.get()
    cases = [zero if z else case for z, case in zip(is_zero, cases, strict=True)]
    if len(cases) == 2:  # the selector is a truth value, or 0 or 1
        return ca.if_else(selector, cases[1], cases[0])
    result = cases[-1]
    for i in reversed(range(len(cases) - 1)):
        result = ca.if_else(selector == i, cases[i], result)
    return result


@no_type_check  # called for every scalar
def _equal(x: Any, y: Any) -> Any:
    """x == y. CasADi folds a comparison of a scalar with itself to true, which is wrong for NaN."""
    is_identical = isinstance(x, ca.SX) and isinstance(y, ca.SX) and ca.is_equal(x, y)
    return ca.fabs(x) <= math.inf if is_identical else x == y


def _is_finite(x: Any) -> Any:
    return ca.fabs(x) < math.inf


def _convert(run: Run, equation: Any, x: Value) -> Value:
    target, source = np.dtype(equation.params["new_dtype"]), np.dtype(equation.invars[0].aval.dtype)
    if target.kind == "b" and source.kind != "b":
        return _map(lambda e: e != 0, x)
    if target.kind in "iu" and source.kind == "f":
        return _map(lambda e: ca.sign(e) * ca.floor(ca.fabs(e)), x)
    return x


def _logical(function: Callable[..., Any]) -> Callable[..., Value]:
    def rule(run: Run, equation: Any, *values: Value) -> Value:
        if equation.invars[0].aval.dtype.kind != "b":
            raise UnsupportedPrimitiveError("bitwise operations on integers have no CasADi counterpart")
        return _map(lambda *elements: function(*(ca.SX(e) for e in elements)), *values)

    return rule


def _divide(run: Run, equation: Any, a: Value, b: Value) -> Value:
    is_integer = equation.outvars[0].aval.dtype.kind in "iu"
    return _map((lambda x, y: ca.sign(x / y) * ca.floor(ca.fabs(x / y))) if is_integer else over, a, b)


_FORMULAS: dict[str, Callable[..., Any]] = {
    "add": plus, "add_any": plus, "sub": minus, "mul": times,
    "neg": operator.neg, "pow": operator.pow, "max": ca.fmax, "min": ca.fmin, "atan2": ca.atan2,
    "rem": ca.fmod, "sign": ca.sign, "abs": ca.fabs, "floor": ca.floor, "ceil": ca.ceil,
    "sqrt": ca.sqrt, "rsqrt": lambda x: 1.0 / ca.sqrt(x), "square": lambda x: times(x, x),
    "cbrt": lambda x: ca.sign(x) * ca.fabs(x) ** (1.0 / 3.0),
    "exp": ca.exp, "exp2": lambda x: 2.0**x, "expm1": ca.expm1, "log": ca.log, "log1p": ca.log1p,
    "sin": ca.sin, "cos": ca.cos, "tan": ca.tan, "asin": ca.asin, "acos": ca.acos, "atan": ca.atan,
    "sinh": ca.sinh, "cosh": ca.cosh, "tanh": ca.tanh, "asinh": ca.asinh, "acosh": ca.acosh,
    "atanh": ca.atanh, "erf": ca.erf, "logistic": lambda x: 1.0 / (1.0 + ca.exp(-x)),
    "select_n": _choose, "clamp": lambda low, x, high: ca.fmin(ca.fmax(x, low), high),
    "is_finite": _is_finite, "eq": _equal, "ne": lambda x, y: ca.logic_not(_equal(x, y)),
    "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge,
}  # fmt: skip

_ELEMENTWISE: dict[str, Callable[..., Any]] = {
    **{name: _elementwise(formula) for name, formula in _FORMULAS.items()},
    "integer_pow": lambda run, eqn, x: _map(lambda e: _power(e, eqn.params["y"]), x),
    "convert_element_type": _convert,
    "div": _divide,
    "and": _logical(ca.logic_and),
    "or": _logical(ca.logic_or),
    "xor": _logical(operator.ne),
    "not": _logical(ca.logic_not),
}

# --- reductions and linear algebra --------------------------------------------------------------------------


def _of_rows(function: Callable[[Sequence[Any]], Any]) -> Callable[..., Value]:
    """A reduction by a function of all elements along the axes."""

    def rule(run: Run, equation: Any, x: Value) -> Value:
        axes = equation.params["axes"]
        remaining = [i for i in range(x.ndim) if i not in axes]
        rows = x.transpose(*remaining, *axes).reshape(int(np.prod([x.shape[i] for i in remaining])), -1)
        flat = np.empty(len(rows), dtype=object)
        for i, row in enumerate(rows):
            flat[i] = function(row.tolist())
        return flat

    return rule


def _reduce(function: Callable[[Any, Any], Any]) -> Callable[..., Value]:
    return _of_rows(functools.partial(functools.reduce, function))


@no_type_check
def _all(elements: Sequence[Any]) -> Any:
    """Whether all are true.

    Tests whether numbers are finite become one: the sum of the numbers, each times zero, is finite if all are. That takes two
    operations a number in place of four.
    """
    zero, tested, others = _ZERO.get(), {}, []
    for e in elements:
        number = _tested_for_finite(e) if isinstance(zero, ca.SX) else None
        if number is None:
            others.append(ca.SX(e))
        else:
            tested[number.element_hash()] = number
    if tested:
        sums = [number * zero for number in tested.values()]
        while len(sums) > 1:  # in pairs, since each addition of a running sum would wait for the one before
            sums = [functools.reduce(plus, sums[k : k + 2]) for k in range(0, len(sums), 2)]
        others.append(_is_finite(sums[0]))
    return functools.reduce(ca.logic_and, others)


@no_type_check
def _tested_for_finite(e: Any) -> Any:
    """The number of which e says whether it is finite, None where e says something else."""
    if not isinstance(e, ca.SX) or e.n_dep() != 2 or e.op() != ca.OP_LT:
        return None
    size, limit = e.dep(0), e.dep(1)
    is_test = (
        limit.is_constant() and float(limit) == math.inf and size.n_dep() == 1 and size.op() == ca.OP_FABS
    )
    return size.dep(0) if is_test else None


def _cumulate(function: Callable[[Any, Any], Any]) -> Callable[..., Value]:
    combine = np.frompyfunc(function, 2, 1)

    def rule(run: Run, equation: Any, x: Value) -> Value:
        axis, reverse = equation.params["axis"], equation.params["reverse"]
        y = combine.accumulate(np.flip(x, axis) if reverse else x, axis=axis, dtype=object)
        return np.flip(y, axis) if reverse else y

    return rule


def _dot_general(run: Run, equation: Any, a: Value, b: Value) -> Value:
    (contract_a, contract_b), (batch_a, batch_b) = equation.params["dimension_numbers"]
    free_a = [i for i in range(a.ndim) if i not in (*contract_a, *batch_a)]
    free_b = [i for i in range(b.ndim) if i not in (*contract_b, *batch_b)]

    def size(x: Value, axes: Sequence[int]) -> int:
        return int(np.prod([x.shape[i] for i in axes]))

    left = a.transpose(*batch_a, *free_a, *contract_a).reshape(-1, size(a, free_a), size(a, contract_a))
    right = b.transpose(*batch_b, *contract_b, *free_b).reshape(-1, size(b, contract_b), size(b, free_b))
    flat = [
        dot(row, column)
        for rows, matrix in zip(left.tolist(), right.transpose(0, 2, 1).tolist(), strict=True)
        for row in rows
        for column in matrix
    ]
    result = np.empty(len(flat), dtype=object)
    for i, element in enumerate(flat):
        result[i] = element
    return result  # batch, left free, right free: as JAX orders them


_ALGEBRA: dict[str, Callable[..., Any]] = {
    "reduce_sum": _reduce(plus),
    "reduce_prod": _reduce(times),
    "reduce_max": _reduce(ca.fmax),
    "reduce_min": _reduce(ca.fmin),
    "reduce_and": _of_rows(_all),
    "reduce_or": _reduce(lambda a, b: ca.logic_or(ca.SX(a), ca.SX(b))),
    "cumsum": _cumulate(plus),
    "cumprod": _cumulate(times),
    "cummax": _cumulate(ca.fmax),
    "cummin": _cumulate(ca.fmin),
    "dot_general": _dot_general,
    "cholesky": lambda run, eqn, a: unrolled.cholesky(a),
    "triangular_solve": lambda run, eqn, a, b: unrolled.triangular_solve(a, b, **eqn.params),
    "qr": lambda run, eqn, a: unrolled.qr(a, full=eqn.params["full_matrices"]),
}

# --- calls --------------------------------------------------------------------------------------------------


def _call(run: Run, equation: Any, *inputs: Value) -> list[Value]:
    params = equation.params
    inner = next(params[key] for key in ("jaxpr", "call_jaxpr", "fun_jaxpr") if key in params)
    return run(getattr(inner, "jaxpr", inner), getattr(inner, "consts", ()), inputs)


def _cond(run: Run, equation: Any, selector: Value, *inputs: Value) -> list[Value]:
    branches = equation.params["branches"]
    if not is_traced(selector):
        branches = [branches[int(np.clip(selector, 0, len(branches) - 1))]]
        selector = np.asarray(0)
    results = [run(b.jaxpr, b.consts, inputs) for b in branches]
    return [_map(_choose, selector, *cases) for cases in zip(*results, strict=True)]


def _scan(run: Run, equation: Any, *inputs: Value) -> list[Value]:
    p = equation.params
    n, m, inner = p["num_consts"], p["num_consts"] + p["num_carry"], p["jaxpr"]
    constants, carry, xs = inputs[:n], list(inputs[n:m]), inputs[m:]
    order = reversed(range(p["length"])) if p["reverse"] else range(p["length"])
    rows: list[list[Value]] = []
    for i in order:
        outputs = run(
            inner.jaxpr, inner.consts, [*constants, *carry, *(x[i : i + 1].reshape(x.shape[1:]) for x in xs)]
        )
        carry, row = outputs[: p["num_carry"]], outputs[p["num_carry"] :]
        rows.append(row)
    rows = rows[::-1] if p["reverse"] else rows
    return [*carry, *(np.stack([v.astype(object) for v in column]) for column in zip(*rows, strict=True))]


def _while(run: Run, equation: Any, *inputs: Value) -> list[Value]:
    p = equation.params
    n, m = p["cond_nconsts"], p["cond_nconsts"] + p["body_nconsts"]
    condition, body, carry = p["cond_jaxpr"], p["body_jaxpr"], list(inputs[m:])
    while True:
        (is_true,) = run(condition.jaxpr, condition.consts, [*inputs[:n], *carry])
        if is_traced(is_true):
            raise UnsupportedPrimitiveError(
                "a `while` loop whose length depends on an input cannot be unrolled"
            )
        if not is_true:
            return carry
        carry = run(body.jaxpr, body.consts, [*inputs[n:m], *carry])


_CALLS: dict[str, Callable[..., Any]] = {
    **dict.fromkeys(("jit", "pjit", "closed_call", "core_call", "remat", "checkpoint", "remat2"), _call),
    **dict.fromkeys(("custom_jvp_call", "custom_vjp_call", "custom_vjp_call_jaxpr"), _call),
    "cond": _cond,
    "scan": _scan,
    "while": _while,
}

RULES: dict[str, Rule] = {name: Rule(apply) for name, apply in (_INDEXED | _ELEMENTWISE | _ALGEBRA).items()}
RULES |= {name: Rule(apply, always=True) for name, apply in (_STRUCTURAL | _CALLS).items()}

IN_NUMPY: dict[str, Callable[..., Value]] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "neg": np.negative, "sqrt": np.sqrt,
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
    "and": np.bitwise_and, "or": np.bitwise_or, "not": np.invert,
}  # fmt: skip
"""Frequent operations on known values, in NumPy: XLA would compile them for every shape."""
