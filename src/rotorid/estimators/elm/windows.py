"""Inverse mass over fading windows of several lengths.

Without forces of the air (SESAME D2.2, eq. 44), V = V_0 + J / m with J = int R(q) (0, 0, T) dt and V = v - g t, so 1/m is the
slope of V over J. A window has the weight exp(-age / tau), and the sums of all samples follow from those before: a window of
any length takes 11 numbers and no memory of past rows, and the rate of the rows may vary. For a new sample at the distance
(dJ, dV), h seconds after the last one (d: mean distance of the samples from the new one; W: sum of the weights),

    W <- exp(-h/tau) W,  C <- exp(-h/tau) C,    d <- d - (dJ, dV),    C <- C + W/(W+1) d d^T,  d <- W/(W+1) d,  W <- W + 1

b = C_JV / C_JJ along the vertical, and over all axes. Horizontal forces change only the latter. With b_0 of the longest window
along the vertical, a network takes the ratios

    r = (C_JV / b_0 + kappa) / (C_JJ + kappa),    kappa = (sigma_v / (0.3 b_0))^2

which are 1 for a constant mass without drag, whatever the mass. kappa draws windows to 1 whose impulse is small relative to
the noise sigma_v of the velocity.
"""

from __future__ import annotations

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

TIME_CONSTANTS = (0.1, 0.2, 0.4, 0.8, 1.6, 3.2)
"""tau of the windows, s."""

RATIOS = 2 * len(TIME_CONSTANTS) - 1
"""Number of ratios: along the vertical without the longest window, then over all axes."""

_RATIO_STD = 0.3  # of a ratio, in kappa
_LEAST = 1e-12  # C_JJ in (N s)^2, and inverse mass in 1/kg, that are divided by


class FadingWindows(eqx.Module):
    """Weighted sums of a window each. impulse, velocity: mean J (N s) and V (m/s), relative to the last sample. squares: C_JJ
    and C_JV along the vertical, then over all axes."""

    weight: Float[Array, " windows"]
    impulse: Float[Array, "windows 3"]
    velocity: Float[Array, "windows 3"]
    squares: Float[Array, "windows 4"]


def empty_windows(dtype: jnp.dtype) -> FadingWindows:
    """Windows without samples."""
    n = len(TIME_CONSTANTS)
    return FadingWindows(
        jnp.zeros(n, dtype), jnp.zeros((n, 3), dtype), jnp.zeros((n, 3), dtype), jnp.zeros((n, 4), dtype)
    )


def add_sample(
    windows: FadingWindows, dJ: Float[Array, " 3"], dV: Float[Array, " 3"], h: Float[Array, ""]
) -> FadingWindows:
    """The windows with one more sample.

    Args:
        windows: until the last sample.
        dJ: impulse since then, N s, world.
        dV: change of v - g t since then, m/s, world.
        h: time since then, s.
    """
    decay = jnp.exp(-h / jnp.asarray(TIME_CONSTANTS, h.dtype))
    weight = decay * windows.weight
    share = weight / (weight + 1.0)
    J, V = windows.impulse - dJ, windows.velocity - dV
    products = jnp.stack(
        [J[:, 2] * J[:, 2], J[:, 2] * V[:, 2], jnp.sum(J * J, axis=1), jnp.sum(J * V, axis=1)], axis=1
    )
    return FadingWindows(
        weight + 1.0,
        share[:, None] * J,
        share[:, None] * V,
        decay[:, None] * windows.squares + share[:, None] * products,
    )


def reference_inverse_mass(windows: FadingWindows) -> Float[Array, ""]:
    """b_0 in 1/kg: of the longest window, along the vertical; 0 or less where it is not known."""
    squares = windows.squares[-1]
    return squares[1] / jnp.maximum(squares[0], _LEAST)


def window_ratios(
    windows: FadingWindows, velocity_noise: Float[Array | np.ndarray, ""]
) -> tuple[Float[Array, ""], Float[Array, " ratios"]]:
    """b_0 in 1/kg, and the ratios of the module. velocity_noise: sigma_v, m/s."""
    b = reference_inverse_mass(windows)
    safe = jnp.maximum(b, _LEAST)
    kappa = (velocity_noise / (_RATIO_STD * safe)) ** 2
    squares = windows.squares

    def ratios(JJ: Float[Array, " k"], JV: Float[Array, " k"]) -> Float[Array, " k"]:
        return (JV / safe + kappa) / (JJ + kappa + _LEAST)

    vertical = ratios(squares[:-1, 0], squares[:-1, 1])
    return b, jnp.concatenate([vertical, ratios(squares[:, 2], squares[:, 3])])
