"""Wind with gusts: a mean, and on each axis first-order coloured noise with the intensity and length scale of the Dryden model.

    w(t) = mean + g(t),    E[g(t) g(t + s)] = sigma^2 exp(-|s| / T),    T = L / V

The gusts start in their stationary distribution and are sampled exactly by g_{k+1} = phi g_k + sigma sqrt(1 - phi^2) n_k,
phi = exp(-dt / T). This is the longitudinal Dryden spectrum; the lateral and vertical ones have a slightly different slope.
Below 1000 ft, with the height h in feet and the wind speed W_20 at 20 ft,

    sigma_w = 0.1 W_20,    sigma_u = sigma_v = sigma_w / (0.177 + 0.000823 h)^0.4
    L_w = h,               L_u = L_v = h / (0.177 + 0.000823 h)^1.2

V is the airspeed, here the wind speed at a vehicle that keeps its position. The mean wind increases with the height as
ln(h / 0.15).

Reference: MIL-F-8785C, Military specification: flying qualities of piloted airplanes (1980), section 3.7.3.
"""

from __future__ import annotations

import math

import numpy as np
from jaxtyping import Float64

_FOOT = 0.3048  # m
_ROUGHNESS = 0.15  # ft, of the ground

Axes = tuple[float, float, float]


def dryden_gusts(speed: float, height: float) -> tuple[Axes, Axes]:
    """Gusts of a mean wind by the Dryden model. They do not depend on the wind direction, since both horizontal axes are equal.

    Args:
        speed: of the mean wind at the vehicle, m/s.
        height: of the vehicle, m.
    Returns:
        Standard deviations (m/s) and time constants (s) along x, y, z (world).
    """
    h = height / _FOOT
    at_20_feet = speed * math.log(20.0 / _ROUGHNESS) / math.log(h / _ROUGHNESS)
    factor = 0.177 + 0.000823 * h
    vertical = 0.1 * at_20_feet
    horizontal = vertical / factor**0.4
    slow, fast = height / factor**1.2 / speed, height / speed
    return (horizontal, horizontal, vertical), (slow, slow, fast)


def draw_wind(
    mean: Axes, gusts: Axes, gust_times: Axes, rows: int, dt: float, seed: list[int]
) -> Float64[np.ndarray, "rows 3"]:
    """Draw the wind in m/s (world), one row every dt s. mean: m/s. gusts: sigma, m/s. gust_times: T, s."""
    sigma, phi = np.array(gusts), np.exp(-dt / np.array(gust_times))
    kicks = sigma * np.random.default_rng(seed).standard_normal((rows, 3))
    kicks[1:] *= np.sqrt(1.0 - phi**2)
    gust = np.empty((rows, 3))
    last = np.zeros(3)
    for k in range(rows):
        last = gust[k] = phi * last + kicks[k]
    return np.array(mean) + gust
