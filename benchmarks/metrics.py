"""Rows of a benchmark, numbers with unit, direction and tolerance, and the baseline with which they are compared."""

from __future__ import annotations

import dataclasses
import json
import os
import statistics
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Literal

BASELINE = Path(__file__).with_name("baseline.json")


@dataclasses.dataclass(frozen=True)
class Metric:
    """One number. better: which way is better. tolerance: relative change for the worse that `--check` allows, None
    for numbers that depend on the machine. peer: the same number of the peer, where it has one."""

    name: str
    value: float
    unit: str
    better: Literal["higher", "lower"]
    tolerance: float | None = None
    peer: float | None = None
    note: str = ""


@dataclasses.dataclass(frozen=True)
class Result:
    """Rows of a benchmark. absent: why rows of the baseline may be missing; empty where all were measured."""

    metrics: Sequence[Metric]
    absent: str = ""


class WrongResultError(Exception):
    """Two programs that should compute the same do not, so that their times cannot be compared."""


def interleaved(
    calls: Mapping[str, Callable[[], object]], rounds: int, *, pause: float = 0.0
) -> dict[str, list[float]]:
    """Seconds of each call in every round. The calls alternate, and so does their order, so that a busy machine slows
    all of them alike. pause: s before each, in which the threads of the one before come to rest."""
    names = list(calls)
    seconds: dict[str, list[float]] = {name: [] for name in names}
    for k in range(rounds):
        for name in names if k % 2 == 0 else reversed(names):
            time.sleep(pause)
            start = time.perf_counter()
            calls[name]()
            seconds[name].append(time.perf_counter() - start)
    return seconds


def processor_seconds(call: Callable[[], object]) -> float:
    """Processor time of a call, s: of this process and of those that it starts and waits for."""

    def used() -> float:
        times = os.times()  # in steps of 10 ms
        return time.process_time() + times.children_user + times.children_system

    before = used()
    call()
    return used() - before


def interleaved_processor_seconds(
    calls: Mapping[str, Callable[[], object]], rounds: int
) -> dict[str, list[float]]:
    """Processor time of each call in every round, s, in the order of `interleaved`."""
    seconds: dict[str, list[float]] = {name: [] for name in calls}

    def measured(name: str) -> Callable[[], object]:
        return lambda: seconds[name].append(processor_seconds(calls[name]))

    interleaved({name: measured(name) for name in calls}, rounds)
    return seconds


def ratio(peer: Sequence[float], ours: Sequence[float]) -> float:
    """How many times faster ours is: the median over the rounds."""
    return statistics.median(p / o for p, o in zip(peer, ours, strict=True))


def save(results: Mapping[str, Result], known: Collection[str], path: Path = BASELINE) -> None:
    """Write the rows with a tolerance into the baseline. Rows of other benchmarks are kept, and those that a benchmark could
    not measure. known: names of all benchmarks."""
    baseline = {name: rows for name, rows in _read(path).items() if name in known} if path.exists() else {}
    for name, result in results.items():
        kept = baseline.get(name, {}) if result.absent else {}
        rows = {m.name: float(f"{m.value:.4g}") for m in result.metrics if m.tolerance is not None}
        if kept or rows:
            baseline[name] = kept | rows
    order = {name: baseline[name] for name in known if name in baseline}
    path.write_text(json.dumps(order, indent=2) + "\n")


def regressions(results: Mapping[str, Result], known: Collection[str], path: Path = BASELINE) -> list[str]:
    """What contradicts the baseline, a line for each row.

    These are rows that are worse by more than their tolerance, rows with a tolerance that the baseline does not have, rows of
    the baseline that were not measured, unless their benchmark gives a reason, and benchmarks that do not exist.
    known: names of all benchmarks.
    """
    baseline = _read(path)
    found = [
        f"{name}: in {path.name}, but there is no such benchmark" for name in baseline if name not in known
    ]
    for name, result in results.items():
        rows = baseline.get(name, {})
        gated = {m.name: m for m in result.metrics if m.tolerance is not None}
        for row, metric in gated.items():
            if row not in rows:
                found.append(f"{row}: not in {path.name}; add it with: python -m benchmarks {name} --save")
            elif _is_worse(metric, rows[row]):
                found.append(
                    f"{row}: {metric.value:.3g} {metric.unit}, worse than {rows[row]:.3g} in {path.name} "
                    f"(tolerance {metric.tolerance:.0%})"
                )
        if not result.absent:
            found += [f"{row}: in {path.name}, but not measured" for row in rows if row not in gated]
    return found


def _is_worse(metric: Metric, baseline: float) -> bool:
    """Whether a number is worse than in the baseline by more than its tolerance, or not a number."""
    assert metric.tolerance is not None
    if metric.better == "higher":
        return not metric.value >= baseline * (1 - metric.tolerance)
    return not metric.value <= baseline * (1 + metric.tolerance)


def _read(path: Path) -> dict[str, dict[str, float]]:
    return json.loads(path.read_text())
