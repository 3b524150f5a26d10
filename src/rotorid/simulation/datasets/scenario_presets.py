"""The editions of the data set: the plain one of seed 000, section 5.3, and a hard one, which asks for more than it does.

nominal    seed 000's: thrust delivered is thrust commanded, no air, measurements on time, with their noise.
hard       what a quadrotor of 1 kg meets outdoors. Thrust commanded is not thrust delivered, the air moves, and the pose comes
           late and not always. An accelerometer and rotor commands are logged, so that it can be identified.

What is hard                                  value                    after
motor lag                                     0.05 s                   SIH_T_TAU of PX4's simulated quadrotor of 1 kg
rotor drag, linear                            0.3 N s/m                Faessler et al.: 0.2 to 0.5 1/s times the mass
mean wind, drawn for each flight              2 to 6 m/s, any side     up to 4 Beaufort, where such vehicles still fly
gusts                                         0.45 to 1.4 m/s          Dryden by MIL-F-8785C at the flights' 3 m
thrust delivered                              1 to 18 N                idling rotors; a tenth less than the 20 N commanded
accelerometer, gyroscope                      0.3 m/s^2, 0.02 rad/s    vibration of the rotors, more than the sensors' own noise
delay of pose and velocity                    30 ms                    visual-inertial odometry on board (Delmerico, Scaramuzza)
measurements missing                          1 in 10, each signal     chosen

References: M. Faessler, A. Franchi, D. Scaramuzza, Differential flatness of quadrotor dynamics subject to rotor drag, IEEE
RA-L 3 (2018); J. Delmerico, D. Scaramuzza, A benchmark comparison of monocular visual-inertial odometry algorithms for flying
robots, ICRA 2018; for the gusts see `rotorid.simulation.wind`.
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

_WIND = 5  # stream of random numbers, after those of sensors and gusts


@dataclasses.dataclass(frozen=True)
class ScenarioPreset:
    """Plant and sensors of every flight. wind_speed: least and greatest mean wind, of which each flight draws its own, m/s."""

    plant: Plant
    sensors: Sensors
    wind_speed: tuple[float, float] | None = None

    def plant_of(self, seed: int) -> Plant:
        """The plant of the flight with that seed: with its own wind."""
        if self.wind_speed is None:
            return self.plant
        rng = np.random.default_rng([seed, _WIND])
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
"""By name."""


def scenario_preset(name: str) -> ScenarioPreset:
    """The edition of that name."""
    if name not in SCENARIO_PRESETS:
        raise SettingError(f"no edition {name!r} (there are {', '.join(SCENARIO_PRESETS)})")
    return SCENARIO_PRESETS[name]
