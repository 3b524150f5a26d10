"""Estimators exported as C: time of a step, size of code, state, scratch and stack, and how far they are from JAX.

Compiled by this machine's C compiler with -O3, as the exported Makefile does; stack: of the deepest calls together, by
-fstack-usage. What they are given is draw_samples from their models, with missing measurements, outliers and a gap.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal

from benchmarks import flights
from benchmarks.metrics import Metric
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


def benchmark(names: Sequence[str], rounds: int) -> list[Metric]:
    """What each of these is on this machine, in double and in single precision."""
    found = []
    for name in names:
        for precision in ("double", "float"):
            files = golden_files(name, precision)
            with tempfile.TemporaryDirectory() as folder:
                found += _measured(Path(folder), files, f"{name}, C in {precision}", rounds)
    return found


def _measured(folder: Path, files: dict[str, bytes], label: str, rounds: int) -> list[Metric]:
    for file, content in files.items():
        (folder / file).write_bytes(content)
    compiler = os.environ.get("CC", "cc")
    subprocess.run(
        ["make", "-s", "golden", f"CC={compiler}", "CFLAGS=-O3 -fstack-usage"], cwd=folder, check=True
    )
    said = subprocess.run(
        ["./golden", "golden.csv", str(rounds)], cwd=folder, check=True, capture_output=True, text=True
    ).stdout
    off, step = (
        float(re.findall(pattern, said)[-1])
        for pattern in (r"([\d.e+-]+) of its scale", r"([\d.]+) us a step")
    )
    metrics = [
        Metric(f"{label}: step", step, "us", "lower"),
        Metric(f"{label}: state", _size(files, "x") / 1000, "kB", "lower"),
        Metric(f"{label}: scratch", _size(files, "y|work") / 1000, "kB", "lower"),
        Metric(f"{label}: stack", _stack((folder / "filter.su").read_text()) / 1000, "kB", "lower"),
        Metric(f"{label}: most off from JAX", off, "1", "lower"),
    ]
    if shutil.which("size"):
        text = subprocess.run(["size", "filter.o"], cwd=folder, check=True, capture_output=True, text=True)
        code = int(text.stdout.splitlines()[1].split()[0])
        metrics.insert(1, Metric(f"{label}: code", code / 1000, "kB", "lower"))
    return metrics


def _size(files: dict[str, bytes], members: str) -> int:
    """Bytes of these members of its structs."""
    header = files["filter.h"].decode()
    width = 8 if "typedef double" in header else 4
    return width * sum(map(int, re.findall(rf"filter_real (?:{members})\[(\d+)\];", header)))


def _stack(usage: str) -> int:
    """Bytes of the stack at most: of the public functions, a program, a part of it and the largest chunk, one in the other."""
    frames: dict[str, int] = {}
    for line in usage.splitlines():
        where, size, _ = line.split("\t")
        frames[where.split(":")[3].split(".")[0]] = int(size)

    def largest(pattern: str) -> int:
        return max((size for name, size in frames.items() if re.fullmatch(pattern, name)), default=0)

    public = frames["filter_step"] + largest(r"filter_(predict|update|read)")
    return public + sum(map(largest, (r"f_[a-z]+", r"f_[a-z]+_\d+", r"f_[a-z]+_\d+_\d+")))
