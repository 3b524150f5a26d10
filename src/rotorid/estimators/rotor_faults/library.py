"""The compiled functions of `codegen/c/rotor_faults.c`."""

from __future__ import annotations

import ctypes
import functools

from rotorid.codegen.native import kernel


@functools.cache
def fault_library() -> ctypes.CDLL | None:
    """The library; None without a C compiler."""
    library = kernel("rotor_faults.c")
    if library is not None:
        library.rotor_fault_evidence.restype = ctypes.c_double
        library.torque_rows.restype = library.rotor_fault_quiet_rows.restype = ctypes.c_int64
    return library
