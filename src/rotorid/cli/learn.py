"""`rotorid learn`: a model of one vehicle from its free flights, physics first, then what is left."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from rotorid.cli.arguments import AirframeOption, Mapping

if TYPE_CHECKING:
    from rotorid.logs.flight import Flight
    from rotorid.models.airframe import Airframe
    from rotorid.results.learning import Epoch, LearnSettings
    from rotorid.results.learning_summary import LearnSummary
    from rotorid.results.summary import Input

CHECKPOINT: Final = "training.safetensors"
"""The file in MODEL from which a training that was broken off goes on."""


def learn(
    logs: Annotated[
        list[Path],
        typer.Argument(
            metavar="LOG...", help="Free flights of one vehicle, which nothing touches.", show_default=False
        ),
    ],
    airframe: AirframeOption,
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", metavar="MODEL", help="The folder to write the model to.", show_default=False
        ),
    ],
    architecture: Annotated[
        str,
        typer.Option(
            "--architecture",
            metavar="NAME",
            help="Of what is learned beside the physics: body (sees velocity and rotors in the body frame), split (as "
            "published: velocity in the world frame, or body rate), or none (identify parameters alone).",
        ),
    ] = "body",
    horizon: Annotated[
        int, typer.Option("--horizon", metavar="ROWS", help="How many rows ahead the residual must predict.")
    ] = 25,
    epochs: Annotated[int, typer.Option("--epochs", metavar="N", help="Epochs of training, at most.")] = 200,
    seed: Annotated[int, typer.Option("--seed", "-s", help="Of all that is drawn.")] = 0,
    no_identify: Annotated[
        bool,
        typer.Option("--no-identify", help="Leave the parameters as the airframe has them."),
    ] = False,
    mapping: Mapping = None,
) -> None:
    """Learn the model of a vehicle from free flights: identify its parameters, then learn what they leave unexplained.

    Writes a folder that `rotorid wrench --model` uses, with summary.json and report.html. What was interrupted goes on when
    the command is repeated.
    """
    from rotorid.cli.console import out, setup_jax, status

    with status("Starting"):
        setup_jax()
        from rotorid.logs.read import read
        from rotorid.models.airframe import load_airframe
        from rotorid.results.files import check_folder
        from rotorid.results.learning import LearnSettings
        from rotorid.results.summary import file_input

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
    own = Path(airframe)
    others = {"airframe": own if own.is_file() else None, "mapping": mapping}
    inputs += [file_input(role, path) for role, path in others.items() if path is not None]
    summary = learn_and_write(flights, vehicle, settings, output, inputs)
    from rotorid.cli.learn_page import show

    show(summary, output, out())


def learn_and_write(
    flights: Sequence[Flight],
    airframe: Airframe,
    settings: LearnSettings,
    folder: Path,
    inputs: Sequence[Input] = (),
) -> LearnSummary:
    """Learn a model from flights, and write it into a folder. Shows its stages."""
    from rotorid.cli.console import status
    from rotorid.cli.interrupts import last_act
    from rotorid.learning.checkpoint import Checkpoint
    from rotorid.learning.model_files import model_files
    from rotorid.report.learning_page import learning_page
    from rotorid.results.files import REPORT, SUMMARY, write_folder
    from rotorid.results.learning import learn_model
    from rotorid.results.learning_summary import summarise_learned

    checkpoint = folder / CHECKPOINT
    latest: list[Epoch] = []

    def leave() -> str:
        if not latest:
            return ""
        latest[-1].save()
        return f"; {folder} keeps {latest[-1].done} of {latest[-1].total} epochs, and the same command goes on from there"

    with last_act(leave), _shown() as (stage, bar):

        def each(epoch: Epoch) -> None:
            latest[:] = [epoch]
            bar(epoch)

        found = learn_model(flights, airframe, settings, checkpoint=checkpoint, each_epoch=each, told=stage)
    with status("Writing the model"):
        notes = [f"{f.source.name}: {note}" for f in flights for note in f.notes]
        summary = summarise_learned(found, inputs, notes)
        files = model_files(found.model) | {
            SUMMARY: summary.as_json().encode(),
            REPORT: learning_page(found, summary).encode(),
        }
        write_folder(folder, files)
        Checkpoint(checkpoint, "").remove()
    return summary


@contextmanager
def _shown() -> Iterator[tuple[Callable[[str], None], Callable[[Epoch], None]]]:
    """How stages and epochs are shown: a spinner, then a bar with the loss, where a terminal shows them."""
    from rotorid.cli.console import err

    console = err()
    if not console.is_terminal:
        yield lambda _: None, lambda _: None
        return
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeRemainingColumn

    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[count]}"),
        TimeRemainingColumn(),
        TextColumn("{task.fields[loss]}"),
    )
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("Reading", total=None, count="", loss="")

        def stage(text: str) -> None:
            progress.update(task, description=text)

        def bar(epoch: Epoch) -> None:
            progress.update(
                task,
                completed=epoch.done,
                total=epoch.total,
                count=f"{epoch.done}/{epoch.total}",
                loss=f"loss {epoch.loss:.3f} of physics alone",
            )

        yield stage, bar
