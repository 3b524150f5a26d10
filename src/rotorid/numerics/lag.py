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

_SHORT = 1e-2  # step over lag, below which the rate needs no correction: its error is s^2 / 60


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


def lag_end_and_mean(
    y: Any, command: Any, h: Any, lag: tuple[Any, Any], *, of_speed: bool = False
) -> tuple[Any, Any]:
    """Output of the lag after a step, and its mean over the step; both are y where the step has no length.

    Args:
        y, command, h, lag: as of `lag_response`.
        of_speed: whether the lag is one of the rotor speed (see `speed_lag_response`).
    """
    is_positive = h > 0.0
    step = jnp.where(is_positive, h, 1.0)
    end, integral = (speed_lag_response if of_speed else lag_response)(y, command, step, lag)
    return jnp.where(is_positive, end, y), jnp.where(is_positive, integral / step, y)


def cascade_end_and_mean(y: Any, first: Any, command: Any, h: Any, lags: tuple[Any, Any]) -> tuple[Any, Any]:
    """Output of a lag that follows another one, after a step, and its mean over the step.

    With x the first output, x' = (c - x) / tau_1 and y' = (x - y) / tau_2:

        y = c + A e^(-t / tau_1) + (y_0 - c - A) e^(-t / tau_2),    A = (x_0 - c) tau_1 / (tau_1 - tau_2)

    Args:
        y, first, command: y_0, x_0 and c.
        h: s.
        lags: tau_1 and tau_2, s; where they are nearly equal, tau_2 counts as 0.1 % longer.
    """
    one, two = lags
    two = jnp.where(jnp.abs(one - two) < 1e-3 * two, 1.001 * one, two)
    step = jnp.where(h > 0.0, h, 1.0)
    A = (first - command) * one / (one - two)
    B = y - command - A
    end = command + A * jnp.exp(-step / one) + B * jnp.exp(-step / two)
    integral = -A * one * jnp.expm1(-step / one) - B * two * jnp.expm1(-step / two)
    return jnp.where(h > 0.0, end, y), jnp.where(h > 0.0, command + integral / step, y)


def hermite_rate_factor(h: Any, tau: Any) -> Any:
    """Factor of the rate (c - y) / tau with which Hermite's rule gives the integral of a lagging output exactly.

    h/2 (y_0 + y_1) + h^2/12 f (y_0' - y_1') = integral of y,    f(s) = (6 coth(s/2) - 12/s) / s,    s = h / tau

    f is 1 for a short step, and the corrected rate times h at most 6 times the error. h: s. tau: s.
    """
    s = h / tau
    is_short = s < _SHORT
    safe = jnp.where(is_short, 1.0, s)
    factor = (6.0 / jnp.tanh(0.5 * safe) - 12.0 / safe) / safe
    return jnp.where(is_short, 1.0, factor)


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
