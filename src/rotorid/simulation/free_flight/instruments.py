"""Instruments of a free flight: what each of them makes of the truth, on its own clock.

    y(t_k) = truth(t_k - delay) + bias + coloured noise + white noise + vibration,   t_k = phase + k / rate

Attitude has its errors in its tangent space (body frame). Coloured noise is of first order: E[n(t) n(t + s)] = sigma^2
exp(-|s| / tau). Vibration is what rotors shake: sinusoids at multiples of each rotor's speed, whose size goes with its thrust,
in directions of their own, sampled as they are: what is beyond half the rate is folded back, as in an IMU without a filter.

Every instrument has its own stream of random numbers, so that to change one does not change another.
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

_HARMONICS = np.array([1.0, 0.5, 0.25])  # size of the vibration at multiples of a rotor's speed
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
    """What is wrong with one signal, in its unit (rad for attitude).

    rate: Hz. noise: std of one sample, white. coloured: std, and colour_time its time constant, s. bias: std of a constant
    that is drawn for each flight. vibration: root mean square on each axis in hover. delay: s by which what is logged at t is
    older. step: of the quantisation. dropout: part of the samples that is lost.
    """

    rate: float
    noise: float = 0.0
    coloured: float = 0.0
    colour_time: float = 1.0
    bias: float = 0.0
    vibration: float = 0.0
    delay: float = 0.0
    step: float = 0.0
    dropout: float = 0.0

    def __post_init__(self) -> None:
        if self.rate <= 0 or self.colour_time <= 0 or not 0.0 <= self.dropout < 1.0:
            raise SettingError(
                "an instrument: rate and colour_time must be above 0, dropout a part from 0 to below 1"
            )
        if min(self.noise, self.coloured, self.bias, self.vibration, self.delay, self.step) < 0:
            raise SettingError(
                "an instrument: noise, bias, vibration, delay and step are sizes; give 0 or more"
            )


@dataclasses.dataclass(frozen=True)
class Instruments:
    """The instruments of a vehicle, by signal. rotor_frequency: of a rotor in hover, turns per second. aligned: whether all
    clocks begin at 0, rather than each somewhere within its own first interval."""

    of: Mapping[str, Instrument]
    rotor_frequency: float = 90.0
    aligned: bool = False

    def __post_init__(self) -> None:
        for name in self.of:
            if name not in _MEASURED:
                raise SettingError(f"no instrument for {name!r}; there are those of {', '.join(_MEASURED)}")


def _ideal_instruments(rate: float) -> Mapping[str, Instrument]:
    return {name: Instrument(10.0 if name == "battery_voltage" else rate) for name in _MEASURED}


INSTRUMENTS: Final[Mapping[str, Instruments]] = {
    "clean": Instruments(_ideal_instruments(250.0), aligned=True),
    "px4": Instruments(
        {
            "attitude": Instrument(250.0, coloured=0.003, colour_time=5.0),
            "position": Instrument(125.0, noise=0.0005, coloured=0.05, colour_time=5.0),
            "velocity": Instrument(125.0, noise=0.0005, coloured=0.03, colour_time=2.0),
            "body_rate": Instrument(250.0, noise=0.0011),
            "specific_force": Instrument(250.0, noise=0.035),
            "rotor_command": Instrument(250.0),
            "battery_voltage": Instrument(5.0, noise=0.01, step=0.001),
        },
    ),
    "crazyflie": Instruments(
        {
            "attitude": Instrument(100.0, noise=0.002, coloured=0.005, colour_time=5.0),
            "position": Instrument(100.0, noise=0.001),
            "velocity": Instrument(100.0, noise=0.01, coloured=0.01, colour_time=0.5),
            "body_rate": Instrument(500.0, noise=0.01, bias=0.005, vibration=0.05, step=0.00107),
            "specific_force": Instrument(500.0, noise=0.05, bias=0.05, vibration=0.5, step=0.0072),
            "rotor_command": Instrument(500.0, step=1.0 / 65535.0),
            "battery_voltage": Instrument(50.0, noise=0.01, step=0.001),
        },
        rotor_frequency=280.0,
    ),
    "rough": Instruments(
        {
            "attitude": Instrument(
                100.0, noise=0.003, coloured=0.008, colour_time=5.0, delay=0.006, dropout=0.02
            ),
            "position": Instrument(
                50.0, noise=0.01, coloured=0.03, colour_time=3.0, delay=0.04, dropout=0.02
            ),
            "velocity": Instrument(
                50.0, noise=0.02, coloured=0.04, colour_time=1.0, delay=0.04, dropout=0.02
            ),
            "body_rate": Instrument(
                250.0, 0.01, coloured=0.005, colour_time=0.05, bias=0.005, vibration=0.1, delay=0.003
            ),
            "specific_force": Instrument(
                250.0, 0.2, coloured=0.1, colour_time=0.2, bias=0.05, vibration=1.5, delay=0.003
            ),
            "rotor_command": Instrument(250.0, step=0.001, dropout=0.01),
            "battery_voltage": Instrument(5.0, noise=0.05, step=0.01),
        },
    ),
}
"""By name. clean: the truth, at 250 Hz. px4: as logs of PX4's simulation have it. crazyflie: a small vehicle with motion
capture. rough: coloured noise, vibration, delays, biases and lost samples that no model knows of."""


def get_instruments(name: str | Instruments) -> Instruments:
    """The instruments of that name, or those given."""
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
    """The signals of a flight. truth: of each signal, a row every dt s; an instrument without truth measures nothing."""
    return {
        name: _measure_signal(name, instrument, instruments, truth[name], rotor_thrust, dt, [*seed, number])
        for number, name in enumerate(_MEASURED)
        if name in truth and (instrument := instruments.of.get(name)) is not None
    }


def _measure_signal(
    name: str,
    instrument: Instrument,
    beside: Instruments,
    truth: np.ndarray,
    rotor_thrust: np.ndarray,
    dt: float,
    seed: list[int],
) -> Signal:
    clock, noise, slow, shaking = (np.random.default_rng([*seed, part]) for part in range(4))
    end = dt * (len(truth) - 1)
    if name == "rotor_command":  # is logged as it is given, and so on the clock of the rows
        times = dt * np.unique(np.round(np.arange(0.0, end + 1e-9, 1.0 / instrument.rate) / dt))
    else:
        phase = 0.0 if beside.aligned else clock.uniform() / instrument.rate
        times = np.arange(phase, end + 1e-9, 1.0 / instrument.rate)
    kept = (times >= instrument.delay) & (clock.random(len(times)) >= instrument.dropout)
    times = times[kept]
    at = times - instrument.delay
    k = 3 if name == "attitude" else truth.shape[1]
    error = instrument.bias * slow.standard_normal(k) + np.zeros((len(times), k))
    if instrument.coloured:
        error += _coloured_noise(instrument, times, k, slow)
    if instrument.vibration:
        error += instrument.vibration * _vibration(beside.rotor_frequency, rotor_thrust, at, dt, k, shaking)
    error += instrument.noise * noise.standard_normal((len(times), k))
    values = interpolate_rows(truth, at / dt)
    if name == "attitude":
        values = rotation_rows.plus(values, error)
    else:
        values = values + error
        if instrument.step:
            values = instrument.step * np.round(values / instrument.step)
    return Signal(
        name,
        times,
        values,
        "simulated" if instrument == Instrument(instrument.rate) else "simulated, with errors",
    )


def interpolate_rows(
    rows: Float64[np.ndarray, "n k"], at: Float64[np.ndarray, " m"]
) -> Float64[np.ndarray, "m k"]:
    """Rows at places between them (0 is the first row), by cubics through four of them."""
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
    """First-order coloured noise at the times, which lie on a grid with gaps."""
    if not len(times):
        return np.zeros((0, k))
    place = np.rint((times - times[0]) * instrument.rate).astype(int)
    phi = math.exp(-1.0 / (instrument.rate * instrument.colour_time))
    kicks = rng.standard_normal((place[-1] + 1, k))
    kicks[1:] *= math.sqrt(1.0 - phi * phi)
    return instrument.coloured * lfilter([1.0], [1.0, -phi], kicks, axis=0)[place]


def _vibration(
    frequency: float,
    rotor_thrust: Float64[np.ndarray, "n rotors"],
    at: Float64[np.ndarray, " m"],
    dt: float,
    k: int,
    rng: np.random.Generator,
) -> Float64[np.ndarray, "m k"]:
    """Vibration of root mean square 1 on each axis in hover, at times `at` in s."""
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
