"""`rotorid inspect`: the signals of a log, the results of the checks, and what can be identified from it."""

from __future__ import annotations

from typing import Annotated

import typer

from rotorid.terminal.arguments import Log, Mapping


def inspect(
    log: Log,
    mapping: Mapping = None,
    json: Annotated[bool, typer.Option("--json", help="Print the same as JSON.")] = False,
) -> None:
    """Show the signals of a log, the results of the checks, and what can be identified from it.

    The checks compare signals with each other to find wrong frames, signs, units, clocks and delays. For each
    quantity that cannot be identified, the command recommends what to log or to fly next time.
    """
    from rotorid.logs.read import read
    from rotorid.signals.inspection.inspection import inspect_flight
    from rotorid.terminal.console import out, status

    with status(f"Reading {log.name}"):
        flight = read(log, mapping)
    with status("Checking"):
        inspection = inspect_flight(flight)
    if json:
        import json as writer

        from rotorid.workflows.inspect.summary import summary

        typer.echo(writer.dumps(summary(inspection), indent=2, ensure_ascii=False))
        return
    from rotorid.workflows.inspect.terminal import show

    show(inspection, out())
