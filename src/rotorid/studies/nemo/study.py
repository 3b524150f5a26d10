"""The study of Alharbat 2025: estimates of the external wrench with wrong, corrected and identified models.

flights       9 training flights without external wrench, evaluation flights in four scenarios    section V-B
trainings     residuals for four types of wrong parameters, by horizon                            III, V-C, Table I
identified    parameters identified from the training flights, then a residual                    not in the article
wrench        all observers on all flights                                                        V-D, Table II, Figures 5 to 8
late          the same for logs with noise and a delay of 20 ms                                   future work of the article
axes          force errors by axis, and what the inputs of the residual determine                   Figure 8
flapping      exact and late again for MGF: a vehicle with a wrench that no parameter describes   not in the article
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from rotorid.estimators.wrench.observers import COMPONENTS
from rotorid.learning.knode import Parameters
from rotorid.models.airframe.airframe import Airframe, load_airframe
from rotorid.models.multirotor.rigid import RigidMultirotor, rigid_multirotor
from rotorid.models.residual import Residual
from rotorid.progress import Progress, Stage, no_progress
from rotorid.signals.samples import Samples
from rotorid.simulation.datasets.generation import make_folder
from rotorid.simulation.wrench.flights import LogNoise, evaluation_flights, training_flights
from rotorid.studies.nemo.axes import axes_part
from rotorid.studies.nemo.models import (
    ERRORS,
    FLAPPING,
    Plan,
    TrainedModels,
    identify,
    train,
    wrong_physics,
)
from rotorid.studies.nemo.wrench import (
    QUANTILES,
    UNIT,
    Errors,
    EvaluationFlight,
    ObserverModel,
    evaluation_flight,
    observer_errors,
)
from rotorid.studies.parts import join_parts
from rotorid.studies.study_files import Curve, Part, Row, load_or_make_part
from rotorid.workflows.learn.learn import MIN_EXPLAINED
from rotorid.workflows.track.track import prepare_samples

AIRFRAME: Final = "fully-actuated-hexarotor"
SETS: Final = ("exact", "late")
"""Sets of logs: with the true states, as in the article; and with noisy and delayed states."""

DELAY: Final = 0.02
"""Delay of the states in the late logs, s; the rotor speeds have no delay."""

SCENARIOS: Final = ("hover", "free-flight", "hover-wrench", "free-flight-wrench")
ALL: Final = "all"
HORIZONS: Final = (1, 25, 50)

PUBLISHED: Final[Mapping[str, Mapping[str, tuple[float, ...]]]] = {
    "G": {
        "mo": (5.6397, 16.9102, 62.4538, 193.8503),
        "nemo-1": (0.6560, 3.0572, 9.7053, 24.7967),
        "nemo-25": (0.6077, 2.6647, 9.3333, 23.7484),
        "nemo-50": (0.3002, 2.3454, 8.8921, 22.8744),
    },
    "MG-1": {
        "mo": (8.5706, 26.0997, 96.9379, 303.3894),
        "nemo-1": (0.4814, 1.5429, 19.0291, 48.1385),
        "nemo-25": (0.7708, 2.3390, 19.9478, 49.4196),
        "nemo-50": (0.4901, 1.4707, 19.3289, 47.8743),
    },
    "MG-2": {
        "mo": (5.5997, 16.9219, 62.3094, 193.9662),
        "nemo-1": (0.8019, 2.6658, 15.3094, 37.7334),
        "nemo-25": (0.8619, 3.0586, 15.8662, 36.9178),
        "nemo-50": (0.2636, 2.0789, 14.9180, 35.9955),
    },
    "MGD": {
        "mo": (1.9456, 7.7395, 39.9784, 132.7520),
        "nemo-1": (0.9773, 1.5237, 22.4402, 57.9225),
        "nemo-25": (1.6239, 1.8910, 21.1135, 50.6148),
        "nemo-50": (0.5117, 0.8785, 20.7154, 52.0031),
    },
}
"""Table II: RMS errors by residual type, method and scenario, summed over an unknown number of flights."""


class Size(NamedTuple):
    """Size of the study.

    flights: in each scenario. training: number of training flights. epochs: largest number of epochs, for the first
    horizon, the longer ones, and the heads in the body frame. identified: number of training flights, from the last
    one, from which parameters are identified. plans: names of the trainings. flapping, flapping_training, flapping_plans: the
    same of the vehicle with flapping: sets of logs, number of training flights, trainings. seeds: of the errors by axis.
    """

    flights: int
    training: int
    epochs: tuple[int, int, int]
    identified: int
    plans: tuple[str, ...]
    flapping: tuple[str, ...]
    flapping_training: int
    flapping_plans: tuple[str, ...]
    seeds: int


_ALL_PLANS: Final = ("nemo-1", "nemo-25", "nemo-50", "nemo-body", "identify-first")
FULL = Size(5, 9, (300, 40, 20), 9, _ALL_PLANS, SETS, 9, _ALL_PLANS, 10)
QUICK = Size(1, 4, (8, 2, 4), 1, ("nemo-1", "nemo-50"), ("exact",), 2, ("identify-first",), 3)


class Study(NamedTuple):
    """The results. flights: number of flights in each scenario."""

    rows: tuple[Row, ...]
    curves: tuple[Curve, ...]
    flights: int


def nemo(
    folder: Path,
    *,
    size: Size = FULL,
    seed: int = 0,
    progress: Progress = no_progress,
) -> Study:
    """Run the study in a folder; finished parts are read from there."""
    make_folder(folder)
    airframe = load_airframe(AIRFRAME)
    system = rigid_multirotor(airframe, "rotor_speed")
    parts = []
    for name in SETS:
        log = {} if name == "exact" else {"noise": LogNoise(), "delay": DELAY}
        for flapping in (None, *FLAPPING.values()):
            kinds = [kind for kind in ERRORS if FLAPPING.get(kind) == flapping]
            if not kinds or (flapping is not None and name not in size.flapping):
                continue
            size_of_set = size
            if flapping is not None:
                size_of_set = size._replace(training=size.flapping_training, plans=size.flapping_plans)
            wrong = {kind: wrong_physics(system, kind) for kind in kinds}
            label = name if flapping is None else f"{name} flapping"
            flights = _Flights(
                airframe, system, size_of_set, seed, label, {**log, "flapping": flapping}, progress
            )

            def make(name=name, label=label, wrong=wrong, flights=flights, size=size_of_set) -> Part:
                training = flights.training()
                models, training_rows = _models(
                    folder / name, name, label, system, airframe, training, wrong, size, seed, progress
                )
                rows, curves = _evaluate(name, label, system, models, flights.evaluation(), progress)
                return Part((*training_rows, *rows), curves)

            settings = {"size": size, "seed": seed, "set": label, "delay": DELAY}
            parts.append(load_or_make_part(folder, label.replace(" ", "-"), settings, make))
    if size.seeds:
        stage = Stage(progress, "errors by axis", size.seeds)
        make_axes = partial(axes_part, airframe, system, seed, size.seeds, stage)
        parts.append(load_or_make_part(folder, "axes", {"seed": seed, "seeds": size.seeds}, make_axes))
    results = join_parts(parts)
    return Study(results.rows, results.curves, size.flights)


@dataclasses.dataclass(frozen=True)
class _Flights:
    """Flights of a set. settings: of `simulate_wrench_flight`."""

    airframe: Airframe
    system: RigidMultirotor
    size: Size
    seed: int
    label: str
    settings: Mapping[str, Any]
    progress: Progress

    def training(self) -> list[Samples]:
        self.progress(f"training flights, {self.label}", 0, 1)
        flights = training_flights(self.airframe, self.seed, self.size.training, **self.settings)
        return [prepare_samples(flight, self.system, whole=True) for flight in flights]

    def evaluation(self) -> list[EvaluationFlight]:
        self.progress(f"flights, {self.label}", 0, 1)
        by_scenario = evaluation_flights(self.airframe, self.seed, self.size.flights, **self.settings)
        return [
            evaluation_flight(flight, scenario, prepare_samples(flight, self.system, whole=True))
            for scenario, flights in by_scenario.items()
            for flight in flights
        ]


def plans(size: Size) -> tuple[Plan, ...]:
    """The trainings: heads of the article for each horizon, a longer one from the weights of a shorter one; and heads in
    the body frame for the wrong and for the identified parameters."""
    first, longer, body = size.epochs
    start = "nemo-25" if "nemo-25" in size.plans else "nemo-1"
    trainings = (
        Plan("nemo-1", "split", 1, first),
        Plan("nemo-25", "split", 25, longer, start="nemo-1"),
        Plan("nemo-50", "split", 50, longer, start=start),
        Plan("nemo-body", "body", 25, body),
        Plan("identify-first", "body", 25, body, physics="identified"),
    )
    return tuple(plan for plan in trainings if plan.name in size.plans)


def _models(
    folder: Path,
    name: str,
    label: str,
    system: RigidMultirotor,
    airframe: Airframe,
    flights: list[Samples],
    wrong: Mapping[str, Parameters],
    size: Size,
    seed: int,
    progress: Progress,
) -> tuple[list[ObserverModel], list[Row]]:
    """The models of all methods for all residual types, and the numbers of their training."""
    stage = Stage(progress, f"identification, {label}", len(wrong))
    identified, seconds = identify(system, flights[-size.identified :], wrong, stage)
    rows = [_row(name, "identified", "seconds", kind, s, "s") for kind, s in seconds.items()]
    models = [ObserverModel("oracle", kind, {}) for kind in wrong]
    models += [ObserverModel("mo", kind, physics) for kind, physics in wrong.items()]
    models += [ObserverModel("identified", kind, physics) for kind, physics in identified.items()]
    trained: dict[str, TrainedModels] = {}
    for plan in plans(size):
        physics = wrong if plan.physics == "wrong" else identified
        result = trained[plan.name] = train(
            folder, plan, system, airframe, flights, physics,
            trained[plan.start] if plan.start else None, seed,
            f"training {plan.name}, {label}", progress,
        )  # fmt: skip
        for kind, residual in result.residuals.items():
            model_residual: Residual | None = residual
            if plan.physics == "identified" and result.losses[kind] > 1.0 - MIN_EXPLAINED:
                model_residual = None
            models.append(ObserverModel(plan.name, kind, physics[kind], model_residual))
            rows.append(_row(name, plan.name, "residual used", kind, float(model_residual is not None), "1"))
            rows.append(_row(name, plan.name, "loss", kind, result.losses[kind], ""))
            rows.append(_row(name, plan.name, "seconds", kind, result.seconds, "s"))
            rows.append(_row(name, plan.name, "epochs", kind, float(result.epochs), ""))
    return models, rows


def _evaluate(
    name: str,
    label: str,
    system: RigidMultirotor,
    models: list[ObserverModel],
    flights: list[EvaluationFlight],
    progress: Progress,
) -> tuple[list[Row], tuple[Curve, ...]]:
    """Errors of all models, and the time series of Figures 5 and 6."""
    rows, curves = [], []
    by_method: dict[str, dict[str, list[Errors]]] = {}
    stage = Stage(progress, f"wrench, {label}", len(models))
    for errors, wrenches, seconds in observer_errors(system, models, flights):
        model = errors[0].model
        rows += _error_rows(name, errors, seconds)
        by_method.setdefault(model.method, {})[model.kind] = errors
        if name == "exact":
            curves += _curves(model, flights, wrenches)
        stage.advance()
    for method, by_kind in by_method.items():
        rows += _quantile_rows(name, method, by_kind)
    return rows, tuple(curves)


def _error_rows(name: str, by_scenario: list[Errors], seconds: float) -> list[Row]:
    """Errors, coverage and health of a model in each scenario, and in all."""
    model = by_scenario[0].model
    rows = []
    for k, e in enumerate(by_scenario):
        n = len(e.flights)
        published = PUBLISHED.get(model.kind, {}).get(model.method) if name == "exact" else None
        rows.append(
            _row(
                name, model.method, "rms error", model.kind, float(e.flights.mean()), UNIT, e.scenario,
                float(e.flights.std(ddof=1) / math.sqrt(n)) if n > 1 else math.nan, n,
                published[k] if published else math.nan,
            )
        )  # fmt: skip
        rows.append(_row(name, model.method, "covered", model.kind, e.covered, "", e.scenario, flights=n))
        rows.append(_row(name, model.method, "healthy", model.kind, e.healthy, "", e.scenario, flights=n))
    total = sum(float(e.flights.mean()) for e in by_scenario)
    published = PUBLISHED.get(model.kind, {}).get(model.method) if name == "exact" else None
    rows.append(
        _row(
            name, model.method, "rms error", model.kind, total, UNIT, ALL,
            flights=sum(len(e.flights) for e in by_scenario), published=sum(published) if published else math.nan,
        )
    )  # fmt: skip
    rows.append(_row(name, model.method, "seconds per flight", model.kind, seconds, "s"))
    return rows


def _quantile_rows(name: str, method: str, by_kind: Mapping[str, list[Errors]]) -> list[Row]:
    """Quantiles of the errors for Figures 7 and 8. by_kind: errors of a method, by residual type.

    Those of force and torque include all axes, by scenario and by type; those of each axis include all flights. Those of all
    types are of the document's.
    """
    all_errors = [e for kind, errors in by_kind.items() if kind not in FLAPPING for e in errors]
    groups: list[tuple[str, str, list[Errors]]] = []
    if all_errors:
        scenarios = dict.fromkeys(e.scenario for e in all_errors)
        groups = [(ALL, ALL, all_errors)]
        groups += [(s, ALL, [e for e in all_errors if e.scenario == s]) for s in scenarios]
    groups += [(ALL, kind, errors) for kind, errors in by_kind.items()]
    rows = []
    for scenario, kind, group in groups:
        errors = np.concatenate([e.all for e in group])
        columns = {"force": errors[:, :3], "torque": errors[:, 3:]}
        if scenario == kind == ALL:
            columns |= {axis: errors[:, k] for k, axis in enumerate(COMPONENTS)}
        for what, values in columns.items():
            quantiles = np.quantile(values, QUANTILES)
            rows += [
                _row(name, method, f"{what} q{round(100 * q)}", kind, float(v), _unit(what), scenario)
                for q, v in zip(QUANTILES, quantiles, strict=True)
            ]
    return rows


_FIGURES: Final = {
    "figure 5": ("free-flight", "MG-1", ("mo", "nemo-1", "identify-first")),
    "figure 6": ("hover-wrench", "MG-2", ("mo", "nemo-1", "identify-first")),
}


def _curves(model: ObserverModel, flights: list[EvaluationFlight], wrenches: list[np.ndarray]) -> list[Curve]:
    """Time series of the figures that show this model. wrenches: estimates, by flight."""
    curves = []
    for figure, (scenario, kind, methods) in _FIGURES.items():
        if model.kind != kind or model.method not in methods:
            continue
        index = next(i for i, f in enumerate(flights) if f.scenario == scenario)
        rows = slice(None, None, 5)
        t = np.asarray(flights[index].samples.t)[rows]
        no_std = np.full(len(t), math.nan)
        for k, axis in enumerate(COMPONENTS):
            value, truth = wrenches[index][rows, k], flights[index].wrench[rows, k]
            curves.append(
                Curve(figure, model.method, scenario, kind, t, value, no_std, truth, axis, _unit(axis))
            )
    return curves


def _unit(axis: str) -> str:
    return "N" if axis.startswith("force") else "N m"


def _row(
    name: str,
    method: str,
    quantity: str,
    kind: str,
    value: float,
    unit: str,
    scenario: str = "",
    standard_error: float = math.nan,
    flights: int = 0,
    published: float = math.nan,
) -> Row:
    """A number of the set `name`. The residual type is its setting, the scenario its trajectory."""
    return Row(name, method, quantity, value, unit, scenario, "", kind, standard_error, flights, published)
