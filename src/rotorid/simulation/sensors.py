"""Sensors of a simulated flight: noise, delay and dropout, drawn by seed.

Noise is white and Gaussian: in the tangent space of the attitude (body frame), additive for all other signals. Delay and
dropout act on the logged position, velocity and attitude only. Each sensor has its own stream of random numbers, so that a
change of one does not change the others.
"""

from __future__ import annotations

import dataclasses
import functools

import casadi as ca
import numpy as np
from jaxtyping import Bool, Float64

from rotorid.codegen.casadi import to_casadi
from rotorid.errors import SettingError
from rotorid.models.multirotor.bare import BareMultirotor

MEASURED = ("attitude", "position", "velocity")
"""Measured signals of the state, in the order of `BareMultirotor.states`."""


@dataclasses.dataclass(frozen=True)
class Sensors:
    """Sensors of a vehicle. A noise is the standard deviation of one sample.

    attitude_noise: rad. position_noise: m. velocity_noise: m/s. body_rate_noise: rad/s. specific_force_noise: m/s^2; None:
    the specific force is not logged. delay: delay of position, velocity and attitude, number of rows. dropout: share of
    missing rows of these signals, independently for each. rotor_command: whether normalised rotor commands are logged.
    """

    attitude_noise: float = 0.01
    position_noise: float = 0.01
    velocity_noise: float = 0.03
    body_rate_noise: float = 0.0
    specific_force_noise: float | None = None
    delay: int = 0
    dropout: float = 0.0
    rotor_command: bool = False

    def __post_init__(self) -> None:
        noises = (self.attitude_noise, self.position_noise, self.velocity_noise, self.body_rate_noise)
        if min(*noises, self.specific_force_noise or 0.0) < 0:
            raise SettingError("sensors: noise is a standard deviation and must be 0 or more")
        if self.delay < 0 or not 0.0 <= self.dropout < 1.0:
            raise SettingError("sensors: delay must be 0 rows or more, and dropout a share from 0 to below 1")


@dataclasses.dataclass(frozen=True)
class Noise:
    """Random numbers of the sensors of a flight, by row.

    state: noise in the tangent space of the state. body_rate: rad/s. specific_force: m/s^2. is_logged: whether a row of
    each of `MEASURED` is logged.
    """

    state: Float64[np.ndarray, "n 9"]
    body_rate: Float64[np.ndarray, "n 3"]
    specific_force: Float64[np.ndarray, "n 3"]
    is_logged: Bool[np.ndarray, "n 3"]


def draw_noise(sensors: Sensors, rows: int, seed: list[int]) -> Noise:
    """Draw the noise of a flight. rows: number."""
    state, gyroscope, accelerometer, dropout = (np.random.default_rng([*seed, stream]) for stream in range(4))
    std = np.repeat([sensors.attitude_noise, sensors.position_noise, sensors.velocity_noise], 3)
    is_logged = dropout.random((rows, 3)) >= sensors.dropout
    is_logged[0] = True
    return Noise(
        state=std * state.standard_normal((rows, 9)),
        body_rate=sensors.body_rate_noise * gyroscope.standard_normal((rows, 3)),
        specific_force=(sensors.specific_force_noise or 0.0) * accelerometer.standard_normal((rows, 3)),
        is_logged=is_logged,
    )


@functools.cache
def state_plus() -> ca.Function:
    """The operation x [+] noise on the measured state."""
    space = BareMultirotor.states
    return to_casadi(space.plus, np.array(space.initial()), np.zeros(space.dim), name="plus")
