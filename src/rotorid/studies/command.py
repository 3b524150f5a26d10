"""`rotorid reproduce`: reproduces the studies of the documents on which rotorid's methods are based."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from rotorid.errors import SettingError
from rotorid.progress import Progress
from rotorid.terminal.arguments import folder_option
from rotorid.terminal.completion import one_of
from rotorid.terminal.output import open_report

if TYPE_CHECKING:
    from rotorid.studies.study_files import Curve, Row

STUDIES = ("sesame", "nemo", "lpv", "loop", "identify", "rotorpy", "benchmarks")


def reproduce(
    study: Annotated[
        str,
        typer.Argument(
            metavar="STUDY",
            autocompletion=one_of(STUDIES),
            help="sesame: seven estimators of a changing mass, on 1250 flights. nemo: external wrench with model errors, "
            "learned residuals and identified parameters. lpv: identification of linear parameter-varying models, "
            "and LPV control. loop: closed-loop control with the mass estimated in flight. identify: coverage of the "
            "95 % bands of `rotorid identify`, on 200 flights. rotorpy: identify and track on flights of the "
            "simulator RotorPy, which needs pip install 'rotorid[referee]'. "
            "benchmarks: published benchmarks on recorded flights.",
            show_default=False,
        ),
    ],
    output: Annotated[
        Path | None, folder_option("Folder for flights and results. Default: rotorid-STUDY.")
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Use few flights: minutes instead of up to 75 minutes.")
    ] = False,
    flights: Annotated[
        Path | None,
        typer.Option(
            "--flights",
            metavar="FOLDER",
            help="sesame: an existing data set of `rotorid dataset`, instead of simulating one.",
            show_default=False,
        ),
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(
            "--data",
            metavar="FOLDER",
            help="benchmarks: the folder with the public data sets, in folders `nanodrone`, `nanobench`, `neurobem` and "
            "`crazyflie_arpl`.",
            show_default=False,
        ),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", "-s", help="Seed of all random numbers.")] = 0,
) -> None:
    """Reproduce a study: simulate its flights, run all methods, and write one page with the published numbers and ours.

    Finished parts are saved in the folder. If the study is interrupted, repeat the command to resume it.
    """
    if study not in STUDIES:
        raise SettingError(f"no study {study!r}; choose from {', '.join(STUDIES)}")
    if flights is not None and study != "sesame":
        raise SettingError(f"--flights is for sesame only; {study} simulates its own flights")
    if (data is None) == (study == "benchmarks"):
        raise SettingError(
            "benchmarks needs --data FOLDER, the folder of the public data sets"
            if data is None
            else f"--data is for benchmarks only; {study} simulates its own flights"
        )
    from rotorid.terminal.console import out, setup_jax, status

    folder = output or Path(f"rotorid-{study}")
    with status("Starting"):
        setup_jax()
        from rotorid.results.files import REPORT, check_folder, write_folder
        from rotorid.studies.study_files import CURVES, RESULTS, curves_parquet, rows_parquet

        check_folder(folder)
    functions: dict[str, Callable[[], _Results]] = {
        "sesame": lambda: _sesame(folder, quick, seed, flights),
        "nemo": lambda: _nemo(folder, quick, seed),
        "lpv": lambda: _lpv(folder, quick, seed),
        "loop": lambda: _loop(folder, quick, seed),
        "identify": lambda: _identify(folder, quick, seed),
        "rotorpy": lambda: _rotorpy(folder, quick, seed),
        "benchmarks": lambda: _benchmarks(folder, data or Path(), quick, seed),
    }
    results = functions[study]()
    files = {
        RESULTS: rows_parquet(results.rows),
        CURVES: curves_parquet(results.curves),
        REPORT: results.page.encode(),
    }
    write_folder(folder, files)
    console = out()
    for line in results.headline:
        console.print(line, markup=False, highlight=False)
    console.print(f"Report: {folder / REPORT}", markup=False, soft_wrap=True)
    open_report(folder / REPORT)


class _Results(NamedTuple):
    """Rows and curves of a study, its page as HTML, and the lines for the terminal."""

    rows: Sequence[Row]
    curves: Sequence[Curve]
    page: str
    headline: Sequence[str]


def _sesame(folder: Path, quick: bool, seed: int, flights: Path | None) -> _Results:
    from rotorid.studies.sesame.page import headline, sesame_page
    from rotorid.studies.sesame.study import FULL, QUICK, sesame

    with _bars() as progress:
        study = sesame(folder, size=QUICK if quick else FULL, seed=seed, flights=flights, progress=progress)
    page = sesame_page(study.rows, study.curves, study.flights, study.hard_flights, seed)
    return _Results(study.rows, study.curves, page, headline(study.rows))


def _nemo(folder: Path, quick: bool, seed: int) -> _Results:
    from rotorid.studies.nemo.page import headline, nemo_page
    from rotorid.studies.nemo.study import FULL, QUICK, nemo

    with _bars() as progress:
        study = nemo(folder, size=QUICK if quick else FULL, seed=seed, progress=progress)
    page = nemo_page(study.rows, study.curves, study.flights, seed)
    return _Results(study.rows, study.curves, page, headline(study.rows))


def _lpv(folder: Path, quick: bool, seed: int) -> _Results:
    from rotorid.studies.lpv.page import headline, lpv_study_page
    from rotorid.studies.lpv.study import FULL, QUICK, lpv

    with _bars() as progress:
        study = lpv(folder, size=QUICK if quick else FULL, seed=seed, progress=progress)
    page = lpv_study_page(study.rows, study.curves, seed)
    return _Results(study.rows, study.curves, page, headline(study.rows))


def _loop(folder: Path, quick: bool, seed: int) -> _Results:
    from rotorid.simulation.closed_loop import GATE
    from rotorid.studies.loop.page import headline, loop_page
    from rotorid.studies.loop.study import FULL, QUICK, loop

    with _bars() as progress:
        study = loop(folder, size=QUICK if quick else FULL, seed=seed, progress=progress)
    page = loop_page(study.rows, study.curves, study.flights, GATE, seed)
    return _Results(study.rows, study.curves, page, headline(study.rows))


def _identify(folder: Path, quick: bool, seed: int) -> _Results:
    from rotorid.studies.identify.calibration import FULL, QUICK, TARGET_COVERAGE, identify_calibration
    from rotorid.studies.identify.page import headline, identify_calibration_page

    with _bars() as progress:
        study = identify_calibration(folder, size=QUICK if quick else FULL, seed=seed, progress=progress)
    page = identify_calibration_page(
        study.rows, study.curves, study.flights, study.failed, TARGET_COVERAGE, seed
    )
    return _Results(study.rows, study.curves, page, headline(study.rows, TARGET_COVERAGE))


def _rotorpy(folder: Path, quick: bool, seed: int) -> _Results:
    from rotorid.studies.rotorpy.page import headline, rotorpy_page
    from rotorid.studies.rotorpy.study import FULL, QUICK, rotorpy_study

    with _bars() as progress:
        study = rotorpy_study(folder, size=QUICK if quick else FULL, seed=seed, progress=progress)
    page = rotorpy_page(study.rows, study.curves, study.flights, seed)
    return _Results(study.rows, study.curves, page, headline(study.rows))


def _benchmarks(folder: Path, data: Path, quick: bool, seed: int) -> _Results:
    from rotorid.studies.benchmarks.page import benchmarks_page, headline
    from rotorid.studies.benchmarks.study import FULL, QUICK, benchmarks

    with _bars() as progress:
        study = benchmarks(folder, data, size=QUICK if quick else FULL, seed=seed, progress=progress)
    page = benchmarks_page(study.rows, study.curves, seed)
    return _Results(study.rows, study.curves, page, headline(study.rows))


@contextmanager
def _bars() -> Iterator[Progress]:
    """A progress bar for each stage on a terminal, else a line at the start of each stage."""
    from rotorid.terminal.console import err

    console = err()
    if not console.is_terminal:
        started: set[str] = set()

        def print_stage(stage: str, done: int, total: int) -> None:
            if stage not in started:
                started.add(stage)
                console.print(f"{stage} ...", markup=False)

        yield print_stage
        return
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bars

    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    with Bars(*columns, console=console, transient=True) as bars:
        tasks = {}

        def update_bar(stage: str, done: int, total: int) -> None:
            if stage not in tasks:
                tasks[stage] = bars.add_task(stage, total=None)
            bars.update(tasks[stage], completed=done, total=max(total, 1))

        yield update_bar
