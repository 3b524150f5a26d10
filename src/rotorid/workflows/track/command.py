"""`rotorid track`: mass, drag and wind of a vehicle over a flight."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

from rotorid.estimators.registry import TRACK_ESTIMATORS
from rotorid.results.files import REPORT
from rotorid.terminal.arguments import (
    AirframeOrMass,
    KnownMass,
    Log,
    Mapping,
    MassModel,
    MassOption,
    Mcap,
    SameVehicle,
    Span,
    System,
    TrackEstimators,
    Truth,
    airframe_file,
    airframe_of,
    estimator_names,
    folder_option,
    input_files,
    mass_and_std,
    mass_model_of,
    system_name,
)
from rotorid.terminal.output import print_result

if TYPE_CHECKING:
    from rotorid.learning.mass_network_files import TrainedMassModel
    from rotorid.logs.flight import Flight
    from rotorid.models.airframe.airframe import Airframe
    from rotorid.results.files import Input
    from rotorid.workflows.track.summary import Settings, Summary

Folder = Annotated[Path | None, folder_option("Folder for the results. Default: LOG-track.")]

KERNELS: Final = ("rotor_lag.c", "rotor_faults.c")
"""C files that the preparation of a flight may call, see `start_kernels`."""


def track(
    log: Log,
    airframe: AirframeOrMass = None,
    mass: MassOption = None,
    span: Span = None,
    estimators: TrackEstimators = "ekf,ukf",
    system: System = "multirotor",
    known_mass: KnownMass = None,
    model: MassModel = None,
    same_vehicle: SameVehicle = False,
    mapping: Mapping = None,
    truth: Truth = None,
    output: Folder = None,
    mcap: Mcap = False,
) -> None:
    """Track the mass, drag and wind of a vehicle over a flight, each with its standard deviation.

    Writes estimates.parquet, summary.json and report.html, a self-contained page; without --airframe also the airframe that it
    made, airframe.toml.
    """
    from rotorid.terminal.console import setup_jax, status

    folder = output or Path(f"{log.stem}-track")
    names, system_ = estimator_names(estimators, TRACK_ESTIMATORS), system_name(system)
    weighed = mass_and_std(mass)
    with status("Starting"):
        from rotorid.codegen.native import start_kernels

        start_kernels(*KERNELS)
        setup_jax()
        from rotorid.logs.read import read
        from rotorid.logs.truth import attach_truth
        from rotorid.models.airframe.from_log.make import airframe_to_track
        from rotorid.models.airframe.mass import with_mass
        from rotorid.results.files import check_folder
        from rotorid.workflows.track.summary import Settings

        check_folder(folder)
        learned = mass_model_of(model, names, known_mass, same_vehicle)
        vehicle = airframe_of(airframe, None, weighed, span) if airframe else None
        if vehicle is None and learned is not None and span is None:
            vehicle = with_mass(learned.airframe, weighed)
    with status(f"Reading {log.name}"):
        flight = read(log, mapping)
        if truth is not None:
            flight = attach_truth(flight, truth)
        inputs = input_files(log, airframe, mapping, truth, model)
    others = {}
    if vehicle is None:
        made = airframe_of(None, flight, weighed, span)
        others, vehicle = airframe_file(made), airframe_to_track(made, flight)
    settings = Settings("track", names, system_, vehicle.name, known_mass)
    summary = track_and_write(flight, vehicle, settings, folder, inputs, mcap, others, learned)
    from rotorid.workflows.track.terminal import show

    print_result(summary.to_json, lambda console: show(summary, folder, console), folder / REPORT)


def track_and_write(
    flight: Flight,
    airframe: Airframe,
    settings: Settings,
    folder: Path,
    inputs: Sequence[Input] = (),
    mcap: bool = False,
    others: dict[str, bytes] | None = None,
    learned: TrainedMassModel | None = None,
) -> Summary:
    """Track a flight and write the results into a folder, with a status line in the terminal.

    Args:
        flight: as read from its log.
        airframe: of its vehicle.
        settings: estimators, System and known mass.
        folder: see `write_results`.
        inputs: the files that the flight and the airframe were read from.
        mcap: whether to write the estimates as MCAP too.
        others: more files, contents by name.
        learned: the model of an estimator that needs one.
    """
    from rotorid.estimators.registry import estimator_label
    from rotorid.learning.mass_network_files import check_use, identity_findings
    from rotorid.models.registry import system_for
    from rotorid.terminal.console import status
    from rotorid.workflows.track.battery.sag import unlogged_sag, with_unlogged_sag
    from rotorid.workflows.track.files import write_results
    from rotorid.workflows.track.model_errors import model_errors, with_model_errors
    from rotorid.workflows.track.motion import flight_motion
    from rotorid.workflows.track.page import track_page
    from rotorid.workflows.track.plausibility import plausibility_findings
    from rotorid.workflows.track.summary import summarise
    from rotorid.workflows.track.track import (
        common_relative_std,
        prepare_flight,
        track_in_parallel,
        with_doubts,
    )

    with status("Preparing the flight"):
        system = system_for(flight, airframe, settings.system, settings.known_mass)
        if learned is not None:
            check_use(learned, flight, airframe, settings.system, system)
        prepared = prepare_flight(flight, airframe, system)
        common_std = common_relative_std(airframe, settings.known_mass)
        errors = model_errors(prepared.flight, airframe, prepared.t, settings.known_mass)
        doubts = plausibility_findings(prepared.flight, airframe, prepared.t)
        doubts = (*prepared.findings, *doubts, *errors.findings(airframe.name))
        if learned is not None:
            doubts = (*doubts, *identity_findings(learned, flight))
    tracks, sags = [], []
    with status(f"Tracking: {', '.join(map(estimator_label, settings.estimators))}"):
        for tracked in track_in_parallel(prepared, settings.estimators, settings.system, common_std, learned):
            tracked = with_model_errors(tracked, prepared.flight, errors)
            sag = unlogged_sag(tracked, prepared.flight)
            tracks.append(with_doubts(with_unlogged_sag(tracked, prepared.flight), doubts))
            sags += [] if sag is None else [sag.finding()]
    with status("Writing the report"):
        motion = flight_motion(prepared.flight, airframe, float(tracks[0].t[0]), float(tracks[0].t[-1]))
        summary = summarise(tracks, flight, settings, inputs, motion.fast_speed, (*doubts, *sags[:1]))
        write_results(folder, tracks, summary, track_page(tracks, flight, motion, summary), mcap, others)
    return summary
