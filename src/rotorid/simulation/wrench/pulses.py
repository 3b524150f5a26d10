"""Pulses of an external wrench: what pushes and twists a vehicle for a few seconds at a time (seed 001, figure 6).

    w(t) = w_i h(t),   t_i <= t < t_i + T_i         i = 1, 2, 3: at about a quarter, half and three quarters of the flight

w_i has a drawn direction and a drawn size; it is the force, in the world frame, the torque, in the body frame, or both.
h is 1 ("rectangular", as in the figure) or rises and falls smoothly as 1 - cos over a third of the pulse ("smooth").
"""

from __future__ import annotations

import dataclasses

import numpy as np
from jaxtyping import Float64

from rotorid.errors import SettingError

PULSE_SHAPES = ("rectangular", "smooth")
"""Shapes that `draw_pulses` knows."""

FORCES = (1.5, 5.0)
"""Least and greatest size of a pulse of force, N."""

TORQUES = (0.15, 0.5)
"""Least and greatest size of a pulse of torque, N m."""

_STARTS = (0.25, 0.5, 0.75)  # of the flight
_JITTER = 0.02  # of the flight, either way
_LENGTHS = (0.075, 0.15)  # of the flight: 1.5 to 3 s of 20 s
_EDGE = 1 / 3  # of a smooth pulse, each


@dataclasses.dataclass(frozen=True)
class Pulse:
    """start, length: s. wrench: force x, y, z (world, N) and torque x, y, z (body, N m) at its height."""

    start: float
    length: float
    wrench: Float64[np.ndarray, " 6"]


def draw_pulses(duration: float, rng: np.random.Generator) -> list[Pulse]:
    """Three pulses of one flight of that many s: of force alone, of torque alone or of both, the same in all three."""
    kind = rng.integers(3)
    pulses = []
    for start in _STARTS:
        at = duration * (start + rng.uniform(-_JITTER, _JITTER))
        length = duration * rng.uniform(*_LENGTHS)
        force, torque = (_random_direction(rng) * rng.uniform(*sizes) for sizes in (FORCES, TORQUES))
        pulses.append(Pulse(at, length, np.concatenate([force * (kind != 1), torque * (kind != 0)])))
    return pulses


def sum_pulses(
    pulses: list[Pulse], t: Float64[np.ndarray, " n"], shape: str = "rectangular"
) -> Float64[np.ndarray, "n 6"]:
    """Force (world, N) and torque (body, N m) at the times t (s). Raises SettingError."""
    if shape not in PULSE_SHAPES:
        raise SettingError(f"no pulse shape {shape!r} (there are {', '.join(PULSE_SHAPES)})")
    found = np.zeros((len(t), 6))
    for pulse in pulses:
        part = (t - pulse.start) / pulse.length
        height = ((part >= 0.0) & (part < 1.0)).astype(float)
        if shape == "smooth":
            edge = np.clip(np.minimum(part, 1.0 - part) / _EDGE, 0.0, 1.0)
            height = 0.5 * (1.0 - np.cos(np.pi * edge))
        found += height[:, None] * pulse.wrench
    return found


def _random_direction(rng: np.random.Generator) -> Float64[np.ndarray, " 3"]:
    """A direction, uniform over the sphere."""
    v = rng.standard_normal(3)
    return v / np.linalg.norm(v)
