"""Arguments and options that several commands share, and their conversion."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from rotorid.errors import SettingError
from rotorid.estimators import registry as estimators
from rotorid.estimators.registry import ESTIMATORS, EstimatorName
from rotorid.models import registry as systems
from rotorid.models.registry import TRACKED_SYSTEMS, SystemName

if TYPE_CHECKING:
    from rotorid.results.files import Input

EVERY_ESTIMATOR: Final = ",".join(ESTIMATORS)
"""All estimators, as a value of the option."""

_AIRFRAME: Final = (
    "A TOML file, or the name of an airframe that comes with rotorid (see `rotorid airframes`)."
)


def folder_option(words: str) -> Any:
    """`--output DIR`. words: help text, with the default."""
    return typer.Option("--output", "-o", metavar="DIR", help=words, show_default=False)


Log = Annotated[
    Path,
    typer.Argument(
        metavar="LOG",
        help="A flight log: PX4 .ulg, ArduPilot .BIN, MAVLink .tlog, ROS bag, Crazyflie micro-SD log, flight table (.csv, "
        ".parquet, .mcap), or any CSV with --mapping.",
        show_default=False,
    ),
]


def airframe_option(words: str) -> Any:
    """`--airframe AIRFRAME`. words: help text."""
    return typer.Option("--airframe", "-a", metavar="AIRFRAME", help=words, show_default=False)


AirframeOption = Annotated[str, airframe_option(_AIRFRAME)]

OptionalAirframe = Annotated[
    str | None,
    airframe_option(f"{_AIRFRAME} A data set has a default airframe."),
]

Estimators = Annotated[
    str,
    typer.Option(
        "--estimators",
        "--estimator",
        "-e",
        metavar="NAMES",
        help=f"One or more of {', '.join(ESTIMATORS)}, separated by commas.",
    ),
]

System = Annotated[
    str,
    typer.Option(
        "--system",
        metavar="NAME",
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


def check_seed(seed: int) -> None:
    """Raise SettingError for a negative seed."""
    if seed < 0:
        raise SettingError(f"--seed {seed}: must be 0 or more")


def parameter_names(text: str) -> tuple[str, ...]:
    """Parse a comma-separated list of parameters, in lower case, with underscores."""
    names = (name.strip().lower().replace("-", "_") for name in text.split(","))
    return tuple(dict.fromkeys(name for name in names if name))


def estimator_names(text: str) -> tuple[EstimatorName, ...]:
    """Parse a comma-separated list of estimators. Raises SettingError for an unknown name."""
    names = tuple(dict.fromkeys(name.strip().lower() for name in text.split(",") if name.strip()))
    for name in names or (text,):
        estimators.check_estimator(name)
    return names


def system_name(text: str) -> SystemName:
    """Check the name of a System. Raises SettingError for an unknown name."""
    systems.check_system(text, TRACKED_SYSTEMS)
    return text


def input_files(log: Path, airframe: str | None, mapping: Path | None, truth: Path | None) -> list[Input]:
    """The input files of a result. The airframe is included if it is a file."""
    from rotorid.results.files import file_input

    own = Path(airframe) if airframe is not None and Path(airframe).is_file() else None
    roles = {"log": log, "airframe": own, "mapping": mapping, "truth": truth}
    return [file_input(role, path) for role, path in roles.items() if path is not None]
