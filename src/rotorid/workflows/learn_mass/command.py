"""`rotorid learn-mass`: a network that estimates the mass, from flights of known mass."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rotorid.errors import SettingError
from rotorid.results.files import SUMMARY
from rotorid.terminal.arguments import AirframeOption, Mapping, System, system_name
from rotorid.terminal.output import print_result


def learn_mass(
    logs: Annotated[
        list[Path],
        typer.Argument(metavar="LOG...", help="Flights of one vehicle with known mass.", show_default=False),
    ],
    airframe: AirframeOption,
    output: Annotated[
        Path,
        typer.Option("--output", "-o", metavar="MODEL", help="Folder for the network.", show_default=False),
    ],
    masses: Annotated[
        str | None,
        typer.Option(
            "--masses",
            metavar="KG,...",
            help="Mass of each flight, kg, in the order of the logs; a single one is that of all. Default: the true masses in "
            "the logs, or of --truth.",
            show_default=False,
        ),
    ] = None,
    truth: Annotated[
        list[Path] | None,
        typer.Option(
            "--truth",
            metavar="CSV",
            help="True mass over time (columns t_log_s, mass_kg) of a flight; give it once for each log, in their order.",
            show_default=False,
        ),
    ] = None,
    system: System = "multirotor",
    hidden: Annotated[int, typer.Option("--hidden", metavar="N", help="Nodes of the hidden layer.")] = 60,
    alpha: Annotated[
        float, typer.Option("--alpha", metavar="LAMBDA", help="Weight of the penalty of the output weights.")
    ] = 1.0,
    seed: Annotated[int, typer.Option("--seed", "-s", help="Seed of the hidden layer.")] = 0,
    mapping: Mapping = None,
) -> None:
    """Train a network (extreme learning machine) that estimates the mass, from flights of known mass.

    Writes a folder for the estimator elm of `rotorid track`, `compare`, `export` and `live` (`--model`), with summary.json.
    """
    from rotorid.terminal.console import setup_jax, status

    with status("Starting"):
        setup_jax()
        from rotorid.learning.mass_network_files import network_files
        from rotorid.logs.read import read
        from rotorid.logs.truth import attach_truth
        from rotorid.models.airframe.airframe import load_airframe
        from rotorid.results.files import check_folder, file_input, write_folder
        from rotorid.workflows.learn_mass.learn_mass import MassSettings
        from rotorid.workflows.learn_mass.learn_mass import learn_mass as learn
        from rotorid.workflows.learn_mass.summary import show, summarise_mass

        settings = MassSettings(system_name(system), hidden, alpha, seed)
        if seed < 0:
            raise SettingError(f"--seed {seed}: must be 0 or more")
        numbers = None if masses is None else _masses(masses)
        if truth and numbers is not None:
            raise SettingError("give the masses with --masses or with --truth, not both")
        if truth and len(truth) != len(logs):
            raise SettingError(f"{len(truth)} files of --truth for {len(logs)} logs: give one for each")
        check_folder(output)
        vehicle = load_airframe(airframe)
    flights, inputs = [], []
    for k, log in enumerate(logs):
        with status(f"Reading {log.name}"):
            flight = read(log, mapping)
            flights.append(attach_truth(flight, truth[k]) if truth else flight)
            inputs.append(file_input("log", log))
            inputs += [file_input("truth", truth[k])] if truth else []
    own = Path(airframe)
    others = {"airframe": own if own.is_file() else None, "mapping": mapping}
    inputs += [file_input(role, path) for role, path in others.items() if path is not None]
    with status("Training"):
        training = learn(flights, vehicle, numbers, settings)
        summary = summarise_mass(training, settings, inputs)
        files = network_files(training.model) | {SUMMARY: summary.to_json().encode()}
        write_folder(output, files)
    print_result(summary.to_json, lambda console: show(summary, output, console))


def _masses(text: str) -> list[float]:
    """Numbers separated by commas."""
    try:
        return [float(part) for part in text.split(",") if part.strip()]
    except ValueError:
        raise SettingError(f"--masses {text}: give numbers in kg, such as 1.52,1.8") from None
