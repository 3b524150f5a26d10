"""The C code of a training: the generated functions of a stage, the networks and `training.c` as one library."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping

import casadi as ca
import numpy as np

from rotorid.codegen.c_source import c_source
from rotorid.codegen.ir import Address
from rotorid.codegen.native import build, c_file
from rotorid.learning.compiled.network import SIDE, network_source, weight_order
from rotorid.learning.compiled.stage import StageFunctions, split
from rotorid.learning.engines import Precision

_VECTOR = 64  # bytes
_FLAGS = ("-O3", "-ffp-contract=fast")


_ARGUMENTS = {
    "held": "c extra",
    "inputs": "c h stage",
    "slope": "c h stage stage stage",
    "slope_adjoint": "c h stage stage stage extra",
    "inputs_adjoint": "c h stage extra",
    "end": "stage",
    "end_adjoint": "stage extra",
    "cost": "stage extra extra",
}
"""Where the functions of a stage read their arguments: constants c, held values h and others (extra) in the memory, and x z o
of a stage on the tape, one after the other."""


def training_library(functions: StageFunctions, precision: Precision) -> ctypes.CDLL:
    """Compile a training. Raises BuildError without a compiler, SettingError for an operation that has no C form."""
    columns = {name: _of_one_column(getattr(functions, name)) for name in _ARGUMENTS}
    key = "".join(column.serialize() for column in columns.values()) + repr(functions.heads)
    defines: dict[str, int | str] = {"LANES": lanes_of(precision)}
    if precision == "float32":
        defines["SINGLE"] = 1
    return build(f"training {key}", lambda: _units(functions, columns), defines, _FLAGS, is_kernel=True)


def lanes_of(precision: Precision) -> int:
    """Windows in a vector."""
    return _VECTOR // np.dtype(precision).itemsize


def _units(functions: StageFunctions, columns: Mapping[str, ca.Function]) -> list[str]:
    sizes = _sizes(functions)
    extra = sizes["C"] + sizes["HELD"]
    fixed = extra + max(sizes["U"], sizes["Z"], sizes["X"] + sizes["HEADS"])
    most = 0

    def scratch(size: int) -> int:
        nonlocal most
        most = max(most, size)
        return fixed

    first = {"c": ("m", 0), "h": ("m", sizes["C"]), "extra": ("m", extra), "stage": ("x", 0)}
    generated = []
    for name, column in columns.items():
        function: ca.Function = getattr(functions, name)
        reads, next_place = [], dict(first)
        for k, kind in enumerate(_ARGUMENTS[name].split()):
            array, position = next_place[kind]
            size = function.numel_in(k)
            reads += [Address(array, position + i) for i in range(size)]
            next_place[kind] = array, position + size
        writes = [Address("y", i) for i in range(function.numel_out(0))]
        generated += c_source(column, f"stage_{name}", reads, writes, scratch)
    defines = {**sizes, "SIDE": SIDE, "M_SIZE": fixed + most}
    head = [f"#define {name} {size}" for name, size in defines.items()]
    head += [
        '#include "activations.h"',
        network_source(functions.heads),
        c_file("training.c"),
    ]
    return ["\n".join(head), *generated]


def _of_one_column(function: ca.Function) -> ca.Function:
    sizes = [function.numel_in(k) for k in range(function.n_in())]
    x = ca.SX.sym("x", sum(sizes))
    return ca.Function(function.name(), [x], [ca.densify(function(*split(x, sizes)))], {"cse": True})


def _sizes(functions: StageFunctions) -> dict[str, int]:
    return {
        "X": functions.end.numel_in(0),
        "U": functions.held.numel_in(1),
        "C": functions.constants.numel_out(0),
        "HELD": functions.held.numel_out(0),
        "Z": functions.inputs.numel_out(0),
        "O": functions.slope.numel_in(4),
        "HEADS": len(functions.heads),
        "HIDDEN": sum(layout.head.hidden for layout in functions.heads),
        "WEIGHTS": sum(len(weight_order(layout)) for layout in functions.heads),
    }
