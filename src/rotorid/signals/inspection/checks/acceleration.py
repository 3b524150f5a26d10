"""Specific force against velocity: R f + g is the derivative of velocity, in the world frame and along the
body axes.

With windows [t, t + T]: v(t + T) - v(t) - g T = integral of R(q) f. The world axes show a wrong yaw or world
frame, the horizontal body axes a wrong sign of the accelerometer; the vertical one is compared with g
elsewhere.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Final

import numpy as np

from rotorid.geometry.gravity import GRAVITY
from rotorid.geometry.rotation_rows import interpolate, inverse, rotate
from rotorid.logs.flight import Flight
from rotorid.signals.inspection.checks.agreement import fit_axes, report
from rotorid.signals.inspection.findings import Finding
from rotorid.signals.series import Intervals, integral, interpolate_linear, window_starts

_WINDOW: Final = 0.6
_STEP: Final = 0.1
_SMALLEST: Final = 0.15


def acceleration(flight: Flight, flying: Intervals) -> Iterator[Finding]:
    """Compare specific force and attitude with the change of velocity."""
    names = ("specific_force", "attitude", "velocity")
    if any(n not in flight for n in names) or not flying:
        return
    f, q, v = (flight[n] for n in names)
    width = max(_WINDOW, 4.0 / max(v.rate, 1e-3))
    starts = window_starts([f.times, q.times, v.times], flying, width, _STEP)
    if len(starts) < 20:
        return
    world = rotate(interpolate(f.times, q.times, q.values), f.values)
    measured = integral(starts + width, f.times, world) - integral(starts, f.times, world)
    changed = interpolate_linear(starts + width, v.times, v.values) - interpolate_linear(
        starts, v.times, v.values
    )
    kinematic = changed + np.array([0.0, 0.0, GRAVITY * width])
    fits, cross = fit_axes(kinematic, measured, _SMALLEST, width / _STEP)
    yield from report(
        "acceleration",
        "change of velocity against specific force turned by the attitude (world axes)",
        names,
        fits,
        cross,
        0.15,
        "check the yaw and the world frame (east, north, up) of attitude and velocity, and the unit of the "
        "accelerometer",
    )
    middle = inverse(interpolate(starts + width / 2, q.times, q.values))
    along = integral(starts + width, f.times, f.values) - integral(starts, f.times, f.values)
    along[:, 2] = 0.0
    body = rotate(middle, kinematic)
    fits, cross = fit_axes(body, along, 0.5 * width, width / _STEP)
    inverted = [i for i in (0, 1) if fits[i].excited and fits[i].correlation < -0.6]
    if inverted:
        cross[:, 2] = 0.0
        yield from report(
            "accelerometer axes",
            "specific force along the body against the change of velocity",
            names,
            [fit if i in inverted else dataclasses.replace(fit, excited=False) for i, fit in enumerate(fits)],
            cross,
            1.0,
            "correct the sign of these axes of the accelerometer (forward, left, up)",
        )
