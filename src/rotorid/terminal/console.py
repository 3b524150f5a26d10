"""Terminal output of the commands: results on stdout, progress on stderr, in a terminal or as lines for programs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

from rotorid.cache import keep_compiled
from rotorid.progress import Progress, Stage, no_progress
from rotorid.terminal.log_records import logged_stages
from rotorid.terminal.output import current_output
from rotorid.terminal.progress_lines import progress_lines

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from rotorid.results.text import Verdict

T = TypeVar("T")

_WIDEST: Final = 100
_TONES: Final = {"good": "green", "caution": "yellow", "bad": "red"}


def out(*, is_asked_for: bool = False) -> Console:
    """The console on stdout, for results. is_asked_for: whether `-q` does not silence it."""
    from rich.console import Console

    return Console(highlight=False, quiet=current_output().is_quiet and not is_asked_for)


def err() -> Console:
    """The console on stderr, for progress; with `-q` it is silent and no terminal."""
    from rich.console import Console

    is_quiet = current_output().is_quiet
    return Console(stderr=True, highlight=False, quiet=is_quiet, force_terminal=False if is_quiet else None)


@contextmanager
def status(text: str) -> Iterator[None]:
    """Show what is under way while the block runs, and for how long."""
    with progress_bar(text):
        yield


def count_items(items: Iterable[T], text: str, total: int | None = None) -> Iterator[T]:
    """The items, with a bar that counts them."""
    with progress_bar(text, total or 0) as report:
        stage = Stage(report, text, total or 0)
        for item in items:
            yield item
            stage.advance()


@contextmanager
def progress_bar(text: str, total: int = 0) -> Iterator[Progress]:
    """A line with the stage that is under way and its time; where its steps are known, with their number and the time left.

    text, total: shown until the first report.
    """
    with logged_stages(text) as log, _shown_progress(text, total) as show:

        def report(stage: str, done: int, total: int) -> None:
            log(stage, done, total)
            show(stage, done, total)

        yield report


@contextmanager
def _shown_progress(text: str, total: int) -> Iterator[Progress]:
    with progress_lines(text, total) as report_line:
        if report_line:
            yield report_line
            return
    console = err()
    if not console.is_terminal:
        yield no_progress
        return
    from rich.progress import BarColumn, SpinnerColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
    from rich.progress import Progress as Bars

    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[count]}"),
        TimeElapsedColumn(),
        TextColumn("{task.fields[left]}"),
        TimeRemainingColumn(),
    )
    with Bars(*columns, console=console, transient=True) as bars:
        task, latest = bars.add_task(text, total=total or None, count="", left=""), text

        def report(stage: str, done: int, total: int) -> None:
            nonlocal latest
            if stage != latest:
                latest = stage
                bars.reset(task)  # the times are of the stage
            count, left = (f"{done}/{total}", "left:") if total else ("", "")
            bars.update(task, description=stage, completed=done, total=total or None, count=count, left=left)

        yield report


def setup_jax() -> None:
    """Switch on float64 and keep compiled functions between runs, for commands that estimate."""
    import jax

    jax.config.update("jax_enable_x64", True)
    keep_compiled()


def print_verdict(verdict: Verdict, console: Console, *, separate_lines: bool = False) -> None:
    """Print the headline and its details. separate_lines: each detail on its own line."""
    from rich.padding import Padding
    from rich.text import Text

    console.width = min(console.width, _WIDEST)
    console.print()
    console.print(Padding(Text(verdict.headline, style=f"bold {_TONES[verdict.tone]}"), (0, 2)))
    for text in verdict.details if separate_lines else filter(None, [" ".join(verdict.details)]):
        console.print(Padding(Text(text), (0, 2)))
    console.print()


def empty_table() -> Table:
    """A table without rows or columns."""
    from rich import box
    from rich.table import Table

    return Table(
        box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="dim", padding=(0, 1, 0, 0)
    )


def print_footer(notes: Sequence[str], folder: Path, console: Console, *, has_model: bool = False) -> None:
    """Print the notes of the log and the path of the report. has_model: whether to print the path of the model too."""
    from rich.padding import Padding
    from rich.text import Text

    for note in notes:
        console.print(Padding(Text(f"Note: {note}", style="dim"), (0, 2)))
    console.print()
    if has_model:
        console.print(Padding(Text.assemble("Model:  ", (str(folder), "bold")), (0, 2)))
    console.print(Padding(Text.assemble("Report: ", (str(folder / "report.html"), "bold")), (0, 2)))
