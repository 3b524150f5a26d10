"""The command `rotorid track` on a log of a simulated flight, from its start to its report.

The unit is the start of Python and JAX, with one operation of JAX and the log read by pyarrow: what every program on JAX does
with this log. Both are programs of their own, run in turn, and compared by their processor time. "First run" is with empty
caches, so that it traces and compiles the estimators; later runs find their code in the cache.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.identify import flown
from benchmarks.metrics import Metric, interleaved_processor_seconds, processor_seconds, ratio
from rotorid import write_table

FULL = 60.0, 5, "ekf,ukf", True
QUICK = 12.0, 1, "ekf", False
BARE = """\
import sys
import jax
import pyarrow.parquet
pyarrow.parquet.read_table(sys.argv[1])
(jax.numpy.ones(3) + 1.0).block_until_ready()
"""


def benchmark(seconds: float, rounds: int, estimators: str, is_cold: bool) -> list[Metric]:
    """Processor times of first and later runs, beside the start of Python and JAX. is_cold: whether the first run begins with
    empty caches and is measured."""
    with tempfile.TemporaryDirectory() as scratch:
        log = write_table(flown(seconds)[0], Path(scratch) / "flight.parquet")
        environment = {name: v for name, v in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        if is_cold:
            environment["ROTORID_CACHE"] = str(Path(scratch) / "cache")
        walls: list[float] = []

        def run(*command: str) -> None:
            start = time.perf_counter()
            done = subprocess.run(
                [sys.executable, *command], env=environment, cwd=scratch, capture_output=True, text=True
            )
            if done.returncode:
                raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()}")
            walls.append(time.perf_counter() - start)

        def track() -> None:
            options = ("--airframe", "px4-sih-quad", "--estimators", estimators, "-q")
            run("-m", "rotorid", "track", str(log), *options)

        def bare() -> None:
            run("-c", BARE, str(log))

        bare()
        first = processor_seconds(track)
        first_wall = walls[-1]
        walls.clear()
        took = interleaved_processor_seconds({"track": track, "bare": bare}, rounds)
    label = f"track, {seconds:g} s of flight"
    cold = [
        Metric(f"{label}, first run / start of JAX", first / min(took["bare"]), "x", "lower", 0.3),
        Metric(f"{label}, first run: processor time", first, "s", "lower"),
        Metric(f"{label}, first run: time", first_wall, "s", "lower"),
    ]
    return [
        Metric(f"{label}: ours / start of JAX", ratio(took["track"], took["bare"]), "x", "lower", 0.3),
        Metric(f"{label}: processor time", min(took["track"]), "s", "lower"),
        *(cold if is_cold else []),
    ]
