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
def _operation(op: int, of_numbers: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    scalar, binary = ca.SX, ca.SX.binary

    def apply(a, b):
        return binary(op, a, b) if isinstance(a, scalar) or isinstance(b, scalar) else of_numbers(a, b)

    return apply


plus = _operation(ca.OP_ADD, operator.add)
minus = _operation(ca.OP_SUB, operator.sub)
times = _operation(ca.OP_MUL, operator.mul)
over = _operation(ca.OP_DIV, operator.truediv)


@no_type_check  # called for every scalar
def dot(a: Iterable[Any], b: Iterable[Any]) -> Any:
    """The sum of products, 0 of none."""
    products = map(times, a, b)
    return functools.reduce(plus, products, next(products, 0.0))
