"""`rotorid compare`: scores of estimators on a flight, or on all flights of a data set."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rotorid.errors import LogError, RotoridError, SettingError
from rotorid.terminal.arguments import (
    EVERY_ESTIMATOR,
    Estimators,
    Mapping,
    OptionalAirframe,
    System,
    Truth,
    estimator_names,
    folder_option,
    input_files,
    system_name,
)
from rotorid.terminal.output import print_result

if TYPE_CHECKING:
    from rotorid.models.airframe.airframe import Airframe
    from rotorid.models.registry import SystemName
    from rotorid.simulation.datasets.dataset import Dataset, Key
    from rotorid.workflows.compare.batch import FlightInput

AIRFRAMES = {"nominal": "simulated-quad", "hard": "simulated-quad-hard"}
"""Default airframe of a data set, by its scenario preset."""


def compare(
    source: Annotated[
        Path,
        typer.Argument(
            metavar="LOG_OR_DATASET",
            help="A flight log, as for `rotorid track`, or the folder of a data set from `rotorid dataset`.",
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
            help="Relative error of the initial mass (-0.3: 30 % too small). Default: the initial mass is that of "
            "the airframe.",
            show_default=False,
        ),
    ] = None,
    flights: Annotated[
        int | None,
        typer.Option(
            "--flights",
            "-n",
            metavar="N",
            help="Use the first N flights of each cell of a data set. Default: all.",
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
    """Compare estimators of the mass on a flight or a data set: error, delay, coverage and computing time.

    Without a known mass, the deviations of the estimators from their median and the consistency of their innovations are
    compared.
    """
    from rotorid.terminal.console import count_items, setup_jax, status

    names, model = estimator_names(estimators), system_name(system)
    _check_options(source, airframe, mapping, truth, flights)
    with status("Starting"):
        setup_jax()
        from rotorid.models.airframe.airframe import load_airframe
        from rotorid.results.files import check_folder
        from rotorid.simulation.datasets.dataset import Dataset
        from rotorid.workflows.compare.batch import BatchEvaluator
        from rotorid.workflows.compare.files import comparison_json, write_comparison
        from rotorid.workflows.compare.findings import comparison_findings
        from rotorid.workflows.compare.scores import compare_scores
        from rotorid.workflows.compare.terminal import show

        if output is not None:
            check_folder(output)
        evaluator = BatchEvaluator(names, prior_error)
        dataset = Dataset(source) if source.is_dir() else None
        vehicle = load_airframe(airframe or _default_airframe(dataset))
    settings = {
        "airframe": vehicle.name,
        "estimators": names,
        "system": system,
        "prior_error": prior_error,
    }
    skipped: dict[Key, str] = {}
    if dataset is None:
        with status(f"Reading {source.name}"):
            flight = _read_log(source, mapping, truth, vehicle, model)
            provenance = {"settings": settings, "inputs": input_files(source, airframe, mapping, truth)}
        scores = list(count_items(evaluator.score_stack([flight]), "Comparing", len(names)))
    else:
        provenance = {"settings": {**settings, "flights": flights}, "dataset": dataset.settings}
        dataset_keys = dataset.keys()
        keys = [key for key in dataset_keys if flights is None or key.number < flights]
        inputs = _read_flights(dataset, keys, vehicle, model, skipped)
        results = evaluator.score_flights(inputs, len(keys))
        scores = list(count_items(results, "Comparing", len(keys) * len(names)))
        if not scores:
            first = next(iter(skipped.values()), "it has no flights")
            raise LogError(f"{source}: no flight can be used for a comparison; {first}")
    comparison = compare_scores(scores)
    reasons = {"/".join(map(str, key)): reason for key, reason in skipped.items()}
    findings = comparison_findings(comparison, reasons)
    if output is not None:
        write_comparison(output, comparison, findings, provenance, reasons)
    print_result(
        lambda: comparison_json(comparison, findings, provenance, reasons),
        lambda console: show(comparison, findings, output, console),
        is_only_output=output is None,
    )


def _check_options(
    source: Path, airframe: str | None, mapping: Path | None, truth: Path | None, flights: int | None
) -> None:
    if source.is_dir():
        for option, value in (("--mapping", mapping), ("--truth", truth)):
            if value is not None:
                raise SettingError(f"{option} applies to a log, but {source} is a folder; remove it")
        if flights is not None and flights < 1:
            raise SettingError(f"--flights {flights}: must be 1 or more")
        return
    if flights is not None:
        raise SettingError(f"--flights applies to a data set, but {source} is not a folder; remove it")
    if airframe is None:
        raise SettingError(
            "give the airframe of this log with --airframe; `rotorid airframes` lists those that come with rotorid"
        )


def _default_airframe(dataset: Dataset | None) -> str:
    """The airframe of the scenario preset of a data set."""
    preset = None if dataset is None else dataset.settings.get("preset")
    if preset not in AIRFRAMES:
        raise SettingError(f"the preset {preset!r} has no default airframe; give one with --airframe")
    return AIRFRAMES[preset]


def _read_log(
    log: Path, mapping: Path | None, truth: Path | None, vehicle: Airframe, system: SystemName
) -> FlightInput:
    from rotorid.logs.read import read
    from rotorid.logs.truth import attach_truth
    from rotorid.workflows.compare.batch import prepare_input

    flight = read(log, mapping)
    return prepare_input(flight if truth is None else attach_truth(flight, truth), vehicle, system)


def _read_flights(
    dataset: Dataset, keys: Sequence[Key], vehicle: Airframe, system: SystemName, skipped: dict[Key, str]
) -> Iterator[FlightInput]:
    """Yield the usable flights of a data set; the others are added to skipped, with the reason."""
    from rotorid.workflows.compare.batch import prepare_input

    for key in keys:
        try:
            flight = prepare_input(
                dataset.flight(*key), vehicle, system, cell=(key.trajectory, key.mass_profile)
            )
        except RotoridError as error:
            skipped[key] = str(error)
            continue
        yield flight
