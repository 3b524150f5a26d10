"""Parts of a study that consist of tasks, with progress; a part is read from its files or made by several processes."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from rotorid.progress import Progress, Stage
from rotorid.simulation.datasets.executors import run_local
from rotorid.studies.study_files import Part, load_or_make_part

Task = TypeVar("Task")


def load_or_run_tasks(
    folder: Path,
    name: str,
    tasks: Sequence[Task],
    settings: Mapping[str, Any],
    make: Callable[[Sequence[Task], Stage], Part],
    progress: Progress,
    batch: tuple[str, int, int] | None = None,
) -> Part:
    """A part that consists of tasks, read from its files or made (see `load_or_make_part`).

    Args:
        folder: of the study.
        name: of the part.
        tasks: of the part.
        settings: all that the results depend on, as JSON.
        make: runs the tasks.
        progress: is called with the name of the stage, the number of finished tasks and their total number.
        batch: if the part is a batch of a stage: the name of the stage, the number of tasks in earlier batches, and the
            number of all tasks. Default: the part is a stage.

    Returns:
        The results.
    """
    stage, previous, total = batch or (name, 0, len(tasks))
    part = load_or_make_part(
        folder,
        name.replace(" ", "-"),
        settings,
        lambda: make(tasks, Stage(progress, stage, total, previous)),
    )
    progress(stage, previous + len(tasks), total)
    return part


def run_tasks(make: Callable[[Task], bytes], tasks: Sequence[Task], workers: int, stage: Stage) -> list[Any]:
    """The results of tasks, run in several processes, in the order of the tasks. make: returns JSON."""
    results: dict[Task, bytes] = {}
    for task, result in run_local(make, tasks, workers):
        results[task] = result
        stage.advance()
    return [json.loads(results[task]) for task in tasks]


def join_parts(parts: Sequence[Part]) -> Part:
    """The rows and curves of several parts as one part."""
    return Part(
        tuple(r for part in parts for r in part.rows), tuple(c for part in parts for c in part.curves)
    )
