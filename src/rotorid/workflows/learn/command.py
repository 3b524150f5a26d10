"""`rotorid learn`: a model of one vehicle from its free flights, with estimated parameters and a learned residual."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from rotorid.results.files import REPORT, SUMMARY
from rotorid.terminal.arguments import AirframeOption, Mapping
from rotorid.terminal.completion import one_of
from rotorid.terminal.output import print_result

if TYPE_CHECKING:
    from rotorid.logs.flight import Flight
    from rotorid.models.airframe.airframe import Airframe
    from rotorid.results.files import Input
    from rotorid.workflows.learn.learn import Epoch, LearnSettings
    from rotorid.workflows.learn.summary import LearnSummary

CHECKPOINT: Final = "training.safetensors"
"""File in the model's folder from which an interrupted training is resumed."""


def learn(
    logs: Annotated[
        list[Path],
        typer.Argument(
            metavar="LOG...", help="Free flights of one vehicle, without contact.", show_default=False
        ),
    ],
    airframe: AirframeOption,
    output: Annotated[
        Path,
        typer.Option("--output", "-o", metavar="MODEL", help="Folder for the model.", show_default=False),
    ],
    architecture: Annotated[
        str,
        typer.Option(
            "--architecture",
            metavar="NAME",
            autocompletion=one_of(("body", "split", "none")),
            help="Inputs of the residual: body (velocity, body rate and thrusts in the body frame), split (as published: "
            "velocity in the world frame for the force, body rate for the torque), or none (no residual).",
        ),
    ] = "body",
    horizon: Annotated[
        int, typer.Option("--horizon", metavar="ROWS", help="Length of predictions in training.")
    ] = 25,
    epochs: Annotated[
        int, typer.Option("--epochs", metavar="N", help="Largest number of training epochs.")
    ] = 200,
    seed: Annotated[int, typer.Option("--seed", "-s", help="Seed of all random numbers.")] = 0,
    no_identify: Annotated[
        bool,
        typer.Option("--no-identify", help="Keep the parameters of the airframe."),
    ] = False,
    mapping: Mapping = None,
) -> None:
    """Learn a vehicle model from free flights: estimate its parameters, then learn a residual acceleration.

    Writes a folder for `rotorid wrench --model`, with summary.json and report.html. The same command resumes an interrupted
    training.
    """
    from rotorid.terminal.console import setup_jax, status

    with status("Starting"):
        setup_jax()
        from rotorid.logs.read import read
        from rotorid.models.airframe.airframe import load_airframe
        from rotorid.results.files import check_folder, file_input
        from rotorid.workflows.learn.learn import LearnSettings

        settings = LearnSettings(
            architecture.strip().lower(), horizon, epochs, seed=seed, identify=not no_identify
        )
        check_folder(output)
        vehicle = load_airframe(airframe)
    flights, inputs = [], []
    for log in logs:
        with status(f"Reading {log.name}"):
            flights.append(read(log, mapping))
            inputs.append(file_input("log", log))
    airframe_file = Path(airframe)
    others = {"airframe": airframe_file if airframe_file.is_file() else None, "mapping": mapping}
    inputs += [file_input(role, path) for role, path in others.items() if path is not None]
    summary = learn_and_write(flights, vehicle, settings, output, inputs)
    from rotorid.workflows.learn.terminal import show

    print_result(summary.to_json, lambda console: show(summary, output, console), output / REPORT)


def learn_and_write(
    flights: Sequence[Flight],
    airframe: Airframe,
    settings: LearnSettings,
    folder: Path,
    inputs: Sequence[Input] = (),
) -> LearnSummary:
    """Learn a model from flights and write it into a folder, with a progress bar. inputs: files that were read."""
    from rotorid.learning.checkpoint import Checkpoint
    from rotorid.learning.model_files import model_files
    from rotorid.results.files import write_folder
    from rotorid.terminal.console import progress_bar, status
    from rotorid.terminal.interrupts import on_interrupt
    from rotorid.workflows.learn.learn import learn_model
    from rotorid.workflows.learn.page import learning_page
    from rotorid.workflows.learn.summary import summarise_learned

    checkpoint = folder / CHECKPOINT
    latest: list[Epoch] = []

    def save_checkpoint() -> str:
        if not latest:
            return ""
        latest[-1].save()
        return f"; {latest[-1].number} of {latest[-1].total} epochs saved in {folder}, the same command resumes the training"

    with on_interrupt(save_checkpoint), progress_bar("Reading") as progress:

        def show_epoch(epoch: Epoch) -> None:
            latest[:] = [epoch]
            progress(f"Learning the residual, relative loss {epoch.loss:.3f}", epoch.number, epoch.total)

        result = learn_model(
            flights, airframe, settings, checkpoint=checkpoint, on_epoch=show_epoch, progress=progress
        )
    with status("Writing the model"):
        notes = [f"{f.source.name}: {note}" for f in flights for note in f.notes]
        summary = summarise_learned(result, inputs, notes)
        files = model_files(result.model) | {
            SUMMARY: summary.to_json().encode(),
            REPORT: learning_page(result, summary).encode(),
        }
        write_folder(folder, files)
        Checkpoint(checkpoint, "").remove()
    return summary
