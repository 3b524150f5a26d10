"""Estimators exported as C: time of a step, size of code, state, scratch and stack, and how far they are from JAX.

Compiled by this machine's C compiler with -O3, as the exported Makefile does; stack: of the deepest calls together, by
-fstack-usage. What they are given is draw_samples from their models, with missing measurements, outliers and a gap.

The unit of the time of a step is a product of two 10 x 10 matrices (benchmarks/matrix_product.c), compiled with the same flags
and measured in turn with the step: a faster machine is faster at both.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Literal

from benchmarks import flights
from benchmarks.metrics import Metric, WrongResultError, ratio
from rotorid import adaptive, ekf, load_airframe, msckf, swls, ukf
from rotorid.estimators.base import AbstractEstimator
from rotorid.estimators.onboard.folder import GOLDEN_ROWS, onboard_files
from rotorid.estimators.onboard.golden_samples import draw_samples
from rotorid.estimators.wrench import acceleration_observer, momentum_observer
from rotorid.learning.model_files import LearnedModel
from rotorid.models.multirotor import multirotor, rigid_multirotor
from rotorid.simulation.wrench.flights import simulate_wrench_flight
from rotorid.workflows.export.onboard import ExportSettings, exported_estimator, hover_inputs
from rotorid.workflows.learn.learn import LearnSettings, learn_model


def learned() -> LearnedModel:
    """What two epochs of `rotorid learn` make of two flights: two networks of 64 nodes."""
    vehicle = load_airframe("fully-actuated-hexarotor")
    flights = [
        simulate_wrench_flight(
            vehicle, "free-flight", seed, duration=6.0, rate=50.0, parameters={"mass": 3.1, "drag": 0.5}
        )
        for seed in range(2)
    ]
    return learn_model(flights, vehicle, LearnSettings(horizon=1, epochs=2, identify=False)).model


def _nemo() -> AbstractEstimator:
    model = learned()
    return exported_estimator("nemo", model.airframe, ExportSettings(), model=model)[0]


MAKERS: dict[str, Callable[[], AbstractEstimator]] = {
    "EKF": lambda: ekf(flights.SYSTEM, agile=False),
    "EKF with agile filter": lambda: ekf(flights.SYSTEM),
    "UKF": lambda: ukf(flights.SYSTEM, agile=False),
    "EKF, multirotor": lambda: ekf(multirotor(load_airframe("px4-sih-quad"))),
    "UKF, multirotor": lambda: ukf(multirotor(load_airframe("px4-sih-quad"))),
    "MSCKF": lambda: msckf(flights.SYSTEM, agile=False),
    "SWLS": lambda: swls(flights.SYSTEM, agile=False),
    "adaptive": lambda: adaptive(flights.SYSTEM),
    "MO": lambda: momentum_observer(rigid_multirotor(load_airframe("quadrotor-x"))),
    "acceleration observer": lambda: acceleration_observer(rigid_multirotor(load_airframe("quadrotor-x"))),
    "NeMO": _nemo,
}
"""Over the 10 states of the seed's multirotor, where nothing else is said; observers over the rigid one, NeMO over a
learned hexarotor."""


def golden_files(name: str, precision: Literal["double", "float"]) -> dict[str, bytes]:
    """The export of one of the estimators, with its golden test."""
    estimator = MAKERS[name]()
    inputs = hover_inputs(estimator.joint.system, GOLDEN_ROWS)  # pyright: ignore[reportArgumentType]
    samples = draw_samples(estimator, inputs)
    return onboard_files(estimator, samples, name="filter", precision=precision)


FULL = tuple(MAKERS), 10
QUICK = ("EKF",), 2
PRECISIONS: tuple[Literal["double", "float"], ...] = ("double", "float")
FLAGS = "-O3 -fstack-usage"
UNIT = Path(__file__).with_name("matrix_product.c")
TURNS = 3
"""Number of times that a step and a matrix product are measured in turn."""


def benchmark(names: Sequence[str], rounds: int) -> list[Metric]:
    """What each of these is on this machine, in double and in single precision. rounds: of the golden samples, in each turn."""
    found = []
    for name in names:
        exports = {precision: golden_files(name, precision) for precision in PRECISIONS}
        with tempfile.TemporaryDirectory() as scratch:
            folders = {precision: Path(scratch) / precision for precision in PRECISIONS}
            with ThreadPoolExecutor(len(folders)) as pool:
                list(pool.map(_build, folders.values(), exports.values()))
            for precision, folder in folders.items():
                found += _measured(folder, exports[precision], f"{name}, C in {precision}", rounds)
    return found


def _build(folder: Path, files: dict[str, bytes]) -> None:
    """The golden test and the matrix product, compiled in a new folder."""
    folder.mkdir()
    for file, content in files.items():
        (folder / file).write_bytes(content)
    compiler = os.environ.get("CC", "cc")
    real = "double" if _width(files) == 8 else "float"
    subprocess.run(["make", "-s", "golden", f"CC={compiler}", f"CFLAGS={FLAGS}"], cwd=folder, check=True)
    unit = [*shlex.split(compiler), *FLAGS.split(), f"-Dreal={real}", str(UNIT), "-o", "unit", "-lm"]
    subprocess.run(unit, cwd=folder, check=True)


def _measured(folder: Path, files: dict[str, bytes], label: str, rounds: int) -> list[Metric]:
    steps, products, difference = [], [], 0.0
    for _ in range(TURNS):
        golden, product = (
            subprocess.run(command, cwd=folder, capture_output=True, text=True)
            for command in (["./golden", "golden.csv", str(rounds)], ["./unit"])
        )
        if golden.returncode or product.returncode:
            raise WrongResultError(f"{label}: {golden.stdout or golden.stderr or product.stdout}".strip())
        difference, step = golden_result(golden.stdout)
        steps.append(step)
        products.append(_last(r"([\d.]+) us a product", product.stdout))
    metrics = [
        Metric(f"{label}: step / matrix product", ratio(steps, products), "x", "lower", 0.3),
        Metric(f"{label}: step", min(steps), "us", "lower"),
        Metric(f"{label}: state", _size(files, "x") / 1000, "kB", "lower", 0.05),
        Metric(f"{label}: scratch", _size(files, "y|work") / 1000, "kB", "lower", 0.05),
        Metric(f"{label}: stack", _stack((folder / "filter.su").read_text()) / 1000, "kB", "lower", 0.3),
        Metric(f"{label}: largest difference from JAX", difference, "1", "lower", 9.0),
    ]
    if shutil.which("size"):
        text = subprocess.run(["size", "filter.o"], cwd=folder, check=True, capture_output=True, text=True)
        code = int(text.stdout.splitlines()[1].split()[0])
        metrics.insert(2, Metric(f"{label}: code", code / 1000, "kB", "lower", 0.1))
    return metrics


def golden_result(said: str) -> tuple[float, float]:
    """Largest difference from JAX, relative to the scale of the number, and us of a step, as a golden test prints them."""
    return _last(r"([\d.e+-]+) of its scale", said), _last(r"([\d.]+) us a step", said)


def _last(pattern: str, text: str) -> float:
    return float(re.findall(pattern, text)[-1])


def _width(files: dict[str, bytes]) -> int:
    """Bytes of a number."""
    return 8 if b"typedef double" in files["filter.h"] else 4


def _size(files: dict[str, bytes], members: str) -> int:
    """Bytes of these members of its structs."""
    header = files["filter.h"].decode()
    return _width(files) * sum(map(int, re.findall(rf"filter_real (?:{members})\[(\d+)\];", header)))


def _stack(usage: str) -> int:
    """Bytes of the stack at most: of the public functions, a program, a shared function if it has one, a part of either, and
    the largest chunk, one in the other."""
    frames: dict[str, int] = {}
    for line in usage.splitlines():
        where, size, _ = line.split("\t")
        frames[where.split(":")[3].split(".")[0]] = int(size)

    def largest(pattern: str) -> int:
        return max((size for name, size in frames.items() if re.fullmatch(pattern, name)), default=0)

    public = frames["filter_step"] + largest(r"filter_(predict|update|read)")
    own, of_shared = (
        sum(largest(rf"f_[a-z]+{shared}{part}") for part in parts)
        for shared, parts in (("", (r"_\d+", r"_\d+_\d+")), (r"_shared\d+", ("", r"_\d+", r"_\d+_\d+")))
    )
    return public + largest(r"f_[a-z]+") + max(own, of_shared)
