"""The study of seed 001: the external wrench by an observer with wrong physics, with a learned residual, and beyond.

flights       9 training flights without external wrench, and some in each of four scenarios    section V-B
trainings     residuals of four types of wrong physics, by horizon                              III, V-C, Table I
identified    the parameters found in the training flights, and what is left, learned           beyond the seed
wrench        every observer on every flight                                                    V-D, Table II, Figures 5 to 8
late          the same from logs with noise that are 20 ms late                                 left for the future there
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

from rotorid.estimators.wrench.observers import COMPONENTS
from rotorid.learning.knode import Parameters
from rotorid.models.airframe.airframe import load_airframe
from rotorid.models.multirotor.rigid import RigidMultirotor, rigid_multirotor
from rotorid.models.residual import Residual
from rotorid.progress import Progress, Stage, no_progress
from rotorid.signals.samples import Samples
from rotorid.simulation.datasets.generation import make_folder
from rotorid.simulation.wrench.flights import LogNoise, evaluation_flights, training_flights
from rotorid.studies.nemo.models import ERRORS, Plan, Trained, identify, train, wrong_physics
from rotorid.studies.nemo.wrench import QUANTILES, UNIT, Errors, Model, Pushed, errors_of, pushed
from rotorid.studies.parts import whole
from rotorid.studies.study_files import Curve, Part, Row, kept
from rotorid.workflows.learn.learn import MIN_EXPLAINED
from rotorid.workflows.track.track import prepare_samples

AIRFRAME: Final = "fully-actuated-hexarotor"
SETS: Final = ("exact", "late")
"""The logs: with the true states, as in the seed, and noisy ones whose states come late."""

DELAY: Final = 0.02
"""s, of the states in the late logs; rotor speeds are not."""

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
    """flights: in each scenario. training: flights to learn from. epochs: at most, of the first horizon, of the longer ones,
    and of the heads in the body frame. identified: training flights, the last ones, from which parameters are identified.
    plans: the trainings, by name."""

    flights: int
    training: int
    epochs: tuple[int, int, int]
    identified: int
    plans: tuple[str, ...]


FULL = Size(5, 9, (300, 40, 20), 9, ("nemo-1", "nemo-25", "nemo-50", "nemo-body", "identify-first"))
QUICK = Size(1, 4, (15, 2, 4), 3, ("nemo-1", "nemo-50"))


class Study(NamedTuple):
    """All that was found. flights: how many in each scenario."""

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
    """Make the study in a folder, or go on with it there."""
    make_folder(folder)
    airframe = load_airframe(AIRFRAME)
    system = rigid_multirotor(airframe, "rotor_speed")
    wrong = {kind: wrong_physics(system, kind) for kind in ERRORS}
    parts = []
    for name in SETS:
        settings = {} if name == "exact" else {"noise": LogNoise(), "delay": DELAY}

        @cache
        def learning(name=name, settings=settings) -> list[Samples]:
            progress(f"training flights, {name}", 0, 1)
            flights = training_flights(airframe, seed, size.training, **settings)
            return [prepare_samples(flight, system, whole=True) for flight in flights]

        @cache
        def judging(name=name, settings=settings) -> list[Pushed]:
            progress(f"flights, {name}", 0, 1)
            flights = evaluation_flights(airframe, seed, size.flights, **settings)
            return [
                pushed(flight, scenario, prepare_samples(flight, system, whole=True))
                for scenario, some in flights.items()
                for flight in some
            ]

        def make(name=name, learning=learning, judging=judging) -> Part:
            models, rows = _models(
                folder / name, name, system, airframe, learning(), wrong, size, seed, progress
            )
            more, curves = _judged(name, system, models, judging(), progress)
            return Part((*rows, *more), curves)

        asked = {"size": size, "seed": seed, "set": name, "delay": DELAY}
        parts.append(kept(folder, name, asked, make))
    every = whole(parts)
    return Study(every.rows, every.curves, size.flights)


def plans(size: Size) -> tuple[Plan, ...]:
    """The trainings: the seed's heads for each horizon, a longer one from the weights of the shorter, and heads in the body
    frame for the wrong physics and for the identified one."""
    first, longer, body = size.epochs
    before = "nemo-25" if "nemo-25" in size.plans else "nemo-1"
    every = (
        Plan("nemo-1", "split", 1, first),
        Plan("nemo-25", "split", 25, longer, start="nemo-1"),
        Plan("nemo-50", "split", 50, longer, start=before),
        Plan("nemo-body", "body", 25, body),
        Plan("identify-first", "body", 25, body, physics="identified"),
    )
    return tuple(plan for plan in every if plan.name in size.plans)


def _models(
    folder: Path,
    name: str,
    system: RigidMultirotor,
    airframe,
    flights: list[Samples],
    wrong: Mapping[str, Parameters],
    size: Size,
    seed: int,
    progress: Progress,
) -> tuple[list[Model], list[Row]]:
    """What every method believes, for every type; and how its training went."""
    stage = Stage(progress, f"identification, {name}", len(wrong))
    identified, took = identify(system, flights[-size.identified :], wrong, stage)
    rows = [_row(name, "identified", "seconds", kind, s, "s") for kind, s in took.items()]
    models = [Model("oracle", kind, {}) for kind in wrong]
    models += [Model("mo", kind, physics) for kind, physics in wrong.items()]
    models += [Model("identified", kind, physics) for kind, physics in identified.items()]
    trained: dict[str, Trained] = {}
    for plan in plans(size):
        physics = wrong if plan.physics == "wrong" else identified
        found = trained[plan.name] = train(
            folder, plan, system, airframe, flights, physics,
            trained[plan.start] if plan.start else None, seed,
            f"training {plan.name}, {name}", progress,
        )  # fmt: skip
        for kind, residual in found.residuals.items():
            used: Residual | None = residual
            if plan.physics == "identified" and found.losses[kind] > 1.0 - MIN_EXPLAINED:
                used = None
            models.append(Model(plan.name, kind, physics[kind], used))
            rows.append(_row(name, plan.name, "loss", kind, found.losses[kind], ""))
            rows.append(_row(name, plan.name, "seconds", kind, found.seconds, "s"))
            rows.append(_row(name, plan.name, "epochs", kind, float(found.epochs), ""))
    if "identify-first" not in trained:  # nothing is left to learn beside identified physics
        models += [Model("identify-first", kind, physics) for kind, physics in identified.items()]
    return models, rows


def _judged(
    name: str, system: RigidMultirotor, models: list[Model], flights: list[Pushed], progress: Progress
) -> tuple[list[Row], tuple[Curve, ...]]:
    """Errors of every model, and the time series of Figures 5 and 6."""
    rows, curves = [], []
    by_method: dict[str, dict[str, list[Errors]]] = {}
    stage = Stage(progress, f"wrench, {name}", len(models))
    for found, said, seconds in errors_of(system, models, flights):
        rows += _rows(name, found, seconds)
        by_method.setdefault(found[0].model.method, {})[found[0].model.kind] = found
        if name == "exact":
            curves += _curves(found[0].model, flights, said)
        stage.advance()
    for method, kinds in by_method.items():
        rows += _boxes(name, method, kinds)
    return rows, tuple(curves)


def _rows(name: str, found: list[Errors], seconds: float) -> list[Row]:
    model = found[0].model
    rows = []
    for k, e in enumerate(found):
        n = len(e.flights)
        published = PUBLISHED[model.kind].get(model.method) if name == "exact" else None
        rows.append(
            _row(
                name, model.method, "rms error", model.kind, float(e.flights.mean()), UNIT, e.scenario,
                float(e.flights.std(ddof=1) / math.sqrt(n)) if n > 1 else math.nan, n,
                published[k] if published else math.nan,
            )
        )  # fmt: skip
        rows.append(_row(name, model.method, "covered", model.kind, e.covered, "", e.scenario, flights=n))
        rows.append(_row(name, model.method, "healthy", model.kind, e.healthy, "", e.scenario, flights=n))
    total = sum(float(e.flights.mean()) for e in found)
    published = PUBLISHED[model.kind].get(model.method) if name == "exact" else None
    rows.append(
        _row(
            name, model.method, "rms error", model.kind, total, UNIT, ALL,
            flights=sum(len(e.flights) for e in found), published=sum(published) if published else math.nan,
        )
    )  # fmt: skip
    rows.append(_row(name, model.method, "seconds a flight", model.kind, seconds, "s"))
    return rows


def _boxes(name: str, method: str, found: Mapping[str, list[Errors]]) -> list[Row]:
    """Quantiles of errors as Figures 7 and 8 show them. found: one method's, by residual type.

    Of force and torque together over their axes, by scenario and by type; and of each axis over all.
    """
    every = [e for some in found.values() for e in some]
    groups: list[tuple[str, str, list[Errors]]] = [(ALL, ALL, every)]
    groups += [
        (s, ALL, [e for e in every if e.scenario == s]) for s in dict.fromkeys(e.scenario for e in every)
    ]
    groups += [(ALL, kind, some) for kind, some in found.items()]
    rows = []
    for scenario, kind, some in groups:
        errors = np.concatenate([e.all for e in some])
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


def _curves(model: Model, flights: list[Pushed], said: list[np.ndarray]) -> list[Curve]:
    found = []
    for figure, (scenario, kind, methods) in _FIGURES.items():
        if model.kind != kind or model.method not in methods:
            continue
        which = next(i for i, f in enumerate(flights) if f.scenario == scenario)
        t = np.asarray(flights[which].samples.t)
        every = slice(None, None, 5)
        nothing = np.full(len(t[every]), math.nan)
        for k, axis in enumerate(COMPONENTS):
            value, truth = said[which][every, k], flights[which].wrench[every, k]
            found.append(
                Curve(
                    figure, model.method, scenario, kind, t[every], value, nothing, truth, axis, _unit(axis)
                )
            )
    return found


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
    """A number of the set `name`, residual type as its setting, scenario as its trajectory."""
    return Row(name, method, quantity, value, unit, scenario, "", kind, standard_error, flights, published)
