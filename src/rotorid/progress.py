"""How long work reports its progress: one kind of callback for the whole package.

A function that takes a while has a parameter `progress: Progress = no_progress` and calls it with the stage that is under
way, how many of its steps are done, and how many there are. `rotorid.terminal.console.progress_bar` shows that in a terminal.
"""

from __future__ import annotations

from collections.abc import Callable

Progress = Callable[[str, int, int], None]
"""Called with the stage, the number of steps done in it, and its total number of steps, 0 where that is unknown."""


def no_progress(stage: str, done: int, total: int) -> None:
    """Report nothing."""


class Stage:
    """A stage whose steps are done one by one: `advance` adds some and reports the sum."""

    def __init__(self, progress: Progress, name: str, total: int, done: int = 0) -> None:
        """Report the beginning of the stage.

        Args:
            progress: what to report to.
            name: of the stage, as a user reads it.
            total: its number of steps.
            done: steps that were done before.
        """
        self._progress, self.name, self.total, self.done = progress, name, total, done
        progress(name, done, total)

    def advance(self, steps: int = 1) -> None:
        """Report that more steps are done."""
        self.done += steps
        self._progress(self.name, self.done, self.total)
