"""Arguments and options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Log = Annotated[
    Path,
    typer.Argument(
        metavar="LOG",
        help="A flight log: PX4 .ulg, ArduPilot .BIN, Crazyflie micro-SD log, flight table (.csv, "
        ".parquet), or any CSV with --mapping.",
        show_default=False,
    ),
]

Mapping = Annotated[
    Path | None,
    typer.Option(
        "--mapping",
        "-m",
        metavar="MAP.toml",
        help="Says which column of a foreign CSV is which signal, in which unit and frame.",
        show_default=False,
    ),
]
