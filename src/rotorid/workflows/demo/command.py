"""`rotorid demo`: simulation of a sprayer, tracking of its mass, and a report. It needs no log."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rotorid.results.files import REPORT
from rotorid.terminal.arguments import Mcap
from rotorid.terminal.output import print_result

DRAG = 0.25
"""Linear drag coefficient of the simulated vehicle, N s/m."""

MOTOR_LAG = 0.02
"""Motor time constant of the simulated vehicle, s."""

ACCELEROMETER_NOISE = 0.3
"""Standard deviation of the simulated specific force, m/s^2 per sample."""


def demo(
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="DIR", help="Folder for the results.")
    ] = Path("rotorid-demo"),
    seed: Annotated[int, typer.Option("--seed", "-s", help="Seed of the simulated flight.")] = 0,
    mcap: Mcap = False,
) -> None:
    """Simulate a sprayer that empties its tank, track its mass with two filters, and write a report.

    The simulated flight is written to flight.parquet in the same folder, as an example for the other commands.
    """
    from rotorid.terminal.console import setup_jax, status
    from rotorid.workflows.track.command import track_and_write
    from rotorid.workflows.track.terminal import show

    with status("Starting"):
        setup_jax()
        from rotorid.logs.write import write_table
        from rotorid.models.airframe.airframe import load_airframe
        from rotorid.results.files import check_folder
        from rotorid.simulation.plant import Plant
        from rotorid.simulation.sensors import Sensors
        from rotorid.simulation.spraying import simulate_spraying
        from rotorid.workflows.track.summary import Settings

        check_folder(output)
    with status("Simulating a sprayer"):
        flight = simulate_spraying(
            seed,
            plant=Plant(motor_time_constant=MOTOR_LAG, drag=DRAG),
            sensors=Sensors(specific_force_noise=ACCELEROMETER_NOISE),
        )
    airframe = load_airframe("simulated-quad")
    settings = Settings("demo", ("ekf", "ukf"), "multirotor", airframe.name, seed=seed)
    summary = track_and_write(flight, airframe, settings, output, mcap=mcap)
    write_table(flight, output / "flight.parquet")
    print_result(summary.to_json, lambda console: show(summary, output, console), output / REPORT)
