"""What the logs of an autopilot are like in flight, with the settings that a plan asks for: rates and noise of its signals.

Orders of magnitude of vehicles of 30 g to 5 kg, vibration of the rotors included, where their filters leave it: gyroscopes of
0.005 to 0.01 rad/s and accelerometers of 0.1 to 0.3 m/s^2, a part of it coloured; the noise of an estimator's attitude and
velocity changes slowly. White noise of recorded flights, by their third differences: PX4 0.0004 to 0.001 rad/s and 0.005 to
0.035 m/s^2 (filtered), Crazyflie 0.0035 to 0.009 rad/s.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from rotorid.identification.experiment_design.fisher_information import OUTPUTS, WINDOW, OutputNoise
from rotorid.simulation.free_flight.instruments import Instrument, Instruments

AUTOPILOT_LOGS: Final[Mapping[str, Instruments]] = {
    "px4": Instruments(
        {
            "attitude": Instrument(250.0, noise=0.0005, coloured=0.003, colour_time=5.0),
            "position": Instrument(125.0, noise=0.001, coloured=0.05, colour_time=5.0),
            "velocity": Instrument(125.0, noise=0.005, coloured=0.03, colour_time=2.0),
            "body_rate": Instrument(250.0, noise=0.005, coloured=0.003, colour_time=0.02),
            "specific_force": Instrument(250.0, noise=0.1, coloured=0.05, colour_time=0.05),
            "rotor_command": Instrument(250.0),
            "battery_voltage": Instrument(5.0, noise=0.01, step=0.001),
        }
    ),
    "ardupilot": Instruments(
        {
            "attitude": Instrument(400.0, noise=0.0005, coloured=0.003, colour_time=5.0),
            "position": Instrument(10.0, noise=0.01, coloured=0.1, colour_time=5.0),
            "velocity": Instrument(10.0, noise=0.01, coloured=0.05, colour_time=2.0),
            "body_rate": Instrument(400.0, noise=0.007, coloured=0.003, colour_time=0.02),
            "specific_force": Instrument(400.0, noise=0.2, coloured=0.05, colour_time=0.05),
            "rotor_command": Instrument(400.0),
            "battery_voltage": Instrument(10.0, noise=0.02),
        }
    ),
    "crazyflie": Instruments(
        {
            "attitude": Instrument(250.0, noise=0.001, coloured=0.005, colour_time=5.0),
            "position": Instrument(100.0, noise=0.001),
            "velocity": Instrument(100.0, noise=0.01, coloured=0.01, colour_time=0.5),
            "body_rate": Instrument(250.0, noise=0.01, coloured=0.005, colour_time=0.02),
            "specific_force": Instrument(250.0, noise=0.2, coloured=0.1, colour_time=0.05),
            "rotor_command": Instrument(250.0, step=1.0 / 65535.0),
            "battery_voltage": Instrument(50.0, noise=0.01, step=0.001),
        },
        rotor_frequency=280.0,
    ),
}
"""By the name of the autopilot."""

MANOEUVRE_FREQUENCY: Final = 1.0
"""Hz, about where manoeuvres move a vehicle, at which the density of coloured noise counts."""


def log_noise(instruments: Instruments) -> OutputNoise:
    """The noise of a log, as `information` takes it.

    Within a window of length h, coloured noise of time constant tau varies by sigma^2 (1 - 2 r + 2 r^2 (1 - exp(-1 / r)))
    about its mean, r = tau / h.
    """
    std, rate, factor = {}, {}, {}
    for name in OUTPUTS:
        i = instruments.of[name]
        white, r = i.noise**2 + i.vibration**2, i.colour_time / WINDOW
        within = i.coloured**2 * (1.0 - 2.0 * r + 2.0 * r * r * (1.0 - np.exp(-1.0 / r)))
        slow = (
            2.0
            * i.coloured**2
            * i.colour_time
            / (1.0 + (2.0 * np.pi * MANOEUVRE_FREQUENCY * i.colour_time) ** 2)
        )
        std[name] = float(np.sqrt(white + within))
        rate[name] = i.rate
        factor[name] = float(np.sqrt((white / i.rate + slow) * i.rate)) / std[name]
    return OutputNoise(std, rate, factor)
