"""Arguments and options that several commands share, and their conversion."""

from __future__ import annotations

import dataclasses
import math
import sys
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from rotorid.errors import SettingError
from rotorid.estimators import registry as estimators
from rotorid.estimators.registry import (
    ESTIMATORS,
    LEARNED_ESTIMATORS,
    STREAM_ESTIMATORS,
    TRACK_ESTIMATORS,
    EstimatorName,
)
from rotorid.models import registry as systems
from rotorid.models.airframe.measured import WEIGHED, check_span
from rotorid.models.registry import TRACKED_SYSTEMS, SystemName
from rotorid.terminal import completion
from rotorid.terminal.output import current_output

if TYPE_CHECKING:
    from rotorid.learning.mass_network_files import TrainedMassModel
    from rotorid.logs.flight import Flight
    from rotorid.models.airframe.airframe import Airframe
    from rotorid.results.files import Input

EVERY_ESTIMATOR: Final = ",".join(ESTIMATORS)
"""All estimators that need no model, as a value of the option."""

_AIRFRAME: Final = (
    "A TOML file, or the name of an airframe that comes with rotorid (see `rotorid airframes`)."
)


def folder_option(words: str) -> Any:
    """`--output DIR`. words: help text, with the default."""
    return typer.Option("--output", "-o", metavar="DIR", help=words, show_default=False)


LOG_FORMATS: Final = (
    "PX4 .ulg, ArduPilot .BIN, MAVLink .tlog, ROS bag, Crazyflie micro-SD log, Betaflight and INAV blackbox (.bbl, .bfl), "
    "flight table (.csv, .parquet, .mcap), or any CSV with --mapping; also compressed (.gz, .xz, .zip)."
)
"""In the help of the commands."""

Log = Annotated[
    Path,
    typer.Argument(
        metavar="LOG",
        help=f"A flight log: {LOG_FORMATS}",
        show_default=False,
    ),
]


def airframe_option(words: str) -> Any:
    """`--airframe AIRFRAME`. words: help text."""
    return typer.Option(
        "--airframe",
        "-a",
        metavar="AIRFRAME",
        help=words,
        show_default=False,
        autocompletion=completion.airframe,
    )


AirframeOption = Annotated[str, airframe_option(_AIRFRAME)]

AirframeOrMass = Annotated[
    str | None,
    airframe_option(f"{_AIRFRAME} Default: an airframe made from the log's parameters and --mass."),
]

MassOption = Annotated[
    str | None,
    typer.Option(
        "--mass",
        metavar="KG",
        help="Weighed mass, as KG or KG+-STD. Without --airframe, the airframe is made from this mass and the log's "
        "parameters; all other values are priors by size. With --airframe, this mass replaces the one in the file.",
        show_default=False,
    ),
]

Span = Annotated[
    float | None,
    typer.Option(
        "--span",
        metavar="M",
        help="Distance between opposite motors, m, for an airframe made from the log's parameters. Default: from the "
        "parameters, else estimated from the mass, with a wide standard deviation.",
        show_default=False,
    ),
]

OptionalAirframe = Annotated[
    str | None,
    airframe_option(
        f"{_AIRFRAME} Default: an airframe made from the log's parameters and --mass; for a data set, that of its preset."
    ),
]


def _estimators_option(names: Collection[str]) -> Any:
    return typer.Option(
        "--estimators",
        "--estimator",
        "-e",
        metavar="NAMES",
        autocompletion=completion.list_of(names),
        help=f"One or more of {', '.join(names)}, separated by commas.",
    )


CompareEstimators = Annotated[str, _estimators_option(STREAM_ESTIMATORS)]

TrackEstimators = Annotated[str, _estimators_option(TRACK_ESTIMATORS)]

System = Annotated[
    str,
    typer.Option(
        "--system",
        metavar="NAME",
        autocompletion=completion.one_of(TRACKED_SYSTEMS),
        help=f"{systems.help_text()}.",
    ),
]

KnownMass = Annotated[
    float | None,
    typer.Option(
        "--known-mass",
        metavar="KG",
        help="Known mass, kg. The mass is held fixed and the thrust scale is tracked.",
        show_default=False,
    ),
]

ModelOption = Annotated[
    Path | None,
    typer.Option(
        "--model",
        metavar="MODEL",
        help="Result folder of `rotorid learn`: its parameters replace those of the airframe, and its residual is added.",
        show_default=False,
    ),
]

MassModel = Annotated[
    Path | None,
    typer.Option(
        "--model",
        metavar="MODEL",
        help="Result folder of `rotorid learn-mass`, for the estimator elm.",
        show_default=False,
    ),
]

SameVehicle = Annotated[
    bool,
    typer.Option(
        "--same-vehicle",
        help="The logs are from the vehicle with which --model was trained. Without this option, and if the logs have no "
        "serial number, the band of elm is wider, since a similar vehicle can have a different thrust.",
    ),
]

Mcap = Annotated[
    bool,
    typer.Option(
        "--mcap", help="Also write the estimates as MCAP (estimates.mcap), for viewers such as Foxglove."
    ),
]

Mapping = Annotated[
    Path | None,
    typer.Option(
        "--mapping",
        "-m",
        metavar="MAP.toml",
        help="Mapping file: signal, unit and frame of each column of a CSV file, the vehicle of a .tlog, or the topics "
        "of a ROS bag.",
        show_default=False,
    ),
]

Truth = Annotated[
    Path | None,
    typer.Option(
        "--truth",
        metavar="CSV",
        help="True mass over time (columns t_log_s, mass_kg), to which the estimates are compared.",
        show_default=False,
    ),
]


ValidationSeed = Annotated[
    int,
    typer.Option(
        "--seed", metavar="N", help="Seed of the validation: sampled parameters and blocks of windows."
    ),
]


def mass_and_std(text: str | None, option: str = "--mass") -> tuple[float, float] | None:
    """Mass and standard deviation, kg, of "1.52" or "1.52+-0.01"; of a mass alone, that of a scale. None of None.

    Raises:
        SettingError: the text is neither.
    """
    if text is None:
        return None
    value, _, std = text.strip().removesuffix("kg").replace("±", "+-").partition("+-")
    try:
        mass = float(value)
        numbers = (mass, float(std) if std else WEIGHED * mass)
    except ValueError:
        numbers = (math.nan, 0.0)
    if not (math.isfinite(sum(numbers)) and numbers[0] > 0.0 and numbers[1] >= 0.0):
        raise SettingError(f"{option} {text}: give a mass in kg, such as 1.52 or 1.52+-0.01")
    return numbers


def airframe_of(
    name: str | None, flight: Flight | None, mass: tuple[float, float] | None, span: float | None
) -> Airframe:
    """The airframe of a name or file, with this mass where it is given; else that of the log's parameters.

    Args:
        name: of `--airframe`.
        flight: the log; None where it is not read yet, and a name is given.
        mass: and its standard deviation, kg; None without a name: asked for in a terminal.
        span: distance of opposite motors, m.
    Raises:
        AirframeError: as `load_airframe` and `airframe_from_log`.
        SettingError: a span that is not positive, or for an airframe that has its rotors.
    """
    from rotorid.models.airframe.airframe import load_airframe
    from rotorid.models.airframe.from_log.make import airframe_from_log
    from rotorid.models.airframe.mass import with_mass

    check_span(span, "--span")
    if name is None:
        assert flight is not None
        return airframe_from_log(flight, mass or _asked_mass(flight), span)
    if span is not None:
        raise SettingError(
            "--span is for an airframe made from the log's parameters; leave it out with --airframe"
        )
    return with_mass(load_airframe(name), mass)


def _asked_mass(flight: Flight) -> tuple[float, float] | None:
    """The mass of the vehicle of a log, asked for in a terminal; None without a terminal, or where the log needs none.

    Raises:
        AirframeError: the log is not one of a multirotor, whatever its mass.
        SettingError: the mass is unknown.
    """
    from rotorid.models.airframe.from_log.make import has_mass
    from rotorid.models.airframe.from_log.vehicle_kind import check_is_multirotor

    if has_mass(flight.parameters) or current_output().is_json or not _is_terminal():
        return None
    check_is_multirotor(flight)
    vehicle = f"Mass of the vehicle of {flight.source.name} as it flies, with its battery"
    question = f"{vehicle}, kg (1.52 or 1.52+-0.01; Enter: unknown)"
    answer = typer.prompt(question, default="", show_default=False, err=True)
    if not answer.strip():
        raise SettingError(
            f"{flight.source.name}: without the mass, thrust, inertia and drag can only be identified per kg; weigh the "
            "vehicle, or give a guess with its standard deviation, such as --mass 1.5+-0.4"
        )
    return mass_and_std(answer, "mass")


def _is_terminal() -> bool:
    """Whether somebody can answer."""
    return sys.stdin.isatty()


def airframe_file(airframe: Airframe) -> dict[str, bytes]:
    """The file of an airframe that was made from a log, by name."""
    from rotorid.models.airframe.airframe import airframe_toml

    return {"airframe.toml": airframe_toml(airframe).encode()}


def check_seed(seed: int) -> None:
    """Raise SettingError for a negative seed."""
    if seed < 0:
        raise SettingError(f"--seed {seed}: must be 0 or more")


def parameter_names(text: str) -> tuple[str, ...]:
    """Parse a comma-separated list of parameters, in lower case, with underscores."""
    names = (name.strip().lower().replace("-", "_") for name in text.split(","))
    return tuple(dict.fromkeys(name for name in names if name))


def estimator_names(text: str, table: Collection[str] = ESTIMATORS) -> tuple[EstimatorName, ...]:
    """Parse a comma-separated list of estimators. Raises SettingError for a name that is not in the table."""
    names = tuple(dict.fromkeys(name.strip().lower() for name in text.split(",") if name.strip()))
    for name in names or (text,):
        estimators.check_estimator(name, table)
    return names


def mass_model_of(
    folder: Path | None,
    names: Collection[EstimatorName],
    known_mass: float | None = None,
    is_same_vehicle: bool = False,
) -> TrainedMassModel | None:
    """The model of the option `--model` for these estimators; None where none of them needs one.

    Raises:
        SettingError: an estimator needs a model and there is none, or the reverse, or the mass is fixed, or `--same-vehicle` is
            without a model.
        LogFormatError: the folder has no mass network.
    """
    needing = [name for name in names if name in LEARNED_ESTIMATORS]
    if folder is None:
        if needing:
            raise SettingError(
                f"{needing[0]} needs a trained network: give --model, a folder of `rotorid learn-mass`"
            )
        if is_same_vehicle:
            raise SettingError("--same-vehicle is for --model, a folder of `rotorid learn-mass`")
        return None
    if not needing:
        raise SettingError(
            f"--model is for {', '.join(LEARNED_ESTIMATORS)}: add it to --estimators, or leave --model out"
        )
    if known_mass is not None:
        raise SettingError(
            f"{needing[0]} estimates the mass, which --known-mass fixes; leave one of them out"
        )
    from rotorid.learning.mass_network_files import load_network

    return dataclasses.replace(load_network(folder), is_same_vehicle=is_same_vehicle)


def system_name(text: str) -> SystemName:
    """Check the name of a System. Raises SettingError for an unknown name."""
    systems.check_system(text, TRACKED_SYSTEMS)
    return text


def input_files(
    log: Path, airframe: str | None, mapping: Path | None, truth: Path | None, model: Path | None = None
) -> list[Input]:
    """The input files of a result. The airframe is included if it is a file."""
    from rotorid.results.files import file_input

    own = Path(airframe) if airframe is not None and Path(airframe).is_file() else None
    roles = {"log": log, "airframe": own, "mapping": mapping, "truth": truth, "model": model}
    return [file_input(role, path) for role, path in roles.items() if path is not None]
