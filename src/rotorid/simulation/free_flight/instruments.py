"""Instruments of a free flight: each measures the truth on its own clock, with errors.

    y(t_k) = truth(t_k - delay) + bias + coloured noise + white noise + vibration,   t_k = phase + k / rate

The errors of the attitude are in its tangent space (body frame). Coloured noise is of first order: E[n(t) n(t + s)] = sigma^2
exp(-|s| / tau). The vibration of the rotors is a sum of sinusoids at multiples of each rotor's speed, with amplitudes
proportional to its thrust and random directions. It is sampled without a filter: frequencies above half the rate are aliased.

Each instrument has its own stream of random numbers, so that a change of one does not change the others.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Final

import numpy as np
from jaxtyping import Float64
from scipy.signal import lfilter

from rotorid.errors import SettingError
from rotorid.geometry import rotation_rows
from rotorid.logs.flight import Signal

_HARMONICS = np.array([1.0, 0.5, 0.25])  # amplitudes of the vibration at multiples of a rotor's speed
_MEASURED: Final = (
    "attitude",
    "position",
    "velocity",
    "body_rate",
    "specific_force",
    "rotor_command",
    "battery_voltage",
)


@dataclasses.dataclass(frozen=True)
class Instrument:
    """Rate and errors of one signal, in its unit (rad for the attitude).

    rate: samples per second, Hz. noise: standard deviation of the white noise of a sample. coloured_noise: standard deviation
    of correlated noise. correlation_time: time constant of the correlated noise, s. bias: standard deviation of a constant
    that is drawn for each flight. vibration: root mean square on each axis in hover. delay: age of the measurement at its
    time stamp, s. resolution: step of the quantisation. dropout: share of lost samples.
    """

    rate: float
    noise: float = 0.0
    coloured_noise: float = 0.0
    correlation_time: float = 1.0
    bias: float = 0.0
    vibration: float = 0.0
    delay: float = 0.0
    resolution: float = 0.0
    dropout: float = 0.0

    def __post_init__(self) -> None:
        if self.rate <= 0 or self.correlation_time <= 0 or not 0.0 <= self.dropout < 1.0:
            raise SettingError(
                "instrument: rate and correlation_time must be above 0, and dropout from 0 to below 1"
            )
        if min(self.noise, self.coloured_noise, self.bias, self.vibration, self.delay, self.resolution) < 0:
            raise SettingError("instrument: noise, bias, vibration, delay and resolution must be 0 or more")


@dataclasses.dataclass(frozen=True)
class Instruments:
    """The instruments of a vehicle.

    by_signal: instruments by the name of their signal. rotor_frequency: frequency of a rotor in hover, Hz; that of the
    vibration. is_aligned: whether all clocks start at 0; otherwise each starts at a random time within its first interval.
    """

    by_signal: Mapping[str, Instrument]
    rotor_frequency: float = 90.0
    is_aligned: bool = False

    def __post_init__(self) -> None:
        for name in self.by_signal:
            if name not in _MEASURED:
                raise SettingError(
                    f"no instrument measures {name!r}; instruments measure {', '.join(_MEASURED)}"
                )


def _ideal_instruments(rate: float) -> Mapping[str, Instrument]:
    return {name: Instrument(10.0 if name == "battery_voltage" else rate) for name in _MEASURED}


INSTRUMENTS: Final[Mapping[str, Instruments]] = {
    "clean": Instruments(_ideal_instruments(250.0), is_aligned=True),
    "px4": Instruments(
        {
            "attitude": Instrument(250.0, coloured_noise=0.003, correlation_time=5.0),
            "position": Instrument(125.0, noise=0.0005, coloured_noise=0.05, correlation_time=5.0),
            "velocity": Instrument(125.0, noise=0.0005, coloured_noise=0.03, correlation_time=2.0),
            "body_rate": Instrument(250.0, noise=0.0011),
            "specific_force": Instrument(250.0, noise=0.035),
            "rotor_command": Instrument(250.0),
            "battery_voltage": Instrument(5.0, noise=0.01, resolution=0.001),
        },
    ),
    "crazyflie": Instruments(
        {
            "attitude": Instrument(100.0, noise=0.002, coloured_noise=0.005, correlation_time=5.0),
            "position": Instrument(100.0, noise=0.001),
            "velocity": Instrument(100.0, noise=0.01, coloured_noise=0.01, correlation_time=0.5),
            "body_rate": Instrument(500.0, noise=0.01, bias=0.005, vibration=0.05, resolution=0.00107),
            "specific_force": Instrument(500.0, noise=0.05, bias=0.05, vibration=0.5, resolution=0.0072),
            "rotor_command": Instrument(500.0, resolution=1.0 / 65535.0),
            "battery_voltage": Instrument(50.0, noise=0.01, resolution=0.001),
        },
        rotor_frequency=280.0,
    ),
    "rough": Instruments(
        {
            "attitude": Instrument(
                100.0, noise=0.003, coloured_noise=0.008, correlation_time=5.0, delay=0.006, dropout=0.02
            ),
            "position": Instrument(
                50.0, noise=0.01, coloured_noise=0.03, correlation_time=3.0, delay=0.04, dropout=0.02
            ),
            "velocity": Instrument(
                50.0, noise=0.02, coloured_noise=0.04, correlation_time=1.0, delay=0.04, dropout=0.02
            ),
            "body_rate": Instrument(
                250.0,
                0.01,
                coloured_noise=0.005,
                correlation_time=0.05,
                bias=0.005,
                vibration=0.1,
                delay=0.003,
            ),
            "specific_force": Instrument(
                250.0, 0.2, coloured_noise=0.1, correlation_time=0.2, bias=0.05, vibration=1.5, delay=0.003
            ),
            "rotor_command": Instrument(250.0, resolution=0.001, dropout=0.01),
            "battery_voltage": Instrument(5.0, noise=0.05, resolution=0.01),
        },
    ),
}
"""Instruments by name. clean: true values at 250 Hz. px4: as in logs of PX4's simulation. crazyflie: a small vehicle with
motion capture. rough: coloured noise, vibration, delays, biases and lost samples, which the models do not include."""


def get_instruments(name: str | Instruments) -> Instruments:
    """Instruments by name; given instruments are returned unchanged. Raises SettingError for an unknown name."""
    if isinstance(name, Instruments):
        return name
    if name not in INSTRUMENTS:
        raise SettingError(f"no instruments {name!r}; there are {', '.join(INSTRUMENTS)}")
    return INSTRUMENTS[name]


def measure(
    instruments: Instruments,
    truth: Mapping[str, Float64[np.ndarray, "n _k"]],
    rotor_thrust: Float64[np.ndarray, "n rotors"],
    dt: float,
    seed: list[int],
) -> dict[str, Signal]:
    """Measure the signals of a flight.

    Args:
        instruments: of the vehicle.
        truth: by signal, one row every dt s. Signals without truth are not measured.
        rotor_thrust: N, for the vibration.
        dt: s.
        seed: of the errors.
    """
    return {
        name: _measure_signal(name, instrument, instruments, truth[name], rotor_thrust, dt, [*seed, number])
        for number, name in enumerate(_MEASURED)
        if name in truth and (instrument := instruments.by_signal.get(name)) is not None
    }


def _measure_signal(
    name: str,
    instrument: Instrument,
    instruments: Instruments,
    truth: np.ndarray,
    rotor_thrust: np.ndarray,
    dt: float,
    seed: list[int],
) -> Signal:
    clock, white, slow, vibration = (np.random.default_rng([*seed, part]) for part in range(4))
    end = dt * (len(truth) - 1)
    if name == "rotor_command":  # is logged when it is given, on the clock of the rows
        times = dt * np.unique(np.round(np.arange(0.0, end + 1e-9, 1.0 / instrument.rate) / dt))
    else:
        phase = 0.0 if instruments.is_aligned else clock.uniform() / instrument.rate
        times = np.arange(phase, end + 1e-9, 1.0 / instrument.rate)
    is_logged = (times >= instrument.delay) & (clock.random(len(times)) >= instrument.dropout)
    times = times[is_logged]
    measured_times = times - instrument.delay
    k = 3 if name == "attitude" else truth.shape[1]
    error = instrument.bias * slow.standard_normal(k) + np.zeros((len(times), k))
    if instrument.coloured_noise:
        error += _coloured_noise(instrument, times, k, slow)
    if instrument.vibration:
        error += instrument.vibration * _vibration(
            instruments.rotor_frequency, rotor_thrust, measured_times, dt, k, vibration
        )
    error += instrument.noise * white.standard_normal((len(times), k))
    values = interpolate_rows(truth, measured_times / dt)
    if name == "attitude":
        values = rotation_rows.plus(values, error)
    else:
        values = values + error
        if instrument.resolution:
            values = instrument.resolution * np.round(values / instrument.resolution)
    return Signal(
        name,
        times,
        values,
        "simulated" if instrument == Instrument(instrument.rate) else "simulated, with errors",
    )


def interpolate_rows(
    rows: Float64[np.ndarray, "n k"], at: Float64[np.ndarray, " m"]
) -> Float64[np.ndarray, "m k"]:
    """Interpolate rows by cubic polynomials through four of them. at: row numbers with fractions, from 0."""
    near = np.rint(at)
    if len(rows) < 4 or np.all(np.abs(at - near) < 1e-9):
        return rows[np.clip(near.astype(int), 0, len(rows) - 1)]
    first = np.clip(np.floor(at).astype(int) - 1, 0, len(rows) - 4)
    s = at - first
    nodes = range(4)
    total = np.zeros((len(at), rows.shape[1]))
    for i in nodes:
        weight = math.prod((s - j) / (i - j) for j in nodes if j != i)
        total += np.asarray(weight)[:, None] * rows[first + i]
    return total


def _coloured_noise(
    instrument: Instrument, times: Float64[np.ndarray, " n"], k: int, rng: np.random.Generator
) -> Float64[np.ndarray, "n k"]:
    """First-order coloured noise at the times, which are on a grid with gaps."""
    if not len(times):
        return np.zeros((0, k))
    place = np.rint((times - times[0]) * instrument.rate).astype(int)
    phi = math.exp(-1.0 / (instrument.rate * instrument.correlation_time))
    kicks = rng.standard_normal((place[-1] + 1, k))
    kicks[1:] *= math.sqrt(1.0 - phi * phi)
    return instrument.coloured_noise * lfilter([1.0], [1.0, -phi], kicks, axis=0)[place]


def _vibration(
    frequency: float,
    rotor_thrust: Float64[np.ndarray, "n rotors"],
    at: Float64[np.ndarray, " m"],
    dt: float,
    k: int,
    rng: np.random.Generator,
) -> Float64[np.ndarray, "m k"]:
    """Vibration with a root mean square of 1 on each axis in hover. at: times, s."""
    share = np.maximum(rotor_thrust, 0.0) / np.mean(rotor_thrust)
    speed = 2.0 * np.pi * frequency * np.sqrt(share)
    angle = dt * (np.cumsum(speed, axis=0) - 0.5 * (speed + speed[:1]))
    t = dt * np.arange(len(share))
    rotors = share.shape[1]
    direction = rng.standard_normal((rotors, len(_HARMONICS), k))
    direction /= np.sqrt(np.mean(direction**2, axis=2, keepdims=True))
    phase = rng.uniform(0.0, 2.0 * np.pi, (rotors, len(_HARMONICS)))
    total = np.zeros((len(at), k))
    for i in range(rotors):
        turned, size = np.interp(at, t, angle[:, i]), np.interp(at, t, share[:, i])
        for h, weight in enumerate(_HARMONICS):
            wave = weight * size * np.sin((h + 1) * turned + phase[i, h])
            total += wave[:, None] * direction[i, h]
    return total / math.sqrt(0.5 * rotors * float(np.sum(_HARMONICS**2)))
