"""Interval arithmetic: from ranges of variables to a range that is guaranteed to contain the value of a formula.

    [a, b] + [c, d] = [a + c, b + d]        [a, b] [c, d] = [min of the four products, max of them]

and so on. The range is the exact one where every variable stands once in the formula; where one stands twice it may be too
wide, never too narrow. Lower and upper ends may be arrays of one shape: as many boxes at once. `sin`, `cos`, `sinc` and
`magnitude` take numbers, numpy or JAX arrays, and Intervals alike, so that one formula serves for all.

Reference: R. E. Moore, R. B. Kearfott, M. J. Cloud, Introduction to interval analysis, SIAM, 2009.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any, Final

import jax
import jax.numpy as jnp
import numpy as np

from rotorid.errors import SettingError

_LOWEST_SINC: Final = (4.493409457909064, -0.21723362821122167)
"""Where sin(x) / x stops falling, in rad, and its value there."""
_HIGHEST_AFTER: Final = 0.12837455352589914  # largest sin(x) / x beyond that


@dataclasses.dataclass(frozen=True)
class Interval:
    """All numbers from lower to upper; arrays of one shape, or numbers."""

    lower: Any
    upper: Any

    def __add__(self, other: Any) -> Interval:
        o = interval(other)
        return Interval(self.lower + o.lower, self.upper + o.upper)

    def __neg__(self) -> Interval:
        return Interval(-self.upper, -self.lower)

    def __sub__(self, other: Any) -> Interval:
        return self + (-interval(other))

    def __rsub__(self, other: Any) -> Interval:
        return interval(other) + (-self)

    def __mul__(self, other: Any) -> Interval:
        o = interval(other)
        ends = [a * b for a in (self.lower, self.upper) for b in (o.lower, o.upper)]
        return Interval(np.minimum.reduce(ends), np.maximum.reduce(ends))

    def __truediv__(self, other: Any) -> Interval:
        o = interval(other)
        if np.any((np.asarray(o.lower) <= 0.0) & (np.asarray(o.upper) >= 0.0)):
            raise SettingError("a range that holds 0 is divided by; narrow it")
        return self * Interval(1.0 / o.upper, 1.0 / o.lower)

    def __rtruediv__(self, other: Any) -> Interval:
        return interval(other) / self

    def __pow__(self, power: int) -> Interval:
        if power % 2:
            return Interval(self.lower**power, self.upper**power)
        size = magnitude(self)
        return Interval(size.lower**power, size.upper**power)

    __radd__ = __add__
    __rmul__ = __mul__


def interval(value: Any) -> Interval:
    """A number as an interval without width; an Interval as it is."""
    return value if isinstance(value, Interval) else Interval(value, value)


def magnitude(x: Any) -> Any:
    """|x|."""
    if not isinstance(x, Interval):
        return abs(x)
    nearest = np.where(
        (np.asarray(x.lower) <= 0.0) & (np.asarray(x.upper) >= 0.0), 0.0, _smaller_magnitude(x)
    )
    return Interval(nearest, np.maximum(np.abs(x.lower), np.abs(x.upper)))


def cos(x: Any) -> Any:
    """cos(x), x in rad."""
    if not isinstance(x, Interval):
        return _library(x).cos(x)
    a, b = np.cos(x.lower), np.cos(x.upper)
    # an even multiple of pi within the range is a maximum, an odd one a minimum
    has_multiple = lambda offset: (  # noqa: E731
        np.floor((np.asarray(x.upper) - offset) / (2 * math.pi))
        >= np.ceil((np.asarray(x.lower) - offset) / (2 * math.pi))
    )
    return Interval(
        np.where(has_multiple(math.pi), -1.0, np.minimum(a, b)),
        np.where(has_multiple(0.0), 1.0, np.maximum(a, b)),
    )


def sin(x: Any) -> Any:
    """sin(x), x in rad."""
    return cos(x - 0.5 * math.pi) if isinstance(x, Interval) else _library(x).sin(x)


def sinc(x: Any) -> Any:
    """sin(x) / x, 1 at 0; x in rad."""
    if not isinstance(x, Interval):
        return _library(x).sinc(x / math.pi)
    size = magnitude(x)
    argmin, minimum = _LOWEST_SINC
    at_lower, at_upper = np.sinc(size.lower / math.pi), np.sinc(size.upper / math.pi)
    is_falling = size.upper <= argmin
    upper = np.where(size.lower <= argmin, np.maximum(at_lower, _HIGHEST_AFTER), _HIGHEST_AFTER)
    return Interval(np.where(is_falling, at_upper, minimum), np.where(is_falling, at_lower, upper))


def _smaller_magnitude(x: Interval) -> Any:
    return np.minimum(np.abs(x.lower), np.abs(x.upper))


def _library(x: Any) -> Any:
    return jnp if isinstance(x, jax.Array) else np
