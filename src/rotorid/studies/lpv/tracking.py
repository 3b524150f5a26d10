"""Design of a controller from a tracked mass (seed 002, section 5.2).

1. A flight with a changing mass is simulated with the LQR.
2. An estimator tracks the mass from the noisy log of that flight.
3. Its values +- 3 standard deviations are the range of a gain schedule (`workflows.lpv.schedule_for_track`).
4. The same flight is simulated with this schedule and the tracked mass.
"""

from __future__ import annotations

import dataclasses
from typing import Final

import numpy as np

from rotorid.control.heading import HeadingController
from rotorid.estimators.registry import EstimatorName
from rotorid.logs.flight import Signal
from rotorid.models.airframe.airframe import Quantity, load_airframe
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
"""Standard deviations of the noise of the log: of the components of the quaternion, in m/s, rad/s, m/s^2 and N."""


@dataclasses.dataclass(frozen=True)
class TrackedDesign:
    """error: rms of the relative error of the tracked mass, after 3 s. masses: range of the design, kg. decay:
    certified decay rate, 1/s. lqr, lpv: the two flights."""

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
    """Simulate, track, design and simulate again. kind: of payload."""
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
    exact_thrust = {
        "thrust_scale": Quantity((1.0,), "1", (0.001,), "the simulation delivers the logged thrust")
    }
    airframe = load_airframe(PLUS)
    airframe = dataclasses.replace(airframe, quantities={**airframe.quantities, **exact_thrust})
    result = track(log.with_signals(*noisy), airframe, estimator)
    mass = result.quantities["mass"]
    true = np.interp(result.t, first.t, first.mass[:, 0])
    is_settled = result.t > 3.0
    error = float(np.sqrt(np.mean((mass.value[is_settled] / true[is_settled] - 1.0) ** 2)))
    ranges = {
        "roll": (-TILT, TILT),
        "pitch": (-TILT, TILT),
        "yaw_rate": (-YAW_RATE, YAW_RATE),
        "rotor_momentum": (-0.01, 0.01),
    }
    schedule = schedule_for_track(result, vehicle, ranges, SPECIFIC_THRUST)
    lift = schedule.model.names.index("lift")
    masses = (
        float(1.0 / schedule.box.upper[lift]),
        float(np.cos(TILT) ** 2 / schedule.box.lower[lift]),
    )
    controller = HeadingController(
        vehicle, schedule, rotor_speed=ROTOR_SPEED, specific_thrust=SPECIFIC_THRUST
    )
    estimate = np.interp(first.t, result.t, mass.value)[:, None]
    second = fly(controller, plant, [(course, kind)], duration=duration, mass_estimate=estimate)
    lqr, lpv = (row(f, 0, course, kind, "exact", name) for f, name in ((first, "LQR"), (second, "LPV")))
    return TrackedDesign(estimator, error, masses, schedule.certificate.decay, lqr, lpv)
