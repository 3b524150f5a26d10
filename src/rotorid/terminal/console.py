"""Terminal output of the commands: results on stdout, progress on stderr and only in a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

from rotorid.cache import keep_compiled
from rotorid.progress import Progress, no_progress

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from rotorid.results.text import Verdict

T = TypeVar("T")

_WIDEST: Final = 100
_TONES: Final = {"good": "green", "caution": "yellow", "bad": "red"}


def out() -> Console:
    """The console on stdout, for results."""
    from rich.console import Console

    return Console(highlight=False)


def err() -> Console:
    """The console on stderr, for progress."""
    from rich.console import Console

    return Console(stderr=True, highlight=False)


@contextmanager
def status(text: str) -> Iterator[None]:
    """Show what is under way while the block runs."""
    console = err()
    if not console.is_terminal:
        yield
        return
    with console.status(text):
        yield


def count_items(items: Iterable[T], text: str, total: int | None = None) -> Iterator[T]:
    """The items, with a bar that counts them."""
    console = err()
    if not console.is_terminal:
        yield from items
        return
    from rich.progress import track

    yield from track(items, description=text, total=total, console=console, transient=True)


@contextmanager
def progress_bar(text: str) -> Iterator[Progress]:
    """A line with the stage that is under way; where its steps are known, a bar with their number and the time left.

    text: shown until the first report.
    """
    console = err()
    if not console.is_terminal:
        yield no_progress
        return
    from rich.progress import BarColumn, SpinnerColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bars

    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[count]}"),
        TimeRemainingColumn(),
    )
    with Bars(*columns, console=console, transient=True) as bars:
        task = bars.add_task(text, total=None, count="")

        def report(stage: str, done: int, total: int) -> None:
            count = f"{done}/{total}" if total else ""
            bars.update(task, description=stage, completed=done, total=total or None, count=count)

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
