"""`rotorid fleet`: hundreds or thousands of logs, and what changed in each vehicle from flight to flight."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rotorid.cli.arguments import Mapping
from rotorid.cli.interrupts import last_act

if TYPE_CHECKING:
    from rotorid.results.fleet_flight import Known, Task


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
            help="One airframe for all: a TOML file, or a name that `rotorid airframes` lists. Default: by --airframes, or "
            "what the log itself says it is of.",
            show_default=False,
        ),
    ] = None,
    airframes: Annotated[
        Path | None,
        typer.Option(
            "--airframes",
            metavar="MAP",
            help='Which vehicle has which airframe: a TOML file with [airframes] "quad-0*" = "our-quad.toml", or a CSV with '
            "the columns vehicle and airframe.",
            show_default=False,
        ),
    ] = None,
    vehicle_from: Annotated[
        str,
        typer.Option(
            "--vehicle-from",
            metavar="RULE",
            help="Whose flight it is: auto (the autopilot's serial number, else the folder), folder, log (its own words), or a "
            "regular expression whose group, found in the path, names it.",
        ),
    ] = "auto",
    known: Annotated[
        str,
        typer.Option(
            "--known",
            metavar="WHAT",
            help="What is as the airframe says: thrust (the mass is told) or mass (the thrust scale is told).",
        ),
    ] = "thrust",
    identify: Annotated[
        bool,
        typer.Option(
            "--identify",
            help="Also identify each flight's whole airframe: inertia, motor lag, delays. Some 10 s of one core a flight.",
        ),
    ] = False,
    mapping: Mapping = None,
    workers: Annotated[
        int | None,
        typer.Option(
            "--workers",
            "-w",
            metavar="N",
            help="Logs looked at at a time. Default: one for each core.",
            show_default=False,
        ),
    ] = None,
    limit: Annotated[
        float,
        typer.Option(
            "--limit",
            metavar="SECONDS",
            help="How long a log may take: one that takes longer fails by itself, and the others go on. The next run tries it "
            "again.",
        ),
    ] = 600.0,
    ray: Annotated[
        str | None,
        typer.Option(
            "--ray",
            metavar="ADDRESS",
            help="By a Ray cluster at that address; auto: the one that is running; local: one that is started here.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Look at every log of a fleet: each flight's numbers, each vehicle's history, and what changed in it.

    Writes flights.parquet, changes.parquet, summary.json and report.html. A log that was done before with the same airframe is
    not done again, so that a run that was interrupted goes on when it is repeated. One bad log never stops it.
    """
    from rotorid.cli.console import counting, out, status

    with status("Starting"):
        from rotorid.cli.fleet_page import show
        from rotorid.report.fleet_page import fleet_page
        from rotorid.results.files import REPORT, SUMMARY, write_folder
        from rotorid.results.fleet import run_fleet, summarise_fleet
        from rotorid.results.fleet_tables import fleet_files
        from rotorid.results.summary import file_input

        task = dataclasses.replace(
            _task(airframe, airframes, vehicle_from, known, mapping), identify=identify
        )
        own = Path(airframe) if airframe is not None and Path(airframe).is_file() else None
        given = {"airframe": own, "airframes": airframes, "mapping": mapping}
        inputs = [file_input(role, path) for role, path in given.items() if path is not None]
    with (
        counting("Flights") as shown,
        last_act(lambda: f"; what is done is kept in {output}, run it again to go on"),
    ):
        found = run_fleet(sources, output, task, workers=workers, ray_address=ray, limit=limit, shown=shown)
    with status("Writing the report"):
        settings = {
            "sources": list(sources),
            "airframe": airframe,
            "airframes": None if airframes is None else airframes.name,
            "vehicle_from": vehicle_from,
            "known": known,
            "identify": identify,
        }
        summary = summarise_fleet(found, settings, inputs)
        files = fleet_files(found) | {
            SUMMARY: summary.as_json().encode(),
            REPORT: fleet_page(found, summary).encode(),
        }
        write_folder(output, files)
    show(found, summary, output, out())


def _task(
    airframe: str | None, airframes: Path | None, vehicle_from: str, known: str, mapping: Path | None
) -> Task:
    from rotorid.errors import SettingError
    from rotorid.results.fleet_flight import Task
    from rotorid.results.fleet_vehicles import Rules, checked_rule, load_once, read_map

    if airframe is not None and airframes is not None:
        raise SettingError("--airframe is one for all, and --airframes one for each; give one of them")
    if known not in ("thrust", "mass"):
        raise SettingError(f"--known {known}: give thrust or mass")
    told: Known = "mass" if known == "mass" else "thrust"
    if airframe is not None:
        load_once(airframe)
        if Path(airframe).is_file():
            airframe = str(Path(airframe).absolute())
    if mapping is not None:
        from rotorid.logs.options import load_toml

        load_toml(mapping)
    rules = Rules(
        checked_rule(vehicle_from), airframe, () if airframes is None else read_map(airframes.absolute())
    )
    return Task(rules, None if mapping is None else str(mapping.absolute()), told)
