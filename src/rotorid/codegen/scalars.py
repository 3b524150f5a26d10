"""Arithmetic on numbers and CasADi scalars, mixed.

CasADi's own operators first test the types of their operands, which takes ten times as long as the operation.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterable
from typing import Any, no_type_check

import casadi as ca


@no_type_check  # called for every scalar
def _operation(
    op: int, of_numbers: Callable[[Any, Any], Any], *, zero: Any = None, neutral: float, is_symmetric: bool
) -> Callable[[Any, Any], Any]:
    """An operation that does not ask CasADi for what a known number gives.

    zero: the result with a zero, where it is known. neutral: the number that gives the other operand, as the second one or, if
    is_symmetric, as any.
    """
    scalar, binary = ca.SX, ca.SX.binary

    def apply(a, b):
        if isinstance(a, scalar):
            if type(b) is float:
                if b == neutral:
                    return a
                if b == zero:
                    return zero
        elif isinstance(b, scalar):
            if type(a) is float:
                if a == neutral and is_symmetric:
                    return b
                if a == zero:
                    return zero
        else:
            return of_numbers(a, b)
        return binary(op, a, b)

    return apply


plus = _operation(ca.OP_ADD, operator.add, neutral=0.0, is_symmetric=True)
minus = _operation(ca.OP_SUB, operator.sub, neutral=0.0, is_symmetric=False)
times = _operation(ca.OP_MUL, operator.mul, zero=0.0, neutral=1.0, is_symmetric=True)
over = _operation(ca.OP_DIV, operator.truediv, neutral=1.0, is_symmetric=False)


@no_type_check  # called for every scalar
def dot(a: Iterable[Any], b: Iterable[Any]) -> Any:
    """The sum of products, 0 of none."""
    products = map(times, a, b)
    return functools.reduce(plus, products, next(products, 0.0))
