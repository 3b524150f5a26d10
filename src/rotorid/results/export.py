"""Estimators and Systems by name, as the folders that `rotorid export` writes: C for a vehicle's computer, or CasADi."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, cast, get_args

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from rotorid.errors import SettingError
from rotorid.estimators.base import AbstractEstimator
from rotorid.estimators.onboard.drawn import drawn
from rotorid.estimators.onboard.folder import GOLDEN_ROWS, check_name, onboard_files
from rotorid.estimators.onboard.source import Precision
from rotorid.estimators.wrench import GAIN, acceleration_observer, momentum_observer
from rotorid.export.system_files import system_files
from rotorid.learning.model_files import LearnedModel
from rotorid.logs.flight import Flight
from rotorid.models.airframe import Airframe
from rotorid.models.hybrid import with_residual
from rotorid.models.multirotor import BareMultirotor
from rotorid.models.multirotor_drag import Multirotor, ThrustInput, bare_multirotor, multirotor
from rotorid.models.residual import residual_parameters
from rotorid.models.rigid_multirotor import RigidMultirotor, RotorInput, rigid_multirotor
from rotorid.models.system import GRAVITY, System, parameter_values
from rotorid.results.files import write_folder
from rotorid.results.track import ESTIMATORS, prepare_for, system_for
from rotorid.results.wrench import prepare_wrench, with_model, with_rotors, wrench_system
from rotorid.signals.noise import measured_noise
from rotorid.signals.samples import Samples

ExportSystem = Literal["multirotor", "multirotor-bare", "rigid-multirotor"]
SYSTEMS = get_args(ExportSystem)
"""Systems by name; observers of the wrench take the last."""

OBSERVERS = ("mo", "nemo", "acceleration")
"""Observers of the wrench by name; nemo is mo over a learned model."""

KNOWN_BY = (
    *get_args(ThrustInput),
    *(name for name in get_args(RotorInput) if name not in get_args(ThrustInput)),
)
"""What may be known of the rotors."""

_DT = 0.01  # s, of samples that are drawn


@dataclasses.dataclass(frozen=True)
class ExportSettings:
    """What is asked for.

    system: by name; None for what the estimator mostly runs over. known_by: what is known of the rotors, None for the best
    that the airframe allows. known_mass: kg, tracks the thrust scale instead. gain: of an observer, 1/s.
    """

    system: ExportSystem | None = None
    known_by: str | None = None
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
    """Write an estimator over any System as C99 into a folder, all files or none. Returns the folder.

    samples: of the golden test (see `rotorid.estimators.onboard.drawn` where there is no flight). name: what every public name
    in C begins with. Raises SettingError for an estimator without a form in C, OutputError where the folder cannot be written.
    """
    folder = Path(folder)
    write_folder(folder, onboard_files(estimator, samples, name=name, precision=precision))
    return folder


def export_system(
    system: System, folder: str | Path, *, name: str = "model", baked: tuple[str, ...] = ()
) -> Path:
    """Write a System as CasADi functions into a folder, all files or none. Returns the folder.

    baked: parameters that are constants at their prior means. Raises SettingError for a System that CasADi cannot express,
    OutputError where the folder cannot be written.
    """
    folder = Path(folder)
    write_folder(folder, system_files(system, name=name, baked=baked))
    return folder


def estimator_files(
    estimator: str,
    airframe: Airframe,
    settings: ExportSettings,
    *,
    name: str,
    precision: Precision = "double",
    flight: Flight | None = None,
    model: LearnedModel | None = None,
) -> dict[str, bytes]:
    """The C files of an estimator by its name.

    flight: tells what is known of the rotors, how noisy the measurements are, and the samples of the golden test; without it,
    the System's own noises are taken, and samples are drawn from the model. model: learned, in place of the airframe.

    Raises SettingError for names and settings that do not fit, and as the estimator and the flight do.
    """
    check_name(name)
    airframe = airframe if model is None else model.airframe
    made, samples = exported_estimator(estimator, airframe, settings, flight, model)
    system = made.joint.system
    source = flight.source.name if flight is not None else "drawn from the model"
    return onboard_files(
        made,
        samples,
        name=name,
        precision=precision,
        title=f"{estimator} over {_name_of(system)} of {airframe.name}",
        settings={
            "estimator": estimator,
            "system": _name_of(system),
            "airframe": airframe.name,
            "known_by": next(n for n in KNOWN_BY if n in system.inputs),
            "known_mass": settings.known_mass,
            "samples": source,
            "model": model.words if model is not None else None,
        },
    )


def exported_estimator(
    estimator: str,
    airframe: Airframe,
    settings: ExportSettings,
    flight: Flight | None = None,
    model: LearnedModel | None = None,
) -> tuple[AbstractEstimator, Samples]:
    """The estimator of that name, and samples for its golden test: the flight's, or some that are drawn from its model.

    flight, model: as in `estimator_files`; raises as it does.
    """
    airframe = airframe if model is None else model.airframe
    system = exported_system(_system_of(estimator, settings, model), airframe, settings, flight, model)
    if flight is None:
        made = _made(estimator, system, settings, None)
        return made, drawn(made, hovering(system, GOLDEN_ROWS), _DT)
    samples, noise = _from(flight, airframe, system)
    return _made(estimator, system, settings, noise), samples


def casadi_files(
    system: str, airframe: Airframe, settings: ExportSettings, model: LearnedModel | None = None
) -> dict[str, bytes]:
    """The CasADi files of a System by its name. model: learned, in place of the airframe; its residual is baked in."""
    airframe = airframe if model is None else model.airframe
    made = exported_system(_system_name(system), airframe, settings, None, model)
    residual = model.residual if model is not None else None
    weights = tuple(residual_parameters(residual)) if residual is not None else ()
    return system_files(made, name=system, baked=weights)


def exported_system(
    system: ExportSystem,
    airframe: Airframe,
    settings: ExportSettings,
    flight: Flight | None = None,
    model: LearnedModel | None = None,
) -> Multirotor | BareMultirotor | RigidMultirotor:
    """The System of that name. Raises SettingError or AirframeError where the airframe lacks what it needs."""
    if settings.known_mass is not None and system != "multirotor":
        raise SettingError(f"--known-mass is of the system multirotor, not of {system}")
    if model is not None and system != "rigid-multirotor":
        raise SettingError(f"a learned model is one of the system rigid-multirotor, not of {system}")
    if flight is not None and settings.known_by is not None:
        raise SettingError("a flight tells what is known of the rotors: give either a flight or --known-by")
    if flight is not None:
        if system != "rigid-multirotor":
            return system_for(flight, airframe, system, settings.known_mass)
        found = wrench_system(with_rotors(flight, airframe), airframe)
        return found if model is None else with_model(found, model, flight)
    known_by = settings.known_by
    if system == "multirotor-bare":
        _known_by(known_by, ("thrust",), system)
        return bare_multirotor(airframe)
    if system == "multirotor":
        best = "rotor_command" if airframe.thrust_curve is not None else "thrust"
        by = cast(ThrustInput, _known_by(known_by, get_args(ThrustInput), system) or best)
        return multirotor(airframe, by, known_mass=settings.known_mass)
    best = "rotor_command" if airframe.thrust_curve is not None else "rotor_thrust"
    best = model.rotor_input or best if model is not None else best
    by = cast(RotorInput, _known_by(known_by, get_args(RotorInput), system) or best)
    found = rigid_multirotor(airframe, by)
    if model is None or model.residual is None:
        return found
    if model.rotor_input not in ("", by):
        raise SettingError(f"this model was learned from {model.rotor_input}, not from {by}")
    hybrid = with_residual(found, model.residual)
    assert isinstance(hybrid, RigidMultirotor)
    return hybrid


def hovering(
    system: Multirotor | BareMultirotor | RigidMultirotor, rows: int, seed: int = 1
) -> Float[np.ndarray, "rows inputs"]:
    """Inputs about hover: slow sines of 5 % in what drives the rotors, of 0.3 rad/s in the body rate."""
    rng = np.random.default_rng(seed)
    n = system.inputs.size
    t = _DT * np.arange(rows)
    waves = np.sin(np.outer(t, rng.uniform(2.0, 6.0, n)) + rng.uniform(0.0, 6.0, n))
    known_by = next(name for name in KNOWN_BY if name in system.inputs)
    level = _hover(system, known_by)
    u = np.zeros((rows, n))
    for name, slot in system.inputs.stored.items():
        if name == known_by:
            u[:, slot] = level * (1.0 + 0.05 * waves[:, slot])
        elif name == "battery_voltage":
            u[:, slot] = _curve_voltage(system)
        else:
            u[:, slot] = 0.3 * waves[:, slot]
    return u


def _hover(system: Multirotor | BareMultirotor | RigidMultirotor, known_by: str) -> float:
    """What is to be given of each rotor (or of all, in N) so that they carry the weight; by bisection."""
    p = parameter_values(system)
    weight = GRAVITY * float(p["mass"])
    if known_by == "thrust":
        return weight / float(p.get("thrust_scale", 1.0))
    count = system.inputs[known_by].size
    extra = {}
    if "battery_voltage" in system.inputs:
        extra["battery_voltage"] = jnp.asarray(_curve_voltage(system))

    def lift(level: float) -> float:
        u = {known_by: jnp.full(count, level), **extra}
        if isinstance(system, RigidMultirotor):
            return float(jnp.sum(system.known_thrust(u, p)))
        assert isinstance(system, Multirotor)
        return float(p["thrust_scale"] * system.commanded_thrust(u))

    low, high = 0.0, {"rotor_command": 1.0, "rotor_thrust": 10.0 * weight, "rotor_speed": 1e5}[known_by]
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if lift(middle) < weight else (low, middle)
    return low


def _curve_voltage(system: System) -> float:
    """Battery voltage at which the thrust curve was taken, V."""
    curve = system.curve if isinstance(system, Multirotor | RigidMultirotor) else None
    return curve.voltage if curve is not None else float("nan")


def _from(
    flight: Flight, airframe: Airframe, system: Multirotor | BareMultirotor | RigidMultirotor
) -> tuple[Samples, dict[str, tuple[float, ...]]]:
    """Samples of a flight and how noisy its measurements are."""
    if isinstance(system, RigidMultirotor):
        _, samples = prepare_wrench(with_rotors(flight, airframe), system)
    else:
        _, samples = prepare_for(flight, airframe, system)
    return samples, measured_noise(samples, system.outputs)


def _made(
    estimator: str, system: System, settings: ExportSettings, noise: Mapping[str, Any] | None
) -> AbstractEstimator:
    if estimator in ESTIMATORS:
        return ESTIMATORS[estimator](system, measurement_noise=noise)
    assert isinstance(system, RigidMultirotor)
    maker = acceleration_observer if estimator == "acceleration" else momentum_observer
    return maker(system, gain=settings.gain, measurement_noise=noise)


def _system_of(estimator: str, settings: ExportSettings, model: LearnedModel | None) -> ExportSystem:
    """The System that an estimator is to run over. Raises SettingError where they do not go together."""
    if estimator not in ESTIMATORS and estimator not in OBSERVERS:
        if estimator in SYSTEMS:
            raise SettingError(f"{estimator} is a system: export it with --as casadi, or name an estimator")
        raise SettingError(f"no estimator {estimator!r}; there are {', '.join((*ESTIMATORS, *OBSERVERS))}")
    if estimator == "nemo" and model is None:
        raise SettingError("nemo needs a learned model: give --model, a folder of `rotorid learn`")
    if estimator in OBSERVERS:
        if settings.system not in (None, "rigid-multirotor"):
            raise SettingError(
                f"{estimator} observes the wrench on a rigid-multirotor, not on a {settings.system}"
            )
        return "rigid-multirotor"
    return _system_name(settings.system or ("rigid-multirotor" if model is not None else "multirotor"))


def _system_name(text: str) -> ExportSystem:
    if text not in SYSTEMS:
        raise SettingError(f"no system {text!r}; there are {', '.join(SYSTEMS)}")
    return cast(ExportSystem, text)


def _known_by(asked: str | None, possible: tuple[str, ...], system: str) -> str | None:
    if asked is not None and asked not in possible:
        raise SettingError(f"{system} cannot know its rotors by {asked!r}; there are {', '.join(possible)}")
    return asked


def _name_of(system: System) -> ExportSystem:
    if isinstance(system, RigidMultirotor):
        return "rigid-multirotor"
    return "multirotor-bare" if isinstance(system, BareMultirotor) else "multirotor"
