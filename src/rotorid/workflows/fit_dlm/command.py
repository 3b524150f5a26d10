"""`rotorid fit-dlm`: a dynamic linear model of one column of any table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rotorid.errors import SettingError
from rotorid.results.files import REPORT, SUMMARY
from rotorid.terminal.arguments import Mcap, folder_option
from rotorid.terminal.console import empty_table, print_footer, print_verdict
from rotorid.terminal.output import print_result

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from rotorid.workflows.fit_dlm.summary import DlmSummary


def fit_dlm(
    table: Annotated[
        Path,
        typer.Argument(
            metavar="TABLE",
            help="Any table of numbers, .csv or .parquet, with one row for each time step.",
            show_default=False,
        ),
    ],
    column: Annotated[
        str,
        typer.Option(
            "--column",
            "-c",
            metavar="NAME",
            help="The column to fit; empty cells are missing measurements.",
            show_default=False,
        ),
    ],
    trend: Annotated[
        int,
        typer.Option(
            "--trend",
            metavar="ORDER",
            help="0: constant, 1: random-walk level, 2: with a slope, 3: with a curvature.",
        ),
    ] = 1,
    seasonal: Annotated[
        int, typer.Option("--seasonal", metavar="PERIOD", help="Period of a season in rows; 0 for none.")
    ] = 0,
    regress: Annotated[
        list[str] | None,
        typer.Option("--regress", metavar="NAME", help="A regressor; may be repeated.", show_default=False),
    ] = None,
    arma: Annotated[
        str,
        typer.Option(
            "--arma", metavar="P,Q", help="Orders of an ARMA process, for example 1,0.", show_default=False
        ),
    ] = "",
    forecast: Annotated[
        int, typer.Option("--forecast", metavar="ROWS", help="Number of rows to predict after the last.")
    ] = 0,
    time: Annotated[
        str,
        typer.Option(
            "--time",
            metavar="NAME",
            help="Time column, for the axis of the figures. Default: t, or the row number.",
            show_default=False,
        ),
    ] = "",
    starts: Annotated[
        int, typer.Option("--starts", metavar="N", help="Number of searches for the maximum.")
    ] = 8,
    seed: Annotated[
        int, typer.Option("--seed", "-s", help="Seed of the starting points of the searches.")
    ] = 0,
    output: Annotated[Path | None, folder_option("Folder for the results. Default: TABLE-dlm.")] = None,
    mcap: Mcap = False,
) -> None:
    """Fit a dynamic linear model to a column: trend, season, regressors and ARMA, with maximum-likelihood variances.

    Writes estimates.parquet (filtered and smoothed states), summary.json and report.html.
    """
    from rotorid.terminal.console import progress_bar, setup_jax, status

    folder = output or Path(f"{table.stem}-dlm")
    orders = _orders(arma)
    with status("Starting"):
        setup_jax()
        from rotorid.logs.tables.columns import read_columns, unit_of
        from rotorid.results.files import check_folder, file_input, write_folder
        from rotorid.workflows.fit_dlm.fit import DlmSettings, fit_column
        from rotorid.workflows.track.files import estimates_files

        settings = DlmSettings(column, trend, seasonal, tuple(regress or ()), orders, forecast, starts, seed)
        check_folder(folder)
    with status(f"Reading {table.name}"):
        columns = read_columns(table, [column, *settings.regress, *([time] if time else [])], ["t"])
        inputs = [file_input("table", table)]
    with progress_bar("Maximising the likelihood") as progress:
        clock = columns.values.get(time or "t")
        result = fit_column(columns.values, settings, clock, unit_of(column), progress)
    with status("Writing the report"):
        from rotorid.workflows.fit_dlm.page import dlm_page
        from rotorid.workflows.fit_dlm.summary import summarise_dlm

        summary = summarise_dlm(result, inputs, columns.notes)
        files = estimates_files(result.tracks, mcap) | {
            SUMMARY: summary.to_json().encode(),
            REPORT: dlm_page(result, summary).encode(),
        }
        write_folder(folder, files)
    print_result(summary.to_json, lambda console: _show(summary, folder, console), folder / REPORT)


def _orders(text: str) -> tuple[int, int] | None:
    if not text:
        return None
    try:
        p, q = (int(part) for part in text.split(","))
    except ValueError:
        raise SettingError(
            f"--arma must be two whole numbers with a comma, for example 1,0, not {text!r}"
        ) from None
    return p, q


def _show(summary: DlmSummary, folder: Path, console: Console) -> None:
    from rich.padding import Padding
    from rich.text import Text

    print_verdict(summary.verdict, console, separate_lines=True)
    console.print(Padding(_parameters(summary), (0, 1)))
    console.print()
    console.print(Padding(_states(summary), (0, 1)))
    console.print()
    s = summary.statistics
    text = f"Log-likelihood {s.log_likelihood:.3f}, AIC {s.aic:.1f}, BIC {s.bic:.1f}"
    console.print(Padding(Text(text, style="dim"), (0, 2)))
    print_footer(summary.notes, folder, console)


def _parameters(summary: DlmSummary) -> Table:
    from rotorid.results.text import label, unit_text
    from rotorid.workflows.fit_dlm.page import estimate_text, std_cell

    table = empty_table()
    table.add_column("parameter")
    for head in ("value", "std"):
        table.add_column(head, justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    for name, p in summary.parameters.items():
        table.add_row(label(name), estimate_text(p), std_cell(p), unit_text(p.unit))
    return table


def _states(summary: DlmSummary) -> Table:
    from rotorid.results.text import std_text, unit_text, value_text
    from rotorid.workflows.fit_dlm.page import quantity_text

    table = empty_table()
    table.add_column("smoothed state")
    for head in ("final", "std", "lowest", "highest"):
        table.add_column(head, justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    for name, s in summary.states.items():
        values = [value_text(v, s.final_std) for v in (s.final, s.lowest, s.highest)]
        text = quantity_text(name, summary.settings)
        table.add_row(text, values[0], std_text(s.final, s.final_std), *values[1:], unit_text(s.unit))
    return table
