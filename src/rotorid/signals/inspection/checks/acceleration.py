"""Check of the specific force against the change of velocity, on the world axes and on the body axes.

    v(t + T) - v(t) - g T = integral of R(q) f over [t, t + T]

The world axes show a wrong yaw or world frame, the horizontal body axes a wrong sign of the accelerometer. `gravity` checks
the vertical body axis. A specific force in the world frame (`signals.force_frame`) is named instead.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Final

import numpy as np

from rotorid.findings import Finding, Severity
from rotorid.geometry.gravity import GRAVITY
from rotorid.geometry.rotation_rows import interpolate, inverse, rotate
from rotorid.logs.flight import Flight
from rotorid.signals.force_frame import is_force_in_world_frame
from rotorid.signals.inspection.checks.agreement import agreement_finding
from rotorid.signals.series import Intervals, fit_axes, integral, interpolate_linear, window_starts

_WINDOW: Final = 0.6  # s
_STEP: Final = 0.1  # s
_EXCITED: Final = 0.15  # m/s
_TOLERANCE: Final = 0.15  # of a slope of 1
_INVERTED: Final = -0.6  # correlation


def check_acceleration(flight: Flight, flying: Intervals) -> Iterator[Finding]:
    """Compare specific force and attitude with the change of velocity."""
    names = ("specific_force", "attitude", "velocity")
    if any(name not in flight for name in names) or not flying:
        return
    f, q, v = (flight[name] for name in names)
    if is_force_in_world_frame(flight, flying):
        yield Finding("force_in_world_frame", Severity.ERROR, signals=("specific_force",))
        return
    width = max(_WINDOW, 4.0 / max(v.rate, 1e-3))
    starts = window_starts([f.times, q.times, v.times], flying, width, _STEP)
    if len(starts) < 20:
        return
    world = rotate(interpolate(f.times, q.times, q.values), f.values)
    measured = integral(starts + width, f.times, world) - integral(starts, f.times, world)
    velocity_change = interpolate_linear(starts + width, v.times, v.values) - interpolate_linear(
        starts, v.times, v.values
    )
    kinematic = velocity_change + np.array([0.0, 0.0, GRAVITY * width])
    fits, cross = fit_axes(kinematic, measured, _EXCITED, width / _STEP)
    yield agreement_finding("acceleration", names, fits, cross, _TOLERANCE)
    inverse_attitude = inverse(interpolate(starts + width / 2, q.times, q.values))
    measured = integral(starts + width, f.times, f.values) - integral(starts, f.times, f.values)
    measured[:, 2] = 0.0
    fits, cross = fit_axes(rotate(inverse_attitude, kinematic), measured, 0.5 * width, width / _STEP)
    inverted = [i for i in (0, 1) if fits[i].excited and fits[i].correlation < _INVERTED]
    if inverted:
        cross[:, 2] = 0.0
        fits = [
            fit if i in inverted else dataclasses.replace(fit, excited=False) for i, fit in enumerate(fits)
        ]
        yield agreement_finding("accelerometer_axes", names, fits, cross, 1.0)
