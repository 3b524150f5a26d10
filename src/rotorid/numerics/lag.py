"""A lag of first order, solved exactly while what is asked for is held.

y(h) = c + (y - c) exp(-h / tau)      tau_up where c > y, else tau_down
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp


def followed(y: Any, asked: Any, h: Any, lag: tuple[Any, Any], xp: Any = jnp) -> tuple[Any, Any]:
    """y some s later, and its integral over them. lag: tau_up and tau_down, s. xp: of the arrays, JAX's or NumPy."""
    tau = xp.where(asked > y, *lag)
    left = xp.exp(-h / tau)
    return asked + (y - asked) * left, asked * h + (y - asked) * tau * (1.0 - left)
