"""A function over many rows, several of them at once in the lanes of the processor.

Each row gives the same numbers to the last bit in any lane. Rows may be distributed over threads: the C code does not hold the
lock of the Python interpreter while it runs.
"""

from __future__ import annotations

import ctypes
import functools
import itertools
from collections.abc import Callable

import casadi as ca
import numpy as np
from jaxtyping import Float

from rotorid.codegen.c_source import c_source
from rotorid.codegen.ir import Address
from rotorid.codegen.native import BuildError, build, c_file
from rotorid.errors import SettingError

LANES = 8

_Many = Callable[..., Float[np.ndarray, "n size"]]


def compile_over_rows(function: ca.Function) -> _Many | None:
    """Compile a function with one result into a function over rows.

    Its arguments are arrays with a leading axis, or without one if they are the same in all rows. None without a C compiler, or
    if the function has no C form.
    """
    sizes = [function.numel_in(k) for k in range(function.n_in())]
    width = function.numel_out(0)
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

        reads, writes = (
            [Address(name, i) for i in range(n)] for name, n in (("x", sum(sizes)), ("y", width))
        )
        of_row = c_source(row_function, "row", reads, writes, free)
        defines = {"X_SIZE": sum(sizes), "Y_SIZE": width, "M_SIZE": memory + 1}
        text = "".join(f"#define {name} {size}\n" for name, size in defines.items())
        return [text + c_file("rows.c"), *of_row]

    try:
        library = build(row_function.serialize(), units, {"LANES": LANES})
    except (BuildError, SettingError):
        return None
    return functools.partial(_run, library, sizes, width)


def _run(library: ctypes.CDLL, sizes: list[int], width: int, *arguments: Float[np.ndarray, " ..."]):
    n = max(np.size(a) // size for a, size in zip(arguments, sizes, strict=True) if size)
    inputs = [np.ascontiguousarray(a, dtype=float) for a in arguments]
    steps = [size if np.size(a) == n * size and n > 1 else 0 for a, size in zip(inputs, sizes, strict=True)]
    results = np.empty((n, width))
    count = len(sizes)
    library.rows(
        ctypes.c_int64(n),
        ctypes.c_int64(count),
        (ctypes.c_void_p * count)(*(a.ctypes.data for a in inputs)),
        (ctypes.c_int64 * count)(*sizes),
        (ctypes.c_int64 * count)(*steps),
        results.ctypes.data_as(ctypes.c_void_p),
    )
    return results
