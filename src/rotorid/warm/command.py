"""`rotorid warm`: compile ahead what `rotorid track` and `rotorid live` need."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from rotorid.estimators.registry import TRACK_ESTIMATORS
from rotorid.terminal.arguments import (
    Mapping,
    MassOption,
    Span,
    TrackEstimators,
    airframe_of,
    airframe_option,
    estimator_names,
    mass_and_std,
)
from rotorid.terminal.output import print_result

if TYPE_CHECKING:
    from rich.console import Console

COMMON: Final = ("px4-sih-quad", "quadrotor-x", "ardupilot-sitl-x")
"""Airframes whose code serves many vehicles: a linear and a quadratic thrust curve, and one with the voltage of the battery."""

Logs = Annotated[
    list[Path] | None,
    typer.Argument(
        metavar="[LOG]...",
        help="Logs like those that will be tracked. Without any, the code for --airframe is compiled.",
        show_default=False,
    ),
]

WarmAirframe = Annotated[
    str | None,
    airframe_option(
        "A TOML file, or the name of an airframe that comes with rotorid. Default: made from each log's parameters and "
        f"--mass; without logs: {', '.join(COMMON)}."
    ),
]


def warm(
    logs: Logs = None,
    airframe: WarmAirframe = None,
    mass: MassOption = None,
    span: Span = None,
    estimators: TrackEstimators = "ekf,ukf",
    mapping: Mapping = None,
) -> None:
    """Compile the code of `rotorid track` and `rotorid live` in advance, so that their first run starts as fast as later ones.

    Code that is already compiled is not compiled again. After Ctrl-C, the same command continues.
    """
    from rotorid.terminal.console import count_items, setup_jax, status

    names = estimator_names(estimators, TRACK_ESTIMATORS)
    weighed = mass_and_std(mass)
    with status("Starting"):
        from rotorid.codegen.native import start_kernels
        from rotorid.workflows.track.command import KERNELS

        start_kernels(*KERNELS)
        setup_jax()
        from rotorid.cache import cache_folder
        from rotorid.logs.read import read
        from rotorid.models.airframe.airframe import load_airframe
        from rotorid.models.airframe.from_log.make import airframe_to_track
        from rotorid.results.files import to_json
        from rotorid.warm.warm import airframe_steps, log_steps

        steps = []
    for log in logs or []:
        with status(f"Reading {log.name}"):
            flight = read(log, mapping)
            vehicle = airframe_of(airframe, flight, weighed, span)
            steps += log_steps(flight, vehicle if airframe else airframe_to_track(vehicle, flight), names)
    if not logs:
        for name in [airframe] if airframe else COMMON:
            steps += airframe_steps(load_airframe(name), names)
    compiled = []
    for step in count_items(steps, "Compiling", len(steps)):
        start = time.monotonic()
        step.run()
        compiled.append({"name": step.name, "seconds": round(time.monotonic() - start, 1)})
    folder = cache_folder()
    seconds = sum(step["seconds"] for step in compiled)

    def show(console: Console) -> None:
        console.print(f"Compiled in {seconds:.0f} s, kept in {folder}", markup=False)

    print_result(lambda: to_json({"cache": str(folder), "compiled": compiled}), show)
