"""Response of a first-order lag to a command that is held, in closed form.

    y(h) = c + (y - c) exp(-h / tau)      tau_up where c > y, else tau_down

A thrust T goes with the square of the rotor speed. Where the lag is one of the speed, y and c are the roots of T and of its
command, and the response is y(h)^2, with the integral of y^2.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

LEAST_THRUST = 1e-8
"""Least thrust whose root is taken, N; the slope of the root is finite there."""


def lag_response(y: Any, command: Any, h: Any, lag: tuple[Any, Any], xp: Any = jnp) -> tuple[Any, Any]:
    """Output of the lag after a step, and its integral over the step.

    Args:
        y: output at the start.
        command: c, held during the step, in the unit of y.
        h: length of the step, s.
        lag: tau_up and tau_down, s.
        xp: array namespace, `jax.numpy` or `numpy`.
    Returns:
        y(h), and the integral of y from 0 to h.
    """
    tau = xp.where(command > y, *lag)
    decay = xp.exp(-h / tau)
    return command + (y - command) * decay, command * h + (y - command) * tau * (1.0 - decay)


def speed_lag_response(
    thrust: Any, command: Any, h: Any, lag: tuple[Any, Any], xp: Any = jnp
) -> tuple[Any, Any]:
    """Thrust after a step, and its integral over the step, where the lag is one of the rotor speed.

    Args:
        thrust, command: N; negative ones count as 0.
        h, lag, xp: as of `lag_response`.
    """
    y, c = (xp.sqrt(xp.maximum(v, LEAST_THRUST)) for v in (thrust, command))
    tau = xp.where(c > y, *lag)
    decay = xp.exp(-h / tau)
    end = c + (y - c) * decay
    linear = 2.0 * c * (y - c) * tau * (1.0 - decay)
    return end**2, c**2 * h + linear + 0.5 * (y - c) ** 2 * tau * (1.0 - decay**2)
