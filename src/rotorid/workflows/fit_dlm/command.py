"""`rotorid fit-dlm`: a dynamic linear model of one column of any table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rotorid.cli.arguments import Mcap, folder_option
from rotorid.cli.verdict_page import begin, empty_table, end
from rotorid.errors import SettingError

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from rotorid.results.dlm_summary import DlmSummary


def fit_dlm(
    table: Annotated[
        Path,
        typer.Argument(
            metavar="TABLE",
            help="Any table of numbers: .csv or .parquet, a row a time step.",
            show_default=False,
        ),
    ],
    column: Annotated[
        str,
        typer.Option(
            "--column",
            "-c",
            metavar="NAME",
            help="The column to fit; an empty cell is missing.",
            show_default=False,
        ),
    ],
    trend: Annotated[
        int,
        typer.Option(
            "--trend",
            metavar="ORDER",
            help="0: a constant, 1: a level that wanders, 2: with a slope, 3: curved.",
        ),
    ] = 1,
    seasonal: Annotated[
        int, typer.Option("--seasonal", metavar="PERIOD", help="A season of so many rows; 0 for none.")
    ] = 0,
    regress: Annotated[
        list[str] | None,
        typer.Option(
            "--regress", metavar="NAME", help="A column that acts on it; may be repeated.", show_default=False
        ),
    ] = None,
    arma: Annotated[
        str,
        typer.Option(
            "--arma", metavar="P,Q", help="An ARMA process of these orders, as 1,0.", show_default=False
        ),
    ] = "",
    forecast: Annotated[
        int, typer.Option("--forecast", metavar="ROWS", help="Rows after the last to predict.")
    ] = 0,
    time: Annotated[
        str,
        typer.Option(
            "--time",
            metavar="NAME",
            help="The column of time, for the axis of the figures. Default: t, or the number of the row.",
            show_default=False,
        ),
    ] = "",
    starts: Annotated[int, typer.Option("--starts", metavar="N", help="Searches for the maximum.")] = 8,
    seed: Annotated[int, typer.Option("--seed", "-s", help="Of where the searches start.")] = 0,
    output: Annotated[
        Path | None, folder_option("Folder for the results. Default: the table's name with -dlm, here.")
    ] = None,
    mcap: Mcap = False,
) -> None:
    """Fit a dynamic linear model to a column: trend, season, regressors, their variances by maximum likelihood, with bands.

    Writes estimates.parquet (filtered and smoothed), summary.json and report.html, a page that opens without a network.
    """
    from rotorid.cli.console import out, setup_jax, status

    folder = output or Path(f"{table.stem}-dlm")
    orders = _orders(arma)
    with status("Starting"):
        setup_jax()
        from rotorid.logs.columns import read_columns, unit_of
        from rotorid.results.dlm import DlmSettings, fit_column
        from rotorid.results.files import (
            REPORT,
            SUMMARY,
            check_folder,
            estimates_files,
            write_folder,
        )
        from rotorid.results.summary import file_input

        settings = DlmSettings(column, trend, seasonal, tuple(regress or ()), orders, forecast, starts, seed)
        check_folder(folder)
    with status(f"Reading {table.name}"):
        found = read_columns(table, [column, *settings.regress, *([time] if time else [])], ["t"])
        inputs = [file_input("table", table)]
    with status("Finding the maximum of the likelihood"):
        clock = found.values.get(time or "t")
        fitted = fit_column(found.values, settings, clock, unit_of(column))
    with status("Writing the report"):
        from rotorid.report.dlm_page import dlm_page
        from rotorid.results.dlm_summary import summarise_dlm

        summary = summarise_dlm(fitted, inputs, found.notes)
        files = estimates_files(fitted.tracks, mcap) | {
            SUMMARY: summary.as_json().encode(),
            REPORT: dlm_page(fitted, summary).encode(),
        }
        write_folder(folder, files)
    _show(summary, folder, out())


def _orders(text: str) -> tuple[int, int] | None:
    if not text:
        return None
    try:
        p, q = (int(part) for part in text.split(","))
    except ValueError:
        raise SettingError(f"--arma is two whole numbers with a comma, as 1,0, not {text!r}") from None
    return p, q


def _show(summary: DlmSummary, folder: Path, console: Console) -> None:
    from rich.padding import Padding
    from rich.text import Text

    begin(summary.verdict, console, apart=True)
    console.print(Padding(_parameters(summary), (0, 1)))
    console.print()
    console.print(Padding(_states(summary), (0, 1)))
    console.print()
    text = f"Log-likelihood {summary.log_likelihood:.3f}, AIC {summary.aic:.1f}, BIC {summary.bic:.1f}"
    console.print(Padding(Text(text, style="dim"), (0, 2)))
    end(summary.notes, folder, console)


def _parameters(summary: DlmSummary) -> Table:
    from rotorid.report.dlm_page import spread_text, value_text
    from rotorid.results.words import label, unit_text

    table = empty_table()
    table.add_column("parameter")
    for head in ("value", "±"):
        table.add_column(head, justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    for name, p in summary.parameters.items():
        table.add_row(label(name), value_text(p), spread_text(p), unit_text(p.unit))
    return table


def _states(summary: DlmSummary) -> Table:
    from rotorid.report.dlm_page import quantity_text
    from rotorid.report.learning_page import significant, std_text
    from rotorid.results.words import unit_text

    table = empty_table()
    table.add_column("smoothed")
    for head in ("at the end", "±", "lowest", "highest"):
        table.add_column(head, justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    for name, s in summary.states.items():
        told = [significant(v, s.final_std) for v in (s.final, s.lowest, s.highest)]
        text = quantity_text(name, summary.settings)
        table.add_row(text, told[0], std_text(s.final_std), *told[1:], unit_text(s.unit))
    return table
