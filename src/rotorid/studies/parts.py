"""The parts of a study: made by many processes or read from its folder, with word of how far it is, and all of them as one."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from rotorid.progress import Progress, Stage
from rotorid.simulation.datasets.executors import run_local
from rotorid.studies.study_files import Part, kept

Task = TypeVar("Task")


def kept_tasks(
    folder: Path,
    name: str,
    tasks: Sequence[Task],
    asked: Mapping[str, Any],
    make: Callable[[Sequence[Task], Stage], Part],
    progress: Progress,
    among: tuple[str, int, int] | None = None,
) -> Part:
    """A part that is made of tasks, or kept (see `kept`). among: what of, after how many, and how many there are; None: its
    own."""
    what, before, total = among or (name, 0, len(tasks))
    part = kept(
        folder, name.replace(" ", "-"), asked, lambda: make(tasks, Stage(progress, what, total, before))
    )
    progress(what, before + len(tasks), total)
    return part


def by_processes(
    make: Callable[[Task], bytes], tasks: Sequence[Task], workers: int, stage: Stage
) -> list[Any]:
    """What is made of each task as JSON, in the order of the tasks."""
    found: dict[Task, bytes] = {}
    for task, made in run_local(make, tasks, workers):
        found[task] = made
        stage.advance()
    return [json.loads(found[task]) for task in tasks]


def whole(parts: Sequence[Part]) -> Part:
    """All of them as one."""
    return Part(
        tuple(r for part in parts for r in part.rows), tuple(c for part in parts for c in part.curves)
    )
