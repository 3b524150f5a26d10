"""`rotorid fleet`: analysis of many logs, and detection of changes in each vehicle."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rotorid.results.files import REPORT, SUMMARY
from rotorid.terminal import completion
from rotorid.terminal.arguments import Mapping
from rotorid.terminal.interrupts import on_interrupt
from rotorid.terminal.output import print_result

if TYPE_CHECKING:
    from rotorid.workflows.fleet.flight_record import AnalysisSettings, KnownQuantity


def fleet(
    sources: Annotated[
        list[str],
        typer.Argument(
            metavar="FOLDER|GLOB...",
            help="Folders with logs, single logs, or patterns in quotes like 'flights/**/*.ulg'.",
            show_default=False,
        ),
    ],
    output: Annotated[
        Path,
        typer.Option("--output", "-o", metavar="DIR", help="Folder for the results.", show_default=False),
    ],
    airframe: Annotated[
        str | None,
        typer.Option(
            "--airframe",
            "-a",
            metavar="AIRFRAME",
            autocompletion=completion.airframe,
            help="One airframe for all: a TOML file, or a name that `rotorid airframes` lists. Default: by --airframes, or "
            "identified from the log.",
            show_default=False,
        ),
    ] = None,
    airframes: Annotated[
        Path | None,
        typer.Option(
            "--airframes",
            metavar="MAP",
            help='Airframe of each vehicle: a TOML file with [airframes] "quad-0*" = "our-quad.toml", or a CSV with '
            "the columns vehicle and airframe.",
            show_default=False,
        ),
    ] = None,
    vehicle_from: Annotated[
        str,
        typer.Option(
            "--vehicle-from",
            metavar="RULE",
            autocompletion=completion.one_of(("auto", "folder", "log")),
            help="Name of the vehicle: auto (the autopilot's serial number, else the folder), folder, log (as in the log), or "
            "a regular expression whose group, found in the path, is the name.",
        ),
    ] = "auto",
    known: Annotated[
        str,
        typer.Option(
            "--known",
            metavar="WHAT",
            autocompletion=completion.one_of(("thrust", "mass")),
            help="Held fixed: thrust (the mass is estimated) or mass (the thrust scale is estimated).",
        ),
    ] = "thrust",
    identify: Annotated[
        bool,
        typer.Option(
            "--identify",
            help="Also identify each flight's whole airframe: inertia, motor lag, delays. Takes some 10 s per flight.",
        ),
    ] = False,
    mapping: Mapping = None,
    workers: Annotated[
        int | None,
        typer.Option(
            "--workers",
            "-w",
            metavar="N",
            help="Number of logs analysed in parallel. Default: number of cores.",
            show_default=False,
        ),
    ] = None,
    limit: Annotated[
        float,
        typer.Option(
            "--limit",
            metavar="SECONDS",
            help="Time limit for a log. A log that exceeds it fails; the next run tries it again.",
        ),
    ] = 600.0,
    ray: Annotated[
        str | None,
        typer.Option(
            "--ray",
            metavar="ADDRESS",
            help="Address of a Ray cluster; auto: the running one; local: start one here.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Analyse all logs of a fleet: estimates of each flight, the history of each vehicle, and detected changes.

    Writes flights.parquet, changes.parquet, summary.json and report.html. Logs that were analysed before with the same settings
    are skipped, so that the same command resumes an interrupted run. A failed log does not stop the run.
    """
    from rotorid.terminal.console import progress_bar, status

    with status("Starting"):
        from rotorid.results.files import file_input, write_folder
        from rotorid.workflows.fleet.fleet import run_fleet, summarise_fleet
        from rotorid.workflows.fleet.page import fleet_page
        from rotorid.workflows.fleet.tables import fleet_files
        from rotorid.workflows.fleet.terminal import show

        analysis = _analysis_settings(airframe, airframes, vehicle_from, known, mapping, identify)
        own_airframe = Path(airframe) if airframe is not None and Path(airframe).is_file() else None
        files = {"airframe": own_airframe, "airframes": airframes, "mapping": mapping}
        inputs = [file_input(role, path) for role, path in files.items() if path is not None]
    with (
        progress_bar("Analysing") as progress,
        on_interrupt(lambda: f"; results so far are saved in {output}, the same command resumes the run"),
    ):
        results = run_fleet(
            sources, output, analysis, workers=workers, ray_address=ray, limit=limit, progress=progress
        )
    with status("Writing the report"):
        settings = {
            "sources": list(sources),
            "airframe": airframe,
            "airframes": None if airframes is None else airframes.name,
            "vehicle_from": vehicle_from,
            "known": known,
            "identify": identify,
        }
        summary = summarise_fleet(results, settings, inputs)
        contents = fleet_files(results) | {
            SUMMARY: summary.to_json().encode(),
            REPORT: fleet_page(results, summary).encode(),
        }
        write_folder(output, contents)
    print_result(summary.to_json, lambda console: show(results, summary, output, console), output / REPORT)


def _analysis_settings(
    airframe: str | None,
    airframes: Path | None,
    vehicle_from: str,
    known: str,
    mapping: Path | None,
    identify: bool,
) -> AnalysisSettings:
    from rotorid.errors import SettingError
    from rotorid.workflows.fleet.flight_record import AnalysisSettings
    from rotorid.workflows.fleet.vehicles import (
        SelectionRules,
        check_vehicle_rule,
        load_cached_airframe,
        read_map,
    )

    if airframe is not None and airframes is not None:
        raise SettingError("give either --airframe (for all logs) or --airframes (for each vehicle)")
    if known not in ("thrust", "mass"):
        raise SettingError(f"--known {known}: must be thrust or mass")
    known_quantity: KnownQuantity = "mass" if known == "mass" else "thrust"
    if airframe is not None:
        load_cached_airframe(airframe)
        if Path(airframe).is_file():
            airframe = str(Path(airframe).absolute())
    if mapping is not None:
        from rotorid.logs.options import load_toml

        load_toml(mapping)
    rules = SelectionRules(
        check_vehicle_rule(vehicle_from),
        airframe,
        () if airframes is None else read_map(airframes.absolute()),
    )
    return AnalysisSettings(
        rules, None if mapping is None else str(mapping.absolute()), known_quantity, identify
    )
