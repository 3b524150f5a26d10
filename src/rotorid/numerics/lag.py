"""Response of a first-order lag to a command that is held, in closed form.

y(h) = c + (y - c) exp(-h / tau)      tau_up where c > y, else tau_down
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp


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
