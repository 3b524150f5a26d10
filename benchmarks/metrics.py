"""What a benchmark gives: numbers with unit, direction and tolerance; and the baseline that they are held against."""

from __future__ import annotations

import dataclasses
import json
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Literal

BASELINE = Path(__file__).with_name("baseline.json")


@dataclasses.dataclass(frozen=True)
class Metric:
    """One number. better: which way is better. tolerance: relative change for the worse that `--check` lets pass, None
    for numbers that depend on the machine alone. peer: the same number of the peer, where it has one."""

    name: str
    value: float
    unit: str
    better: Literal["higher", "lower"]
    tolerance: float | None = None
    peer: float | None = None
    note: str = ""


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


def ratio(peer: Sequence[float], ours: Sequence[float]) -> float:
    """How many times faster ours is: the median over the rounds."""
    return statistics.median(p / o for p, o in zip(peer, ours, strict=True))


def save(metrics: Sequence[Metric], path: Path = BASELINE) -> None:
    """Keep the numbers that have a tolerance."""
    kept = {
        m.name: {"value": round(m.value, 4), "unit": m.unit, "better": m.better, "tolerance": m.tolerance}
        for m in metrics
        if m.tolerance is not None
    }
    path.write_text(json.dumps(kept, indent=2) + "\n")


def regressions(metrics: Sequence[Metric], path: Path = BASELINE) -> list[str]:
    """What got worse than the baseline by more than its tolerance, in words; numbers not measured are passed over."""
    baseline, found = json.loads(path.read_text()), []
    for metric in metrics:
        if metric.name not in baseline:
            continue
        was = baseline[metric.name]
        if was["better"] == "higher":
            good = metric.value >= was["value"] * (1 - was["tolerance"])
        else:
            good = metric.value <= was["value"] * (1 + was["tolerance"])
        if not good:
            found.append(
                f"{metric.name}: {metric.value:.3g} {metric.unit}, was {was['value']:.3g} "
                f"(tolerance {was['tolerance']:.0%})"
            )
    return found
