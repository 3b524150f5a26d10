"""`rotorid simulate`: simulation of a flight with a changing mass, or of any airframe, as a flight table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rotorid.terminal.arguments import airframe_option
from rotorid.terminal.completion import one_of
from rotorid.terminal.output import print_result


def simulate(
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            metavar="OUT",
            help="File of the flight table: .csv, .parquet or .mcap.",
            show_default=False,
        ),
    ],
    trajectory: Annotated[
        str | None,
        typer.Option(
            "--trajectory",
            "-t",
            metavar="NAME",
            autocompletion=one_of("rotorid.simulation.trajectories:TRAJECTORIES"),
            help="Trajectory. Default: loop.",
            show_default=False,
        ),
    ] = None,
    mass_profile: Annotated[
        str | None,
        typer.Option(
            "--mass-profile",
            "-m",
            metavar="NAME",
            autocompletion=one_of("rotorid.simulation.profiles:MASS_PROFILES"),
            help="Profile of the mass over time. Default: steps.",
            show_default=False,
        ),
    ] = None,
    airframe: Annotated[
        str | None,
        airframe_option(
            "Simulate this airframe instead of the default vehicle: a TOML file, or the name of an airframe that comes "
            "with rotorid. The flight excites all axes, so that the parameters can be identified."
        ),
    ] = None,
    sensors: Annotated[
        str | None,
        typer.Option(
            "--sensors",
            metavar="NAME",
            autocompletion=one_of("rotorid.simulation.free_flight.instruments:INSTRUMENTS"),
            help="Sensor model with --airframe: clean, px4, crazyflie or rough. Default: px4.",
            show_default=False,
        ),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", "-s", help="Seed of speeds, sizes, masses and noise.")] = 0,
    duration: Annotated[
        float, typer.Option("--duration", metavar="S", help="Duration of the flight, s.")
    ] = 20.0,
) -> None:
    """Simulate a flight of a vehicle whose mass changes, or of any airframe.

    By default a predictive controller that uses the nominal mass flies the vehicle. The table has position, velocity, attitude
    and body rate with noise, the commanded thrust, and the true mass. With --airframe a cascaded controller flies the vehicle.
    The table has rotor commands and specific force instead of the thrust. The same seed gives the same file. An invalid NAME
    prints the valid names.
    """
    from rotorid.errors import SettingError
    from rotorid.terminal.console import progress_bar, setup_jax, status

    if airframe is not None and (trajectory is not None or mass_profile is not None):
        raise SettingError("--trajectory and --mass-profile cannot be combined with --airframe; remove them")
    if airframe is None and sensors is not None:
        raise SettingError("--sensors needs --airframe")
    with status("Starting"):
        setup_jax()
        from rotorid.logs.write import check_ending, write_table
        from rotorid.results.files import to_json
        from rotorid.workflows.convert.summary import summarise_table

        check_ending(output)
    with progress_bar("Simulating") as progress:
        if airframe is None:
            from rotorid.simulation.flight import simulate as simulate_flight

            subject = f"{trajectory or 'loop'} with {mass_profile or 'steps'}"
            flight = simulate_flight(
                trajectory or "loop", mass_profile or "steps", seed, duration=duration, progress=progress
            )
        else:
            from rotorid.models.airframe.airframe import load_airframe
            from rotorid.simulation.free_flight.flight import fly
            from rotorid.simulation.free_flight.random_setpoints import draw_setpoints

            vehicle = load_airframe(airframe)
            subject = vehicle.name
            flight = fly(
                vehicle,
                draw_setpoints(seed, duration),
                seed=seed,
                duration=duration,
                sensors=sensors or "px4",
            )
    with status(f"Writing {output.name}"):
        write_table(flight, output)
    text = f"{flight.duration:.0f} s of {subject}, seed {seed}: {output}"
    print_result(
        lambda: to_json(summarise_table(flight, output) | {"simulated": subject, "seed": seed}),
        lambda console: console.print(text, markup=False),
    )
