"""Reading logs: MB/s of each reader, beside the packages that read the same format.

rotorid's readers give a whole Flight (SI units, ENU and FLU, common time); the peers give the log's own messages. A
recorded flight is read where one is found, and a made flight table otherwise.
"""

from __future__ import annotations

import os
import statistics
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

from benchmarks import flights
from benchmarks.metrics import Metric, interleaved
from rotorid import Flight, read, write_table
from rotorid.logs import Signal

PEERS = ("pyulog", "pymavlink")
FULL = 3, 300.0
QUICK = 1, 1.0

RECORDED = {
    "PX4 .ulg": ("px4_sih/dev.ulg", "pyulog"),
    "ArduPilot .BIN": ("ardupilot_sitl/dev.BIN", "pymavlink"),
    "Crazyflie": ("crazyflie_arpl/log15", None),
}


def recorded_flights() -> Path:
    """The folder of recorded flights."""
    return Path(os.environ.get("ROTORID_FLIGHTS", Path(__file__).parents[2] / "shared" / "flights"))


def absent() -> str:
    """Why rows of recorded logs are not measured; empty where they are."""
    folder = recorded_flights()
    missing = [path for path, _ in RECORDED.values() if not (folder / path).is_file()]
    return f"no {' and '.join(missing)} in {folder} (set ROTORID_FLIGHTS)" if missing else ""


def benchmark(rounds: int, table_seconds: float, peers: set[str]) -> list[Metric]:
    """MB/s of every reader that finds a file."""
    folder, found = recorded_flights(), []
    for name, (path, peer) in RECORDED.items():
        if (folder / path).is_file():
            found += _measure(name, folder / path, rounds, peer if peer in peers else None)
    with tempfile.TemporaryDirectory() as scratch:
        for ending in (".csv", ".parquet"):
            path = write_table(_table(table_seconds), Path(scratch) / f"flight{ending}")
            found += _measure(f"flight table {ending}", path, rounds, None)
    return found


def _measure(name: str, path: Path, rounds: int, peer: str | None) -> list[Metric]:
    size = path.stat().st_size / 1e6
    calls: dict[str, Callable[[], object]] = {"ours": lambda: read(path)}
    if peer:
        calls[peer] = {"pyulog": _pyulog, "pymavlink": _pymavlink}[peer](path)
    read(path)
    took = interleaved(calls, rounds)
    theirs = size / statistics.median(took[peer]) if peer else None
    speed = Metric(
        f"read {name}",
        size / statistics.median(took["ours"]),
        "MB/s",
        "higher",
        None,
        theirs,
        f"{size:.1f} MB",
    )
    if not peer:
        return [speed]
    ratio = statistics.median(p / o for p, o in zip(took[peer], took["ours"], strict=True))
    return [Metric(f"read {name}: {peer} / ours", ratio, "x", "higher", 0.5), speed]


def _pyulog(path: Path) -> Callable[[], object]:
    from pyulog import ULog

    return lambda: ULog(str(path))


def _pymavlink(path: Path) -> Callable[[], object]:
    from pymavlink.DFReader import DFReader_binary

    def every_message() -> int:
        log, count = DFReader_binary(str(path)), 0
        while log.recv_msg() is not None:
            count += 1
        return count

    return every_message


def _table(seconds: float) -> Flight:
    made = flights.make(1, seconds)
    times, u, y = (np.asarray(leaf)[0] for leaf in (made.samples.t, made.samples.u, made.samples.y))
    columns = {
        "attitude": y[:, :4],
        "position": y[:, 4:7],
        "velocity": y[:, 7:],
        "thrust": u[:, :1],
        "body_rate": u[:, 1:],
    }
    signals = {name: Signal(name, times, values, "made") for name, values in columns.items()}
    return Flight(signals, Path("made"), "simulation")
