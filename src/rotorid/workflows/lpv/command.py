"""`rotorid lpv`: the LPV model of a vehicle with bounds of its parameters, and a controller that is certified for them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rotorid.cli.arguments import AirframeOption, Mapping, folder_option

if TYPE_CHECKING:
    from rotorid.logs.flight import Flight
    from rotorid.models.airframe import Airframe
    from rotorid.results.lpv import LpvSettings
    from rotorid.results.lpv_summary import LpvSummary
    from rotorid.results.summary import Input


def lpv(
    airframe: AirframeOption,
    logs: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="LOG...",
            help="Flights of the vehicle, which tell bounds of the parameters; none are needed with --ranges.",
            show_default=False,
        ),
    ] = None,
    ranges: Annotated[
        Path | None,
        typer.Option(
            "--ranges",
            metavar="FILE.toml",
            help="Ranges to take bounds from: roll = [-0.5, 0.5], yaw_rate, rotor_speed, mass, specific_thrust, in SI units.",
            show_default=False,
        ),
    ] = None,
    subsystem: Annotated[
        str,
        typer.Option(
            "--subsystem",
            metavar="NAME",
            help="attitude-altitude (eight states: angles, height and their rates) or full (twelve, with x and y).",
        ),
    ] = "attitude-altitude",
    margin: Annotated[
        float,
        typer.Option(
            "--margin",
            metavar="SHARE",
            help="How much wider than flown bounds are on either side, in parts of their width.",
        ),
    ] = 0.1,
    components: Annotated[
        int,
        typer.Option(
            "--components",
            metavar="N",
            help="Also a model with N principal components as parameters; 0: none.",
        ),
    ] = 0,
    control: Annotated[
        bool, typer.Option("--control", help="Design a gain-scheduled controller, and certify it.")
    ] = False,
    method: Annotated[
        str,
        typer.Option(
            "--method",
            metavar="NAME",
            help="Of the controller: cost (gains and certificate from one program) or local (an LQR at each vertex).",
        ),
    ] = "cost",
    decay: Annotated[
        float,
        typer.Option("--decay", metavar="RATE", help="Least rate in 1/s at which its errors must shrink."),
    ] = 0.0,
    mapping: Mapping = None,
    output: Annotated[
        Path | None,
        folder_option(
            "Folder for the results. Default: the name of the log, or of the ranges, with -lpv, here."
        ),
    ] = None,
) -> None:
    """Write a vehicle's nonlinear model as a linear parameter-varying one, with bounds from ranges or flights.

    Writes lpv.json, lpv.mat, summary.json and report.html, and with --control the gains with their certificate.
    """
    from rotorid.cli.console import out, setup_jax, status
    from rotorid.errors import SettingError

    given = [*(logs or []), *([ranges] if ranges else [])]
    if not given:
        raise SettingError("nothing to take bounds from: give a LOG, or --ranges FILE.toml")
    folder = output or Path(f"{given[0].stem}-lpv")
    with status("Starting"):
        setup_jax()
        from rotorid.logs.read import read
        from rotorid.models.airframe import load_airframe
        from rotorid.results.files import check_folder
        from rotorid.results.lpv import LpvSettings, method_of, subsystem_of
        from rotorid.results.summary import file_input

        settings = LpvSettings(
            subsystem_of(subsystem.strip().lower()),
            margin,
            components,
            control,
            method_of(method.strip().lower()),
            decay,
        )
        check_folder(folder)
        vehicle = load_airframe(airframe)
    flights, inputs = [], []
    for log in logs or []:
        with status(f"Reading {log.name}"):
            flights.append(read(log, mapping))
            inputs.append(file_input("log", log))
    own = Path(airframe)
    others = {"ranges": ranges, "airframe": own if own.is_file() else None, "mapping": mapping}
    inputs += [file_input(role, path) for role, path in others.items() if path is not None]
    summary = lpv_and_write(flights, ranges, vehicle, settings, folder, inputs)
    from rotorid.cli.lpv_page import show

    show(summary, folder, out())


def lpv_and_write(
    flights: Sequence[Flight],
    ranges: Path | None,
    airframe: Airframe,
    settings: LpvSettings,
    folder: Path,
    inputs: Sequence[Input] = (),
) -> LpvSummary:
    """Find the LPV model, and write the results into a folder. Shows its stages."""
    from rotorid.cli.console import status
    from rotorid.models.quadrotor import quadrotor
    from rotorid.report.lpv_page import lpv_page
    from rotorid.results.files import REPORT, SUMMARY, write_folder
    from rotorid.results.lpv import find_lpv
    from rotorid.results.lpv_ranges import read_ranges
    from rotorid.results.lpv_summary import lpv_files, summarise_lpv

    with status("Designing the controller" if settings.control else "Finding the model"):
        given = None if ranges is None else read_ranges(ranges, quadrotor(airframe))
        found = find_lpv(flights, given, airframe, settings)
    with status("Writing the report"):
        notes = [f"{f.source.name}: {note}" for f in flights for note in f.notes]
        summary = summarise_lpv(found, inputs, notes)
        files = lpv_files(found) | {
            SUMMARY: summary.as_json().encode(),
            REPORT: lpv_page(found, summary).encode(),
        }
        write_folder(folder, files)
    return summary
