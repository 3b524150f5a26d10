"""`rotorid reproduce`: the studies of the documents on which rotorid's methods are based."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from rotorid.errors import SettingError
from rotorid.progress import Progress
from rotorid.terminal.arguments import folder_option

if TYPE_CHECKING:
    from rotorid.studies.study_files import Curve, Row

STUDIES = ("sesame", "nemo", "lpv", "loop", "identify")


def reproduce(
    study: Annotated[
        str,
        typer.Argument(
            metavar="STUDY",
            help="sesame: seven estimators of a changing mass, on 1250 flights. nemo: the external wrench with wrong physics, "
            "learned residuals and identified physics. lpv: standard and Bayesian identification of what "
            "changes, and LPV control. loop: flying by the mass that is identified in flight. identify: how often the bands of "
            "`rotorid identify` hold the truth, on 200 flights.",
            show_default=False,
        ),
    ],
    output: Annotated[
        Path | None, folder_option("Folder for flights and results. Default: rotorid-STUDY.")
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="The same on few flights: minutes in place of an hour.")
    ] = False,
    flights: Annotated[
        Path | None,
        typer.Option(
            "--flights",
            metavar="FOLDER",
            help="sesame: a data set of `rotorid dataset` to use, in place of flying one.",
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
    if flights is not None and study != "sesame":
        raise SettingError(f"--flights is for sesame; {study} flies its own")
    from rotorid.terminal.console import out, setup_jax, status

    folder = output or Path(f"rotorid-{study}")
    with status("Starting"):
        setup_jax()
        from rotorid.results.files import REPORT, check_folder, write_folder
        from rotorid.studies.study_files import CURVES, RESULTS, curves_parquet, rows_parquet

        check_folder(folder)
    makes: dict[str, Callable[[], _Made]] = {
        "sesame": lambda: _sesame(folder, quick, seed, flights),
        "nemo": lambda: _nemo(folder, quick, seed),
        "lpv": lambda: _lpv(folder, quick, seed),
        "loop": lambda: _loop(folder, quick, seed),
        "identify": lambda: _identify(folder, quick, seed),
    }
    made = makes[study]()
    files = {
        RESULTS: rows_parquet(made.rows),
        CURVES: curves_parquet(made.curves),
        REPORT: made.page.encode(),
    }
    write_folder(folder, files)
    console = out()
    for line in made.headline:
        console.print(line, markup=False, highlight=False)
    console.print(f"Report: {folder / REPORT}", markup=False, soft_wrap=True)


class _Made(NamedTuple):
    rows: Sequence[Row]
    curves: Sequence[Curve]
    page: str
    headline: Sequence[str]


def _sesame(folder: Path, quick: bool, seed: int, flights: Path | None) -> _Made:
    from rotorid.studies.sesame.page import headline, sesame_page
    from rotorid.studies.sesame.study import FULL, QUICK, sesame

    with _bars() as progress:
        found = sesame(folder, size=QUICK if quick else FULL, seed=seed, flights=flights, progress=progress)
    page = sesame_page(found.rows, found.curves, found.flights, found.hard_flights, seed)
    return _Made(found.rows, found.curves, page, headline(found.rows))


def _nemo(folder: Path, quick: bool, seed: int) -> _Made:
    from rotorid.studies.nemo.page import headline, nemo_page
    from rotorid.studies.nemo.study import FULL, QUICK, nemo

    with _bars() as progress:
        found = nemo(folder, size=QUICK if quick else FULL, seed=seed, progress=progress)
    page = nemo_page(found.rows, found.curves, found.flights, seed)
    return _Made(found.rows, found.curves, page, headline(found.rows))


def _lpv(folder: Path, quick: bool, seed: int) -> _Made:
    from rotorid.studies.lpv.page import headline, lpv_study_page
    from rotorid.studies.lpv.study import FULL, QUICK, lpv

    with _bars() as progress:
        found = lpv(folder, size=QUICK if quick else FULL, seed=seed, progress=progress)
    page = lpv_study_page(found.rows, found.curves, seed)
    return _Made(found.rows, found.curves, page, headline(found.rows))


def _loop(folder: Path, quick: bool, seed: int) -> _Made:
    from rotorid.simulation.closed_loop import GATE
    from rotorid.studies.loop.page import headline, loop_page
    from rotorid.studies.loop.study import FULL, QUICK, loop

    with _bars() as progress:
        found = loop(folder, size=QUICK if quick else FULL, seed=seed, progress=progress)
    page = loop_page(found.rows, found.curves, found.flights, GATE, seed)
    return _Made(found.rows, found.curves, page, headline(found.rows))


def _identify(folder: Path, quick: bool, seed: int) -> _Made:
    from rotorid.studies.identify.calibration import FULL, QUICK, WANTED, identify_calibration
    from rotorid.studies.identify.page import headline, identify_calibration_page

    with _bars() as progress:
        found = identify_calibration(folder, size=QUICK if quick else FULL, seed=seed, progress=progress)
    page = identify_calibration_page(found.rows, found.curves, found.flights, found.failed, WANTED, seed)
    return _Made(found.rows, found.curves, page, headline(found.rows, WANTED))


@contextmanager
def _bars() -> Iterator[Progress]:
    """A bar for each stage, where a terminal shows it; else a line as each begins."""
    from rotorid.terminal.console import err

    console = err()
    if not console.is_terminal:
        said: set[str] = set()

        def say(what: str, done: int, total: int) -> None:
            if what not in said:
                said.add(what)
                console.print(f"{what} ...", markup=False)

        yield say
        return
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bars

    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    with Bars(*columns, console=console, transient=True) as bars:
        tasks = {}

        def show(what: str, done: int, total: int) -> None:
            if what not in tasks:
                tasks[what] = bars.add_task(what, total=None)
            bars.update(tasks[what], completed=done, total=max(total, 1))

        yield show
