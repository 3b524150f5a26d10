"""The study of public benchmarks: the parts whose data are in the folder, each saved when it is finished."""

from __future__ import annotations

import dataclasses
import functools
import json
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from rotorid.errors import SettingError
from rotorid.logs.flight import Flight
from rotorid.logs.write import write_whole
from rotorid.models.airframe.airframe import Airframe, airframe_numbers, airframe_toml, load_airframe
from rotorid.progress import Progress, Stage, no_progress
from rotorid.simulation.datasets.generation import make_folder
from rotorid.studies.benchmarks import arpl, nanobench, nanodrone, neurobem
from rotorid.studies.benchmarks.nanodrone import BLOCKS
from rotorid.studies.benchmarks.prediction import MultiStepErrors
from rotorid.studies.study_files import Curve, Part, Row, load_or_make_part

UNITS: Final = {"position": "m", "velocity": "m/s", "attitude": "rad", "body_rate": "rad/s"}
"""Units of the blocks of the multi-step metric."""

AIRFRAMES: Final = "airframes"
"""Folder of the identified airframes, in that of the study."""

NANOBENCH_AIRFRAME: Final = "nanobench airframe"
"""Part of the rows of NanoBench's airframes."""

_FILE: Final = "file"  # row of the airframe's file
_STEP: Final = 0.01  # s, of the multi-step metric
_IDENTIFIED: Final = ("inertia", "thrust", "drag", "rotor", "torque", "centre", "translational", "angular")


class Size(NamedTuple):
    """Size of the study. nanodrone, nanobench: of these parts. every: rows of NeuroBEM's flights whose errors count. arpl: time
    that is used of each of ARPL's flights, s."""

    nanodrone: nanodrone.Size
    every: int = 1
    arpl: float = 60.0
    nanobench: nanobench.Size = nanobench.Size()


FULL: Final = Size(nanodrone.Size())
QUICK: Final = Size(
    nanodrone.Size(flights=2, windows=10, iterations=3, stride=50, identify=False),
    every=20,
    arpl=6.0,
    nanobench=nanobench.Size(flights=1, stride=20, identify=False),
)


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
        data: folder with the folders `nanodrone`, `nanobench`, `neurobem` and `crazyflie_arpl` of the data sets; one of them is
            enough.
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
    makers: dict[str, Callable[[PartMaker], list[Part]]] = {
        nanodrone.FOLDER: lambda maker: _nanodrone(maker, size.nanodrone, progress),
        nanobench.FOLDER: lambda maker: _nanobench(maker, size.nanobench, progress),
        neurobem.FOLDER: lambda maker: _neurobem(maker, size, progress),
        arpl.FOLDER: lambda maker: [maker.part(arpl.FOLDER, lambda: _arpl(maker.data, size.arpl, progress))],
    }
    present = [name for name in makers if (data / name).is_dir()]
    if not present:
        raise SettingError(
            f"--data {data}: none of the folders {', '.join(makers)}; give the folder of the data sets"
        )
    make_folder(folder)
    parts: list[Part] = []
    for name in present:
        files = sorted((f.name, f.stat().st_size) for f in (data / name).iterdir() if f.is_file())
        settings = {"size": json.loads(json.dumps(size)), "seed": seed, "files": files}
        parts += makers[name](PartMaker(folder, data / name, settings))
    return Study(
        tuple(r for part in parts for r in part.rows), tuple(c for part in parts for c in part.curves)
    )


@dataclasses.dataclass(frozen=True)
class PartMaker:
    """Loads or makes the parts of a benchmark. folder: of the study. data: of the benchmark. settings: of all its parts."""

    folder: Path
    data: Path
    settings: Mapping[str, Any]

    def part(self, name: str, make: Callable[[], Part]) -> Part:
        """A part, from its files or made."""
        return load_or_make_part(self.folder, name, self.settings, make)


def _nanodrone(maker: PartMaker, size: nanodrone.Size, progress: Progress) -> list[Part]:
    """The parts: the airframe, its errors, and those with a residual."""

    @functools.cache
    def split() -> nanodrone.Split:
        files = sum(len(paths) for paths in nanodrone.flight_paths(maker.data))
        return nanodrone.read_split(maker.data, size, Stage(progress, "nano-drone: flights", files))

    airframe_part = maker.part("nanodrone-airframe", lambda: _airframe(split(), size, progress))
    path = maker.folder / AIRFRAMES / f"{nanodrone.FOLDER}.toml"
    make_folder(path.parent)
    write_whole(path, next(r.setting for r in airframe_part.rows if r.quantity == _FILE).encode())
    airframe = load_airframe(path)

    def physics() -> Part:
        stage = Stage(progress, "nano-drone: prediction", 2)
        rows, curves = _error_rows("nothing changes", nanodrone.unchanged(split(), airframe))
        more = _error_rows("rotorid, physics", nanodrone.physics(split(), airframe, size, stage))
        return Part((*_published_rows(), *rows, *more[0]), (*curves, *more[1]))

    def residual() -> Part:
        stage = Stage(progress, "nano-drone: residual", size.iterations + 2)
        errors = nanodrone.physics_and_residual(split(), airframe, size, stage)
        return Part(*_error_rows("rotorid, physics and residual", errors))

    return [
        airframe_part,
        maker.part("nanodrone-physics", physics),
        maker.part("nanodrone-residual", residual),
    ]


def _airframe(split: nanodrone.Split, size: nanodrone.Size, progress: Progress) -> Part:
    """The identified airframe: its numbers, and its file as text."""

    if size.identify:
        airframe, refused = nanodrone.identified(
            split, _passes("nano-drone: passes of the identification", progress)
        )
    else:
        airframe, refused = nanodrone.prior_airframe(), "not run in the quick form"
    part, flights = "airframe", len(split.training)
    rows = [
        Row(part, "identify", "accepted", float(not refused), setting=refused, flights=flights),
        Row(part, "identify", _FILE, math.nan, setting=airframe_toml(airframe)),
        Row(part, "rotor speeds", "delay", split.delay, "s", flights=flights),
    ]
    rows += [
        Row(part, "number", name, value, _unit(airframe, name), standard_error=std, flights=flights)
        for name, (value, std) in airframe_numbers(airframe).items()
        if name.startswith(_IDENTIFIED) and std > 0.0
    ]
    return Part(tuple(rows))


def _unit(airframe: Airframe, name: str) -> str:
    """The unit of a number, such as "inertia_x"."""
    parents = [parent for parent in airframe.quantities if f"{name}_".startswith(f"{parent}_")]
    return airframe.quantities[max(parents, key=len)].unit


def _passes(stage: str, progress: Progress) -> Progress:
    """Progress of an identification, whose number of passes is not known before."""
    return lambda text, done, total: progress(stage, done, max(total, done + 1))


def _arpl(folder: Path, duration: float, progress: Progress) -> Part:
    flights, estimates = arpl.arpl(folder, duration, _passes("ARPL: passes of the identification", progress))
    rows = []
    for name, (value, std) in estimates.items():
        published, unit = arpl.PUBLISHED[name]
        rows.append(
            Row(
                arpl.FOLDER,
                "rotorid",
                name,
                value,
                unit,
                standard_error=std,
                flights=flights,
                published=published,
            )
        )
    return Part(tuple(rows))


def _nanobench(maker: PartMaker, size: nanobench.Size, progress: Progress) -> list[Part]:
    """A part for each flight that is left out, and the means over them."""
    paths = nanobench.flight_paths(maker.data)

    @functools.cache
    def flights() -> list[Flight]:
        stage, read = Stage(progress, "NanoBench: flights", len(paths)), []
        for path in paths:
            read.append(nanobench.read_nanobench(path))
            stage.advance()
        return read

    make_folder(maker.folder / AIRFRAMES)
    parts = []
    for k, path in enumerate(paths[: size.flights]):

        def split(k: int = k) -> tuple[list[Flight], Flight]:
            return [f for i, f in enumerate(flights()) if i != k], flights()[k]

        parts += _flight_parts(maker, path.stem, split, size, progress)
    return [*parts, _mean_part(parts)]


def _flight_parts(
    maker: PartMaker,
    name: str,
    split: Callable[[], tuple[list[Flight], Flight]],
    size: nanobench.Size,
    progress: Progress,
) -> list[Part]:
    """The parts of a flight of NanoBench that is left out. split: the training flights and this flight."""
    physics = maker.part(f"nanobench-{name}", lambda: _left_out(*split(), name, size, progress))
    path = maker.folder / AIRFRAMES / f"{nanobench.FOLDER}-without-{name}.toml"
    write_whole(path, next(r.setting for r in physics.rows if r.quantity == _FILE).encode())

    def residual() -> Part:
        stage = Stage(progress, f"NanoBench without {name}: residual", nanobench.ITERATIONS)
        airframe = nanobench.over_extended_range(load_airframe(path))
        errors = nanobench.residual_errors(*split(), airframe, size, stage)
        return Part(*_error_rows(nanobench.RESIDUAL, errors, nanobench.FOLDER, 1, name))

    return [physics, maker.part(f"nanobench-residual-{name}", residual)]


def _left_out(
    training: list[Flight], test: Flight, name: str, size: nanobench.Size, progress: Progress
) -> Part:
    """One flight of NanoBench, by models of the others."""
    if size.identify:
        passes = _passes(f"NanoBench without {name}: passes of the identification", progress)
        model = nanobench.identified(training, passes)
    else:
        model = nanobench.Identified(nanobench.prior_airframe(), "not run in the quick form", {})
    stage = Stage(progress, f"NanoBench: prediction of {name}", len(nanobench.MODELS) - 1)
    predicted = nanobench.predictions(training, test, model.airframe, size, stage)
    part, file = NANOBENCH_AIRFRAME, airframe_toml(nanobench.over_logged_commands(model.airframe))
    rows = [
        Row(
            part,
            "identify",
            "accepted",
            float(not model.refused) if size.identify else math.nan,
            trajectory=name,
            setting=model.refused,
        ),
        Row(part, "identify", _FILE, math.nan, trajectory=name, setting=file),
        Row(nanobench.FOLDER, "all", "windows", float(predicted.windows), trajectory=name),
        Row(nanobench.FOLDER, nanobench.CONSTANT_GAIN, "gain", predicted.gain, "N", trajectory=name),
    ]
    for quantity, n in model.numbers.items():
        rows += [
            Row(part, "number", quantity, n.value, n.unit, trajectory=name, standard_error=n.std),
            Row(part, "prior", quantity, n.prior, n.unit, trajectory=name, standard_error=n.prior_std),
        ]
    curves: list[Curve] = []
    for method, errors in predicted.errors.items():
        more = _error_rows(method, errors, nanobench.FOLDER, 1, name)
        rows += more[0]
        curves += more[1]
    return Part(tuple(rows), tuple(curves))


def _mean_part(parts: list[Part]) -> Part:
    """The measure over the windows of all flights of NanoBench."""
    rows = [r for part in parts for r in part.rows]
    windows = {r.trajectory: r.value for r in rows if r.quantity == "windows"}
    total = sum(windows.values())
    own = [
        r
        for r in rows
        if r.part == nanobench.FOLDER and r.method in nanobench.MODELS and r.quantity != "gain"
    ]
    means = [Row(nanobench.FOLDER, "all", "windows", total, flights=len(windows))]
    for method, quantity in dict.fromkeys((r.method, r.quantity) for r in own):
        same = [r for r in own if (r.method, r.quantity) == (method, quantity)]
        value = sum(r.value * windows[r.trajectory] for r in same) / total
        means.append(dataclasses.replace(same[0], value=value, trajectory="", flights=len(same)))
    curves, all_curves = [], [c for part in parts for c in part.curves]
    for method, quantity in dict.fromkeys((c.method, c.quantity) for c in all_curves):
        same_curves = [c for c in all_curves if (c.method, c.quantity) == (method, quantity)]
        mean = sum(c.value * windows[c.trajectory] for c in same_curves) / total
        curves.append(dataclasses.replace(same_curves[0], value=np.asarray(mean), trajectory=""))
    return Part(tuple(means), tuple(curves))


def _published_rows() -> list[Row]:
    return [
        Row(nanodrone.FOLDER, name, block, value, UNITS[block], setting="published", published=value)
        for name, values in nanodrone.PUBLISHED.items()
        for block, value in zip(BLOCKS, values, strict=True)
    ]


def _error_rows(
    model: str,
    errors: MultiStepErrors,
    part: str = nanodrone.FOLDER,
    flights: int = len(nanodrone.TEST),
    trajectory: str = "",
) -> tuple[tuple[Row, ...], tuple[Curve, ...]]:
    """Sums, coverage and curves of a model."""
    rows = [
        Row(part, model, block, value, UNITS[block], trajectory, flights=flights)
        for block, value in nanodrone.sums(errors.mean).items()
    ]
    if errors.coverage is not None:
        rows += [
            Row(part, model, f"coverage, {block}", float(share), "", trajectory, flights=flights)
            for block, share in zip(BLOCKS, errors.coverage, strict=True)
        ]
    t, missing = _STEP * np.arange(1, errors.mean.shape[1] + 1), np.full(errors.mean.shape[1], np.nan)
    curves = [
        Curve(part, model, trajectory, "", t, errors.mean[k], missing, missing, block, UNITS[block])
        for k, block in enumerate(BLOCKS)
    ]
    return tuple(rows), tuple(curves)


def _neurobem(maker: PartMaker, size: Size, progress: Progress) -> list[Part]:
    def make() -> Part:
        stage = Stage(progress, "NeuroBEM: models", len(neurobem.MODELS))
        return _neurobem_part(maker.data, size.every, stage)

    return [maker.part(neurobem.FOLDER, make)]


def _neurobem_part(folder: Path, every: int, stage: Stage) -> Part:
    names, predictions = neurobem.neurobem(folder, every, stage)
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
