"""Flights of RotorPy on disk: each is simulated once, and read from its file afterwards."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from rotorid.errors import RotoridError
from rotorid.logs.flight import Flight
from rotorid.logs.read import read
from rotorid.logs.write import write_table
from rotorid.simulation.datasets.generation import make_folder
from rotorid.studies.rotorpy.flights import Task, simulate_task

FLIGHTS = "flights"
"""Folder of the flights, in that of the study."""


def load_or_simulate(folder: Path, task: Task) -> Flight:
    """The flight of a task.

    Args:
        folder: of the study.
        task: names the file, with its duration.
    Returns:
        The flight, from its file if that can be read.
    Raises:
        SettingError: RotorPy is not installed and the flight is not on disk.
        OutputError: the file cannot be written.
    """
    path = folder / FLIGHTS / f"{task.name}-{task.duration:g}s.parquet"
    try:
        flight = read(path)
    except (RotoridError, OSError):
        make_folder(path.parent)
        flight = simulate_task(task)
        write_table(flight, path)
    return dataclasses.replace(flight, source=Path(task.name), format="simulation")
