"""What commands say to a person: results on stdout, progress on stderr and only where a terminal shows it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from rotorid.cache import keep_compiled

if TYPE_CHECKING:
    from rich.console import Console

T = TypeVar("T")


def out() -> Console:
    """The console on stdout, for results."""
    from rich.console import Console

    return Console(highlight=False)


def err() -> Console:
    """The console on stderr, for progress."""
    from rich.console import Console

    return Console(stderr=True, highlight=False)


@contextmanager
def telling(text: str) -> Iterator[Callable[[str], None]]:
    """Show what is under way, while the block runs, and something to tell what it is now."""
    console = err()
    if not console.is_terminal:
        yield lambda _: None
        return
    with console.status(text) as shown:
        yield shown.update


@contextmanager
def status(text: str) -> Iterator[None]:
    """Show that something is under way, while the block runs."""
    console = err()
    if not console.is_terminal:
        yield
        return
    with console.status(text):
        yield


def progress(items: Iterable[T], text: str, total: int | None = None) -> Iterator[T]:
    """The items, with a bar that counts them."""
    console = err()
    if not console.is_terminal:
        yield from items
        return
    from rich.progress import track

    yield from track(items, description=text, total=total, console=console, transient=True)


@contextmanager
def counting(text: str) -> Iterator[Callable[[int, int], None] | None]:
    """Something to tell how much is done and of how much: a bar with the time left, where a terminal shows it."""
    console = err()
    if not console.is_terminal:
        yield None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = TextColumn(text), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("", total=None)
        yield lambda made, total: progress.update(task, completed=made, total=total)


def setup_jax() -> None:
    """Switch on float64 and keep compiled functions between runs. For commands that estimate."""
    import jax

    jax.config.update("jax_enable_x64", True)
    keep_compiled()
