"""`python -m benchmarks.onboard_agreement`: exported estimators in C beside JAX, on 100,000 samples each, drawn and flown.

Drawn: flights of 2 s from the estimator's own model, prior and noises, with missing measurements, outliers and a gap. Flown:
logs of `--flights`, as `rotorid export --flight` takes them. What the columns mean: see `benchmarks.agreement`.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import jax
import numpy as np

from rotorid.logs.flight import Flight
from rotorid.signals.samples import Samples

ROWS = 200  # of a draw_samples flight: 2 s
NANOBENCH = Path(__file__).parents[1] / "examples" / "nanobench.toml"


@dataclasses.dataclass(frozen=True)
class Logs:
    """Logs of one vehicle, and what is exported for it. system: of filters; observers have their own."""

    paths: tuple[str, ...]
    airframe: str
    estimators: tuple[str, ...]
    system: str | None = None
    mapping: Path | None = None


_FILTERS = ("ekf", "ukf", "msckf", "swls", "adaptive")
_OBSERVERS = ("mo", "acceleration")
LOGS = {
    "PX4 simulator": Logs(
        ("px4_sih/default_logging.ulg", "px4_sih/dev.ulg"), "px4-sih-quad", ("ekf", "ukf", "adaptive", *_OBSERVERS)
    ),
    "Crazyflie, Crazyswarm2": Logs(
        tuple(f"crazyflie_crazyswarm2/log{n}" for n in (146, 148, 150, 158, 162, 170, 180, 201, 202, 204, 206)),
        "crazyflie-crazyswarm2",
        (*_FILTERS, *_OBSERVERS),
        "multirotor-bare",
    ),
    "Crazyflie, nanobench": Logs(
        tuple(
            f"nanobench/{name}_rep1.csv"
            for name in ("B2_circle_medium", "B3_figure8_fast", "B5_helix", "B6_linear_ramp", "B9_trefoil_fast")
        ),
        "crazyflie-2.1",
        (*_FILTERS, *_OBSERVERS),
        None,
        NANOBENCH,
    ),
}  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.onboard_agreement", description=__doc__)
    parser.add_argument("only", nargs="*", help="estimators (names of the table's first column); all without")
    parser.add_argument(
        "--rows", type=int, default=100_000, help="for each estimator: so many draw_samples, or flown at most"
    )
    parser.add_argument(
        "--flights",
        type=Path,
        default=_flights(),
        help="folder of recorded flights; without it, none is flown",
    )
    options = parser.parse_args()
    if options.flights is not None and not options.flights.is_dir():
        parser.error(f"{options.flights}: there is no such folder")
    jax.config.update("jax_enable_x64", True)
    with tempfile.TemporaryDirectory() as cache:
        os.environ.setdefault("ROTORID_CACHE", cache)
        print(f"| {' | '.join(_COLUMNS)} |\n{'|---' * len(_COLUMNS)}|", flush=True)
        failed = False
        for name, made in _cases(options.only, options.rows, options.flights):
            lines, good = _compared(name, *made())
            print("\n".join(lines), flush=True)
            failed |= not good
    return 1 if failed else 0


_COLUMNS = (
    "",
    "rows",
    "precision",
    "steps: most off",
    "of which",
    "half of them, 99.9 %",
    "decided otherwise",
    "runs: most off",
    "decided otherwise",
    "explained by a nudge of",
    "s",
)


def _flights() -> Path | None:
    folder = Path(os.environ.get("ROTORID_FLIGHTS", Path(__file__).parents[2] / "shared" / "flights"))
    return folder if folder.is_dir() else None


def _cases(only: Sequence[str], rows: int, folder: Path | None) -> Iterator[tuple[str, Any]]:
    from benchmarks import onboard
    from rotorid.estimators.onboard.golden_samples import draw_samples
    from rotorid.workflows.export.onboard import hover_inputs

    for name, maker in onboard.MAKERS.items():
        label = f"{name}, draw_samples"

        def of_drawn(maker: Any = maker) -> tuple[Any, Iterator[Samples]]:
            estimator = maker()
            system = estimator.joint.system
            return estimator, (
                draw_samples(estimator, hover_inputs(system, ROWS, seed), seed=seed)
                for seed in range(-(-rows // ROWS))
            )

        if not only or label in only:
            yield label, of_drawn
    if folder is None:
        print("no recorded flights (set ROTORID_FLIGHTS): none is flown", file=sys.stderr)
        return
    for vehicle, logs in LOGS.items():
        for estimator in logs.estimators:
            label = f"{estimator}, {vehicle}"
            if not only or label in only:
                yield label, partial(_flown, estimator, logs, folder, rows)


def _flown(name: str, logs: Logs, folder: Path, rows: int) -> tuple[Any, Iterator[Samples]]:
    """An estimator as it is exported for the first of the logs, and samples of all."""
    from rotorid.logs.read import read
    from rotorid.models.airframe.airframe import load_airframe
    from rotorid.workflows.export.onboard import ExportSettings, exported_estimator

    airframe = load_airframe(logs.airframe)
    system: Any = logs.system if name not in _OBSERVERS else None

    def of(path: str) -> tuple[Any, Samples]:
        flight: Flight = read(folder / path, logs.mapping)
        return exported_estimator(name, airframe, ExportSettings(system), flight)

    def flights() -> Iterator[Samples]:
        left = rows
        for path in logs.paths:
            samples = of(path)[1]
            samples = jax.tree.map(lambda leaf, n=left: leaf[:n], samples)
            left -= len(samples.t)
            if len(samples.t):
                yield samples

    return of(logs.paths[0])[0], flights()


def _compared(name: str, estimator: Any, flights: Iterable[Samples]) -> tuple[list[str], bool]:
    """Rows of the table, and whether all is as near as it must be, or explained."""
    from benchmarks.agreement import compare

    start = time.perf_counter()
    found = compare(estimator, flights)
    took = time.perf_counter() - start
    lines, good = [], True
    for precision in ("double", "float"):
        step, run = found.step[precision], found.run[precision]
        half, most = np.quantile(step.off, [0.5, 0.999])
        nudges = [*step.nudges, *run.nudges]
        why = "-"
        if precision == "double" and nudges:
            unexplained = sum(nudge is None for nudge in nudges)
            known = [nudge for nudge in nudges if nudge is not None]
            why = f"{len(known)} rows: {max(known):.0e}" if known else ""
            why += f"; {unexplained} NOT" if unexplained else ""
            good = not unexplained
        lines.append(
            f"| {name} | {found.rows:,} | {precision} | {step.worst:.1e} | {step.where[1]}, row {step.where[0]} "
            f"| {half:.1e}, {most:.1e} | {step.otherwise} | {run.worst:.1e} "
            f"| {run.parted if precision == 'double' else run.otherwise} | {why} | {took:.0f} |"
        )
    return lines, good


if __name__ == "__main__":
    sys.exit(main())
