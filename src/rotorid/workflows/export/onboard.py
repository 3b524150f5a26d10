"""Export of estimators as C for an on-board computer, and of Systems as CasADi functions."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from rotorid.errors import SettingError
from rotorid.estimators.base import AbstractEstimator
from rotorid.estimators.elm.estimator import LEAST_TIME
from rotorid.estimators.onboard.folder import GOLDEN_ROWS, check_name, onboard_files
from rotorid.estimators.onboard.golden_samples import draw_samples
from rotorid.estimators.onboard.source import Precision
from rotorid.estimators.registry import (
    ALL_ESTIMATORS,
    EXPORT_ESTIMATORS,
    LEARNED_ESTIMATORS,
    WRENCH_OBSERVERS,
    check_estimator,
    observer_builder,
)
from rotorid.estimators.wrench.observers import GAIN
from rotorid.export.controller.system_files import system_files
from rotorid.learning.mass_network_files import TrainedMassModel, check_network, check_use, rotor_input_of
from rotorid.learning.model_files import LearnedModel
from rotorid.logs.flight import Flight
from rotorid.models.airframe.airframe import Airframe
from rotorid.models.hybrid import with_residual
from rotorid.models.multirotor.bare import BareMultirotor
from rotorid.models.multirotor.flight_noise import FlightNoise, flight_noise
from rotorid.models.multirotor.rigid import RigidMultirotor
from rotorid.models.multirotor.with_drag import Multirotor
from rotorid.models.registry import (
    ROTOR_INPUTS,
    SYSTEMS,
    WRENCH_SYSTEM,
    SystemName,
    check_system,
    rotor_input_on_board,
    system_for,
)
from rotorid.models.residual import residual_parameters
from rotorid.models.system import GRAVITY, System, parameter_values
from rotorid.numerics.bisection import bisect
from rotorid.results.files import write_folder
from rotorid.signals.samples import Samples
from rotorid.workflows.track.track import prepare_flight
from rotorid.workflows.wrench.observe import prepare_wrench, with_residual_model, with_rotors

_DT = 0.01  # s, step of simulated samples


@dataclasses.dataclass(frozen=True)
class ExportSettings:
    """Settings of an export.

    system: name of a System; None for the default of the estimator. rotor_input: the input that drives the rotors; None
    for the first that the airframe allows. known_mass: kg; the thrust scale is then estimated instead. gain: of an
    observer, 1/s.
    """

    system: SystemName | None = None
    rotor_input: str | None = None
    known_mass: float | None = None
    gain: float = GAIN


def export_estimator(
    estimator: AbstractEstimator,
    folder: str | Path,
    samples: Samples,
    *,
    name: str,
    precision: Precision = "double",
) -> Path:
    """Write an estimator over any System as C99 into a folder, all files or none.

    Args:
        estimator: the estimator.
        folder: folder of the files.
        samples: samples of the golden test, which compares the C code with the estimates of this package; without a flight,
            see `rotorid.estimators.onboard.golden_samples`.
        name: prefix of all public names in C.
        precision: "double" or "float".
    Returns:
        The folder.
    Raises:
        SettingError: the estimator cannot be written in C.
        OutputError: the folder cannot be written.
    """
    folder = Path(folder)
    write_folder(folder, onboard_files(estimator, samples, name=name, precision=precision))
    return folder


def export_system(
    system: System, folder: str | Path, *, name: str = "model", constants: tuple[str, ...] = ()
) -> Path:
    """Write a System as CasADi functions into a folder, all files or none.

    Args:
        system: the System.
        folder: folder of the files.
        name: name of the model.
        constants: names of parameters that are fixed at their prior means.
    Returns:
        The folder.
    Raises:
        SettingError: the System has an operation that CasADi does not have.
        OutputError: the folder cannot be written.
    """
    folder = Path(folder)
    write_folder(folder, system_files(system, name=name, constants=constants))
    return folder


def estimator_files(
    estimator: str,
    airframe: Airframe,
    settings: ExportSettings,
    *,
    name: str,
    precision: Precision = "double",
    flight: Flight | None = None,
    model: LearnedModel | TrainedMassModel | None = None,
) -> dict[str, bytes]:
    """Generate the C files of an estimator.

    Args:
        estimator: name of an estimator or of a wrench observer.
        airframe: its parameters.
        settings: see `ExportSettings`.
        name: prefix of all public names in C.
        precision: "double" or "float".
        flight: determines the rotor input and the measurement noise, and gives the samples of the golden test. Without a
            flight, the noise is the System's, and the samples are simulated with the System.
        model: a learned model, used in place of the airframe, or a mass network of it.
    Raises:
        SettingError: names or settings that do not go together.
    """
    check_name(name)
    airframe = airframe if model is None else model.airframe
    built, samples = exported_estimator(estimator, airframe, settings, flight, model)
    system, name_of_system = built.joint.system, _system_of(estimator, settings, model)
    source = flight.source.name if flight is not None else "simulated"
    return onboard_files(
        built,
        samples,
        name=name,
        precision=precision,
        title=f"{estimator} over {name_of_system} of {airframe.name}",
        settings={
            "estimator": estimator,
            "system": name_of_system,
            "airframe": airframe.name,
            "rotor_input": next(n for n in ROTOR_INPUTS if n in system.inputs),
            "known_mass": settings.known_mass,
            "samples": source,
            "model": model.description if model is not None else None,
        },
        golden_rows=_golden_rows(estimator, samples),
    )


def _golden_rows(estimator: str, samples: Samples) -> int:
    """Rows of the golden test: as many as a network needs before it is used, and some more."""
    if estimator not in LEARNED_ESTIMATORS:
        return GOLDEN_ROWS
    return max(GOLDEN_ROWS, math.ceil(1.4 * LEAST_TIME / float(np.median(np.diff(samples.t)))))


def exported_estimator(
    estimator: str,
    airframe: Airframe,
    settings: ExportSettings,
    flight: Flight | None = None,
    model: LearnedModel | TrainedMassModel | None = None,
) -> tuple[AbstractEstimator, Samples]:
    """Build an estimator by name, and samples for its golden test. Arguments and errors: those of `estimator_files`."""
    airframe = airframe if model is None else model.airframe
    name = _system_of(estimator, settings, model)
    network, residual = (model, None) if isinstance(model, TrainedMassModel) else (None, model)
    if network is not None and settings.rotor_input is None and flight is None:
        settings = dataclasses.replace(settings, rotor_input=network.rotor_input)
    system = exported_system(name, airframe, settings, flight, residual)
    if network is not None:
        check_network(network, airframe, name, rotor_input_of(system))
        if flight is not None:
            check_use(network, flight, airframe, name, system)
    if flight is None:
        built = _estimator(estimator, system, settings, None, network)
        rows = GOLDEN_ROWS if network is None else math.ceil(2.0 * LEAST_TIME / _DT)
        return built, draw_samples(built, hover_inputs(system, rows), _DT)
    samples, noise = _samples_and_noise(flight, airframe, system)
    return _estimator(estimator, system, settings, noise, network), samples


def casadi_files(
    system: str, airframe: Airframe, settings: ExportSettings, model: LearnedModel | None = None
) -> dict[str, bytes]:
    """Generate the CasADi files of a System by name. model: a learned model, used in place of the airframe."""
    airframe = airframe if model is None else model.airframe
    check_system(system)
    built = exported_system(system, airframe, settings, None, model)
    residual = model.residual if model is not None else None
    weights = tuple(residual_parameters(residual)) if residual is not None else ()
    return system_files(built, name=system, constants=weights)


def exported_system(
    system: SystemName,
    airframe: Airframe,
    settings: ExportSettings,
    flight: Flight | None = None,
    model: LearnedModel | None = None,
) -> Multirotor | BareMultirotor | RigidMultirotor:
    """Build a System by name. Raises SettingError or AirframeError where the airframe lacks a property that it needs."""
    entry = SYSTEMS[system]
    if settings.known_mass is not None and not entry.takes_known_mass:
        there = ", ".join(name for name, one in SYSTEMS.items() if one.takes_known_mass)
        raise SettingError(f"--known-mass applies to the system {there}, not to {system}")
    if model is not None and system != WRENCH_SYSTEM:
        raise SettingError(f"a learned model needs the system {WRENCH_SYSTEM}, not {system}")
    if flight is not None and settings.rotor_input is not None:
        raise SettingError("the flight determines the rotor input: give either --flight or --rotor-input")
    if flight is not None:
        logged = with_rotors(flight, airframe) if system == WRENCH_SYSTEM else flight
        found = system_for(logged, airframe, system, settings.known_mass)
        return found if model is None else with_residual_model(found, model, flight)
    learned = model.rotor_input if model is not None else ""
    by = settings.rotor_input or learned or rotor_input_on_board(airframe, system)
    if by not in entry.rotor_inputs:
        raise SettingError(f"{system} has no rotor input {by!r}; choose from {', '.join(entry.rotor_inputs)}")
    found = entry.build(airframe, by, known_mass=settings.known_mass)
    if model is None or model.residual is None:
        return found
    if model.rotor_input not in ("", by):
        raise SettingError(f"this model was learned with the rotor input {model.rotor_input}, not {by}")
    hybrid = with_residual(found, model.residual)
    assert isinstance(hybrid, RigidMultirotor)
    return hybrid


def hover_inputs(
    system: Multirotor | BareMultirotor | RigidMultirotor, rows: int, seed: int = 1
) -> Float[np.ndarray, "rows inputs"]:
    """Inputs around hover: slow sines of 5 % in the rotor input and of 0.3 rad/s in the body rate."""
    rng = np.random.default_rng(seed)
    n = system.inputs.size
    t = _DT * np.arange(rows)
    waves = np.sin(np.outer(t, rng.uniform(2.0, 6.0, n)) + rng.uniform(0.0, 6.0, n))
    rotor_input = next(name for name in ROTOR_INPUTS if name in system.inputs)
    level = _hover_level(system, rotor_input)
    u = np.zeros((rows, n))
    for name, slot in system.inputs.stored.items():
        if name == rotor_input:
            u[:, slot] = level * (1.0 + 0.05 * waves[:, slot])
        elif name == "battery_voltage":
            u[:, slot] = _curve_voltage(system)
        else:
            u[:, slot] = 0.3 * waves[:, slot]
    return u


def _hover_level(system: Multirotor | BareMultirotor | RigidMultirotor, rotor_input: str) -> float:
    """The common rotor input (or the collective thrust, N) that carries the weight."""
    p = parameter_values(system)
    weight = GRAVITY * float(p["mass"])
    if rotor_input == "thrust":
        return weight / float(p.get("thrust_scale", 1.0))
    count = system.inputs[rotor_input].size
    extra = {}
    if "battery_voltage" in system.inputs:
        extra["battery_voltage"] = jnp.asarray(_curve_voltage(system))

    def lift(level: float) -> float:
        u = {rotor_input: jnp.full(count, level), **extra}
        if isinstance(system, RigidMultirotor):
            return float(jnp.sum(system.known_thrust(u, p)))
        assert isinstance(system, Multirotor)
        return float(p["thrust_scale"] * system.commanded_thrust(u))

    low, high = 0.0, {"rotor_command": 1.0, "rotor_thrust": 10.0 * weight, "rotor_speed": 1e5}[rotor_input]
    return float(bisect(lambda level: lift(float(level)) < weight, low, high, 60)[0])


def _curve_voltage(system: System) -> float:
    """Battery voltage of the thrust curve, V."""
    curve = system.curve if isinstance(system, Multirotor | RigidMultirotor) else None
    return curve.voltage if curve is not None else float("nan")


def _samples_and_noise(
    flight: Flight, airframe: Airframe, system: Multirotor | BareMultirotor | RigidMultirotor
) -> tuple[Samples, FlightNoise]:
    """Samples and noise of a flight."""
    if isinstance(system, RigidMultirotor):
        _, samples = prepare_wrench(with_rotors(flight, airframe), system)
        return samples, flight_noise(samples, system)
    prepared = prepare_flight(flight, airframe, system)
    return prepared.samples, prepared.noise


def _estimator(
    estimator: str,
    system: System,
    settings: ExportSettings,
    noise: FlightNoise | None,
    network: TrainedMassModel | None,
) -> AbstractEstimator:
    tuning = {} if noise is None else noise.tuning
    if network is not None:
        return EXPORT_ESTIMATORS[estimator].build(system, **tuning, network=network.network)
    return observer_builder(estimator, settings.gain)(system, **tuning)


def _system_of(
    estimator: str, settings: ExportSettings, model: LearnedModel | TrainedMassModel | None
) -> SystemName:
    """The System of an estimator. Raises SettingError where they do not go together."""
    if estimator in SYSTEMS:
        raise SettingError(f"{estimator} is a system: export it with --as casadi, or give an estimator")
    check_estimator(estimator, EXPORT_ESTIMATORS)
    if (estimator in LEARNED_ESTIMATORS) != isinstance(model, TrainedMassModel):
        raise SettingError(
            f"{estimator} needs a mass network: give --model, a folder of `rotorid learn-mass`"
            if estimator in LEARNED_ESTIMATORS
            else f"{estimator} takes no mass network; it is for {', '.join(LEARNED_ESTIMATORS)}"
        )
    if isinstance(model, TrainedMassModel):
        return settings.system or model.system
    if ALL_ESTIMATORS[estimator].needs_model and model is None:
        raise SettingError(f"{estimator} needs a learned model: give --model, a folder of `rotorid learn`")
    if estimator in WRENCH_OBSERVERS:
        if settings.system not in (None, WRENCH_SYSTEM):
            raise SettingError(f"{estimator} needs the system {WRENCH_SYSTEM}, not {settings.system}")
        return WRENCH_SYSTEM
    system = settings.system or (WRENCH_SYSTEM if model is not None else "multirotor")
    check_system(system)
    return system
