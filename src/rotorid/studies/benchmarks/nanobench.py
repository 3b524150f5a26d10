"""NanoBench: flights of a Crazyflie 2.1 with brushed motors, each predicted by models of the other flights.

The inputs are motor commands (16-bit PWM); rotor speeds were not measured. The metric is that of the nano-drone benchmark
(see `prediction`), which the code of NanoBench's task 1 refers to: 50 steps of 0.01 s from every time of a flight.

Baselines, computed here on the same windows:

    nothing changes             x^(t + h) = x(t)
    constant velocity           p + v h, q [+] w h: no acceleration
    constant thrust gain        m dv/dt = m g + R e_z k sum u_i^2, dw/dt = 0
    thrust gain by voltage      k = k_0 + k_1 V + k_2 V^2
    published airframe          a Crazyflie 2.1 with the numbers published for ARPL's flights

The second is the baseline in the description of task 1, the first that of the code to which it refers, as are the rigid body
with constant body rate in the third and fourth. The gains are those of the first version of task 1, which predicts the thrust;
they are estimated by least squares of the measured specific force, m f_z = k sum u_i^2, on the training flights.

The physics of rotorid are identified by `rotorid identify` from the training flights. The mass is known (27 g); the prior is
the airframe `crazyflie-2.1`, whose inertia has the range of the published values for the type, and whose thrust depends on the
battery voltage V. The exponent n is that of the least squares of the specific force on the training flights,

    m f_z = (V / 3.7 V)^n sum_i (a_0 + a_1 u_i + a_2 u_i^2),

and is held fixed; `rotorid identify` estimates the coefficients again. The logged PWM is what the motors get, also at its
upper limit, which two flights reach. `identify` excludes rows near the limit of a command; the range of the command is extended
upwards here, so that they are used.

A residual of the torque, linear in velocity, body rate and rotor thrusts and symmetric as the vehicle is, is then learned on
the training flights by minimising the metric, as for the nano-drone (see `symmetric_residual`).

Reference: S. I. Ullah, J. Baca, NanoBench: a multi-task benchmark dataset for nano-quadrotor system identification, control,
and state estimation, arXiv 2603.09908, 2026; syediu/nanobench-iros2026.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import jax
import numpy as np
from jaxtyping import Float

from rotorid.errors import AirframeError, RotoridError, SignalError
from rotorid.logs.flight import Flight
from rotorid.logs.read import read
from rotorid.models.airframe.airframe import Airframe, Quantity, load_airframe
from rotorid.models.airframe.register import entry_folder
from rotorid.models.multirotor.thrust import ThrustCurve
from rotorid.models.system import System, parameter_values
from rotorid.progress import Progress, Stage
from rotorid.signals.samples import Samples
from rotorid.studies.benchmarks.prediction import (
    MultiStepErrors,
    band_widths,
    constant_velocity_errors,
    count_windows,
    multi_step_errors,
    unchanged_errors,
)
from rotorid.studies.benchmarks.symmetric_residual import learn_symmetric_residual
from rotorid.workflows.learn.training_rows import learning_rows, system_of

FOLDER: Final = "nanobench"
MAPPING: Final = entry_folder("crazyflie-2.1-nanobench") / "mapping.toml"
"""Which columns of the CSV files are which signals."""

MASS: Final = 0.027
"""Take-off mass, kg."""

UNCHANGED, CONSTANT_VELOCITY = "nothing changes", "constant velocity"
CONSTANT_GAIN, VOLTAGE_GAIN = "constant thrust gain", "thrust gain by voltage"
PUBLISHED_AIRFRAME = "published airframe"
PHYSICS, RESIDUAL = "rotorid, physics", "rotorid, physics and residual"
BASELINES: Final = (UNCHANGED, CONSTANT_VELOCITY, CONSTANT_GAIN, VOLTAGE_GAIN, PUBLISHED_AIRFRAME)
"""The models without identification by rotorid."""

MODELS: Final = (*BASELINES, PHYSICS, RESIDUAL)
"""All models, in the order of the table."""

_TYPE: Final = "crazyflie-2.1"
_RANGE: Final = 0.94  # command at 65535 in the extended range
_VOLTAGE: Final = 3.7  # V
_EXPONENTS: Final = np.arange(0.0, 3.01, 0.05)
_INERTIA: Final = ((1.4e-5, 1.4e-5, 2.5e-5), (0.4e-5, 0.4e-5, 0.6e-5))  # kg m^2, and standard deviations
_WINDOWS: Final = 15  # of each training flight, for the residual
ITERATIONS: Final = 8
"""Steps of the training of the residual."""

_BAND_STRIDE: Final = 10  # rows between the windows of the training flights from which the bands follow


class Size(NamedTuple):
    """Size of the study. flights: that are left out in turn, None for all. stride: rows between the windows of the metric, 1 as
    published. identify: whether the airframe is identified; else it is the prior."""

    flights: int | None = None
    stride: int = 1
    identify: bool = True


class Number(NamedTuple):
    """A number of the identified airframe, with standard deviations of it and of its prior."""

    value: float
    std: float
    unit: str
    prior: float
    prior_std: float


class Identified(NamedTuple):
    """The airframe of the training flights. refused: why `identify` did not accept the flights, "" if it did; then the airframe
    is the prior, and there are no numbers."""

    airframe: Airframe
    refused: str
    numbers: Mapping[str, Number]


class Predictions(NamedTuple):
    """Errors on the flight that was left out, by model. windows: of the metric. gain: constant thrust gain k, N."""

    errors: Mapping[str, MultiStepErrors]
    windows: int
    gain: float


def flight_paths(folder: Path) -> list[Path]:
    """The flights in the folder of the benchmark. Raises SignalError if there are fewer than three."""
    paths = sorted(folder.glob("*.csv"))
    if len(paths) < 3:
        raise SignalError(f"{folder}: {len(paths)} .csv files; 3 or more are needed to leave one out")
    return paths


def read_nanobench(path: Path) -> Flight:
    """A flight of the benchmark, with its commands in the extended range. Raises LogError, LogFormatError or SignalError."""
    flight = read(path, MAPPING)
    command = flight["rotor_command"]
    return flight.with_signals(dataclasses.replace(command, values=_RANGE * command.values))


def over_logged_commands(airframe: Airframe) -> Airframe:
    """The airframe with its thrust curve over the logged commands instead of the extended range."""
    return _with_full_command(airframe, 1.0)


def over_extended_range(airframe: Airframe) -> Airframe:
    """The inverse of `over_logged_commands`."""
    return _with_full_command(airframe, _RANGE)


def full_thrust(airframe: Airframe) -> float:
    """Thrust of one rotor at full command, N."""
    return float(sum(_curve(airframe).coefficients))


def _with_full_command(airframe: Airframe, full: float) -> Airframe:
    return dataclasses.replace(airframe, thrust_curve=dataclasses.replace(_curve(airframe), full=full))


def _curve(airframe: Airframe) -> ThrustCurve:
    if airframe.thrust_curve is None:
        raise AirframeError(f"the airframe {airframe.name} has no thrust curve")
    return airframe.thrust_curve


def published_airframe() -> Airframe:
    """The airframe of the type with the published numbers, and the mass of the benchmark, over the extended range."""
    airframe = over_extended_range(load_airframe(_TYPE))
    return dataclasses.replace(
        airframe, quantities={**airframe.quantities, "mass": Quantity((MASS,), "kg", (0.0,))}
    )


def prior_airframe(exponent: float = 1.0) -> Airframe:
    """The published airframe with the inertia of the type and a thrust that depends on the voltage. exponent: n."""
    published = published_airframe()
    curve = dataclasses.replace(_curve(published), voltage=_VOLTAGE, voltage_exponent=exponent)
    quantities = {**published.quantities, "inertia": Quantity(_INERTIA[0], "kg m^2", _INERTIA[1])}
    return dataclasses.replace(published, quantities=quantities, thrust_curve=curve)


def identified(training: Sequence[Flight], progress: Progress) -> Identified:
    """Identify the airframe of the training flights. progress: is called with each pass of the fit."""
    from rotorid.workflows.identify.identify import identify

    with jax.enable_x64(True):
        prior = prior_airframe(voltage_exponent(training))
    try:
        result = identify(training, prior, progress=progress)
    except RotoridError as error:
        return Identified(prior, str(error), {})
    fit = result.fit
    numbers = {
        n: Number(fit.values[n], fit.std[n], fit.unit[n], fit.prior[n], fit.prior_std[n]) for n in fit.names
    }
    return Identified(result.airframe, "", numbers)


def predictions(
    training: Sequence[Flight], test: Flight, airframe: Airframe, size: Size, stage: Stage
) -> Predictions:
    """Predict a flight that was left out. stage: is advanced after each model."""
    with jax.enable_x64(True):
        system = system_of(airframe, "rotor_command")
        own = learning_rows(test, airframe).samples
        errors = {
            UNCHANGED: MultiStepErrors(unchanged_errors(system, [own])),
            CONSTANT_VELOCITY: MultiStepErrors(constant_velocity_errors(system, [own])),
        }
        stage.advance(2)
        gains, (constant,) = {CONSTANT_GAIN: 0, VOLTAGE_GAIN: 2}, thrust_gain(training, 0)
        for name, degree in gains.items():
            errors[name] = _gain_errors(test, thrust_gain(training, degree), size)
            stage.advance()
        for name, model in ((PUBLISHED_AIRFRAME, published_airframe()), (PHYSICS, airframe)):
            errors[name] = _physics_errors(training, test, model, size)
            stage.advance()
    return Predictions(errors, count_windows([own], stride=size.stride), float(constant))


def residual_errors(
    training: Sequence[Flight], test: Flight, airframe: Airframe, size: Size, stage: Stage
) -> MultiStepErrors:
    """Errors of the airframe with a residual that is learned on the training flights, with coverage of its bands.

    airframe: over the extended range. stage: of `ITERATIONS` steps.
    """
    with jax.enable_x64(True):
        rows = [learning_rows(flight, airframe).samples for flight in training]
        system = learn_symmetric_residual(
            system_of(airframe, "rotor_command"),
            rows,
            windows=_WINDOWS,
            iterations=ITERATIONS,
            step_done=stage.advance,
        )
        own = [learning_rows(test, airframe).samples]
        return _errors_with_bands(system, rows, own, size)


def thrust_gain(flights: Sequence[Flight], degree: int) -> Float[np.ndarray, " n"]:
    """Polynomial in the voltage of the gain k in N, from the constant on: least squares of m f_z = k sum u_i^2 in flight."""
    squares, voltage, force = _force_rows(flights)
    regressors = (voltage[:, None] ** np.arange(degree + 1)) * squares.sum(axis=1)[:, None]
    return np.linalg.lstsq(regressors, force, rcond=None)[0]


def voltage_exponent(flights: Sequence[Flight]) -> float:
    """The exponent n of the voltage, see the module."""
    squares, voltage, force = _force_rows(flights)
    powers = np.stack([(squares ** (k / 2)).sum(axis=1) for k in range(3)], axis=1)
    sums = []
    for exponent in _EXPONENTS:
        regressors = powers * (voltage / _VOLTAGE)[:, None] ** exponent
        error = force - regressors @ np.linalg.lstsq(regressors, force, rcond=None)[0]
        sums.append(error @ error)
    return float(_EXPONENTS[np.argmin(sums)])


def _force_rows(
    flights: Sequence[Flight],
) -> tuple[Float[np.ndarray, "n rotors"], Float[np.ndarray, " n"], Float[np.ndarray, " n"]]:
    """Squares of the commands, voltage in V and m f_z in N, in the rows of flights in which f_z was measured."""
    rows = [_squares(flight) for flight in flights]
    is_measured = np.concatenate([np.asarray(r[0].mask)[:, _force_column(mask=True)] for r in rows])
    squares = np.concatenate([r[1] for r in rows])[is_measured]
    voltage = np.concatenate([r[2] for r in rows])[is_measured]
    force = np.concatenate([np.asarray(r[0].y)[:, _force_column()] for r in rows])[is_measured]
    return squares, voltage, MASS * force


def _force_column(*, mask: bool = False) -> int:
    """The column of the specific force along z in the measured outputs or their mask."""
    outputs = system_of(_held_rate(), "rotor_command").outputs
    return range(outputs.size)[(outputs.tangent if mask else outputs.stored)["specific_force"]][2]


def _held_rate() -> Airframe:
    """A rigid body with thrust sum u_i^2 (N) that keeps its body rate: without drag and lag, of large inertia."""
    published = published_airframe()
    kept = {n: published.quantities[n] for n in ("mass", "torque_ratio")}
    large = Quantity((1e6, 1e6, 1e6), "kg m^2")
    lag = Quantity((1e-6,), "s")
    quantities = {**kept, "inertia": large, "motor_time_constant": lag}
    return dataclasses.replace(
        published, quantities=quantities, thrust_curve=ThrustCurve((0.0, 0.0, 1.0), full=_RANGE)
    )


def _squares(flight: Flight) -> tuple[Samples, Float[np.ndarray, "n rotors"], Float[np.ndarray, " n"]]:
    """Rows of a flight, squares of the commands of the rotors, and the battery voltage in V."""
    samples = learning_rows(flight, _held_rate()).samples
    battery = flight["battery_voltage"]
    return (
        samples,
        np.asarray(samples.u),
        np.interp(np.asarray(samples.t), battery.times, battery.values[:, 0]),
    )


def _gain_errors(test: Flight, gain: Float[np.ndarray, " n"], size: Size) -> MultiStepErrors:
    """Errors of the rigid body with a constant body rate and the thrust k(V) sum u_i^2."""
    samples, squares, voltage = _squares(test)
    thrust = np.polynomial.polynomial.polyval(voltage, gain)[:, None] * squares
    system = system_of(_held_rate(), "rotor_command")
    samples = dataclasses.replace(samples, u=jax.numpy.asarray(thrust))
    return multi_step_errors(system, parameter_values(system), [samples], stride=size.stride)


def _physics_errors(
    training: Sequence[Flight], test: Flight, airframe: Airframe, size: Size
) -> MultiStepErrors:
    """Errors of an airframe, with coverage of its bands."""
    rows = [learning_rows(flight, airframe).samples for flight in training]
    own = [learning_rows(test, airframe).samples]
    return _errors_with_bands(system_of(airframe, "rotor_command"), rows, own, size)


def _errors_with_bands(
    system: System, training: Sequence[Samples], test: Sequence[Samples], size: Size
) -> MultiStepErrors:
    """Errors of a model; its bands are the quantiles of its errors on the training flights."""
    p = parameter_values(system)
    widths = band_widths(system, p, training, stride=size.stride * _BAND_STRIDE)
    return multi_step_errors(system, p, test, stride=size.stride, widths=widths)
