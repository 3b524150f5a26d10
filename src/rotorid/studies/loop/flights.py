"""Flights of the closed-loop study.

A task specifies a flight completely. Its results are numbers, and curves for flights that are shown in a figure.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Float64

from rotorid.estimators.adaptive import adaptive
from rotorid.estimators.ekf import ekf
from rotorid.estimators.run import Stream
from rotorid.models.multirotor.bare import BareMultirotor
from rotorid.progress import Stage
from rotorid.simulation.closed_loop import (
    GATE,
    ClosedLoopFlight,
    MassProfile,
    MassProvider,
    simulate_closed_loop,
)
from rotorid.simulation.datasets.scenario_presets import scenario_preset
from rotorid.simulation.failures import FAILURES
from rotorid.simulation.plant import Plant
from rotorid.simulation.profiles import NOMINAL_MASS, mass_profile
from rotorid.studies.parts import join_parts, run_tasks
from rotorid.studies.study_files import Curve, Part, Row

MASS_SOURCES = ("nominal", "known", "ekf", "ekf, gated", "adaptive", "adaptive, gated")
"""Sources of the controller's mass: the nominal mass, the true mass ("known"), or an estimator without or with the gate."""

STEP_TIME = 0.4
"""Time of a mass step, as a share of the duration of the flight."""

STEPS = {"30 % more": 0.3, "30 % less": -0.3}
"""Steps of the mass, as shares of the nominal mass."""

QUANTITIES = {
    "rms error": "m",
    "largest error": "m",
    "thrust effort": "N",
    "body rate effort": "rad/s",
    "saturated": "1",
    "error of the mass": "%",
}
"""Quantities of a flight, with their units. In flights with a step they are evaluated from the step on."""

HARD = "hard"
"""The part whose flights have the wind, the drag and the motors of the hard preset."""

LOST_DISTANCE = 3.0
"""Distance from the path above which a flight counts as lost, m."""


class Task(NamedTuple):
    """A flight. mass: a mass profile, or one of `STEPS`. number: of the noise sequence of the sensors. source: of the
    controller's mass. failure: of the estimator, "" for none. duration: s. has_curves: whether the results include
    curves."""

    part: str
    trajectory: str
    mass: str
    number: int
    seed: int
    source: str
    failure: str = ""
    duration: float = 20.0
    has_curves: bool = False


def flights_part(tasks: Sequence[Task], workers: int, stage: Stage) -> Part:
    """The results of all tasks, in their order. workers: number of processes."""
    results = run_tasks(simulate_task, tasks, workers, stage)
    return join_parts(
        [
            part_of_flight(
                Row(t.part, t.source, "", 0.0, "1", t.trajectory, t.mass, _setting(t), flights=1),
                result,
                QUANTITIES,
                f"{t.part}, {t.failure}" if t.failure else t.part,
            )
            for t, result in zip(tasks, results, strict=True)
        ]
    )


def part_of_flight(row: Row, result: Mapping[str, Any], units: Mapping[str, str], curve_part: str) -> Part:
    """Rows and curves of a flight.

    Args:
        row: with its conditions, without quantity and value.
        result: "numbers" by quantity; "curves": quantity, unit, t, value, std and truth of each.
        units: of the quantities; others have none.
        curve_part: part of the curves.
    """
    rows = [
        dataclasses.replace(row, quantity=quantity, value=value, unit=units.get(quantity, "1"))
        for quantity, value in result["numbers"].items()
    ]
    conditions = curve_part, row.method, row.trajectory, row.mass_profile
    curves = [
        Curve(*conditions, *(np.array(column, float) for column in columns), quantity=quantity, unit=unit)
        for quantity, unit, *columns in result["curves"]
    ]
    return Part(tuple(rows), tuple(curves))


def _setting(task: Task) -> str:
    return ", ".join([*([task.failure] if task.failure else []), f"flight={task.number}"])


def simulate_task(task: Task) -> bytes:
    """Simulate the flight of a task; its numbers and curves as JSON."""
    mass = true_mass(task)
    with jax.enable_x64(True):
        provider = mass_provider(task, mass)
        flight = simulate_closed_loop(
            task.trajectory,
            mass,
            task.seed,
            provider,
            duration=task.duration,
            stream=task.number,
            plant=scenario_preset("hard").draw_plant(task.seed) if task.part == HARD else Plant(),
        )
    return json.dumps({"numbers": flight_numbers(task, flight), "curves": _curves(task, flight)}).encode()


def true_mass(task: Task) -> MassProfile:
    """The true mass in the flight of a task."""
    if task.mass in STEPS:
        after = NOMINAL_MASS * (1.0 + STEPS[task.mass])
        return lambda t: np.where(t < STEP_TIME * task.duration, NOMINAL_MASS, after)
    return lambda t: mass_profile(task.mass, task.seed, t, task.duration)


def mass_provider(task: Task, mass: MassProfile) -> MassProvider:
    """The provider of the controller's mass in the flight of a task. mass: the true mass."""
    if task.source == "nominal":
        return MassProvider()
    if task.source == "known":
        return MassProvider(mass=mass)
    estimator, _, gate = task.source.partition(", ")
    failure = FAILURES[task.failure]() if task.failure else None
    return MassProvider(_stream(estimator), GATE if gate else None, failure)


@functools.cache
def _stream(estimator: str) -> Stream:
    """The stream of an estimator, compiled once in each process."""
    return Stream({"ekf": ekf, "adaptive": adaptive}[estimator](BareMultirotor()))


def flight_numbers(task: Task, flight: ClosedLoopFlight) -> dict[str, float]:
    """`QUANTITIES` of a flight, and "lost": 1 for a lost flight, else 0."""
    begin = STEP_TIME * task.duration if task.mass in STEPS else 0.0
    rows = flight.truth.times >= begin
    controls = flight.times >= begin
    mass = np.interp(flight.times, flight.truth.times, flight.truth.mass)
    thrust, rates = flight.control_effort()
    return {
        "rms error": flight.rms_error(begin),
        "largest error": float(np.max(flight.position_error[rows])),
        "thrust effort": thrust,
        "body rate effort": rates,
        "saturated": flight.saturated_share(),
        "error of the mass": 100.0 * _rms(flight.controller_mass[controls] / mass[controls] - 1.0),
        "lost": float(not np.max(flight.position_error) < LOST_DISTANCE),
    }


def _rms(values: Float64[np.ndarray, " n"]) -> float:
    return math.sqrt(float(np.mean(values**2)))


def _curves(task: Task, flight: ClosedLoopFlight) -> list[list[Any]]:
    """The mass used by the controller, the error, and with a failure the report of the estimator; every second sample."""
    if not task.has_curves:
        return []
    decimation = slice(None, None, 2)
    t = flight.times[decimation]
    truth = np.interp(t, flight.truth.times, flight.truth.mass)
    missing = np.full(len(t), math.nan)
    error = 1000.0 * np.interp(t, flight.truth.times, flight.position_error)
    curves = [
        ("mass", "kg", t, flight.controller_mass[decimation], missing, truth),
        ("error", "mm", t, error, missing, missing),
    ]
    if task.failure:
        estimate, std = flight.estimate[decimation], flight.estimate_std[decimation]
        curves.append(("estimate", "kg", t, estimate, std, truth))
    return [[quantity, unit, *(column.tolist() for column in columns)] for quantity, unit, *columns in curves]
