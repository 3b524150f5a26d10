"""Bisection, elementwise on arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from jaxtyping import Bool, Float


def bisect(
    is_below: Callable[[Any], Bool[np.ndarray, "*n"] | bool],
    low: Float[np.ndarray, "*n"] | float,
    high: Float[np.ndarray, "*n"] | float,
    steps: int,
) -> tuple[Float[np.ndarray, "*n"], Float[np.ndarray, "*n"]]:
    """Halve intervals around the solutions of an increasing function.

    Args:
        is_below: whether a point lies below its solution.
        low: lower ends of the intervals.
        high: upper ends, of the same shape.
        steps: number of halvings.
    Returns:
        The last lower and upper ends.
    """
    low, high = np.asarray(low, float), np.asarray(high, float)
    for _ in range(steps):
        middle = 0.5 * (low + high)
        below = is_below(middle)
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return low, high
