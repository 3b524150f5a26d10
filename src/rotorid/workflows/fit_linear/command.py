"""`rotorid fit-linear`: a linear state-space model between signals of a log or columns of a table."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rotorid.results.files import REPORT, SUMMARY
from rotorid.terminal.arguments import LOG_FORMATS, Mapping, folder_option
from rotorid.terminal.console import empty_table, print_footer, print_verdict
from rotorid.terminal.output import print_result

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from rotorid.workflows.fit_linear.data import LinearData
    from rotorid.workflows.fit_linear.fit import LinearSettings
    from rotorid.workflows.fit_linear.summary import LinearSummary


def fit_linear(
    log: Annotated[
        Path,
        typer.Argument(
            metavar="LOG",
            help=f"A flight log: {LOG_FORMATS} Or any table of numbers, .csv or .parquet, with these columns.",
            show_default=False,
        ),
    ],
    inputs: Annotated[
        str,
        typer.Option(
            "--inputs",
            metavar="NAMES",
            help="Inputs, separated by commas: columns (body_rate_setpoint_x) or signals (rotor_command).",
            show_default=False,
        ),
    ],
    outputs: Annotated[
        str,
        typer.Option("--outputs", metavar="NAMES", help="Outputs, separated by commas.", show_default=False),
    ],
    order: Annotated[
        int | None,
        typer.Option(
            "--order",
            metavar="N",
            help="Number of states. Default: chosen by the prediction of held-out rows.",
            show_default=False,
        ),
    ] = None,
    delay: Annotated[
        int | None,
        typer.Option(
            "--delay",
            metavar="ROWS",
            help="Delay of the inputs in rows. Default: chosen by the prediction of held-out rows.",
            show_default=False,
        ),
    ] = None,
    rate: Annotated[
        float | None,
        typer.Option(
            "--rate",
            metavar="HZ",
            help="Rows per second. Default: the rate of the slowest column.",
            show_default=False,
        ),
    ] = None,
    time: Annotated[
        str,
        typer.Option(
            "--time",
            metavar="NAME",
            help="Time column of a table, in s. Default: the column t; without it, one row is 1 s.",
            show_default=False,
        ),
    ] = "",
    mapping: Mapping = None,
    output: Annotated[Path | None, folder_option("Folder for the results. Default: LOG-linear.")] = None,
) -> None:
    """Fit a linear state-space model from inputs to outputs of a log, with bands of its modes and responses.

    Subspace identification, then the prediction-error method. Writes model.json, frequency_response.parquet,
    step_response.parquet, summary.json and report.html.
    """
    from rotorid.terminal.console import progress_bar, setup_jax, status

    folder = output or Path(f"{log.stem}-linear")
    with status("Starting"):
        setup_jax()
        from rotorid.results.files import check_folder, file_input, write_folder
        from rotorid.workflows.fit_linear.files import MODEL, model_json, response_files
        from rotorid.workflows.fit_linear.fit import LinearSettings
        from rotorid.workflows.fit_linear.fit import fit_linear as fit

        names = tuple(tuple(n.strip() for n in text.split(",") if n.strip()) for text in (inputs, outputs))
        settings = LinearSettings(names[0], names[1], order, delay, rate)
        check_folder(folder)
    with status(f"Reading {log.name}"):
        data = _read(log, mapping, settings, time)
        files = [file_input("log", log), *([file_input("mapping", mapping)] if mapping else [])]
    with progress_bar("Trying orders and delays") as progress:
        result = fit(data, settings, progress)
    with status("Writing the report"):
        from rotorid.workflows.fit_linear.page import linear_page
        from rotorid.workflows.fit_linear.summary import summarise_linear

        summary = summarise_linear(result, files)
        write_folder(
            folder,
            {
                MODEL: model_json(result),
                **response_files(result),
                SUMMARY: summary.to_json().encode(),
                REPORT: linear_page(result, summary, log.name).encode(),
            },
        )
    print_result(summary.to_json, lambda console: _show(summary, folder, console), folder / REPORT)


def _read(log: Path, mapping: Path | None, settings: LinearSettings, time: str) -> LinearData:
    """The rows: of a flight log, or of a table that has the columns."""
    from rotorid.errors import LogFormatError, SignalError
    from rotorid.logs.read import read
    from rotorid.logs.tables.columns import read_columns
    from rotorid.workflows.fit_linear.data import flight_columns, flying_times, linear_data, table_columns

    names = (*settings.inputs, *settings.outputs)
    is_table = mapping is None and log.suffix.lower() in (".csv", ".parquet")
    if is_table:
        try:
            table = read_columns(log, [*names, *([time] if time else [])], ["t"])
        except SignalError:
            try:
                flight = read(log)
            except (LogFormatError, SignalError):
                flight = None
            if flight is None:
                raise
        else:
            columns = table_columns(log, table, names, time or ("t" if "t" in table.values else ""))
            n = len(settings.inputs)
            data = linear_data(columns[:n], columns[n:], rate=settings.rate)
            return dataclasses.replace(data, notes=(*data.notes, *table.notes))
    else:
        flight = read(log, mapping)
    data = linear_data(
        flight_columns(flight, settings.inputs),
        flight_columns(flight, settings.outputs),
        rate=settings.rate,
        within=flying_times(flight),
    )
    return dataclasses.replace(data, notes=(*data.notes, *flight.notes))


def _show(summary: LinearSummary, folder: Path, console: Console) -> None:
    from rich.padding import Padding

    print_verdict(summary.verdict, console, separate_lines=True)
    for part in (_modes(summary), _gains(summary), _fits(summary)):
        console.print(Padding(part, (0, 1)))
        console.print()
    print_footer(summary.notes, folder, console)


def _modes(summary: LinearSummary) -> Table:
    from rotorid.workflows.fit_linear.page import number_with_std

    table = empty_table()
    table.add_column("mode")
    for head in ("frequency (Hz)", "std", "damping", "std"):
        table.add_column(head, justify="right", no_wrap=True)
    for k, m in enumerate(summary.model.modes):
        table.add_row(
            str(k + 1),
            *number_with_std(m.frequency, m.frequency_std),
            *number_with_std(m.damping, m.damping_std),
        )
    return table


def _gains(summary: LinearSummary) -> Table:
    from rotorid.results.text import unit_text
    from rotorid.workflows.fit_linear.page import number_with_std

    table = empty_table()
    table.add_column("static gain")
    for head in ("value", "std"):
        table.add_column(head, justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    for g in summary.model.static_gains:
        table.add_row(f"{g.input} to {g.output}", *number_with_std(g.value, g.std), unit_text(g.unit))
    return table


def _fits(summary: LinearSummary) -> Table:
    from rotorid.workflows.fit_linear.page import percent_text

    table = empty_table()
    table.add_column("held-out fit (%)")
    for head in summary.validation.held_out_fit:
        table.add_column(head, justify="right", no_wrap=True)
    for name in next(iter(summary.validation.held_out_fit.values())):
        table.add_row(name, *(percent_text(fits[name]) for fits in summary.validation.held_out_fit.values()))
    return table
