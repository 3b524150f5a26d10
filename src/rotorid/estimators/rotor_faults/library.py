"""The compiled functions of `codegen/c/rotor_faults.c`."""

from __future__ import annotations

import ctypes
import functools

from rotorid.codegen.native import BuildError, build, c_file


@functools.cache
def fault_library() -> ctypes.CDLL | None:
    """The library; None without a C compiler."""
    try:
        library = build("rotor faults", lambda: [c_file("rotor_faults.c")], {}, is_kernel=True)
    except BuildError:
        return None
    library.rotor_fault_evidence.restype = ctypes.c_double
    library.torque_rows.restype = ctypes.c_int64
    return library
