"""Tracing for small code: what is done over and over stays a loop, and matrix routines stay calls.

JAX is quickest with formulas written out and batched. C for a small computer is to be small: within `compact()`, `each` is a
loop, and what `routine` decorates is a call of that name in the jaxpr, which `rotorid.codegen.program` writes as loops over
memory. The numbers are the same to rounding. JAX remembers how it traced a function: give it a new one within the block.
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
"""What the names of such calls begin with."""


@contextlib.contextmanager
def compact() -> Iterator[None]:
    """Trace for small code within the block."""
    token = _COMPACT.set(True)
    try:
        yield
    finally:
        _COMPACT.reset(token)


def each(function: Callable[[Any], Any], rows: Any) -> Any:
    """A function of every row of an array (or of a pytree of arrays), stacked."""
    return jax.lax.map(function, rows) if _COMPACT.get() else jax.vmap(function)(rows)


def routine(function: _F) -> _F:
    """Mark a function of arrays as one that may stay a call."""

    @functools.wraps(function)
    def called(*arrays: Any) -> Any:
        return function(*arrays)

    called.__name__ = f"{ROUTINE}{function.__name__}"
    kept = jax.jit(called)

    @functools.wraps(function)
    def either(*arrays: Any) -> Any:
        return kept(*arrays) if _COMPACT.get() else function(*arrays)

    return either  # pyright: ignore[reportReturnType]
