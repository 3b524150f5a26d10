"""Flights of the study of `rotorid identify`: random airframes, their simulated flights and their identification.

Each parameter of an airframe has a normal distribution with the value and the standard deviation of the prior of the
identification. The mass is fixed. The sensors are the `rough` ones, whose coloured noise, vibration and IMU delay are not
modelled in the identification. The delays of attitude and velocity are estimated. The signals have different sample times.
The battery voltage is logged at 50 Hz, which shows its sag.

Delays are relative to the time stamps of the IMU, which is itself delayed by 3 ms. The two cannot be separated
with a log: the identified command delay is longer by the delay of the IMU, those of attitude and velocity are shorter by it.
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
"""Parameters that are identified in each flight."""

_STREAM = 400  # of random numbers; set points and sensors have others
_IMU_DELAY = INSTRUMENTS["rough"].by_signal["body_rate"].delay  # s
_PRIOR = """
name = "random"

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
value = [0.02, 0.02, 0.02]
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
    """A flight. seed: of all random numbers. duration: s."""

    number: int
    seed: int
    duration: float


def prior() -> Airframe:
    """The prior of all airframes: a quadrotor of 1 kg."""
    return parse_airframe(_PRIOR, "prior of the study")


def random_airframe(seed: int) -> Airframe:
    """An airframe from the distribution of the prior, by seed. Airframes with a physically impossible inertia (a principal
    moment larger than the sum of the others) or with nonpositive parameters are rejected."""
    rng, prior_airframe = np.random.default_rng([seed, _STREAM]), prior()
    while True:
        numbers = {
            name: value + std * float(rng.standard_normal())
            for name, (value, std) in airframe_numbers(prior_airframe).items()
        }
        if all(numbers[name] > 0.0 for name in _POSITIVE):
            airframe = with_numbers(prior_airframe, numbers)
            principal = np.linalg.eigvalsh(inertia_matrix_of(airframe))
            if principal[2] < principal[0] + principal[1]:
                return airframe


_POSITIVE = (
    "inertia_x", "inertia_y", "inertia_z", "motor_time_constant", "torque_ratio", "drag",
    "angular_drag_x", "angular_drag_y", "angular_drag_z", "command_delay", "velocity_delay", "attitude_delay",
)  # fmt: skip


def true_values(airframe: Airframe) -> dict[str, float]:
    """The true values of the identified quantities."""
    values = {name: value for name, (value, _) in airframe_numbers(airframe).items()}
    return values | {"command_delay": values["command_delay"] + _IMU_DELAY}


def simulate_task(task: Task, airframe: Airframe) -> Flight:
    """The log of the flight of a task."""
    rough = INSTRUMENTS["rough"]
    numbers, by_signal = airframe_numbers(airframe), dict(rough.by_signal)
    for name, delay in (
        ("attitude", "attitude_delay"),
        ("velocity", "velocity_delay"),
        ("position", "velocity_delay"),
    ):
        by_signal[name] = dataclasses.replace(by_signal[name], delay=numbers[delay][0] + _IMU_DELAY)
    by_signal["battery_voltage"] = dataclasses.replace(by_signal["battery_voltage"], rate=50.0, noise=0.02)
    return fly(
        airframe,
        draw_setpoints(task.seed, task.duration),
        seed=task.seed,
        duration=task.duration,
        sensors=Instruments(by_signal, rough.rotor_frequency),
        controller=prior(),
        battery=Battery(16.2, fall=1.2, sag=0.6),
    )


def identify_task(task: Task) -> bytes:
    """Simulate and identify the flight of a task.

    Returns:
        JSON: for each quantity the truth, value, standard deviation, prior standard deviation and information gain; the NEES;
        the computation time in s. If the identification fails: its error message.
    """
    from rotorid.workflows.identify.identify import identify

    airframe = random_airframe(task.seed)
    start = time.perf_counter()
    try:
        result = identify([simulate_task(task, airframe)], prior(), free=FREE)
    except RotoridError as error:
        return json.dumps({"error": str(error)}).encode()
    fit, truth = result.fit, true_values(airframe)
    names = [name for name in fit.names if name in truth]
    quantities = {
        name: [truth[name], fit.values[name], fit.std[name], fit.prior_std[name], fit.information_gain[name]]
        for name in names
    }
    return json.dumps(
        {
            "quantities": quantities,
            "nees": nees(
                np.array([fit.values[n] - truth[n] for n in names]),
                fit.covariance[np.ix_(*[[fit.names.index(n) for n in names]] * 2)],
            ),
            "seconds": time.perf_counter() - start,
        }
    ).encode()


def nees(error: Float64[np.ndarray, " n"], covariance: Float64[np.ndarray, "n n"]) -> float:
    """Normalised estimation error squared; NaN if the covariance is not finite or not positive.

    It is chi-square distributed with n degrees of freedom if the covariance is consistent.
    """
    scale = np.sqrt(np.diag(covariance))
    if not np.isfinite(covariance).all() or not (scale > 0).all():
        return math.nan
    z = error / scale
    return float(z @ np.linalg.lstsq(covariance / np.outer(scale, scale), z, rcond=None)[0])
