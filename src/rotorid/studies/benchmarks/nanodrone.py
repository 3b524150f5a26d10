"""The nano-drone benchmark: a Crazyflie 2.1 Brushless, with a fixed split of flights and a multi-step metric.

Steps, all on the sixteen training flights:

1. The delay of the rotor speeds against the body rate: the one that maximises the correlation of the torque of the rotors,
   sum_i r_i x T_i, with the angular acceleration, both from 4 to 15 Hz, about x and y, above the frequencies at
   which the torque of the air balances that of the rotors.
2. The physics: `rotorid identify` from the airframe of the benchmark, if it accepts the flights.
3. A learned residual, linear in velocity, body rate and rotor thrusts in the body frame and symmetric as the vehicle is, which
   minimises the metric on the training flights (see `symmetric_residual`).

The test flights are used for the metric only (see `prediction`).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

import jax
import numpy as np
from jaxtyping import Float
from scipy.signal import butter, sosfiltfilt

from rotorid.errors import RotoridError
from rotorid.logs.flight import Flight
from rotorid.logs.read import read
from rotorid.models.airframe.airframe import Airframe, load_airframe
from rotorid.models.system import parameter_values
from rotorid.progress import Stage
from rotorid.studies.benchmarks.prediction import (
    BLOCKS,
    multi_step_errors,
    unchanged_errors,
)
from rotorid.studies.benchmarks.symmetric_residual import learn_symmetric_residual
from rotorid.workflows.learn.training_rows import learning_rows, system_of

FOLDER: Final = "nanodrone"
TEST: Final = ("melon_20251017_run1", "melon_20251017_run4", "melon_20251017_run5")
"""The test flights of the benchmark."""

PUBLISHED: Final = {
    "physics": (2.32, 10.62, 5.10, 29.09),
    "MLP": (4.05, 12.58, 6.06, 35.57),
    "hybrid": (2.36, 10.40, 6.15, 28.99),
    "LSTM": (5.97, 16.72, 5.65, 35.84),
}
"""Published sums over 50 steps: position (m), velocity (m/s), attitude (rad), body rate (rad/s)."""

_HERE: Final = Path(__file__).parent
_DELAYS: Final = np.arange(0.0, 0.0401, 0.002)  # s
_BAND: Final = (4.0, 15.0)  # Hz
_SPIKE: Final = 0.3  # share of the median of five samples by which a rotor speed may differ from it
_RATE: Final = 100.0  # Hz


class Size(NamedTuple):
    """Size of the study. flights: number of training flights, None for all. windows: of each training flight for the residual.
    iterations: of its training. stride: rows between the windows of the metric, 1 as published. identify: whether the airframe
    is identified; else it is the prior."""

    flights: int | None = None
    windows: int = 40
    iterations: int = 120
    stride: int = 1
    identify: bool = True


class Result(NamedTuple):
    """The rows of the benchmark. errors: e_b(h) by model, see `prediction`. airframe: that was used. refused: why `identify`
    did not accept the flights, "" if it did. delay: of the rotor speeds, s."""

    errors: dict[str, Float[np.ndarray, "4 horizon"]]
    airframe: Airframe
    refused: str
    delay: float


def flight_paths(folder: Path) -> tuple[list[Path], list[Path]]:
    """The training and the test flights in the folder of the benchmark."""
    files = sorted(folder.glob("*.parquet"))
    return [f for f in files if not f.stem.startswith("melon")], [f for f in files if f.stem in TEST]


def read_nanodrone(path: Path) -> Flight:
    """A flight of the benchmark without spikes of the rotor speeds. Raises LogError, LogFormatError or SignalError."""
    flight = read(path, _HERE / "nanodrone.toml")
    speed = flight["rotor_speed"]
    padded = np.pad(speed.values, ((2, 2), (0, 0)), mode="edge")
    median = np.median(np.lib.stride_tricks.sliding_window_view(padded, 5, axis=0), axis=2)
    is_good = np.all(np.abs(speed.values - median) < _SPIKE * median, axis=1)
    return flight.with_signals(
        dataclasses.replace(speed, times=speed.times[is_good], values=speed.values[is_good])
    )


def prior_airframe() -> Airframe:
    """The airframe of the benchmark, with the published inertia of the type."""
    return load_airframe(_HERE / "nanodrone_airframe.toml")


def rotor_speed_delay(flights: Sequence[Flight], airframe: Airframe) -> float:
    """The time in s by which the body rate follows the rotor speeds, see the module."""
    x, y = (np.array([rotor.position[k] for rotor in airframe.rotors]) for k in (0, 1))
    sos = butter(2, _BAND, "bandpass", fs=_RATE, output="sos")
    products, squares = np.zeros((len(_DELAYS), 2)), np.zeros((len(_DELAYS), 2))
    of_acceleration = np.zeros(2)
    for flight in flights:
        rate, speed = flight["body_rate"], flight["rotor_speed"]
        t = np.arange(rate.times[0], rate.times[-1], 1.0 / _RATE)
        omega = np.stack([np.interp(t, rate.times, c) for c in rate.values.T[:2]], axis=1)
        acceleration = np.gradient(sosfiltfilt(sos, omega, axis=0), 1.0 / _RATE, axis=0)
        for k, delay in enumerate(_DELAYS):
            square = np.stack([np.interp(t - delay, speed.times, c) ** 2 for c in speed.values.T], axis=1)
            torque = sosfiltfilt(sos, np.stack([square @ y, -square @ x], axis=1), axis=0)
            products[k] += np.sum(torque * acceleration, axis=0)
            squares[k] += np.sum(torque**2, axis=0)
        of_acceleration += np.sum(acceleration**2, axis=0)
    correlation = np.sum(products / np.sqrt(squares * of_acceleration), axis=1)
    return float(_DELAYS[np.argmax(correlation)])


def with_delay(flight: Flight, delay: float) -> Flight:
    """The flight with its rotor speeds later by a delay (s)."""
    speed = flight["rotor_speed"]
    return flight.with_signals(dataclasses.replace(speed, times=speed.times + delay))


def nanodrone(folder: Path, size: Size, stage: Stage) -> Result:
    """Run the benchmark. folder: with its Parquet files. Raises RotoridError where a file cannot be used."""
    training_paths, test_paths = flight_paths(folder)
    if size.flights is not None:
        training_paths = training_paths[:: max(1, len(training_paths) // size.flights)][: size.flights]
    prior = prior_airframe()
    flights = [read_nanodrone(path) for path in training_paths]
    tests = [read_nanodrone(path) for path in test_paths]
    delay = rotor_speed_delay(flights, prior)
    flights, tests = ([with_delay(f, delay) for f in group] for group in (flights, tests))
    airframe, refused = _physics(flights, prior) if size.identify else (prior, "not run in the quick form")
    stage.advance()
    with jax.enable_x64(True):
        system = system_of(airframe, "rotor_speed")
        rows, test_rows = ([learning_rows(f, airframe).samples for f in g] for g in (flights, tests))
        physics = parameter_values(system)
        errors = {
            "nothing changes": unchanged_errors(system, test_rows),
            "rotorid, physics": multi_step_errors(system, physics, test_rows, stride=size.stride),
        }
        stage.advance()
        hybrid = learn_symmetric_residual(system, rows, windows=size.windows, iterations=size.iterations)
        errors["rotorid, physics and residual"] = multi_step_errors(
            hybrid, parameter_values(hybrid), test_rows, stride=size.stride
        )
    stage.advance()
    return Result(errors, airframe, refused, delay)


def _physics(flights: Sequence[Flight], prior: Airframe) -> tuple[Airframe, str]:
    """The identified airframe and "", or the prior and why the flights were not accepted."""
    from rotorid.workflows.identify.identify import identify

    names = ("body_rate", "velocity", "attitude", "rotor_speed", "position")
    logs = [
        dataclasses.replace(f, signals={n: s for n, s in f.signals.items() if n in names}) for f in flights
    ]
    try:
        return identify(logs, prior).airframe, ""
    except RotoridError as error:
        return prior, str(error)


def sums(errors: Float[np.ndarray, "4 horizon"]) -> dict[str, float]:
    """E_b of each block."""
    return dict(zip(BLOCKS, errors.sum(axis=1).tolist(), strict=True))
