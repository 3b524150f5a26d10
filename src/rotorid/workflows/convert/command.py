"""`rotorid convert`: conversion of a log to a flight table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rotorid.terminal.arguments import Log, Mapping


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
    from rotorid.logs.flight import KINDS
    from rotorid.logs.read import read
    from rotorid.logs.write import check_ending, table_columns, write_table
    from rotorid.terminal.console import out, status

    check_ending(output)
    if output.exists() and log.exists() and output.samefile(log):
        raise SettingError(f"{output}: is the input log; give another name")
    with status(f"Reading {log.name}"):
        flight = read(log, mapping)
    with status(f"Writing {output.name}"):
        write_table(flight, output)
        columns = table_columns(flight)
    missing = [n for n in KINDS if n not in flight and not n.startswith("true_")]
    console = out()
    console.print(
        f"{output}: {len(columns['t'])} rows, {len(columns)} columns, {flight.duration:.1f} s",
        soft_wrap=True,
        markup=False,
    )
    console.print("Signals: " + ", ".join(flight.signals), markup=False)
    if missing:
        console.print("Not in this log: " + ", ".join(missing), markup=False)
    for note in flight.notes:
        console.print(f"Note: {note}", markup=False)
