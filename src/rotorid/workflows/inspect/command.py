"""`rotorid inspect`: the signals of a log, the results of the checks, and what can be identified from it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rotorid.errors import RotoridError, SettingError
from rotorid.results.files import REPORT, SUMMARY, check_folder, to_json, write_folder
from rotorid.terminal.arguments import LOG_FORMATS, Mapping, folder_option
from rotorid.terminal.command_group import error_text
from rotorid.terminal.output import current_output, open_report

if TYPE_CHECKING:
    from rotorid.signals.inspection.inspection import Inspection


def inspect(
    logs: Annotated[
        list[Path],
        typer.Argument(metavar="LOG...", help=f"One or many flight logs: {LOG_FORMATS}", show_default=False),
    ],
    mapping: Mapping = None,
    output: Annotated[
        Path | None,
        folder_option(
            "Folder for summary.json and report.html, for one log only. Default: nothing is written."
        ),
    ] = None,
) -> None:
    """Show the signals of a log, the results of the checks, and what can be identified from it.

    The checks compare signals with each other to find wrong frames, signs, units, clocks and delays. For each
    quantity that cannot be identified, the command recommends what to log or to fly next time. If some of several logs
    cannot be read, they are listed at the end.
    """
    if output is None and current_output().is_opened:
        raise SettingError("--open needs --output DIR, the folder for the report")
    if output is not None:
        if len(logs) > 1:
            raise SettingError("--output is for one log; give one log, or leave it out")
        check_folder(output)
    is_json = current_output().is_json
    summaries: list[dict[str, Any]] = []
    errors: list[RotoridError] = []
    for i, log in enumerate(logs):
        try:
            inspection = _inspection(log, mapping)
        except RotoridError as error:
            errors.append(error)
            continue
        if output is not None:
            _write(inspection, output)
        if is_json:
            from rotorid.workflows.inspect.summary import summary

            summaries.append(summary(inspection))
        else:
            from rotorid.terminal.console import out
            from rotorid.workflows.inspect.terminal import show

            if i > len(errors):
                typer.echo()
            show(inspection, out(is_asked_for=True))
        if output is not None:
            open_report(output / REPORT)
    if is_json and (summaries or len(logs) > 1):
        typer.echo(to_json(summaries[0] if len(logs) == 1 else summaries).encode(), nl=False)
    for error in errors[:-1]:
        typer.echo(f"rotorid: {error_text(error)}", err=True)
    if errors:
        raise errors[-1]


def _write(inspection: Inspection, folder: Path) -> None:
    from rotorid.terminal.console import status
    from rotorid.workflows.inspect.page import inspection_page
    from rotorid.workflows.inspect.summary import summary

    with status("Writing the report"):
        files = {SUMMARY: to_json(summary(inspection)), REPORT: inspection_page(inspection)}
        write_folder(folder, {name: text.encode() for name, text in files.items()})


def _inspection(log: Path, mapping: Path | None) -> Inspection:
    from rotorid.logs.read import read
    from rotorid.signals.inspection.inspection import inspect_flight
    from rotorid.terminal.console import status

    with status(f"Reading {log.name}"):
        flight = read(log, mapping)
    with status("Checking"):
        return inspect_flight(flight)
