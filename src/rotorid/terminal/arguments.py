"""Arguments and options that several commands share, and what is made of them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, cast

import typer

from rotorid.errors import SettingError

if TYPE_CHECKING:
    from rotorid.results.summary import Input
    from rotorid.results.track import EstimatorName, SystemName

ESTIMATORS: Final = ("ekf", "ukf", "msckf", "swls", "adaptive")
SYSTEMS: Final = ("multirotor", "multirotor-bare")
# the names in `results.track`, which is not imported here for the sake of a quick --help; a test compares

EVERY_ESTIMATOR: Final = ",".join(ESTIMATORS)
"""All of them, as the option takes them."""

_AIRFRAME: Final = (
    "A TOML file, or the name of an airframe that comes with rotorid (see `rotorid airframes`)."
)


def folder_option(words: str) -> Any:
    """`--output DIR`. words: what for, and what it is where it is not given."""
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
    """`--airframe AIRFRAME`. words: what for, and how it is given."""
    return typer.Option("--airframe", "-a", metavar="AIRFRAME", help=words, show_default=False)


AirframeOption = Annotated[str, airframe_option(_AIRFRAME)]

OptionalAirframe = Annotated[
    str | None,
    airframe_option(f"{_AIRFRAME} A data set has its own."),
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
        help="multirotor (with drag, wind and motor lag) or multirotor-bare (mass only).",
    ),
]

KnownMass = Annotated[
    float | None,
    typer.Option(
        "--known-mass",
        metavar="KG",
        help="The mass, where it is known: tracks the thrust scale instead.",
        show_default=False,
    ),
]

ModelOption = Annotated[
    Path | None,
    typer.Option(
        "--model",
        metavar="MODEL",
        help="A folder of `rotorid learn`, whose parameters and residual are used in place of the airframe's.",
        show_default=False,
    ),
]

Mcap = Annotated[
    bool,
    typer.Option(
        "--mcap", help="Write the estimates as MCAP, too (estimates.mcap), which viewers like Foxglove show."
    ),
]

Mapping = Annotated[
    Path | None,
    typer.Option(
        "--mapping",
        "-m",
        metavar="MAP.toml",
        help="Says which column of a foreign CSV is which signal, in which unit and frame; or which vehicle of a .tlog, "
        "which topics of a bag.",
        show_default=False,
    ),
]

Truth = Annotated[
    Path | None,
    typer.Option(
        "--truth",
        metavar="CSV",
        help="Known mass of a log over time (columns t_log_s, mass_kg), to compare with.",
        show_default=False,
    ),
]


ProofSeed = Annotated[
    int,
    typer.Option(
        "--seed", metavar="N", help="Of the vehicles that the proof draws, and of its blocks of windows."
    ),
]


def check_seed(seed: int) -> None:
    """Raises SettingError for a seed that cannot be."""
    if seed < 0:
        raise SettingError(f"--seed {seed}: give 0 or more")


def parameter_names(text: str) -> tuple[str, ...]:
    """The parameters of a comma-separated list, in lower case, with underscores."""
    names = (name.strip().lower().replace("-", "_") for name in text.split(","))
    return tuple(dict.fromkeys(name for name in names if name))


def estimator_names(text: str) -> tuple[EstimatorName, ...]:
    """The estimators of a comma-separated list. Raises SettingError for one that does not exist."""
    names = tuple(dict.fromkeys(name.strip().lower() for name in text.split(",") if name.strip()))
    if not names or not set(names) <= set(ESTIMATORS):
        wrong = next((n for n in names if n not in ESTIMATORS), text)
        raise SettingError(f"no estimator {wrong!r}; there are {', '.join(ESTIMATORS)}")
    return cast("tuple[EstimatorName, ...]", names)


def system_name(text: str) -> SystemName:
    """The system of that name. Raises SettingError for one that does not exist."""
    if text not in SYSTEMS:
        raise SettingError(f"no system {text!r}; there are {', '.join(SYSTEMS)}")
    return cast("SystemName", text)


def inputs_of(log: Path, airframe: str | None, mapping: Path | None, truth: Path | None) -> list[Input]:
    """The files that a result is made from: those that were given, and the airframe where it is a file."""
    from rotorid.results.summary import file_input

    own = Path(airframe) if airframe is not None and Path(airframe).is_file() else None
    roles = {"log": log, "airframe": own, "mapping": mapping, "truth": truth}
    return [file_input(role, path) for role, path in roles.items() if path is not None]
