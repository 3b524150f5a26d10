"""Matrix routines as loops in C, for the calls that `rotorid.numerics.compact` keeps. Matrices are stored by rows.

    product(A, B)       A B, as a sum of outer products
    times(A, v)         A v
    tria(A)             L with L L^T = A A^T, by modified Gram-Schmidt on the rows of A
    forward_eliminate(S, B)    L^-1 B and the squares of L's diagonal, where L L^T = S
    downdate(P, A)      P - A^T A of a symmetric P, of which the lower triangle is computed
    congruence_plus(F, P, q)   F P F^T + diag(q) of a symmetric P, without the zeros of F, which are known while tracing

The order of operations is that of the functions of the same names in `rotorid.numerics`, except in the sums of tria.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import casadi as ca
import numpy as np

from rotorid.numerics.compact import ROUTINE, SHARED

LEAST = 700
"""A call of fewer multiplications is written out."""

_LEAST_SHARED = 60
"""The same within a shared function, where few values have to be stored before a loop."""

_LEAST_SPARSE = 300
"""The same for a product, without the multiplications by zeros that are known: its loop would not omit them."""

_LEAST = {"congruence_plus": 300, "downdate": 60}
"""The same for routines whose loops omit what is known to be zero or equal."""

_SUMS = 8
"""A scalar product is summed in so many parts, which the processor adds side by side."""


def is_routine(equation: Any) -> bool:
    """Whether an equation of a jaxpr calls a routine that may be large enough for a loop."""
    name = equation.params.get("name", "")
    if not isinstance(name, str) or name.removeprefix(ROUTINE) not in _WORK or not name.startswith(ROUTINE):
        return False
    kind, shapes = name.removeprefix(ROUTINE), [v.aval.shape for v in equation.invars]
    axes = {"times": [2, 1], "congruence_plus": [2, 2, 1]}.get(kind, [2] * len(shapes))
    return [len(s) for s in shapes if math.prod(s)] == axes and _WORK[kind](*shapes) >= _LEAST_SHARED


def is_shared(equation: Any) -> bool:
    """Whether an equation of a jaxpr calls a shared function."""
    name = equation.params.get("name", "")
    return isinstance(name, str) and name.startswith(SHARED)


def is_loop(kind: str, inputs: Sequence[np.ndarray], *, is_shared: bool) -> bool:
    """Whether a call of a routine becomes a loop; else it is written out.

    Args:
        kind: of the routine. inputs: arrays of numbers and CasADi scalars.
        is_shared: whether the call is in a shared function.
    """
    if kind in _LEAST:
        return multiplications(kind, inputs) >= _LEAST[kind]
    if _WORK[kind](*(value.shape for value in inputs)) < (_LEAST_SHARED if is_shared else LEAST):
        return False
    return is_shared or kind != "product" or multiplications(kind, inputs) >= _LEAST_SPARSE


def multiplications(kind: str, inputs: Sequence[np.ndarray]) -> int:
    """Number of multiplications of a routine, without those by zeros that are known."""
    if kind not in ("product", "congruence_plus"):
        return _WORK[kind](*(value.shape for value in inputs))
    left, right = (~is_known(value, 0.0) for value in inputs[:2])
    if kind == "product":
        return int(left.sum(axis=0) @ right.sum(axis=1))
    return int(left.sum() * (left.shape[1] + left.shape[0] / 2))


def is_known(value: np.ndarray, number: float) -> np.ndarray:
    """Where an array of numbers and CasADi scalars is this number."""
    flat = [
        bool(e.is_constant() and float(e) == number) if isinstance(e, ca.SX) else e == number
        for e in value.ravel().tolist()
    ]
    return np.array(flat, dtype=bool).reshape(value.shape)


Rows = Sequence[Sequence[tuple[int, int | None]]]
"""The entries of a sparse matrix by rows: column, and place among the numbers that are stored, None for a one."""


def sparse_rows(matrix: np.ndarray) -> tuple[Rows, list[Any]]:
    """The entries that are not known to be zero, and the numbers that are stored: those that are not known to be one."""
    numbers: list[Any] = []
    rows: list[list[tuple[int, int | None]]] = []
    for entries, zeros, ones in zip(
        matrix.tolist(), is_known(matrix, 0.0), is_known(matrix, 1.0), strict=True
    ):
        row: list[tuple[int, int | None]] = []
        for k, entry in enumerate(entries):
            if zeros[k]:
                continue
            row.append((k, None if ones[k] else len(numbers)))
            numbers += [] if ones[k] else [entry]
        rows.append(row)
    return rows, numbers


def _alike(rows: Rows) -> Iterator[tuple[int, int, list[int]]]:
    """Rows in runs that differ in the place of their columns only, by the same step from row to row: the first, how many there
    are, and the step of each entry. The equations of three axes are often alike."""
    first = 0
    while first < len(rows):
        row, last = rows[first], first + 1
        steps = [0] * len(row)
        while last < len(rows) and [at is None for _, at in rows[last]] == [at is None for _, at in row]:
            moved = [k - before for (k, _), (before, _) in zip(rows[last], rows[last - 1], strict=True)]
            if last > first + 1 and moved != steps:
                break
            steps, last = moved, last + 1
        yield first, last - first, steps
        first = last


def _affine(start: int, step: int) -> str:
    """start + step * r, in C."""
    return f"{start} + {step} * r" if step else str(start)


def congruence_lines(rows: Rows, n: int, places: Sequence[str]) -> list[str]:
    """The C code of F P F^T + diag(q). rows: of F. n: columns of F. places: C pointers to the numbers of F, to P, to q ("" for
    zeros), to the product F P and to the result."""
    m, (f, p, q, g, c) = len(rows), places

    def total(first: int, steps: Sequence[int], element: str) -> str:
        """The sum of a row, r rows after the first of some that are alike. steps: by which its columns move with r."""
        stored = sum(at is not None for _, at in rows[first])
        terms = []
        for (k, at), step in zip(rows[first], steps, strict=True):
            value = element.format(f"({_affine(k, step)})")
            terms.append(value if at is None else f"f[{_affine(at, stored)}] * {value}")
        return " + ".join(terms) or "ZERO"

    lines = [
        "{",
        f"const num *restrict p = {p};",
        *([f"const num *restrict f = {f};"] if f else []),
        f"num *restrict g = {g}, *restrict c = {c};",
    ]
    alike = [*_alike(rows)]
    for first, count, steps in alike:
        value = total(first, steps, "p[" + str(n) + " * {} + j]")
        lines.append(f"ROLLED for (int r = 0; r < {count}; r++)")
        lines.append(f"ROLLED for (int j = 0; j < {n}; j++) g[{n} * ({first} + r) + j] = {value};")
    for first, count, steps in alike:
        value = total(first, steps, "g[" + str(n) + " * j + {}]")
        lines.append(f"ROLLED for (int r = 0; r < {count}; r++)")
        lines.append(f"ROLLED for (int j = 0; j <= {first} + r; j++) c[{m} * ({first} + r) + j] = {value};")
    if q:
        lines.append(f"for (int i = 0; i < {m}; i++) c[{m + 1} * i] = c[{m + 1} * i] + ({q})[i];")
    lines.append(
        f"ROLLED for (int i = 1; i < {m}; i++) ROLLED for (int j = 0; j < i; j++) c[{m} * j + i] = c[{m} * i + j];"
    )
    return [*lines, "}"]


def overwrites(equation: Any) -> bool:
    """Whether the routine computes in the memory of its arguments, and so needs copies of them."""
    return kind_of(equation) not in ("product", "times", "downdate")


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
        f"ROLLED for (int j = 0; j < {m}; j++) c[{m} * i + j] = a[{k} * i] * b[j];",
        f"for (int l = 1; l < {k}; l++)",
        f"ROLLED for (int j = 0; j < {m}; j++) c[{m} * i + j] = c[{m} * i + j] + a[{k} * i + l] * b[{m} * l + j];",
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
        f"ROLLED for (int j = 0; j < {m}; j++) c[{m} * i + j] = b[{m} * i + j] * scale;",
        f"for (int r = i + 1; r < {n}; r++) s[{n} * r + i] = s[{n} * r + i] * scale;",
        f"for (int r = i + 1; r < {n}; r++) {{",
        f"const num f = s[{n} * r + i];",
        f"ROLLED for (int j = 0; j < {m}; j++) b[{m} * r + j] = b[{m} * r + j] - f * c[{m} * i + j];",
        f"ROLLED for (int j = i + 1; j < {n}; j++) s[{n} * r + j] = s[{n} * r + j] - f * s[{n} * j + i];",
        "}",
        "}",
        "}",
    ]


def _downdate(shapes: Sequence[tuple[int, ...]], places: Sequence[str], results: Sequence[str]) -> list[str]:
    _, (m, n) = shapes
    total = " + ".join(f"a[{n * k} + i] * a[{n * k} + j]" for k in range(m))
    return [
        "{",
        f"const num *restrict p = {places[0]}, *restrict a = {places[1]};",
        f"num *restrict c = {results[0]};",
        f"ROLLED for (int i = 0; i < {n}; i++)",
        f"ROLLED for (int j = 0; j <= i; j++) c[{n} * i + j] = p[{n} * i + j] - ({total});",
        "}",
    ]


_WORK = {
    "product": lambda a, b: a[0] * a[1] * b[1],
    "times": lambda a, _: 5 * math.prod(a),  # its matrix is mostly a table of constants
    "downdate": lambda _, a: a[0] * a[1] * a[1] // 2,
    "congruence_plus": lambda f, p, _: f[0] * f[1] * (f[0] + f[1]),
    "tria": lambda a: a[0] * a[0] * a[1],
    "forward_eliminate": lambda s, b: s[0] * s[0] * (s[0] // 3 + b[1]),
}
_LINES = {
    "product": _product,
    "downdate": _downdate,
    "times": _times,
    "tria": _tria,
    "forward_eliminate": _eliminated,
}
