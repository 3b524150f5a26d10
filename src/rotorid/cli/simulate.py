"""`rotorid simulate`: a simulated flight with a changing mass, as a flight table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def simulate(
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", metavar="OUT", help="The table to write: .csv or .parquet.", show_default=False
        ),
    ],
    trajectory: Annotated[
        str, typer.Option("--trajectory", "-t", metavar="NAME", help="What is flown.")
    ] = "loop",
    mass_profile: Annotated[
        str, typer.Option("--mass-profile", "-m", metavar="NAME", help="How the mass changes.")
    ] = "steps",
    seed: Annotated[int, typer.Option("--seed", "-s", help="Of speeds, sizes, masses and noise.")] = 0,
    duration: Annotated[float, typer.Option("--duration", metavar="S", help="Length of the flight.")] = 20.0,
) -> None:
    """Simulate a flight whose mass changes, flown by a predictive controller that knows the nominal mass
    only.

    The table has noisy position, velocity, attitude and body rate, the commanded thrust, and the true mass.
    The same seed gives the same file. An unknown NAME is answered with the list of known ones.
    """
    from rotorid.cli.console import out, setup_jax, status
    from rotorid.errors import OutputError

    if not output.absolute().parent.is_dir():
        raise OutputError(f"{output}: the folder {output.parent} does not exist; create it or name another")
    with status("Simulating"):
        setup_jax()
        from rotorid.logs.write import write_table
        from rotorid.simulation.flight import simulate as fly

        flight = fly(trajectory, mass_profile, seed, duration=duration)
        write_table(flight, output)
    out().print(
        f"{flight.duration:.0f} s of {trajectory} with {mass_profile}, seed {seed}: {output}", markup=False
    )
