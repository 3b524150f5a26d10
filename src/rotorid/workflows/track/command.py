"""`rotorid track`: the mass of a vehicle, and what else shows, through a flight."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from rotorid.cli.arguments import (
    AirframeOption,
    Estimators,
    KnownMass,
    Log,
    Mapping,
    Mcap,
    System,
    Truth,
    estimator_names,
    folder_option,
    inputs_of,
    system_name,
)

if TYPE_CHECKING:
    from rotorid.logs.flight import Flight
    from rotorid.models.airframe import Airframe
    from rotorid.results.summary import Input, Settings, Summary

Folder = Annotated[
    Path | None, folder_option("Folder for the results. Default: the log's name with -track, here.")
]


def track(
    log: Log,
    airframe: AirframeOption,
    estimators: Estimators = "ekf,ukf",
    system: System = "multirotor",
    known_mass: KnownMass = None,
    mapping: Mapping = None,
    truth: Truth = None,
    output: Folder = None,
    mcap: Mcap = False,
) -> None:
    """Track the mass, drag and wind of a vehicle through a flight, and say how sure they are.

    Writes estimates.parquet, summary.json and report.html, a page that opens without a network.
    """
    from rotorid.cli.console import out, setup_jax, status

    folder = output or Path(f"{log.stem}-track")
    names, model = estimator_names(estimators), system_name(system)
    with status("Starting"):
        setup_jax()
        from rotorid.logs.read import read
        from rotorid.logs.truth import attach_truth
        from rotorid.models.airframe import load_airframe
        from rotorid.results.files import check_folder
        from rotorid.results.summary import Settings

        check_folder(folder)
        vehicle = load_airframe(airframe)
    with status(f"Reading {log.name}"):
        flight = read(log, mapping)
        if truth is not None:
            flight = attach_truth(flight, truth)
        inputs = inputs_of(log, airframe, mapping, truth)
    settings = Settings("track", names, model, vehicle.name, known_mass)
    summary = track_and_write(flight, vehicle, settings, folder, inputs, mcap)
    from rotorid.cli.track_page import show

    show(summary, folder, out())


def track_and_write(
    flight: Flight,
    airframe: Airframe,
    settings: Settings,
    folder: Path,
    inputs: Sequence[Input] = (),
    mcap: bool = False,
) -> Summary:
    """Track a flight as the settings say, and write the results into a folder. Shows its stages. mcap: whether estimates are
    written as MCAP, too."""
    from rotorid.cli.console import status
    from rotorid.report.track_page import track_page
    from rotorid.results import track as tracking
    from rotorid.results.files import write_results
    from rotorid.results.motion import motion
    from rotorid.results.summary import summarise
    from rotorid.results.truth import with_true_wind
    from rotorid.results.words import estimator_label

    tracks = []
    for name in settings.estimators:
        with status(f"Tracking: {estimator_label(name)}"):
            found = tracking.track(flight, airframe, name, settings.system, known_mass=settings.known_mass)
            tracks.append(with_true_wind(found, flight))
    with status("Writing the report"):
        flown = motion(flight, airframe, float(tracks[0].t[0]), float(tracks[0].t[-1]))
        summary = summarise(tracks, flight, settings, inputs, flown.fastest)
        write_results(folder, tracks, summary, track_page(tracks, flight, flown, summary), mcap)
    return summary
