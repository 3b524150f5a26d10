"""The study of public benchmarks: the parts whose data are in the folder, each saved when it is finished."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

from rotorid.errors import SettingError
from rotorid.models.airframe.airframe import airframe_numbers
from rotorid.progress import Progress, Stage, no_progress
from rotorid.simulation.datasets.generation import make_folder
from rotorid.studies.benchmarks import nanodrone, neurobem
from rotorid.studies.benchmarks.nanodrone import BLOCKS
from rotorid.studies.study_files import Curve, Part, Row, load_or_make_part

UNITS: Final = {"position": "m", "velocity": "m/s", "attitude": "rad", "body_rate": "rad/s"}
"""Units of the blocks of the multi-step metric."""

_STEP: Final = 0.01  # s, of the nano-drone benchmark
_IDENTIFIED: Final = ("inertia", "thrust", "drag", "rotor", "torque", "centre", "translational", "angular")


class Size(NamedTuple):
    """Size of the study. nanodrone: of that part. every: rows of NeuroBEM's flights whose errors count."""

    nanodrone: nanodrone.Size
    every: int = 1


FULL: Final = Size(nanodrone.Size())
QUICK: Final = Size(nanodrone.Size(flights=2, windows=10, iterations=3, stride=50, identify=False), every=20)


class Study(NamedTuple):
    """The results."""

    rows: tuple[Row, ...]
    curves: tuple[Curve, ...]


def benchmarks(
    folder: Path, data: Path, *, size: Size = FULL, seed: int = 0, progress: Progress = no_progress
) -> Study:
    """Run the benchmarks whose data are there; finished parts are read from the folder of the study.

    Args:
        folder: of the study.
        data: folder with the folders `nanodrone` and `neurobem` of the data sets; one of them is enough.
        size: of the study.
        seed: of all random numbers.
        progress: is called with the stage and its steps.
    Returns:
        The results.
    Raises:
        SettingError: the folder has none of the data sets.
        RotoridError: a file of a data set cannot be used.
        OutputError: the folder of the study cannot be written.
    """
    if not data.is_dir():
        raise SettingError(f"--data {data}: there is no such folder; give the folder of the public data sets")
    makers: dict[str, Callable[[Path], Part]] = {
        nanodrone.FOLDER: lambda path: _nanodrone(path, size, Stage(progress, "nano-drone", 3)),
        neurobem.FOLDER: lambda path: _neurobem(
            path, size, Stage(progress, "NeuroBEM", len(neurobem.MODELS))
        ),
    }
    present = [name for name in makers if (data / name).is_dir()]
    if not present:
        raise SettingError(
            f"--data {data}: none of the folders {', '.join(makers)}; give the folder of the data sets"
        )
    make_folder(folder)
    rows: list[Row] = []
    curves: list[Curve] = []
    for name in present:
        path = data / name
        files = sorted((f.name, f.stat().st_size) for f in path.iterdir() if f.is_file())
        settings = {"size": json.loads(json.dumps(size)), "seed": seed, "files": files}
        part = load_or_make_part(folder, name, settings, lambda name=name, path=path: makers[name](path))
        rows += part.rows
        curves += part.curves
    return Study(tuple(rows), tuple(curves))


def _nanodrone(folder: Path, size: Size, stage: Stage) -> Part:
    result = nanodrone.nanodrone(folder, size.nanodrone, stage)
    part = nanodrone.FOLDER
    flights = len(nanodrone.TEST)
    rows = [
        Row(part, name, block, value, UNITS[block], setting="published", published=value)
        for name, values in nanodrone.PUBLISHED.items()
        for block, value in zip(BLOCKS, values, strict=True)
    ]
    rows += [
        Row(part, name, block, value, UNITS[block], flights=flights)
        for name, errors in result.errors.items()
        for block, value in nanodrone.sums(errors).items()
    ]
    rows += [
        Row(part, "airframe", name, value, setting=f"std={std:.3g}")
        for name, (value, std) in airframe_numbers(result.airframe).items()
        if name.startswith(_IDENTIFIED)
    ]
    rows += [
        Row("airframe", "rotor speeds", "delay", result.delay, "s"),
        Row("airframe", "identify", "accepted", float(not result.refused), setting=result.refused),
    ]
    curves = []
    for name, errors in result.errors.items():
        t, missing = _STEP * np.arange(1, errors.shape[1] + 1), np.full(errors.shape[1], np.nan)
        curves += [
            Curve(part, name, "", "", t, errors[k], missing, missing, block, UNITS[block])
            for k, block in enumerate(BLOCKS)
        ]
    return Part(tuple(rows), tuple(curves))


def _neurobem(folder: Path, size: Size, stage: Stage) -> Part:
    names, predictions = neurobem.neurobem(folder, size.every, stage)
    part, rows = neurobem.FOLDER, []
    for name, (force, torque) in neurobem.PUBLISHED.items():
        rows += [
            Row(part, f"{name}, 13 flights", "force", force, "N", setting="published", published=force),
            Row(part, f"{name}, 13 flights", "torque", torque, "N m", setting="published", published=torque),
        ]
    for model, prediction in predictions.items():
        for quantity, value in neurobem.rmse(prediction.error).items():
            unit = "N m" if quantity == "torque" else "N"
            rows.append(Row(part, model, quantity, value, unit, flights=len(names)))
        for k, name in enumerate(names):
            own = prediction.error[prediction.flight == k]
            rows.append(Row(part, model, "force", neurobem.rmse(own)["force"], "N", trajectory=name))
            rows.append(Row(part, model, "torque", neurobem.rmse(own)["torque"], "N m", trajectory=name))
        if prediction.inside is not None:
            shares = prediction.inside.mean(axis=0)
            rows += [
                Row(part, model, f"coverage, {axis}", float(share), flights=len(names))
                for axis, share in zip(neurobem.AXES, shares, strict=True)
            ]
    return Part(tuple(rows))
