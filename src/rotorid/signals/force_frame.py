"""The frame of the logged specific force.

Some logs have the specific force turned into the world frame by the attitude of the onboard estimator, such as the acceleration
of the Crazyflie's state estimate. Over windows [t, t + T]

    v(t + T) - v(t) - g T = integral of R(q) f          f in the body frame
                          = integral of f               f in the world frame

The force is taken to be in the world frame where the second holds much better than the first, and explains the change of
velocity. A multirotor has hardly any specific force across its rotor axes, so the two differ as soon as it accelerates
horizontally.
"""

from __future__ import annotations

import dataclasses
from typing import Final

import numpy as np

from rotorid.geometry.gravity import GRAVITY
from rotorid.geometry.rotation_rows import interpolate, inverse, rotate
from rotorid.logs.flight import Flight
from rotorid.signals.series import Intervals, integral, interpolate_linear, window_starts

_WINDOW: Final = 0.6  # s
_STEP: Final = 0.1  # s
_LEAST_WINDOWS: Final = 20
_EXCITED: Final = 0.15  # m/s, rms change of velocity in a window
_BETTER: Final = 0.5  # ratio of the errors


def is_force_in_world_frame(flight: Flight, flying: Intervals) -> bool:
    """Whether the specific force of a flight is in the world frame; False where the flight does not show it.

    Args:
        flight: the log.
        flying: start and end of each airborne interval, s.
    """
    names = ("specific_force", "attitude", "velocity")
    if any(name not in flight for name in names) or not flying:
        return False
    f, q, v = (flight[name] for name in names)
    width = max(_WINDOW, 4.0 / max(v.rate, 1e-3))
    starts = window_starts([f.times, q.times, v.times], flying, width, _STEP)
    if len(starts) < _LEAST_WINDOWS:
        return False
    change = interpolate_linear(starts + width, v.times, v.values) - interpolate_linear(
        starts, v.times, v.values
    )
    errors = []
    for force in (f.values, rotate(interpolate(f.times, q.times, q.values), f.values)):
        impulse = integral(starts + width, f.times, force) - integral(starts, f.times, force)
        errors.append(np.sqrt(np.mean((impulse - change - [0.0, 0.0, GRAVITY * width]) ** 2)))
    size = np.sqrt(np.mean(change**2))
    return bool(size > _EXCITED and errors[0] < _BETTER * min(errors[1], size))


def with_body_force(flight: Flight, flying: Intervals | None = None) -> tuple[Flight, bool]:
    """The flight with its specific force in the body frame, and whether it had to be turned there.

    flying: see above; None: the whole flight, where parts may be too gentle.
    """
    flying = [(flight.start, flight.end)] if flying is None else flying
    if not is_force_in_world_frame(flight, flying):
        return flight, False
    f, q = flight["specific_force"], flight["attitude"]
    values = rotate(inverse(interpolate(f.times, q.times, q.values)), f.values)
    return flight.with_signals(dataclasses.replace(f, values=values)), True
