"""Pulses of an external wrench, each a few seconds long (Alharbat 2025, figure 6).

    w(t) = w_i h(t),   t_i <= t < t_i + T_i         i = 1, 2, 3: at about a quarter, half and three quarters of the flight

w_i has a random direction and size. It is a force (world frame), a torque (body frame), or both. h is 1 ("rectangular", as in
the figure), or rises and falls as 1 - cos over a third of the pulse ("smooth").
"""

from __future__ import annotations

import dataclasses

import numpy as np
from jaxtyping import Float64

from rotorid.errors import SettingError

PULSE_SHAPES = ("rectangular", "smooth")
"""Shapes of a pulse."""

FORCES = (1.5, 5.0)
"""Range of the force of a pulse, N."""

TORQUES = (0.15, 0.5)
"""Range of the torque of a pulse, N m."""

_STARTS = (0.25, 0.5, 0.75)  # of the flight
_START_VARIATION = 0.02  # of the flight, to either side
_LENGTHS = (0.075, 0.15)  # of the flight: 1.5 to 3 s of 20 s
_EDGE = 1 / 3  # share of each edge of a smooth pulse


@dataclasses.dataclass(frozen=True)
class Pulse:
    """A pulse. start, length: s. wrench: maximum force (world, N) and torque (body, N m)."""

    start: float
    length: float
    wrench: Float64[np.ndarray, " 6"]


def draw_pulses(duration: float, rng: np.random.Generator) -> list[Pulse]:
    """Draw the three pulses of a flight: all of force, all of torque, or all of both. duration: of the flight, s."""
    kind = rng.integers(3)
    pulses = []
    for start in _STARTS:
        at = duration * (start + rng.uniform(-_START_VARIATION, _START_VARIATION))
        length = duration * rng.uniform(*_LENGTHS)
        force, torque = (_random_direction(rng) * rng.uniform(*sizes) for sizes in (FORCES, TORQUES))
        pulses.append(Pulse(at, length, np.concatenate([force * (kind != 1), torque * (kind != 0)])))
    return pulses


def sum_pulses(
    pulses: list[Pulse], t: Float64[np.ndarray, " n"], shape: str = "rectangular"
) -> Float64[np.ndarray, "n 6"]:
    """Force (world, N) and torque (body, N m) at times t, s. Raises SettingError for an unknown shape."""
    if shape not in PULSE_SHAPES:
        raise SettingError(f"no pulse shape {shape!r}; there are {', '.join(PULSE_SHAPES)}")
    wrench = np.zeros((len(t), 6))
    for pulse in pulses:
        phase = (t - pulse.start) / pulse.length
        height = ((phase >= 0.0) & (phase < 1.0)).astype(float)
        if shape == "smooth":
            edge = np.clip(np.minimum(phase, 1.0 - phase) / _EDGE, 0.0, 1.0)
            height = 0.5 * (1.0 - np.cos(np.pi * edge))
        wrench += height[:, None] * pulse.wrench
    return wrench


def _random_direction(rng: np.random.Generator) -> Float64[np.ndarray, " 3"]:
    """A random direction, uniform on the sphere."""
    v = rng.standard_normal(3)
    return v / np.linalg.norm(v)
