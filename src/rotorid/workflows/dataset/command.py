"""`rotorid dataset`: simulation of a data set, a folder of flight tables."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rotorid.terminal.completion import list_of, one_of
from rotorid.terminal.output import print_result


def dataset(
    folder: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="Folder of the data set.", show_default=False)
    ],
    flights: Annotated[
        int,
        typer.Option(
            "--flights",
            "-n",
            metavar="N",
            help="Number of flights of each trajectory with each mass profile.",
        ),
    ] = 50,
    preset: Annotated[
        str,
        typer.Option(
            "--preset",
            metavar="NAME",
            autocompletion=one_of("rotorid.simulation.datasets.scenario_presets:SCENARIO_PRESETS"),
            help="Plant and sensors: nominal, or hard with motor lag, drag, wind, saturation, delay and dropouts.",
        ),
    ] = "nominal",
    seed: Annotated[int, typer.Option("--seed", "-s", help="Seed of all random numbers.")] = 0,
    duration: Annotated[
        float, typer.Option("--duration", metavar="S", help="Duration of each flight, s.")
    ] = 20.0,
    trajectories: Annotated[
        str | None,
        typer.Option(
            "--trajectories",
            "-t",
            metavar="NAMES",
            autocompletion=list_of("rotorid.simulation.trajectories:TRAJECTORIES"),
            help="Trajectories, separated by commas. Default: all five.",
            show_default=False,
        ),
    ] = None,
    mass_profiles: Annotated[
        str | None,
        typer.Option(
            "--mass-profiles",
            "-m",
            metavar="NAMES",
            autocompletion=list_of("rotorid.simulation.profiles:MASS_PROFILES"),
            help="Profiles of the mass over time, separated by commas. Default: all five.",
            show_default=False,
        ),
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(
            "--workers",
            "-w",
            metavar="N",
            help="Number of flights simulated in parallel. Default: number of cores.",
            show_default=False,
        ),
    ] = None,
    executor: Annotated[
        str,
        typer.Option(
            "--executor",
            metavar="NAME",
            autocompletion=one_of(("local", "ray")),
            help="local: processes on this machine; ray: a Ray cluster.",
        ),
    ] = "local",
) -> None:
    """Simulate a data set: several flights of every trajectory with every mass profile, as Parquet.

    Existing flights in FOLDER are kept, so that the same command resumes an interrupted run. The same seed gives the same
    files. An invalid NAME prints the valid names.
    """
    from rotorid.terminal.console import progress_bar, status

    with status("Starting"):
        from rotorid.simulation.datasets.dataset import DESCRIPTION
        from rotorid.simulation.datasets.generation import generate_dataset
        from rotorid.simulation.profiles import MASS_PROFILES
        from rotorid.simulation.trajectories import TRAJECTORIES
    with progress_bar("Simulating") as progress:
        result = generate_dataset(
            folder,
            flights=flights,
            preset=preset,
            seed=seed,
            duration=duration,
            trajectories=TRAJECTORIES if trajectories is None else _names(trajectories),
            mass_profiles=MASS_PROFILES if mass_profiles is None else _names(mass_profiles),
            workers=workers,
            executor=executor,
            progress=progress,
        )
    kept = f", {result.kept} existed already" if result.kept else ""
    description = f"of {duration:g} s, {preset} preset, seed {seed}"
    text = f"{folder}: {_flights_text(result.simulated)} {description} simulated{kept}"
    print_result(
        (folder / DESCRIPTION).read_text, lambda console: console.print(text, markup=False, soft_wrap=True)
    )


def _flights_text(count: int) -> str:
    return f"{count} flight{'' if count == 1 else 's'}"


def _names(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
