"""Presets for the simulated flights of a data set: plant and sensors.

nominal    as in SESAME D2.2, section 5.3: the thrust equals the command, there is no drag and no wind; measurements have noise
           but no delay.
hard       outdoor conditions of a quadrotor of 1 kg: motor lag, limited thrust, drag, wind and gusts, delayed and missing
           measurements. An accelerometer and rotor commands are logged, so that the vehicle can be identified.

Effect in the hard preset                     value                    source
motor lag                                     0.05 s                   SIH_T_TAU of PX4's simulated quadrotor of 1 kg
rotor drag, linear                            0.3 N s/m                Faessler et al.: 0.2 to 0.5 1/s times the mass
mean wind, drawn for each flight              2 to 6 m/s, any side     chosen: up to 4 Beaufort
standard deviation of the gusts               0.2 to 1.4 m/s           Dryden model by MIL-F-8785C at 3 m
delivered thrust                              1 to 18 N                chosen: idle thrust; 10 % below the commanded 20 N
accelerometer, gyroscope noise                0.3 m/s^2, 0.02 rad/s    chosen: vibration of the rotors
delay of pose and velocity                    30 ms                    visual-inertial odometry (Delmerico, Scaramuzza)
missing measurements                          1 in 10 of each signal   chosen

References: M. Faessler, A. Franchi, D. Scaramuzza, Differential flatness of quadrotor dynamics subject to rotor drag, IEEE
RA-L 3 (2018); J. Delmerico, D. Scaramuzza, A benchmark comparison of monocular visual-inertial odometry algorithms for flying
robots, ICRA 2018. Gusts: see `rotorid.simulation.wind`.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from rotorid.errors import SettingError
from rotorid.simulation.plant import Plant
from rotorid.simulation.sensors import Sensors
from rotorid.simulation.trajectories import HEIGHT
from rotorid.simulation.wind import dryden_gusts

_WIND_STREAM = 5  # of random numbers; the smaller ones are used by sensors and gusts


@dataclasses.dataclass(frozen=True)
class ScenarioPreset:
    """Plant and sensors of all flights. wind_speed: range of the mean wind, m/s, drawn for each flight; None: no wind."""

    plant: Plant
    sensors: Sensors
    wind_speed: tuple[float, float] | None = None

    def draw_plant(self, seed: int) -> Plant:
        """The plant of the flight with this seed, with the wind drawn for it."""
        if self.wind_speed is None:
            return self.plant
        rng = np.random.default_rng([seed, _WIND_STREAM])
        speed, direction = rng.uniform(*self.wind_speed), rng.uniform(-math.pi, math.pi)
        gusts, gust_times = dryden_gusts(speed, HEIGHT)
        wind = (speed * math.cos(direction), speed * math.sin(direction), 0.0)
        return dataclasses.replace(self.plant, wind=wind, gusts=gusts, gust_times=gust_times)


SCENARIO_PRESETS = {
    "nominal": ScenarioPreset(Plant(), Sensors()),
    "hard": ScenarioPreset(
        Plant(motor_time_constant=0.05, drag=0.3, thrust_limits=(1.0, 18.0)),
        Sensors(body_rate_noise=0.02, specific_force_noise=0.3, delay=3, dropout=0.1, rotor_command=True),
        wind_speed=(2.0, 6.0),
    ),
}
"""Presets by name."""


def scenario_preset(name: str) -> ScenarioPreset:
    """The preset of this name. Raises SettingError if there is none."""
    if name not in SCENARIO_PRESETS:
        raise SettingError(f"no preset {name!r}; there are {', '.join(SCENARIO_PRESETS)}")
    return SCENARIO_PRESETS[name]
