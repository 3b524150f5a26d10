"""The nano-drone benchmark: a Crazyflie 2.1 Brushless, with a fixed split of flights and a multi-step metric.

Steps, all on the sixteen training flights:

1. The physics: `rotorid identify` from the airframe of the benchmark, if it accepts the flights. Speeds and rates of a
   log have clocks of their own, which it aligns flight by flight.
2. The delay of the rotor speeds against the body rate for predictions, one for all flights: the one that maximises the
   correlation of the torque of the rotors, sum_i r_i x T_i, with the angular acceleration, both from 4 to 15 Hz, about x and y,
   above the frequencies at which the torque of the air balances that of the rotors.
3. A learned residual, linear in velocity, body rate and rotor thrusts in the body frame and symmetric as the vehicle is, which
   minimises the metric on the training flights (see `symmetric_residual`).
4. Bands: the 95 % quantile of the errors on training flights, by step and axis.

The on-board estimator logs its acceleration in the world frame; it is turned into the body frame by the logged attitude.
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
from rotorid.models.airframe.register import entry_folder
from rotorid.models.system import System, parameter_values
from rotorid.progress import Progress, Stage
from rotorid.signals.force_frame import with_body_force
from rotorid.signals.inspection.checks.rotor_speeds import spikes
from rotorid.signals.samples import Samples
from rotorid.studies.benchmarks.prediction import (
    BLOCKS,
    MultiStepErrors,
    band_widths,
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

THRUST_COEFFICIENT: Final = 3.72e-8
"""Published for this vehicle, N s^2."""

_ENTRY: Final = entry_folder("crazyflie-2.1-brushless-nanodrone")
MAPPING: Final = _ENTRY / "mapping.toml"
"""Which columns of the Parquet files are which signals."""

_PRIOR: Final = _ENTRY / "prior.toml"
_DELAYS: Final = np.arange(0.0, 0.0401, 0.002)  # s
_BAND: Final = (4.0, 15.0)  # Hz
_RATE: Final = 100.0  # Hz
_BAND_STRIDE: Final = 20  # rows between the windows of the training flights from which the bands follow


class Size(NamedTuple):
    """Size of the study. flights: number of training flights, None for all. windows: of each training flight for the residual.
    iterations: of its training. stride: rows between the windows of the metric, 1 as published. identify: whether the airframe
    is identified; else it is the prior."""

    flights: int | None = None
    windows: int = 30
    iterations: int = 15
    stride: int = 1
    identify: bool = True


class Identified(NamedTuple):
    """The airframe of the training flights, and why `identify` did not accept the flights, "" if it did; then the prior."""

    airframe: Airframe
    refused: str


@dataclasses.dataclass(frozen=True)
class Split:
    """The flights of the benchmark. delay: of the body rate after the rotor speeds on the training flights, s."""

    training: tuple[Flight, ...]
    test: tuple[Flight, ...]
    delay: float


def flight_paths(folder: Path) -> tuple[list[Path], list[Path]]:
    """The training and the test flights in the folder of the benchmark."""
    files = sorted(folder.glob("*.parquet"))
    return [f for f in files if not f.stem.startswith("melon")], [f for f in files if f.stem in TEST]


def read_nanodrone(path: Path) -> Flight:
    """A flight of the benchmark without spikes of the rotor speeds, its specific force turned into the body frame.

    Raises LogError, LogFormatError or SignalError.
    """
    flight = read(path, MAPPING)
    flight, _ = with_body_force(flight)
    speed = flight["rotor_speed"]
    is_good = ~spikes(speed.times, speed.values).any(axis=1)
    return flight.with_signals(
        dataclasses.replace(speed, times=speed.times[is_good], values=speed.values[is_good])
    )


def prior_airframe() -> Airframe:
    """The airframe of the benchmark, with the published inertia of the type."""
    return load_airframe(_PRIOR)


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


def read_split(folder: Path, size: Size, stage: Stage) -> Split:
    """The flights in the folder of the benchmark. Raises RotoridError where a file cannot be used."""
    training_paths, test_paths = flight_paths(folder)
    if size.flights is not None:
        training_paths = training_paths[:: max(1, len(training_paths) // size.flights)][: size.flights]
    flights = []
    for path in (*training_paths, *test_paths):
        flights.append(read_nanodrone(path))
        stage.advance()
    training, test = tuple(flights[: len(training_paths)]), tuple(flights[len(training_paths) :])
    return Split(training, test, rotor_speed_delay(training, prior_airframe()))


def identified(split: Split, progress: Progress) -> Identified:
    """Identify the airframe of the training flights. progress: is called with each pass of the fit."""
    from rotorid.workflows.identify.identify import identify

    prior = prior_airframe()
    try:
        return Identified(identify(split.training, prior, progress=progress).airframe, "")
    except RotoridError as error:
        return Identified(prior, str(error))


def unchanged(split: Split, airframe: Airframe) -> MultiStepErrors:
    """The errors on the test flights if nothing changes."""
    with jax.enable_x64(True):
        _, test = _rows(split, airframe)
        return MultiStepErrors(unchanged_errors(system_of(airframe, "rotor_speed"), test))


def physics(split: Split, airframe: Airframe, size: Size, stage: Stage) -> MultiStepErrors:
    """The errors of the airframe on the test flights, with coverage of its bands."""
    with jax.enable_x64(True):
        training, test = _rows(split, airframe)
        return _errors(system_of(airframe, "rotor_speed"), training, test, size, stage)


def symmetric(airframe: Airframe) -> Airframe:
    """The part of an airframe that is symmetric about its vertical planes, with its centre of mass at the origin and without
    flapping moment.

    The torque of forces that act above or below the centre of mass, and that of flapping, are linear in the velocity, as that
    of the residual.
    """
    zero = {
        name: dataclasses.replace(airframe.quantities[name], value=(0.0, 0.0, 0.0))
        for name in ("centre_of_mass", "products_of_inertia")
        if name in airframe.quantities
    }
    quantities = {n: q for n, q in {**airframe.quantities, **zero}.items() if n != "flapping_moment"}
    return dataclasses.replace(airframe, quantities=quantities)


def physics_and_residual(split: Split, airframe: Airframe, size: Size, stage: Stage) -> MultiStepErrors:
    """The errors of the symmetric part of the airframe with a residual that is learned on the training flights.

    stage: of the steps of learning, and two more.
    """
    airframe = symmetric(airframe)
    with jax.enable_x64(True):
        training, test = _rows(split, airframe)
        system = learn_symmetric_residual(
            system_of(airframe, "rotor_speed"),
            training,
            windows=size.windows,
            iterations=size.iterations,
            step_done=stage.advance,
        )
        stage.advance(size.iterations - stage.done)
        return _errors(system, training, test, size, stage)


def _rows(split: Split, airframe: Airframe) -> tuple[list[Samples], list[Samples]]:
    """Rows of the training and of the test flights, with the rotor speeds on the clock of the body rate."""
    training, test = (
        [learning_rows(with_delay(f, split.delay), airframe).samples for f in flights]
        for flights in (split.training, split.test)
    )
    return training, test


def _errors(
    system: System, training: list[Samples], test: list[Samples], size: Size, stage: Stage
) -> MultiStepErrors:
    p = parameter_values(system)
    widths = band_widths(system, p, training, stride=size.stride * _BAND_STRIDE)
    stage.advance()
    errors = multi_step_errors(system, p, test, stride=size.stride, widths=widths)
    stage.advance()
    return errors


def sums(errors: Float[np.ndarray, "4 horizon"]) -> dict[str, float]:
    """E_b of each block."""
    return dict(zip(BLOCKS, errors.sum(axis=1).tolist(), strict=True))
