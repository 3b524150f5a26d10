"""`rotorid demo`: from a simulated sprayer to a report, without any log of one's own."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rotorid.cli.arguments import Mcap

DRAG = 0.25
"""Of the simulated vehicle, N s/m."""

MOTOR_LAG = 0.02
"""Of the simulated vehicle, s."""

ACCELEROMETER_NOISE = 0.3
"""Of the simulated vehicle, m/s^2 per sample."""


def demo(
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="DIR", help="Folder for the results.")
    ] = Path("rotorid-demo"),
    seed: Annotated[int, typer.Option("--seed", "-s", help="Of the simulated flight.")] = 0,
    mcap: Mcap = False,
) -> None:
    """Simulate a sprayer that empties its tank, track its mass with both filters, and write a report.

    The folder also gets the flight itself, as flight.parquet, to try the other commands on.
    """
    from rotorid.cli.console import out, setup_jax, status
    from rotorid.cli.track import track_and_write
    from rotorid.cli.track_page import show

    with status("Simulating a sprayer"):
        setup_jax()
        from rotorid.logs.write import write_table
        from rotorid.models.airframe import load_airframe
        from rotorid.results.files import check_folder
        from rotorid.results.summary import Settings
        from rotorid.simulation.plant import Plant
        from rotorid.simulation.sensors import Sensors
        from rotorid.simulation.spraying import simulate_spraying

        check_folder(output)
        flight = simulate_spraying(
            seed,
            plant=Plant(motor_time_constant=MOTOR_LAG, drag=DRAG),
            sensors=Sensors(specific_force_noise=ACCELEROMETER_NOISE),
        )
    airframe = load_airframe("simulated-quad")
    settings = Settings("demo", ("ekf", "ukf"), "multirotor", airframe.name, seed=seed)
    summary = track_and_write(flight, airframe, settings, output, mcap=mcap)
    write_table(flight, output / "flight.parquet")
    show(summary, output, out())
