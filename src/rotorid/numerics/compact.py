"""Tracing for small code: repeated operations stay loops, and functions stay calls.

JAX is fastest with formulas that are written out and batched. C must be short, since a processor reads its instructions from a
small cache. Within `calls_kept()`, a function decorated with `shared` is a call in the jaxpr, and `rotorid.codegen.program` writes
all its calls as calls of one C function. A function decorated with `routine` is a call, too, which becomes loops over memory.
Within `compact()`, for a small computer, `map_rows` is also a loop. The numbers are the same to rounding. JAX caches the trace of
a function: pass a new function within the block.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Any, TypeVar

import jax

_F = TypeVar("_F", bound=Callable[..., Any])

_MODE: ContextVar[str] = ContextVar("mode", default="")
"""How functions are traced: "calls" kept, "compact", or "" for JAX."""

ROUTINE = "rotorid_"
"""Prefix of the names of calls of routines."""

SHARED = "rotorid_shared_"
"""Prefix of the names of calls of shared functions."""


@contextlib.contextmanager
def calls_kept() -> Iterator[None]:
    """Trace for C within the block: calls of shared functions and of routines stay calls."""
    with _mode("calls"):
        yield


@contextlib.contextmanager
def compact() -> Iterator[None]:
    """Trace for small C code within the block."""
    with _mode("compact"):
        yield


@contextlib.contextmanager
def _mode(mode: str) -> Iterator[None]:
    token = _MODE.set(mode)
    try:
        yield
    finally:
        _MODE.reset(token)


def is_compact() -> bool:
    """Whether the trace is one for small code."""
    return _MODE.get() == "compact"


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
    """The function, a call of the name with this prefix in a trace for C."""

    def call() -> Callable[..., Any]:
        @functools.wraps(function)
        def prefixed(*arrays: Any) -> Any:
            return function(*arrays)

        prefixed.__name__ = f"{prefix}{function.__name__}"
        return jax.jit(prefixed)

    calls = {mode: call() for mode in ("calls", "compact")}

    @functools.wraps(function)
    def dispatch(*arrays: Any) -> Any:
        return calls.get(_MODE.get(), function)(*arrays)

    return dispatch  # pyright: ignore[reportReturnType]
