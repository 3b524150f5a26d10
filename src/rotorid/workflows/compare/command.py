"""`rotorid compare`: several estimators on the same flight, or on every flight of a data set."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rotorid.cli.arguments import (
    EVERY_ESTIMATOR,
    Estimators,
    Mapping,
    OptionalAirframe,
    System,
    Truth,
    estimator_names,
    folder_option,
    inputs_of,
    system_name,
)
from rotorid.errors import LogError, RotoridError, SettingError

if TYPE_CHECKING:
    from rotorid.models.airframe import Airframe
    from rotorid.results.batch import Prepared
    from rotorid.results.track import SystemName
    from rotorid.simulation.dataset import Dataset, Key

AIRFRAMES = {"nominal": "simulated-quad", "hard": "simulated-quad-hard"}
"""What the editions of a data set are flown with."""


def compare(
    source: Annotated[
        Path,
        typer.Argument(
            metavar="LOG_OR_DATASET",
            help="A flight log, as of `rotorid track`, or the folder of a data set made by `rotorid dataset`.",
            show_default=False,
        ),
    ],
    airframe: OptionalAirframe = None,
    estimators: Estimators = EVERY_ESTIMATOR,
    system: System = "multirotor",
    prior_error: Annotated[
        float | None,
        typer.Option(
            "--prior-error",
            metavar="SHARE",
            help="Start with a mass that is wrong by this share of the true one (-0.3: 30 % too small), instead of "
            "the airframe's.",
            show_default=False,
        ),
    ] = None,
    flights: Annotated[
        int | None,
        typer.Option(
            "--flights",
            "-n",
            metavar="N",
            help="The first N flights of each cell of a data set. Default: all.",
            show_default=False,
        ),
    ] = None,
    mapping: Mapping = None,
    truth: Truth = None,
    output: Annotated[
        Path | None,
        folder_option("Folder for comparison.parquet and comparison.json. Default: nothing is written."),
    ] = None,
) -> None:
    """Compare estimators of the mass: error, delay, honesty and time, on one flight or on a data set.

    Without a known mass it tells how far they are apart, and how consistent each is with its measurements.
    """
    from rotorid.cli.console import out, progress, setup_jax, status

    names, model = estimator_names(estimators), system_name(system)
    _check_options(source, airframe, mapping, truth, flights)
    with status("Starting"):
        setup_jax()
        from rotorid.cli.compare_page import show
        from rotorid.models.airframe import load_airframe
        from rotorid.results.batch import Batch
        from rotorid.results.comparison import compare_scores
        from rotorid.results.comparison_files import write_comparison
        from rotorid.results.files import check_folder
        from rotorid.simulation.dataset import Dataset

        if output is not None:
            check_folder(output)
        batch = Batch(names, prior_error)
        dataset = Dataset(source) if source.is_dir() else None
        vehicle = load_airframe(airframe or _own_airframe(dataset))
    settings = {
        "airframe": vehicle.name,
        "estimators": names,
        "system": system,
        "prior_error": prior_error,
    }
    skipped: dict[Key, str] = {}
    if dataset is None:
        with status(f"Comparing on {source.name}"):
            flight = _log(source, mapping, truth, vehicle, model)
            about = {"settings": settings, "inputs": inputs_of(source, airframe, mapping, truth)}
            scores = list(batch.scores_of([flight]))
    else:
        about = {"settings": {**settings, "flights": flights}, "dataset": dataset.settings}
        every = dataset.keys()
        keys = [key for key in every if flights is None or key.number < flights]
        found = batch.scores(_flights(dataset, keys, vehicle, model, skipped), len(keys))
        scores = list(progress(found, "Comparing", len(keys) * len(names)))
        if not scores:
            first = next(iter(skipped.values()), "it has none")
            raise LogError(f"{source}: none of its flights can be compared on; {first}")
    comparison = compare_scores(scores)
    reasons = {"/".join(map(str, key)): reason for key, reason in skipped.items()}
    if output is not None:
        write_comparison(output, comparison, about, reasons)
    show(comparison, reasons, output, out())


def _check_options(
    source: Path, airframe: str | None, mapping: Path | None, truth: Path | None, flights: int | None
) -> None:
    if source.is_dir():
        for option, value in (("--mapping", mapping), ("--truth", truth)):
            if value is not None:
                raise SettingError(f"{option} is for a log, and {source} is a folder; leave it out")
        if flights is not None and flights < 1:
            raise SettingError(f"--flights {flights}: compare on 1 or more of each cell")
        return
    if flights is not None:
        raise SettingError(f"--flights is for a data set, and {source} is no folder; leave it out")
    if airframe is None:
        raise SettingError("give the vehicle of this log with --airframe; `rotorid airframes` lists some")


def _own_airframe(dataset: Dataset | None) -> str:
    """The airframe that a data set's edition is flown with."""
    edition = None if dataset is None else dataset.settings.get("edition")
    if edition not in AIRFRAMES:
        raise SettingError(f"no airframe is known for the edition {edition!r}; give one with --airframe")
    return AIRFRAMES[edition]


def _log(
    log: Path, mapping: Path | None, truth: Path | None, vehicle: Airframe, system: SystemName
) -> Prepared:
    from rotorid.logs.read import read
    from rotorid.logs.truth import attach_truth
    from rotorid.results.batch import prepared

    flight = read(log, mapping)
    return prepared(flight if truth is None else attach_truth(flight, truth), vehicle, system)


def _flights(
    dataset: Dataset, keys: Sequence[Key], vehicle: Airframe, system: SystemName, skipped: dict[Key, str]
) -> Iterator[Prepared]:
    """The flights of a data set that can be compared on; the others go to skipped, with the reason."""
    from rotorid.results.batch import prepared

    for key in keys:
        try:
            flight = prepared(dataset.flight(*key), vehicle, system, cell=(key.trajectory, key.mass_profile))
        except RotoridError as error:
            skipped[key] = str(error)
            continue
        yield flight
