"""`rotorid lpv`: the LPV model of a vehicle with bounds of its parameters, and a certified gain-scheduled controller."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rotorid.estimators.registry import LOG_ESTIMATORS
from rotorid.results.files import REPORT, SUMMARY
from rotorid.terminal.arguments import AirframeOption, Mapping, folder_option
from rotorid.terminal.completion import one_of
from rotorid.terminal.output import print_result

if TYPE_CHECKING:
    from rotorid.logs.flight import Flight
    from rotorid.models.airframe.airframe import Airframe
    from rotorid.results.files import Input
    from rotorid.workflows.lpv.lpv import LpvSettings
    from rotorid.workflows.lpv.summary import LpvSummary


def lpv(
    airframe: AirframeOption,
    logs: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="LOG...",
            help="Flights of the vehicle, for the bounds of the parameters; optional with --ranges.",
            show_default=False,
        ),
    ] = None,
    ranges: Annotated[
        Path | None,
        typer.Option(
            "--ranges",
            metavar="FILE.toml",
            help="Ranges of the variables (roll = [-0.5, 0.5], yaw_rate, rotor_speed, mass, specific_thrust), in SI units. The "
            "bounds of the parameters follow from them.",
            show_default=False,
        ),
    ] = None,
    subsystem: Annotated[
        str,
        typer.Option(
            "--subsystem",
            metavar="NAME",
            autocompletion=one_of(("attitude-altitude", "full")),
            help="attitude-altitude (eight states: angles, height and their rates) or full (twelve, with x and y).",
        ),
    ] = "attitude-altitude",
    margin: Annotated[
        float,
        typer.Option(
            "--margin",
            metavar="SHARE",
            help="Margin added on each side of bounds from flights, relative to their width.",
        ),
    ] = 0.1,
    components: Annotated[
        int,
        typer.Option(
            "--components",
            metavar="N",
            help="Number of principal components of an additional reduced model; 0: none.",
        ),
    ] = 0,
    control: Annotated[
        bool, typer.Option("--control", help="Design and certify a gain-scheduled controller.")
    ] = False,
    method: Annotated[
        str,
        typer.Option(
            "--method",
            metavar="NAME",
            autocompletion=one_of(("cost", "local")),
            help="Design method: cost (gains and certificate from one program) or local (an LQR at each vertex).",
        ),
    ] = "cost",
    decay: Annotated[
        float,
        typer.Option("--decay", metavar="RATE", help="Smallest decay rate of the control errors, 1/s."),
    ] = 0.0,
    estimator: Annotated[
        str | None,
        typer.Option(
            "--estimator",
            "-e",
            metavar="NAME",
            autocompletion=one_of(LOG_ESTIMATORS),
            help="Track the mass along the flights with this estimator. The range of the mass, with 3 standard deviations, is "
            f"a bound of the model. One of {', '.join(LOG_ESTIMATORS)}.",
            show_default=False,
        ),
    ] = None,
    mapping: Mapping = None,
    output: Annotated[
        Path | None,
        folder_option("Folder for the results. Default: LOG-lpv or FILE-lpv."),
    ] = None,
) -> None:
    """Write a vehicle's nonlinear model in linear parameter-varying form, with bounds from ranges or flights.

    Writes lpv.json, lpv.mat, summary.json and report.html, and with --control the gains and their certificate.
    """
    from rotorid.errors import SettingError
    from rotorid.terminal.console import setup_jax, status

    sources = [*(logs or []), *([ranges] if ranges else [])]
    if not sources:
        raise SettingError("no bounds: give a LOG, or --ranges FILE.toml")
    folder = output or Path(f"{sources[0].stem}-lpv")
    estimator_name = None if estimator is None else estimator.strip().lower()
    if estimator_name is not None and not logs:
        raise SettingError("--estimator tracks the mass along a flight: give a LOG")
    with status("Starting"):
        setup_jax()
        from rotorid.logs.read import read
        from rotorid.models.airframe.airframe import load_airframe
        from rotorid.results.files import check_folder, file_input
        from rotorid.workflows.lpv.lpv import LpvSettings, method_of, subsystem_of

        settings = LpvSettings(
            subsystem_of(subsystem.strip().lower()),
            margin,
            components,
            control,
            method_of(method.strip().lower()),
            decay,
            estimator_name,
        )
        check_folder(folder)
        vehicle = load_airframe(airframe)
    flights, inputs = [], []
    for log in logs or []:
        with status(f"Reading {log.name}"):
            flights.append(read(log, mapping))
            inputs.append(file_input("log", log))
    airframe_file = Path(airframe)
    others = {
        "ranges": ranges,
        "airframe": airframe_file if airframe_file.is_file() else None,
        "mapping": mapping,
    }
    inputs += [file_input(role, path) for role, path in others.items() if path is not None]
    summary = lpv_and_write(flights, ranges, vehicle, settings, folder, inputs)
    from rotorid.workflows.lpv.terminal import show

    print_result(summary.to_json, lambda console: show(summary, folder, console), folder / REPORT)


def lpv_and_write(
    flights: Sequence[Flight],
    ranges: Path | None,
    airframe: Airframe,
    settings: LpvSettings,
    folder: Path,
    inputs: Sequence[Input] = (),
) -> LpvSummary:
    """Build the LPV model and write the results into a folder, with progress messages. inputs: files that were read."""
    from rotorid.estimators.registry import estimator_label
    from rotorid.models.quadrotor.quadrotor import quadrotor
    from rotorid.results.files import write_folder
    from rotorid.terminal.console import progress_bar, status
    from rotorid.workflows.lpv.lpv import build_lpv
    from rotorid.workflows.lpv.page import lpv_page
    from rotorid.workflows.lpv.parameter_ranges import read_ranges
    from rotorid.workflows.lpv.summary import lpv_files, summarise_lpv

    with progress_bar("Building the model") as progress:
        user_ranges = None if ranges is None else read_ranges(ranges, quadrotor(airframe))
        result = build_lpv(flights, user_ranges, airframe, settings, progress)
    with status("Writing the report"):
        notes = [f"{f.source.name}: {note}" for f in flights for note in f.notes]
        notes += [
            f"{f.name}: mass {f.mass_range[0]:.3g} to {f.mass_range[1]:.3g} kg, with 3 standard deviations, tracked by "
            f"{estimator_label(settings.estimator)}"
            for f in result.flights
            if f.mass_range is not None and settings.estimator is not None
        ]
        summary = summarise_lpv(result, inputs, notes)
        files = lpv_files(result) | {
            SUMMARY: summary.to_json().encode(),
            REPORT: lpv_page(result, summary).encode(),
        }
        write_folder(folder, files)
    return summary
