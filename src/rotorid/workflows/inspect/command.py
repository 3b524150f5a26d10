"""`rotorid inspect`: what is in a log, what is wrong with it, and what it can tell."""

from __future__ import annotations

from typing import Annotated

import typer

from rotorid.cli.arguments import Log, Mapping


def inspect(
    log: Log,
    mapping: Mapping = None,
    json: Annotated[bool, typer.Option("--json", help="Print the same for machines.")] = False,
) -> None:
    """Show what is in a log, what the checks found, and what can be identified from it.

    Every signal with its rate; frames, signs, units, clocks and delays, checked
    against each other; for each identification whether this log allows it, and
    what to log or to fly next time where it does not.
    """
    from rotorid.cli.console import out, status
    from rotorid.logs.read import read
    from rotorid.signals.inspection import inspect_flight

    with status(f"Reading {log.name}"):
        flight = read(log, mapping)
    with status("Checking"):
        inspection = inspect_flight(flight)
    if json:
        import json as writer

        typer.echo(writer.dumps(inspection.as_dict(), indent=2, ensure_ascii=False))
        return
    from rotorid.cli.inspect_page import show

    show(inspection, out())
