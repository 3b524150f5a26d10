"""`rotorid reproduce`: the studies of the documents that rotorid's methods come from, made anew."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from rotorid.errors import SettingError

STUDIES = ("sesame",)


def reproduce(
    study: Annotated[
        str,
        typer.Argument(
            metavar="STUDY",
            help="sesame: seven estimators of a changing mass, on 1250 flights.",
            show_default=False,
        ),
    ],
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="DIR",
            help="Folder for flights and results. Default: rotorid-STUDY.",
            show_default=False,
        ),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="The same on 50 flights: minutes in place of an hour.")
    ] = False,
    flights: Annotated[
        Path | None,
        typer.Option(
            "--flights",
            metavar="FOLDER",
            help="A data set of `rotorid dataset` to use, in place of flying one.",
            show_default=False,
        ),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", "-s", help="Of all that is drawn.")] = 0,
) -> None:
    """Reproduce a study: fly it, run every method, and write one page with the published numbers beside ours.

    What is done already is kept in the folder: a study that was interrupted goes on when the command is repeated.
    """
    if study not in STUDIES:
        raise SettingError(f"no study {study!r}; there are {', '.join(STUDIES)}")
    from rotorid.cli.console import out, setup_jax, status

    folder = output or Path(f"rotorid-{study}")
    with status("Starting"):
        setup_jax()
        from rotorid.report.sesame_page import headline, sesame_page
        from rotorid.results.files import REPORT, check_folder, write_folder
        from rotorid.results.study import CURVES, RESULTS, curves_parquet, rows_parquet
        from rotorid.studies.sesame import FULL, QUICK, sesame

        check_folder(folder)
    with _bars() as progress:
        found = sesame(folder, size=QUICK if quick else FULL, seed=seed, flights=flights, progress=progress)
    page = sesame_page(found.rows, found.curves, found.flights, found.hard_flights, seed)
    files = {
        RESULTS: rows_parquet(found.rows),
        CURVES: curves_parquet(found.curves),
        REPORT: page.encode(),
    }
    write_folder(folder, files)
    console = out()
    for line in headline(found.rows):
        console.print(line, markup=False, highlight=False)
    console.print(f"Report: {folder / REPORT}", markup=False, soft_wrap=True)


@contextmanager
def _bars() -> Iterator[Callable[[str, int, int], None]]:
    """A bar for each thing that is done, where a terminal shows it; else a line as each begins."""
    from rotorid.cli.console import err

    console = err()
    if not console.is_terminal:
        said: set[str] = set()

        def say(what: str, done: int, total: int) -> None:
            if what not in said:
                said.add(what)
                console.print(f"{what} ...", markup=False)

        yield say
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    with Progress(*columns, console=console, transient=True) as bars:
        tasks = {}

        def show(what: str, done: int, total: int) -> None:
            if what not in tasks:
                tasks[what] = bars.add_task(what, total=None)
            bars.update(tasks[what], completed=done, total=max(total, 1))

        yield show
