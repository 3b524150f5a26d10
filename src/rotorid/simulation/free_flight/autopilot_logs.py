"""Rates and noise of the signals in the log of an autopilot, with the logging settings that a plan asks for.

Orders of magnitude for vehicles of 30 g to 5 kg, after the autopilot's filters and with the vibration of the rotors: 0.005 to
0.01 rad/s for gyroscopes and 0.1 to 0.3 m/s^2 for accelerometers, partly coloured; the noise of estimated attitude and velocity
varies slowly. White noise of recorded flights, from third differences: PX4 0.0004 to 0.001 rad/s and 0.005 to 0.035 m/s^2
(filtered), Crazyflie 0.0035 to 0.009 rad/s. ArduPilot logs the rotors' commands (RCOU) at 10 Hz, whatever the settings.
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
            "attitude": Instrument(250.0, noise=0.0005, coloured_noise=0.003, correlation_time=5.0),
            "position": Instrument(125.0, noise=0.001, coloured_noise=0.05, correlation_time=5.0),
            "velocity": Instrument(125.0, noise=0.005, coloured_noise=0.03, correlation_time=2.0),
            "body_rate": Instrument(250.0, noise=0.005, coloured_noise=0.003, correlation_time=0.02),
            "specific_force": Instrument(250.0, noise=0.1, coloured_noise=0.05, correlation_time=0.05),
            "rotor_command": Instrument(250.0),
            "battery_voltage": Instrument(5.0, noise=0.01, resolution=0.001),
        }
    ),
    "ardupilot": Instruments(
        {
            "attitude": Instrument(400.0, noise=0.0005, coloured_noise=0.003, correlation_time=5.0),
            "position": Instrument(10.0, noise=0.01, coloured_noise=0.1, correlation_time=5.0),
            "velocity": Instrument(10.0, noise=0.01, coloured_noise=0.05, correlation_time=2.0),
            "body_rate": Instrument(400.0, noise=0.007, coloured_noise=0.003, correlation_time=0.02),
            "specific_force": Instrument(400.0, noise=0.2, coloured_noise=0.05, correlation_time=0.05),
            "rotor_command": Instrument(10.0),
            "battery_voltage": Instrument(10.0, noise=0.02),
        }
    ),
    "crazyflie": Instruments(
        {
            "attitude": Instrument(250.0, noise=0.001, coloured_noise=0.005, correlation_time=5.0),
            "position": Instrument(100.0, noise=0.001),
            "velocity": Instrument(100.0, noise=0.01, coloured_noise=0.01, correlation_time=0.5),
            "body_rate": Instrument(250.0, noise=0.01, coloured_noise=0.005, correlation_time=0.02),
            "specific_force": Instrument(250.0, noise=0.2, coloured_noise=0.1, correlation_time=0.05),
            "rotor_command": Instrument(250.0, resolution=1.0 / 65535.0),
            "battery_voltage": Instrument(50.0, noise=0.01, resolution=0.001),
        },
        rotor_frequency=280.0,
    ),
}
"""Instruments by the name of the autopilot."""

MANOEUVRE_FREQUENCY: Final = 1.0
"""Typical frequency of the motion in manoeuvres, Hz, at which the density of coloured noise is evaluated."""


def log_noise(instruments: Instruments) -> OutputNoise:
    """The output noise of a log, for `fisher_information`.

    Within a window of length h, coloured noise of time constant tau varies by sigma^2 (1 - 2 r + 2 r^2 (1 - exp(-1 / r)))
    about its mean, r = tau / h.
    """
    std, rate, factor = {}, {}, {}
    for name in OUTPUTS:
        i = instruments.by_signal[name]
        white, r = i.noise**2 + i.vibration**2, i.correlation_time / WINDOW
        within = i.coloured_noise**2 * (1.0 - 2.0 * r + 2.0 * r * r * (1.0 - np.exp(-1.0 / r)))
        slow = (
            2.0
            * i.coloured_noise**2
            * i.correlation_time
            / (1.0 + (2.0 * np.pi * MANOEUVRE_FREQUENCY * i.correlation_time) ** 2)
        )
        std[name] = float(np.sqrt(white + within))
        rate[name] = i.rate
        factor[name] = float(np.sqrt((white / i.rate + slow) * i.rate)) / std[name]
    return OutputNoise(std, rate, factor)
