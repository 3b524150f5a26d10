"""Tracing for small code: repeated operations stay loops, and functions stay calls.

JAX is fastest with formulas that are written out and batched. C for a small computer must be short: within `compact()`,
`map_rows` is a loop, and some functions are calls in the jaxpr. `rotorid.codegen.program` writes a call of a function decorated
with `routine` as loops over memory, and all calls of one decorated with `shared` as calls of one C function. The numbers are
the same to rounding. JAX caches the trace of a function: pass a new function within the block.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Any, TypeVar

import jax

_F = TypeVar("_F", bound=Callable[..., Any])

_COMPACT: ContextVar[bool] = ContextVar("compact", default=False)

ROUTINE = "rotorid_"
"""Prefix of the names of calls of routines."""

SHARED = "rotorid_shared_"
"""Prefix of the names of calls of shared functions."""


@contextlib.contextmanager
def compact() -> Iterator[None]:
    """Trace for small code within the block."""
    token = _COMPACT.set(True)
    try:
        yield
    finally:
        _COMPACT.reset(token)


def is_compact() -> bool:
    """Whether the trace is one for small code."""
    return _COMPACT.get()


def map_rows(function: Callable[[Any], Any], rows: Any) -> Any:
    """Apply a function to every row of an array (or of a pytree of arrays), and stack the results."""
    return jax.lax.map(function, rows) if is_compact() else jax.vmap(function)(rows)


def routine(function: _F) -> _F:
    """Mark a function of arrays as one that may stay a call, and become loops."""
    return _kept(function, ROUTINE)


def shared(function: _F) -> _F:
    """Mark a function of arrays whose calls become calls of one C function. It gives an array or a tuple of arrays."""
    return _kept(function, SHARED)


def _kept(function: _F, prefix: str) -> _F:
    """The function, in compact code a call of the name with this prefix."""

    @functools.wraps(function)
    def prefixed(*arrays: Any) -> Any:
        return function(*arrays)

    prefixed.__name__ = f"{prefix}{function.__name__}"
    as_call = jax.jit(prefixed)

    @functools.wraps(function)
    def dispatch(*arrays: Any) -> Any:
        return as_call(*arrays) if _COMPACT.get() else function(*arrays)

    return dispatch  # pyright: ignore[reportReturnType]
