"""Matrix routines as loops in C, for the calls that `rotorid.numerics.compact` keeps. Matrices are stored by rows.

    product(A, B)       A B, as a sum of outer products
    times(A, v)         A v
    tria(A)             L with L L^T = A A^T, by modified Gram-Schmidt on the rows of A
    forward_eliminate(S, B)    L^-1 B and the squares of L's diagonal, where L L^T = S

The order of operations is that of the functions of the same names in `rotorid.numerics`, except in the sums of tria.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from rotorid.numerics.compact import ROUTINE, SHARED

LEAST = 700
"""A call of fewer multiplications is written out."""

_SUMS = 8
"""A scalar product is summed in so many parts, which the processor adds side by side."""


def is_routine(equation: Any) -> bool:
    """Whether an equation of a jaxpr calls a routine that is large enough for a loop."""
    name = equation.params.get("name", "")
    if not isinstance(name, str) or name.removeprefix(ROUTINE) not in _WORK or not name.startswith(ROUTINE):
        return False
    kind, shapes = name.removeprefix(ROUTINE), [v.aval.shape for v in equation.invars]
    axes = [2, 1] if kind == "times" else [2] * len(shapes)
    return [len(s) for s in shapes if math.prod(s)] == axes and _WORK[kind](*shapes) >= LEAST


def is_shared(equation: Any) -> bool:
    """Whether an equation of a jaxpr calls a shared function."""
    name = equation.params.get("name", "")
    return isinstance(name, str) and name.startswith(SHARED)


def overwrites(equation: Any) -> bool:
    """Whether the routine computes in the memory of its arguments, and so needs copies of them."""
    return kind_of(equation) not in ("product", "times")


def kind_of(equation: Any) -> str:
    """Which routine an equation calls."""
    return equation.params["name"].removeprefix(ROUTINE)


def routine_lines(
    kind: str, shapes: Sequence[tuple[int, ...]], places: Sequence[str], results: Sequence[str]
) -> list[str]:
    """The C code of a routine. shapes: of its arguments. places, results: C pointers to arguments and results."""
    return _LINES[kind](shapes, places, results)


def _product(shapes: Sequence[tuple[int, ...]], places: Sequence[str], results: Sequence[str]) -> list[str]:
    (n, k), (_, m) = shapes
    return [
        "{",
        f"const num *restrict a = {places[0]}, *restrict b = {places[1]};",
        f"num *restrict c = {results[0]};",
        f"for (int i = 0; i < {n}; i++) {{",
        f"for (int j = 0; j < {m}; j++) c[{m} * i + j] = a[{k} * i] * b[j];",
        f"for (int l = 1; l < {k}; l++)",
        f"for (int j = 0; j < {m}; j++) c[{m} * i + j] = c[{m} * i + j] + a[{k} * i + l] * b[{m} * l + j];",
        "}",
        "}",
    ]


def _times(shapes: Sequence[tuple[int, ...]], places: Sequence[str], results: Sequence[str]) -> list[str]:
    (n, k), _ = shapes
    return [
        "{",
        f"const num *restrict a = {places[0]}, *restrict v = {places[1]};",
        f"num *restrict c = {results[0]};",
        f"for (int i = 0; i < {n}; i++) {{",
        "c[i] = ZERO;",
        f"for (int l = 0; l < {k}; l++) c[i] = c[i] + a[{k} * i + l] * v[l];",
        "}",
        "}",
    ]


def _tria(shapes: Sequence[tuple[int, ...]], places: Sequence[str], results: Sequence[str]) -> list[str]:
    ((n, m),) = shapes
    whole = m - m % _SUMS
    sums = " + ".join(f"s[{k}]" for k in range(_SUMS))
    return [
        "{",
        f"num *restrict a = {places[0]}, *restrict c = {results[0]};",
        f"num p[{n}], row[{m}];",
        f"for (int i = 0; i < {n}; i++) {{",
        f"for (int l = 0; l < {m}; l++) row[l] = a[{m} * i + l];",
        f"for (int r = 0; r < i; r++) c[{n} * r + i] = ZERO;",
        f"for (int r = i; r < {n}; r++) {{",
        f"const num *restrict b = a + {m} * r;",
        f"num s[{_SUMS}] = {{ZERO}};",
        f"for (int l = 0; l < {whole}; l += {_SUMS})",
        f"for (int k = 0; k < {_SUMS}; k++) s[k] = s[k] + b[l + k] * row[l + k];",
        f"for (int k = 0; k < {m - whole}; k++) s[k] = s[k] + b[{whole} + k] * row[{whole} + k];",
        f"p[r] = {sums};",
        "}",
        "const num square = SELECT(MASK(p[i] > ZERO), p[i], ONE), scale = ONE / num_sqrt(square), inverse = ONE / square;",
        f"for (int r = i; r < {n}; r++) c[{n} * r + i] = p[r] * scale;",
        f"for (int r = i + 1; r < {n}; r++) {{",
        f"num *restrict b = a + {m} * r;",
        "const num q = p[r] * inverse;",
        f"for (int l = 0; l < {whole}; l += {_SUMS})",
        f"for (int k = 0; k < {_SUMS}; k++) b[l + k] = b[l + k] - q * row[l + k];",
        f"for (int l = {whole}; l < {m}; l++) b[l] = b[l] - q * row[l];",
        "}",
        "}",
        "}",
    ]


def _eliminated(
    shapes: Sequence[tuple[int, ...]], places: Sequence[str], results: Sequence[str]
) -> list[str]:
    (n, _), (_, m) = shapes
    return [
        "{",
        f"num *restrict s = {places[0]}, *restrict b = {places[1]}, *restrict c = {results[0]}, *restrict p = {results[1]};",
        f"for (int i = 0; i < {n}; i++) {{",
        f"const num scale = ONE / num_sqrt(s[{n + 1} * i]);",
        f"p[i] = s[{n + 1} * i];",
        f"for (int j = 0; j < {m}; j++) c[{m} * i + j] = b[{m} * i + j] * scale;",
        f"for (int r = i + 1; r < {n}; r++) s[{n} * r + i] = s[{n} * r + i] * scale;",
        f"for (int r = i + 1; r < {n}; r++) {{",
        f"const num f = s[{n} * r + i];",
        f"for (int j = 0; j < {m}; j++) b[{m} * r + j] = b[{m} * r + j] - f * c[{m} * i + j];",
        f"for (int j = i + 1; j < {n}; j++) s[{n} * r + j] = s[{n} * r + j] - f * s[{n} * j + i];",
        "}",
        "}",
        "}",
    ]


_WORK = {
    "product": lambda a, b: a[0] * a[1] * b[1],
    "times": lambda a, _: 5 * math.prod(a),  # its matrix is mostly a table of constants
    "tria": lambda a: a[0] * a[0] * a[1],
    "forward_eliminate": lambda s, b: s[0] * s[0] * (s[0] // 3 + b[1]),
}
_LINES = {"product": _product, "times": _times, "tria": _tria, "forward_eliminate": _eliminated}
