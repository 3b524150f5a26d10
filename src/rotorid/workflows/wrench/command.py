"""`rotorid wrench`: the external force and torque on a vehicle over a flight, and its contacts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rotorid.errors import SettingError
from rotorid.estimators.registry import FLIGHT_OBSERVERS, check_observer, estimator_label, help_text
from rotorid.results.files import REPORT, SUMMARY
from rotorid.terminal.arguments import (
    AirframeOrMass,
    Log,
    Mapping,
    MassOption,
    Mcap,
    ModelOption,
    Span,
    airframe_file,
    airframe_of,
    folder_option,
    input_files,
    mass_and_std,
)
from rotorid.terminal.completion import one_of
from rotorid.terminal.output import print_result

if TYPE_CHECKING:
    from rotorid.learning.model_files import LearnedModel
    from rotorid.logs.flight import Flight
    from rotorid.models.airframe.airframe import Airframe
    from rotorid.results.files import Input
    from rotorid.workflows.wrench.observe import ObserverName
    from rotorid.workflows.wrench.summary import WrenchSummary


def wrench(
    log: Log,
    airframe: AirframeOrMass = None,
    mass: MassOption = None,
    span: Span = None,
    observer: Annotated[
        str,
        typer.Option(
            "--observer",
            metavar="NAME",
            autocompletion=one_of(FLIGHT_OBSERVERS),
            help=f"{help_text(FLIGHT_OBSERVERS)}.",
        ),
    ] = "mo",
    gain: Annotated[
        float,
        typer.Option("--gain", metavar="K", help="Observer gain, 1/s. A larger gain is faster and noisier."),
    ] = 10.0,
    model: ModelOption = None,
    mapping: Mapping = None,
    truth: Annotated[
        Path | None,
        typer.Option(
            "--truth",
            metavar="CSV",
            help="Known force and torque of a log over time (columns t_log_s, fx, fy, fz in N, north-east-down; qx, qy, qz "
            "in N m, forward-right-down), to compare with.",
            show_default=False,
        ),
    ] = None,
    output: Annotated[Path | None, folder_option("Folder for the results. Default: LOG-wrench.")] = None,
    mcap: Mcap = False,
) -> None:
    """Estimate the external force and torque on a vehicle over a flight, and detect contacts: time, force, point.

    Writes estimates.parquet, summary.json and report.html, a self-contained page.
    """
    from rotorid.terminal.console import setup_jax, status

    folder = output or Path(f"{log.stem}-wrench")
    name = observer_name(observer)
    weighed = mass_and_std(mass)
    if not 0.0 < gain < float("inf"):
        raise SettingError(f"the observer gain {gain:g} 1/s must be positive")
    with status("Starting"):
        setup_jax()
        from rotorid.logs.read import read
        from rotorid.logs.truth import attach_truth
        from rotorid.results.files import check_folder

        check_folder(folder)
        vehicle = airframe_of(airframe, None, weighed, span) if airframe else None
    with status(f"Reading {log.name}"):
        flight = read(log, mapping)
        if truth is not None:
            flight = attach_truth(flight, truth)
        inputs = input_files(log, airframe, mapping, truth)
    vehicle = vehicle or airframe_of(None, flight, weighed, span)
    learned = None
    if model is not None:
        from rotorid.learning.model_files import AIRFRAME, MODEL, WEIGHTS
        from rotorid.results.files import file_input

        learned = _model(model, vehicle)
        inputs += [file_input("model", model / part) for part in (MODEL, WEIGHTS, AIRFRAME)]
    others = {} if airframe else airframe_file(vehicle)
    summary = wrench_and_write(flight, vehicle, name, gain, folder, inputs, learned, mcap, others)
    from rotorid.workflows.wrench.terminal import show

    print_result(summary.to_json, lambda console: show(summary, folder, console), folder / REPORT)


def _model(folder: Path, airframe: Airframe) -> LearnedModel:
    """The model of a folder. Raises AirframeError where it is of another vehicle."""
    from rotorid.learning.model_files import check_vehicle, load_model

    model = load_model(folder)
    check_vehicle(model, airframe, folder)
    return model


def observer_name(text: str) -> ObserverName:
    """The observer of that name. Raises SettingError for one that does not exist."""
    name = text.strip().lower()
    check_observer(name)
    return name


def wrench_and_write(
    flight: Flight,
    airframe: Airframe,
    observer: ObserverName,
    gain: float,
    folder: Path,
    inputs: Sequence[Input] = (),
    model: LearnedModel | None = None,
    mcap: bool = False,
    others: dict[str, bytes] | None = None,
) -> WrenchSummary:
    """Observe the wrench of a flight, and write the results into a folder. Shows its stages. gain: 1/s. model: used in
    place of the airframe. mcap: whether estimates are written as MCAP, too. others: more files, contents by name."""
    from rotorid.results.files import write_folder
    from rotorid.terminal.console import status
    from rotorid.workflows.track.files import estimates_files
    from rotorid.workflows.wrench.contacts import find_contacts
    from rotorid.workflows.wrench.observe import with_residual_model, with_rotors, wrench_system
    from rotorid.workflows.wrench.observe import wrench as observe
    from rotorid.workflows.wrench.page import wrench_page
    from rotorid.workflows.wrench.parameter_uncertainty import parameter_stds
    from rotorid.workflows.wrench.rotor_faults import without_lost_thrust
    from rotorid.workflows.wrench.summary import WrenchSettings, summarise_wrench

    airframe = airframe if model is None else model.airframe
    with status("Preparing the flight"):
        command_rate = flight["rotor_command"].rate if "rotor_command" in flight else None
        flight, faults = without_lost_thrust(with_rotors(flight, airframe), airframe, command_rate)
        system = wrench_system(flight, airframe)
        message = ""
        if model is not None:
            system, message = with_residual_model(system, model, flight), model.description
    settings = WrenchSettings("wrench", observer, gain, airframe.name, system.rotor_input, message)
    with status(f"Observing the wrench: {estimator_label(observer)}"):
        stds = parameter_stds(airframe, system)
        track = observe(flight, system, observer, gain=gain, stds=stds, model=model, faults=faults)
    with status("Writing the report"):
        contacts = find_contacts(track)
        summary = summarise_wrench(track, contacts, flight, settings, inputs)
        files = estimates_files([track.track], mcap, flight.time_origin) | {
            SUMMARY: summary.to_json().encode(),
            REPORT: wrench_page(track, flight, summary).encode(),
        }
        write_folder(folder, files | (others or {}))
    return summary
