"""The analysis of a fleet of simulated logs: its time and memory, and the changes that it detects.

Vehicles of `PER_VEHICLE` flights each, with loads, centres of mass, rotors and wind that differ from flight to flight; of every
other one the propeller of rotor 2 loses 5 % of its thrust in the middle of its history.

`python -m benchmarks fleet` compares the processor time of `run_fleet`, start of its processes included, with that of reading
the same logs by pyarrow alone, which any analysis of them needs. By itself, for more logs, which are made once and kept, or on
a Ray cluster that it starts:

    python -m benchmarks.fleet FOLDER [--logs 2000] [--seconds 6] [--workers 2] [--ray]
"""

from __future__ import annotations

import argparse
import dataclasses
import itertools
import json
import os
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pyarrow.parquet

from benchmarks.metrics import Metric, interleaved_processor_seconds, ratio
from rotorid.control.setpoints import Move, Setpoints
from rotorid.logs.write import write_table
from rotorid.models.airframe.airframe import Airframe, Quantity, load_airframe
from rotorid.workflows.fleet.fleet import Fleet, run_fleet
from rotorid.workflows.fleet.flight_record import AnalysisSettings
from rotorid.workflows.fleet.vehicles import SelectionRules

FULL = 400, 6.0, 3
QUICK = 4, 6.0, 1

PER_VEHICLE = 50
LOSS = 0.05
ROTOR = 2
AIRFRAME = "px4-sih-quad"
WORKERS = 2


def benchmark(logs: int, seconds: float, rounds: int) -> list[Metric]:
    """Processor time beside that of reading alone, logs per second, memory, and detected changes."""
    settings = AnalysisSettings(SelectionRules(airframe=AIRFRAME))
    with tempfile.TemporaryDirectory() as scratch:
        source = Path(scratch) / "logs"
        make(source, logs, seconds)
        paths, results = (
            sorted(source.rglob("*.parquet")),
            (Path(scratch) / f"{k}" for k in itertools.count()),
        )
        fleets, memory = [], []

        def ours() -> None:
            with Memory(is_own=False) as used:
                fleets.append(run_fleet([source], next(results), settings, workers=WORKERS))
            memory.append(used)

        def reading() -> None:
            for path in paths:
                pyarrow.parquet.read_table(path, use_threads=False)

        reading()
        took = interleaved_processor_seconds({"ours": ours, "reading": reading}, rounds)
    label = f"fleet, {logs} logs"
    changes = [judged(fleet) for fleet in fleets]
    planted = changes[0]["planted changes"]
    return [
        Metric(
            f"{label}: ours / reading by pyarrow", ratio(took["ours"], took["reading"]), "x", "lower", 0.3
        ),
        Metric(f"{label}: processor time of a log", 1e3 * min(took["ours"]) / logs, "ms", "lower"),
        Metric(f"{label}: speed", logs / min(m.seconds for m in memory), "1/s", "higher"),
        Metric(f"{label}: memory of the processes", max(m.largest for m in memory) / 1e6, "MB", "lower", 0.3),
        Metric(
            f"{label}: planted changes not found",
            max(planted - c["found and named"] for c in changes),
            "1",
            "lower",
            0.0,
        ),
        Metric(f"{label}: other changes", max(c["other changes"] for c in changes), "1", "lower", 0.0),
        Metric(f"{label}: failed logs", max(len(fleet.failures) for fleet in fleets), "1", "lower", 0.0),
    ]


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.fleet", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("folder", type=Path, help="where the logs are, or are made")
    parser.add_argument("--logs", type=int, default=2000)
    parser.add_argument("--seconds", type=float, default=6.0, help="length of each flight")
    parser.add_argument("--workers", type=int, default=WORKERS)
    parser.add_argument("--ray", action="store_true")
    options = parser.parse_args()
    jax.config.update("jax_enable_x64", True)
    start = time.perf_counter()
    make(options.folder, options.logs, options.seconds)
    made = time.perf_counter()
    with tempfile.TemporaryDirectory() as out, Memory() as memory:
        task = AnalysisSettings(SelectionRules(airframe=AIRFRAME))
        address = "local" if options.ray else None
        fleet = run_fleet([options.folder], out, task, workers=options.workers, ray_address=address)
    numbers = {
        "logs": fleet.log_count,
        "failed": len(fleet.failures),
        "making them, s": round(made - start, 1),
        "fleet, s": round(memory.seconds, 1),
        "memory, MB": round(memory.largest / 1e6),
        **judged(fleet),
    }
    print(json.dumps(numbers, indent=2))
    return 0


def make(folder: Path, logs: int, seconds: float) -> None:
    """The logs that are not there yet."""
    airframe = load_airframe(AIRFRAME)
    for k in range(logs):
        vehicle, number = divmod(k, PER_VEHICLE)
        path = folder / f"quad-{vehicle:03d}" / f"{number:03d}.parquet"
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            write_table(_flight(airframe, vehicle, number, seconds), path)


def _flight(airframe: Airframe, vehicle: int, number: int, seconds: float) -> Any:
    from rotorid.simulation.free_flight.flight import fly  # the worker processes import this module, too

    rng = np.random.default_rng([vehicle, number])
    chipped = vehicle % 2 == 1 and number >= PER_VEHICLE // 2
    scales = 1.0 + 0.002 * rng.standard_normal(4) - LOSS * chipped * (np.arange(4) == ROTOR)
    x, y = 0.002 * rng.standard_normal(2)
    changed = {
        "mass": Quantity((1.0 + 0.01 * rng.standard_normal(),), "kg"),
        "centre_of_mass": Quantity((x, y, 0.0), "m"),
    }
    own = dataclasses.replace(
        airframe,
        quantities={**airframe.quantities, **changed},
        rotors=tuple(
            dataclasses.replace(r, thrust_scale=float(s))
            for r, s in zip(airframe.rotors, scales, strict=True)
        ),
    )
    moves = (
        Move(1.0, 2.0, tuple(rng.uniform(-2.0, 2.0, 3))),
        Move(3.0, 2.0, tuple(rng.uniform(-2.0, 2.0, 3))),
    )
    air = np.array([*rng.normal(0.0, 1.0, 2), 0.0])
    flight = fly(
        own,
        Setpoints(moves=moves),
        seed=int(rng.integers(2**31)),
        duration=seconds,
        rate=100.0,
        controller=airframe,
        wind=lambda t: np.tile(air, (len(t), 1)),
    )
    measured = {name: signal for name, signal in flight.signals.items() if not name.startswith("true_")}
    return dataclasses.replace(flight, signals=measured, vehicle="", time_origin=1.75e9 + 86_400.0 * number)


def judged(fleet: Fleet) -> dict[str, int]:
    """Planted changes, those found within three flights with their cause, and what was found beside them."""
    planted = found = other = 0
    for vehicle in fleet.vehicles:
        chipped = int(vehicle.name.rpartition("-")[2]) % 2 == 1 and len(vehicle.records) == PER_VEHICLE
        right = [
            c
            for c in vehicle.changes
            if c.parameter == f"rotor_scale_{ROTOR}" and abs(c.number - PER_VEHICLE // 2 - 1) <= 3
        ]
        planted += chipped
        found += bool(chipped and right)
        other += len(vehicle.changes) - (len(right) if chipped else 0)
    return {"planted changes": planted, "found and named": found, "other changes": other}


class Memory:
    """Seconds of a block, and the most memory in bytes of its processes together, without files that they share, sampled twice
    a second. is_own: whether this process counts, too; otherwise, only those below it do."""

    def __init__(self, is_own: bool = True) -> None:
        self._is_own = is_own

    def __enter__(self) -> Memory:
        self.largest, self._done = 0, threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._start = time.perf_counter()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.seconds = time.perf_counter() - self._start
        self._done.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._done.wait(0.5):
            self.largest = max(
                self.largest, sum(map(_memory, _family(os.getpid())[0 if self._is_own else 1 :]))
            )


def _family(process: int) -> list[int]:
    """A process and all below it."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        try:
            parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
        except (ValueError, OSError):
            continue
    found = [process]
    for one in found:
        found += [child for child, parent in parents.items() if parent == one]
    return found


def _memory(process: int) -> int:
    """Bytes of its own, without those of files, such as libraries, that processes share. Cheap: to count pages would slow the
    process down."""
    try:
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
    except OSError:
        return 0
    return sum(1024 * int(line.split()[1]) for line in lines if line.startswith("RssAnon:"))


if __name__ == "__main__":
    sys.exit(main())
