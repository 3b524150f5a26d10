"""`rotorid simulate`: a simulated flight with a changing mass, or of any airframe, as a flight table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rotorid.cli.arguments import airframe_option


def simulate(
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            metavar="OUT",
            help="The table to write: .csv, .parquet or .mcap.",
            show_default=False,
        ),
    ],
    trajectory: Annotated[
        str | None,
        typer.Option(
            "--trajectory", "-t", metavar="NAME", help="What is flown. Default: loop.", show_default=False
        ),
    ] = None,
    mass_profile: Annotated[
        str | None,
        typer.Option(
            "--mass-profile",
            "-m",
            metavar="NAME",
            help="How the mass changes. Default: steps.",
            show_default=False,
        ),
    ] = None,
    airframe: Annotated[
        str | None,
        airframe_option(
            "Fly this airframe in place of the plain one: a TOML file, or one that comes with rotorid. It flies figures "
            "and shakes, so that its parameters can be found."
        ),
    ] = None,
    sensors: Annotated[
        str | None,
        typer.Option(
            "--sensors",
            metavar="NAME",
            help="With --airframe, what measures it: clean, px4, crazyflie, rough. Default: px4.",
            show_default=False,
        ),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", "-s", help="Of speeds, sizes, masses and noise.")] = 0,
    duration: Annotated[float, typer.Option("--duration", metavar="S", help="Length of the flight.")] = 20.0,
) -> None:
    """Simulate a flight: of a vehicle whose mass changes, or of any airframe.

    The first is flown by a predictive controller that knows the nominal mass only; its table has noisy position, velocity,
    attitude and body rate, the commanded thrust, and the true mass. An airframe is flown by a cascade; its table has rotor
    commands and specific force in place of the thrust. The same seed gives the same file. An unknown NAME is answered with the
    list of known ones.
    """
    from rotorid.cli.console import out, setup_jax, status
    from rotorid.errors import OutputError, SettingError

    if airframe is not None and (trajectory is not None or mass_profile is not None):
        raise SettingError(
            "--trajectory and --mass-profile are of the plain vehicle; leave them out with --airframe"
        )
    if airframe is None and sensors is not None:
        raise SettingError("--sensors goes with --airframe; name one")
    if not output.absolute().parent.is_dir():
        raise OutputError(f"{output}: the folder {output.parent} does not exist; create it or name another")
    with status("Simulating"):
        setup_jax()
        from rotorid.logs.write import write_table

        if airframe is None:
            from rotorid.simulation.flight import simulate as fly_plain

            what = f"{trajectory or 'loop'} with {mass_profile or 'steps'}"
            flight = fly_plain(trajectory or "loop", mass_profile or "steps", seed, duration=duration)
        else:
            from rotorid.models.airframe import load_airframe
            from rotorid.simulation.free_flight import fly
            from rotorid.simulation.varied import varied

            vehicle = load_airframe(airframe)
            what = vehicle.name
            flight = fly(
                vehicle, varied(seed, duration), seed=seed, duration=duration, sensors=sensors or "px4"
            )
        write_table(flight, output)
    out().print(f"{flight.duration:.0f} s of {what}, seed {seed}: {output}", markup=False)
