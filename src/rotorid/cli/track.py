"""`rotorid track`: the mass of a vehicle, and what else shows, through a flight."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, cast

import typer

from rotorid.cli.arguments import Log, Mapping
from rotorid.errors import SettingError

if TYPE_CHECKING:
    from rotorid.logs.flight import Flight
    from rotorid.models.airframe import Airframe
    from rotorid.results.summary import Input, Settings, Summary
    from rotorid.results.track import EstimatorName, SystemName

ESTIMATORS: Final = ("ekf", "ukf", "msckf", "swls", "adaptive")
SYSTEMS: Final = ("multirotor", "multirotor-bare")
# the names in `results.track`, which is not imported here for the sake of a quick --help; a test compares

AirframeOption = Annotated[
    str,
    typer.Option(
        "--airframe",
        "-a",
        metavar="AIRFRAME",
        help="A TOML file, or the name of an airframe that comes with rotorid (see `rotorid airframes`).",
        show_default=False,
    ),
]
Estimators = Annotated[
    str,
    typer.Option(
        "--estimator",
        "-e",
        metavar="NAMES",
        help="One or more of ekf, ukf, msckf, swls, adaptive, separated by commas.",
    ),
]
Folder = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        metavar="DIR",
        help="Folder for the results. Default: the log's name with -track, here.",
        show_default=False,
    ),
]


def track(
    log: Log,
    airframe: AirframeOption,
    estimator: Estimators = "ekf,ukf",
    system: Annotated[
        str,
        typer.Option(
            "--system",
            metavar="NAME",
            help="multirotor (with drag, wind and motor lag) or multirotor-bare (mass only).",
        ),
    ] = "multirotor",
    known_mass: Annotated[
        float | None,
        typer.Option(
            "--known-mass",
            metavar="KG",
            help="The mass, where it is known: tracks the thrust scale instead.",
            show_default=False,
        ),
    ] = None,
    mapping: Mapping = None,
    truth: Annotated[
        Path | None,
        typer.Option(
            "--truth",
            metavar="CSV",
            help="Known mass over time (columns t_log_s, mass_kg), to compare with.",
            show_default=False,
        ),
    ] = None,
    output: Folder = None,
) -> None:
    """Track the mass, drag and wind of a vehicle through a flight, and say how sure they are.

    Writes estimates.parquet, summary.json and report.html, a page that opens without a network.
    """
    from rotorid.cli.console import out, setup_jax, status

    folder = output or Path(f"{log.stem}-track")
    names = estimator_names(estimator)
    if system not in SYSTEMS:
        raise SettingError(f"no system {system!r}; there are {', '.join(SYSTEMS)}")
    with status("Starting"):
        setup_jax()
        from rotorid.logs.read import read
        from rotorid.logs.truth import attach_truth
        from rotorid.models.airframe import load_airframe
        from rotorid.results.files import check_folder
        from rotorid.results.summary import Settings, file_input

        check_folder(folder)
        vehicle = load_airframe(airframe)
    with status(f"Reading {log.name}"):
        flight = read(log, mapping)
        if truth is not None:
            flight = attach_truth(flight, truth)
        own = Path(airframe) if Path(airframe).is_file() else None
        roles = {"log": log, "airframe": own, "mapping": mapping, "truth": truth}
        inputs = [file_input(role, path) for role, path in roles.items() if path is not None]
    settings = Settings("track", names, cast("SystemName", system), vehicle.name, known_mass)
    summary = track_and_write(flight, vehicle, settings, folder, inputs)
    from rotorid.cli.track_page import show

    show(summary, folder, out())


def estimator_names(text: str) -> tuple[EstimatorName, ...]:
    """The estimators of a comma-separated list. Raises SettingError for one that does not exist."""
    names = tuple(dict.fromkeys(name.strip().lower() for name in text.split(",") if name.strip()))
    if not names or not set(names) <= set(ESTIMATORS):
        wrong = next((n for n in names if n not in ESTIMATORS), text)
        raise SettingError(f"no estimator {wrong!r}; there are {', '.join(ESTIMATORS)}")
    return cast("tuple[EstimatorName, ...]", names)


def track_and_write(
    flight: Flight,
    airframe: Airframe,
    settings: Settings,
    folder: Path,
    inputs: Sequence[Input] = (),
) -> Summary:
    """Track a flight as the settings say, and write the results into a folder. Shows its stages."""
    from rotorid.cli.console import status
    from rotorid.report.track_page import track_page
    from rotorid.results import track as tracking
    from rotorid.results.files import write_results
    from rotorid.results.motion import motion
    from rotorid.results.summary import summarise
    from rotorid.results.truth import with_true_wind

    tracks = []
    for name in settings.estimators:
        with status(f"Tracking with the {name.upper()}"):
            found = tracking.track(flight, airframe, name, settings.system, known_mass=settings.known_mass)
            tracks.append(with_true_wind(found, flight))
    with status("Writing the report"):
        flown = motion(flight, airframe, float(tracks[0].t[0]), float(tracks[0].t[-1]))
        summary = summarise(tracks, flight, settings, inputs, flown.fastest)
        write_results(folder, tracks, summary, track_page(tracks, flight, flown, summary))
    return summary
