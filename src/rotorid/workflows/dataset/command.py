"""`rotorid dataset`: many simulated flights, as a folder of flight tables."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def dataset(
    folder: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="The data set's folder.", show_default=False)
    ],
    flights: Annotated[
        int, typer.Option("--flights", "-n", metavar="N", help="Of each trajectory with each mass profile.")
    ] = 50,
    edition: Annotated[
        str,
        typer.Option(
            "--edition",
            metavar="NAME",
            help="nominal, or hard: motor lag, drag, gusts, saturation, delay, dropouts.",
        ),
    ] = "nominal",
    seed: Annotated[int, typer.Option("--seed", "-s", help="Of all that is drawn.")] = 0,
    duration: Annotated[float, typer.Option("--duration", metavar="S", help="Length of each flight.")] = 20.0,
    trajectories: Annotated[
        str | None,
        typer.Option(
            "--trajectories",
            "-t",
            metavar="NAMES",
            help="What is flown, separated by commas. Default: all five.",
            show_default=False,
        ),
    ] = None,
    mass_profiles: Annotated[
        str | None,
        typer.Option(
            "--mass-profiles",
            "-m",
            metavar="NAMES",
            help="How the mass changes, separated by commas. Default: all five.",
            show_default=False,
        ),
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(
            "--workers",
            "-w",
            metavar="N",
            help="Flights made at a time. Default: one for each core.",
            show_default=False,
        ),
    ] = None,
    engine: Annotated[
        str,
        typer.Option(
            "--engine", metavar="NAME", help="local: processes here; ray: tasks over a Ray cluster."
        ),
    ] = "local",
) -> None:
    """Simulate a data set: every trajectory with every mass profile, many times, as Parquet.

    What is in FOLDER already is kept, so that a run that was interrupted goes on when it is repeated. The same seed
    gives the same files. An unknown NAME is answered with the list of known ones.
    """
    from rotorid.cli.console import counting, out, status

    with status("Starting"):
        from rotorid.simulation.generation import generate_dataset
        from rotorid.simulation.profiles import MASS_PROFILES
        from rotorid.simulation.trajectories import TRAJECTORIES
    with counting("Flying") as show:
        made = generate_dataset(
            folder,
            flights=flights,
            edition=edition,
            seed=seed,
            duration=duration,
            trajectories=TRAJECTORIES if trajectories is None else _names(trajectories),
            mass_profiles=MASS_PROFILES if mass_profiles is None else _names(mass_profiles),
            workers=workers,
            engine=engine,
            progress=show,
        )
    kept = f", {made.kept} were there already" if made.kept else ""
    of = f"of {duration:g} s, {edition} edition, seed {seed}"
    out().print(f"{folder}: {_flights(made.made)} {of} made{kept}", markup=False, soft_wrap=True)


def _flights(count: int) -> str:
    return f"{count} flight{'' if count == 1 else 's'}"


def _names(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
