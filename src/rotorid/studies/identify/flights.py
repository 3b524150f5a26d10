"""Flights of the study of `rotorid identify`: an airframe is drawn around a prior, flown, measured roughly, and identified.

What is drawn is what the prior says: each number of the airframe from a normal distribution with the prior's value and standard
deviation, so that the truth is as likely as the identification believes. The mass is known. The instruments are `rough`: no
model in the identification knows of their coloured noise, their vibration, or how late the IMU is. Attitude and
velocity come later than the IMU, each by a delay that is looked for, and every signal has a clock of its own; the voltage is
logged at 50 Hz, so that it shows how the battery sags.

Delays count from the stamps of the IMU, which is late itself by 3 ms: a log alone cannot separate the two, so a
command seems to take that much longer, and attitude and velocity to be late by that much less.
"""

from __future__ import annotations

import dataclasses
import json
import math
import time
from typing import Final, NamedTuple

import numpy as np
from jaxtyping import Float64

from rotorid.errors import RotoridError
from rotorid.logs.flight import Flight
from rotorid.models.airframe.airframe import Airframe, airframe_numbers, parse_airframe, with_numbers
from rotorid.models.multirotor.rotors import inertia_matrix_of
from rotorid.simulation.free_flight.flight import Battery, fly
from rotorid.simulation.free_flight.instruments import INSTRUMENTS, Instruments
from rotorid.simulation.free_flight.random_setpoints import draw_setpoints

FREE: Final = (
    "thrust_curve",
    "voltage_exponent",
    "motor_time_constant",
    "command_delay",
    "torque_ratio",
    "centre_of_mass",
    "inertia",
    "products_of_inertia",
    "drag",
    "angular_drag",
    "rotor_scale",
    "velocity_delay",
    "attitude_delay",
)
"""What is identified in every flight."""

_STREAM = 400  # of random numbers, apart from those of set points and instruments
_LATE = INSTRUMENTS["rough"].by_signal["body_rate"].delay  # s, of the IMU
_PRIOR = """
name = "drawn"

[mass]
value = 1.0
std = 0.0
unit = "kg"

[inertia]
value = [0.012, 0.014, 0.022]
std = [0.002, 0.002, 0.003]
unit = "kg m^2"

[products_of_inertia]
value = [0.0, 0.0, 0.0]
std = 0.0003
unit = "kg m^2"

[centre_of_mass]
value = [0.0, 0.0, 0.0]
std = 0.003
unit = "m"

[motor_time_constant]
value = 0.04
std = 0.008
unit = "s"

[command_delay]
value = 0.008
std = 0.003
unit = "s"

[velocity_delay]
value = 0.012
std = 0.004
unit = "s"

[attitude_delay]
value = 0.003
std = 0.002
unit = "s"

[torque_ratio]
value = 0.016
std = 0.003
unit = "m"

[drag]
value = 0.3
std = 0.1
unit = "N s/m"

[angular_drag]
value = 0.02
std = 0.006
unit = "N m s"

[thrust_curve]
value = [0.0, 1.8, 4.6]
std = [0.1, 0.3, 0.4]
unit = "N"
voltage = 15.2
voltage_exponent = 1.5
voltage_exponent_std = 0.3

[[rotor]]
position = [0.17, -0.17, 0.02]
direction = "ccw"
thrust_scale_std = 0.03

[[rotor]]
position = [-0.17, 0.17, 0.02]
direction = "ccw"
thrust_scale_std = 0.03

[[rotor]]
position = [0.17, 0.17, 0.02]
direction = "cw"
thrust_scale_std = 0.03

[[rotor]]
position = [-0.17, -0.17, 0.02]
direction = "cw"
thrust_scale_std = 0.03
"""


class Task(NamedTuple):
    """A flight. seed: of all that is drawn. duration: s."""

    number: int
    seed: int
    duration: float


def prior() -> Airframe:
    """The airframe around which all are drawn: a quadrotor of 1 kg, each number as wide as its standard deviation."""
    return parse_airframe(_PRIOR, "prior of the study")


def drawn(seed: int) -> Airframe:
    """A true airframe, drawn by seed. One that no body can have (its inertia about one axis above the sum of the others') is
    drawn again."""
    rng, around = np.random.default_rng([seed, _STREAM]), prior()
    while True:
        numbers = {
            name: value + std * float(rng.standard_normal())
            for name, (value, std) in airframe_numbers(around).items()
        }
        if all(numbers[name] > 0.0 for name in _POSITIVE):
            airframe = with_numbers(around, numbers)
            principal = np.linalg.eigvalsh(inertia_matrix_of(airframe))
            if principal[2] < principal[0] + principal[1]:
                return airframe


_POSITIVE = (
    "inertia_x", "inertia_y", "inertia_z", "motor_time_constant", "torque_ratio", "drag", "angular_drag",
    "command_delay", "velocity_delay", "attitude_delay",
)  # fmt: skip


def truth_of(airframe: Airframe) -> dict[str, float]:
    """The numbers that identification should find, by quantity."""
    found = {name: value for name, (value, _) in airframe_numbers(airframe).items()}
    return found | {"command_delay": found["command_delay"] + _LATE}


def flight_of(task: Task, airframe: Airframe) -> Flight:
    """The log of a task's flight."""
    rough = INSTRUMENTS["rough"]
    numbers, of = airframe_numbers(airframe), dict(rough.by_signal)
    for name, late in (
        ("attitude", "attitude_delay"),
        ("velocity", "velocity_delay"),
        ("position", "velocity_delay"),
    ):
        of[name] = dataclasses.replace(of[name], delay=numbers[late][0] + _LATE)
    of["battery_voltage"] = dataclasses.replace(of["battery_voltage"], rate=50.0, noise=0.02)
    return fly(
        airframe,
        draw_setpoints(task.seed, task.duration),
        seed=task.seed,
        duration=task.duration,
        sensors=Instruments(of, rough.rotor_frequency),
        controller=prior(),
        battery=Battery(16.2, fall=1.2, sag=0.6),
    )


def make(task: Task) -> bytes:
    """One flight and what is found in it, as JSON: quantities with truth, value, std, prior's std, told; NEES; seconds; or the
    error that ended it."""
    from rotorid.workflows.identify.identify import identify

    airframe = drawn(task.seed)
    begin = time.perf_counter()
    try:
        found = identify([flight_of(task, airframe)], prior(), free=FREE)
    except RotoridError as error:
        return json.dumps({"error": str(error)}).encode()
    fit, truth = found.fit, truth_of(airframe)
    names = [name for name in fit.names if name in truth]
    rows = {
        name: [truth[name], fit.values[name], fit.std[name], fit.prior_std[name], fit.information_gain[name]]
        for name in names
    }
    return json.dumps(
        {
            "quantities": rows,
            "nees": nees(
                np.array([fit.values[n] - truth[n] for n in names]),
                fit.covariance[np.ix_(*[[fit.names.index(n) for n in names]] * 2)],
            ),
            "seconds": time.perf_counter() - begin,
        }
    ).encode()


def nees(error: Float64[np.ndarray, " n"], covariance: Float64[np.ndarray, "n n"]) -> float:
    """Squared error over its covariance: chi-square with n degrees of freedom where the covariance is right; NaN where it is
    none."""
    scale = np.sqrt(np.diag(covariance))
    if not np.isfinite(covariance).all() or not (scale > 0).all():
        return math.nan
    z = error / scale
    return float(z @ np.linalg.lstsq(covariance / np.outer(scale, scale), z, rcond=None)[0])
