"""What the commands that give a verdict show alike in the terminal: how it begins, its tables, and how it ends."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from rotorid.results.verdict import Verdict

_WIDEST = 100
_TONES = {"good": "green", "caution": "yellow", "bad": "red"}


def begin(verdict: Verdict, console: Console, *, apart: bool = False) -> None:
    """The headline and its details. apart: each detail on a line of its own."""
    from rich.padding import Padding
    from rich.text import Text

    console.width = min(console.width, _WIDEST)
    console.print()
    console.print(Padding(Text(verdict.headline, style=f"bold {_TONES[verdict.tone]}"), (0, 2)))
    for text in verdict.details if apart else filter(None, [" ".join(verdict.details)]):
        console.print(Padding(Text(text), (0, 2)))
    console.print()


def empty_table() -> Table:
    """A table without rows or columns."""
    from rich import box
    from rich.table import Table

    return Table(
        box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="dim", padding=(0, 1, 0, 0)
    )


def end(notes: Sequence[str], folder: Path, console: Console, *, model: bool = False) -> None:
    """The notes, and where the report is. model: whether the folder is a model, which is said."""
    from rich.padding import Padding
    from rich.text import Text

    for note in notes:
        console.print(Padding(Text(f"Note: {note}", style="dim"), (0, 2)))
    console.print()
    if model:
        console.print(Padding(Text.assemble("Model:  ", (str(folder), "bold")), (0, 2)))
    console.print(Padding(Text.assemble("Report: ", (str(folder / "report.html"), "bold")), (0, 2)))
