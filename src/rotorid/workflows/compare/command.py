"""`rotorid compare`: scores of estimators on a flight, or on all flights of a data set."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rotorid.errors import LogError, RotoridError, SettingError
from rotorid.estimators.registry import STREAM_ESTIMATORS
from rotorid.terminal.arguments import (
    EVERY_ESTIMATOR,
    CompareEstimators,
    Mapping,
    MassModel,
    MassOption,
    OptionalAirframe,
    SameVehicle,
    Span,
    System,
    Truth,
    airframe_file,
    airframe_of,
    estimator_names,
    folder_option,
    input_files,
    mass_and_std,
    mass_model_of,
    system_name,
)
from rotorid.terminal.output import current_output, print_result

if TYPE_CHECKING:
    from rotorid.learning.mass_network_files import TrainedMassModel
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
    mass: MassOption = None,
    span: Span = None,
    estimators: CompareEstimators = EVERY_ESTIMATOR,
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
    network: MassModel = None,
    same_vehicle: SameVehicle = False,
    mapping: Mapping = None,
    truth: Truth = None,
    output: Annotated[
        Path | None,
        folder_option(
            "Folder for comparison.parquet, comparison.json and report.html. Default: nothing is written."
        ),
    ] = None,
) -> None:
    """Compare estimators of the mass on a flight or a data set: error, delay, coverage and computing time.

    Without a known mass, the deviations of the estimators from their median and the consistency of their innovations are
    compared.
    """
    from rotorid.terminal.console import count_items, setup_jax, status

    names, model = estimator_names(estimators, STREAM_ESTIMATORS), system_name(system)
    weighed = mass_and_std(mass)
    _check_options(source, mapping, truth, flights, mass, span)
    if output is None and current_output().is_opened:
        raise SettingError("--open needs --output DIR, the folder for the report")
    with status("Starting"):
        setup_jax()
        from rotorid.logs.read import read
        from rotorid.logs.truth import attach_truth
        from rotorid.models.airframe.from_log.make import airframe_to_track
        from rotorid.models.airframe.mass import with_mass
        from rotorid.results.files import REPORT, check_folder, file_input
        from rotorid.simulation.datasets.dataset import Dataset
        from rotorid.workflows.compare.batch import BatchEvaluator, prepare_input
        from rotorid.workflows.compare.files import comparison_json, write_comparison
        from rotorid.workflows.compare.findings import comparison_findings
        from rotorid.workflows.compare.page import comparison_page
        from rotorid.workflows.compare.scores import compare_scores
        from rotorid.workflows.compare.terminal import show

        if output is not None:
            check_folder(output)
        learned = mass_model_of(network, names, is_same_vehicle=same_vehicle)
        evaluator = BatchEvaluator(names, prior_error)
        dataset = Dataset(source) if source.is_dir() else None
    settings: dict[str, Any] = {"estimators": names, "system": system, "prior_error": prior_error}
    skipped: dict[Key, str] = {}
    others: dict[str, bytes] = {}
    if dataset is None:
        with status(f"Reading {source.name}"):
            flight = read(source, mapping)
            if airframe is None and learned is not None and span is None:
                vehicle = with_mass(learned.airframe, weighed)
            else:
                vehicle = airframe_of(airframe, flight, weighed, span)
            if airframe is None and learned is None:
                others, vehicle = airframe_file(vehicle), airframe_to_track(vehicle, flight)
            flight = flight if truth is None else attach_truth(flight, truth)
            prepared = prepare_input(flight, vehicle, model, learned=learned)
            files = input_files(source, airframe, mapping, truth, network)
            provenance = {"settings": {"airframe": vehicle.name, **settings}, "inputs": files}
        scores = list(count_items(evaluator.score_stack([prepared]), "Comparing", len(names)))
    else:
        default = None if airframe is not None or learned is None else learned.airframe
        vehicle = default or airframe_of(airframe or _default_airframe(dataset), None, None, None)
        settings |= {"airframe": vehicle.name, "flights": flights}
        provenance: dict[str, Any] = {"settings": settings, "dataset": dataset.settings}
        if network is not None:
            provenance["inputs"] = [file_input("model", network)]
        dataset_keys = dataset.keys()
        keys = [key for key in dataset_keys if flights is None or key.number < flights]
        inputs = _read_flights(dataset, keys, vehicle, model, learned, skipped)
        results = evaluator.score_flights(inputs, len(keys))
        scores = list(count_items(results, "Comparing", len(keys) * len(names)))
        if not scores:
            first = next(iter(skipped.values()), "it has no flights")
            raise LogError(f"{source}: no flight can be used for a comparison; {first}")
    comparison = compare_scores(scores)
    reasons = {"/".join(map(str, key)): reason for key, reason in skipped.items()}
    findings = comparison_findings(comparison, reasons)
    if output is not None:
        others[REPORT] = comparison_page(comparison, findings, source.name, vehicle.name).encode()
        write_comparison(output, comparison, findings, provenance, reasons, others)
    print_result(
        lambda: comparison_json(comparison, findings, provenance, reasons),
        lambda console: show(comparison, findings, output, console),
        output and output / REPORT,
        is_only_output=output is None,
    )


def _check_options(
    source: Path,
    mapping: Path | None,
    truth: Path | None,
    flights: int | None,
    mass: str | None,
    span: float | None,
) -> None:
    if source.is_dir():
        of_logs = {"--mapping": mapping, "--truth": truth, "--mass": mass, "--span": span}
        for option in (option for option, value in of_logs.items() if value is not None):
            raise SettingError(f"{option} applies to a log, but {source} is a folder; remove it")
        if flights is not None and flights < 1:
            raise SettingError(f"--flights {flights}: must be 1 or more")
    elif flights is not None:
        raise SettingError(f"--flights applies to a data set, but {source} is not a folder; remove it")


def _default_airframe(dataset: Dataset) -> str:
    """The airframe of the scenario preset of a data set."""
    preset = dataset.settings.get("preset")
    if preset not in AIRFRAMES:
        raise SettingError(f"the preset {preset!r} has no default airframe; give one with --airframe")
    return AIRFRAMES[preset]


def _read_flights(
    dataset: Dataset,
    keys: Sequence[Key],
    vehicle: Airframe,
    system: SystemName,
    learned: TrainedMassModel | None,
    skipped: dict[Key, str],
) -> Iterator[FlightInput]:
    """Yield the usable flights of a data set; the others are added to skipped, with the reason."""
    from rotorid.workflows.compare.batch import prepare_input

    for key in keys:
        try:
            flight = prepare_input(
                dataset.flight(*key), vehicle, system, (key.trajectory, key.mass_profile), learned
            )
        except RotoridError as error:
            skipped[key] = str(error)
            continue
        yield flight
