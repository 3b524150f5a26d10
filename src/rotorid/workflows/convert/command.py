"""`rotorid convert`: any log that rotorid reads, as a flight table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rotorid.cli.arguments import Log, Mapping


def convert(
    log: Log,
    output: Annotated[
        Path,
        typer.Argument(
            metavar="OUT", help="The table to write: .csv, .parquet or .mcap.", show_default=False
        ),
    ],
    mapping: Mapping = None,
) -> None:
    """Write a log as a flight table, CSV, Parquet or MCAP.

    One row per time stamp, one column per quantity; SI units, world
    east-north-up, body forward-left-up. An empty cell is a missing measurement.
    In MCAP, a channel per quantity, which viewers like Foxglove show.
    """
    from rotorid.cli.console import out, status
    from rotorid.errors import SettingError
    from rotorid.logs.flight import KINDS
    from rotorid.logs.read import read
    from rotorid.logs.write import check_ending, table_columns, write_table

    check_ending(output)
    if output.exists() and log.exists() and output.samefile(log):
        raise SettingError(f"{output}: is the log itself; name another file")
    with status(f"Reading {log.name}"):
        flight = read(log, mapping)
    with status(f"Writing {output.name}"):
        write_table(flight, output)
        columns = table_columns(flight)
    absent = [n for n in KINDS if n not in flight and not n.startswith("true_")]
    console = out()
    console.print(
        f"{output}: {len(columns['t'])} rows, {len(columns)} columns, {flight.duration:.1f} s",
        soft_wrap=True,
        markup=False,
    )
    console.print("Filled: " + ", ".join(flight.signals), markup=False)
    if absent:
        console.print("Not in this log: " + ", ".join(absent), markup=False)
    for note in flight.notes:
        console.print(f"Note: {note}", markup=False)
