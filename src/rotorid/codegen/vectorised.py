"""A function over many rows or windows, several of them at once in the lanes of the processor.

Each row gives the same numbers to the last bit in any lane. Rows may be distributed over threads: the C code does not hold the
lock of the Python interpreter while it runs.
"""

from __future__ import annotations

import ctypes
import functools
import itertools
from collections.abc import Callable, Sequence

import casadi as ca
import numpy as np
from jaxtyping import Float

from rotorid.codegen.c_source import c_source
from rotorid.codegen.ir import Address
from rotorid.codegen.native import BuildError, build, c_file, pointer
from rotorid.errors import SettingError

LANES = 8

_Many = Callable[..., Float[np.ndarray, "n size"]]
_Windows = Callable[..., None]


def compile_over_rows(function: ca.Function) -> _Many | None:
    """Compile a function with one result into a function over rows.

    Its arguments are arrays with a leading axis, or without one if they are the same in all rows. None without a C compiler, or
    if the function has no C form.
    """
    sizes = [function.numel_in(k) for k in range(function.n_in())]
    library = _library(function, "rows.c", {})
    return None if library is None else functools.partial(_run, library, sizes, function.numel_out(0))


def compile_over_windows(function: ca.Function, outputs: Sequence[int]) -> _Windows | None:
    """Compile a function of one row into a function over windows, which it goes through row after row.

    Args:
        function: of numbers that all rows share, the state, 1 in the first row of a window and else 0, and the numbers of a
            row; its result is the next state, then others.
        outputs: sizes of these results, that of the next state first.
    Returns:
        A function of memory for the results (contiguous arrays, w x rows x size each), the shared numbers, the states before
        the first rows (w x states), and the numbers of the rows (w x rows x size each). None without a C compiler, or if the
        function has no C form.
    """
    shared, states, _, *sizes = (function.numel_in(k) for k in range(function.n_in()))
    library = _library(function, "windows.c", {"SHARED": shared, "STATES": states})
    return None if library is None else functools.partial(_run_windows, library, sizes, outputs)


def _library(function: ca.Function, file: str, defines: dict[str, int]) -> ctypes.CDLL | None:
    """A C file that calls a function `row`, compiled with it; None without a C compiler, or if it has no C form."""
    sizes = [function.numel_in(k) for k in range(function.n_in())]
    x = ca.SX.sym("x", sum(sizes))
    edges = [0, *itertools.accumulate(sizes)]
    columns = [ca.reshape(x[a:b], function.size_in(k)) for k, (a, b) in enumerate(itertools.pairwise(edges))]
    row_function = ca.Function("row", [x], [ca.vec(ca.densify(function(*columns)))], {"cse": True})

    def units() -> list[str]:
        memory = 0

        def free(size: int) -> int:
            nonlocal memory
            memory = size
            return 0

        widths = {"x": sum(sizes), "y": function.numel_out(0)}
        reads, writes = ([Address(name, i) for i in range(n)] for name, n in widths.items())
        of_row = c_source(row_function, "row", reads, writes, free)
        lengths = {"X_SIZE": widths["x"], "Y_SIZE": widths["y"], "M_SIZE": memory + 1, **defines}
        text = "".join(f"#define {name} {size}\n" for name, size in lengths.items())
        return [text + c_file(file), *of_row]

    key = "\0".join([file, repr(defines), row_function.serialize()])
    try:
        return build(key, units, {"LANES": LANES})
    except (BuildError, SettingError):
        return None


def _run(library: ctypes.CDLL, sizes: list[int], width: int, *arguments: Float[np.ndarray, " ..."]):
    n = max(np.size(a) // size for a, size in zip(arguments, sizes, strict=True) if size)
    inputs = [np.ascontiguousarray(a, dtype=float) for a in arguments]
    steps = [size if np.size(a) == n * size and n > 1 else 0 for a, size in zip(inputs, sizes, strict=True)]
    results = np.empty((n, width))
    library.rows(
        ctypes.c_int64(n),
        ctypes.c_int64(len(sizes)),
        _pointers(inputs),
        _integers(sizes),
        _integers(steps),
        results.ctypes.data_as(ctypes.c_void_p),
    )
    return results


def _run_windows(
    library: ctypes.CDLL,
    sizes: list[int],
    outputs: Sequence[int],
    results: Sequence[Float[np.ndarray, "w rows _"]],
    shared: Float[np.ndarray, " shared"],
    states: Float[np.ndarray, "w states"],
    *columns: Float[np.ndarray, "w rows ..."],
) -> None:
    w, rows = columns[0].shape[:2]
    assert all(
        r.shape == (w, rows, size) and r.flags.c_contiguous for r, size in zip(results, outputs, strict=True)
    )
    first = [np.ascontiguousarray(a, dtype=float) for a in (shared, states)]
    inputs = [np.ascontiguousarray(a, dtype=float) for a in columns]
    library.windows(
        ctypes.c_int64(w),
        ctypes.c_int64(rows),
        *map(pointer, first),
        ctypes.c_int64(len(sizes)),
        _pointers(inputs),
        _integers(sizes),
        ctypes.c_int64(len(outputs)),
        _pointers(results),
        _integers(outputs),
    )


def _pointers(arrays: Sequence[np.ndarray]) -> ctypes.Array:
    return (ctypes.c_void_p * len(arrays))(*(a.ctypes.data for a in arrays))


def _integers(numbers: Sequence[int]) -> ctypes.Array:
    return (ctypes.c_int64 * len(numbers))(*numbers)
