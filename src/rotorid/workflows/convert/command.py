"""`rotorid convert`: conversion of a log to a flight table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rotorid.terminal.arguments import Log, Mapping
from rotorid.terminal.output import print_result

if TYPE_CHECKING:
    from rich.console import Console


def convert(
    log: Log,
    output: Annotated[
        Path,
        typer.Argument(
            metavar="OUT", help="File of the flight table: .csv, .parquet or .mcap.", show_default=False
        ),
    ],
    mapping: Mapping = None,
) -> None:
    """Convert a log to a flight table: CSV, Parquet or MCAP.

    The table has one row per time stamp and one column per quantity, in SI units, the world frame east-north-up and the
    body frame forward-left-up. An empty cell is a missing measurement. An MCAP file has one channel per quantity, for
    viewers such as Foxglove.
    """
    from rotorid.errors import SettingError
    from rotorid.logs.read import read
    from rotorid.logs.write import check_ending, write_table
    from rotorid.results.files import to_json
    from rotorid.terminal.console import status
    from rotorid.workflows.convert.summary import summarise_table

    check_ending(output)
    if output.exists() and log.exists() and output.samefile(log):
        raise SettingError(f"{output}: is the input log; give another name")
    with status(f"Reading {log.name}"):
        flight = read(log, mapping)
    with status(f"Writing {output.name}"):
        write_table(flight, output)
        summary = summarise_table(flight, output)

    def show(console: Console) -> None:
        size = f"{summary['rows']} rows, {len(summary['columns'])} columns, {flight.duration:.1f} s"
        console.print(f"{output}: {size}", soft_wrap=True, markup=False)
        console.print("Signals: " + ", ".join(flight.signals), markup=False)
        if summary["missing"]:
            console.print("Not in this log: " + ", ".join(summary["missing"]), markup=False)
        for note in flight.notes:
            console.print(f"Note: {note}", markup=False)

    print_result(lambda: to_json(summary), show)
