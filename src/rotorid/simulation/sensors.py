"""What is measured of a simulated flight: noise, delay and dropout, seeded.

White Gaussian noise: of the attitude in its tangent space on the right (body frame), of the rest additive.
Delay and dropout act on the logged position, velocity and attitude only. Each kind of noise has its own
stream of random numbers, so that to switch one on does not change another.
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
"""The state as the sensors give it, in the order of `BareMultirotor.states`."""


@dataclasses.dataclass(frozen=True)
class Sensors:
    """Standard deviations of one sample, and what is logged.

    attitude_noise: rad. position_noise: m. velocity_noise: m/s. body_rate_noise: rad/s. specific_force_noise:
    m/s^2; None: no accelerometer is logged. delay: rows by which position, velocity and attitude come late.
    dropout: part of their rows that is missing, each signal by itself. rotor_command: whether normalised
    rotor commands are logged.
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
            raise SettingError("sensors: a noise is negative; it is a standard deviation")
        if self.delay < 0 or not 0.0 <= self.dropout < 1.0:
            raise SettingError(
                "sensors: delay is a number of rows, 0 or more, and dropout a part from 0 to below 1"
            )


@dataclasses.dataclass(frozen=True)
class Noise:
    """All random numbers of a flight's sensors, one row a sample: tangent noise of the state, of the
    gyroscope and of the accelerometer, in their units, and which rows of each of `MEASURED` are kept."""

    state: Float64[np.ndarray, "n 9"]
    body_rate: Float64[np.ndarray, "n 3"]
    specific_force: Float64[np.ndarray, "n 3"]
    kept: Bool[np.ndarray, "n 3"]


def draw_noise(sensors: Sensors, rows: int, seed: list[int]) -> Noise:
    """The noise of a flight of that many rows."""
    state, gyroscope, accelerometer, dropout = (np.random.default_rng([*seed, stream]) for stream in range(4))
    std = np.repeat([sensors.attitude_noise, sensors.position_noise, sensors.velocity_noise], 3)
    kept = dropout.random((rows, 3)) >= sensors.dropout
    kept[0] = True
    return Noise(
        state=std * state.standard_normal((rows, 9)),
        body_rate=sensors.body_rate_noise * gyroscope.standard_normal((rows, 3)),
        specific_force=(sensors.specific_force_noise or 0.0) * accelerometer.standard_normal((rows, 3)),
        kept=kept,
    )


@functools.cache
def state_plus() -> ca.Function:
    """x [+] noise on the measured state."""
    space = BareMultirotor.states
    return to_casadi(space.plus, np.array(space.initial()), np.zeros(space.dim), name="plus")
