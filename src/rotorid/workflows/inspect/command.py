"""`rotorid inspect`: the signals of a log, the results of the checks, and what can be identified from it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rotorid.errors import RotoridError
from rotorid.terminal.arguments import LOG_FORMATS, Mapping
from rotorid.terminal.command_group import error_text

if TYPE_CHECKING:
    from rotorid.signals.inspection.inspection import Inspection


def inspect(
    logs: Annotated[
        list[Path],
        typer.Argument(metavar="LOG...", help=f"One or many flight logs: {LOG_FORMATS}", show_default=False),
    ],
    mapping: Mapping = None,
    json: Annotated[
        bool, typer.Option("--json", help="Print the same as JSON; a list where several logs are given.")
    ] = False,
) -> None:
    """Show the signals of a log, the results of the checks, and what can be identified from it.

    The checks compare signals with each other to find wrong frames, signs, units, clocks and delays. For each
    quantity that cannot be identified, the command recommends what to log or to fly next time. Of several logs, those
    that cannot be read are named at the end.
    """
    summaries: list[dict[str, Any]] = []
    errors: list[RotoridError] = []
    for i, log in enumerate(logs):
        try:
            inspection = _inspection(log, mapping)
        except RotoridError as error:
            errors.append(error)
            continue
        if json:
            from rotorid.workflows.inspect.summary import summary

            summaries.append(summary(inspection))
        else:
            from rotorid.terminal.console import out
            from rotorid.workflows.inspect.terminal import show

            if i > len(errors):
                typer.echo()
            show(inspection, out())
    if json and (summaries or len(logs) > 1):
        import json as writer

        content = summaries[0] if len(logs) == 1 else summaries
        typer.echo(writer.dumps(content, indent=2, ensure_ascii=False))
    for error in errors[:-1]:
        typer.echo(f"rotorid: {error_text(error)}", err=True)
    if errors:
        raise errors[-1]


def _inspection(log: Path, mapping: Path | None) -> Inspection:
    from rotorid.logs.read import read
    from rotorid.signals.inspection.inspection import inspect_flight
    from rotorid.terminal.console import status

    with status(f"Reading {log.name}"):
        flight = read(log, mapping)
    with status("Checking"):
        return inspect_flight(flight)
