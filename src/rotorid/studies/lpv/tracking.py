"""The whole way of seed 002, section 5.2: fly, track the mass, bound it, design the controller for these bounds, and fly it.

The LQR flies a course while the mass changes; an estimator tracks the mass from the noisy log of that flight; its values
+- 3 standard deviations become the range of a gain schedule (`results.lpv.schedule_for_track`), which then flies the same
course with the mass that was tracked.
"""

from __future__ import annotations

import dataclasses
from typing import Final

import numpy as np

from rotorid.control.heading import HeadingController
from rotorid.estimators.registry import EstimatorName
from rotorid.logs.flight import Signal
from rotorid.models.airframe.airframe import load_airframe
from rotorid.models.quadrotor.quadrotor import PLUS, quadrotor
from rotorid.studies.lpv.control import (
    DURATION,
    ROTOR_SPEED,
    SPECIFIC_THRUST,
    TILT,
    YAW_RATE,
    Course,
    Row,
    as_flight,
    controllers,
    fly,
    row,
)
from rotorid.workflows.lpv.lpv import schedule_for_track
from rotorid.workflows.track.track import track

NOISE: Final = {
    "attitude": 0.005,
    "velocity": 0.05,
    "body_rate": 0.01,
    "specific_force": 0.2,
    "thrust": 0.1,
}
"""Standard deviations of the log's noise: of the quaternion's numbers, in m/s, rad/s, m/s^2 and N."""


@dataclasses.dataclass(frozen=True)
class TrackedDesign:
    """error: RMS of the tracked mass less the true one over the true one, past 3 s. masses: the range that was designed for,
    kg. decay: that is certified, 1/s. lqr, lpv: both flights."""

    estimator: str
    error: float
    masses: tuple[float, float]
    decay: float
    lqr: Row
    lpv: Row


def design_from_track(
    estimator: EstimatorName = "ekf",
    course: Course = "helix",
    kind: str = "sprayed",
    *,
    duration: float = DURATION,
    seed: int = 0,
) -> TrackedDesign:
    """Fly, track, bound, design and fly again. kind: of payload."""
    vehicle, plant = quadrotor(), quadrotor(exact=True)
    first = fly(controllers(vehicle, names=("LQR",))["LQR"], plant, [(course, kind)], duration=duration)
    log = as_flight(first, 0, vehicle)
    rng = np.random.default_rng(seed)
    noisy = [
        Signal(
            name,
            log[name].times,
            log[name].values + std * rng.normal(size=log[name].values.shape),
            "simulated",
        )
        for name, std in NOISE.items()
    ]
    found = track(log.with_signals(*noisy), load_airframe(PLUS), estimator)
    mass = found.quantities["mass"]
    true = np.interp(found.t, first.t, first.mass[:, 0])
    late = found.t > 3.0
    error = float(np.sqrt(np.mean((mass.value[late] / true[late] - 1.0) ** 2)))
    rest = {
        "roll": (-TILT, TILT),
        "pitch": (-TILT, TILT),
        "yaw_rate": (-YAW_RATE, YAW_RATE),
        "rotor_momentum": (-0.01, 0.01),
    }
    schedule = schedule_for_track(found, vehicle, rest, SPECIFIC_THRUST)
    lift = schedule.model.names.index("lift")
    masses = (
        float(1.0 / schedule.box.upper[lift]),
        float(np.cos(TILT) ** 2 / schedule.box.lower[lift]),
    )
    controller = HeadingController(
        vehicle, schedule, rotor_speed=ROTOR_SPEED, specific_thrust=SPECIFIC_THRUST
    )
    known = np.interp(first.t, found.t, mass.value)[:, None]
    second = fly(controller, plant, [(course, kind)], duration=duration, known=known)
    rows = [row(f, 0, course, kind, "exact", name) for f, name in ((first, "LQR"), (second, "LPV"))]
    return TrackedDesign(estimator, error, masses, schedule.certificate.decay, rows[0], rows[1])
