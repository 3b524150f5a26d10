"""One flight of the study of the closed loop, and many of them at once.

A task names all that a flight depends on; what is flown comes back as numbers, and as curves where a picture shows them.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import math
from collections.abc import Sequence
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
from rotorid.studies.parts import by_processes
from rotorid.studies.study_files import Curve, Part, Row

PILOTS = ("nominal", "known", "ekf", "ekf, gated", "adaptive", "adaptive, gated")
"""Where the controller has its mass from; known is the true one."""

STEP_AT = 0.4
"""Share of a flight after which the mass steps."""

STEPS = {"30 % more": 0.3, "30 % less": -0.3}
"""Masses that step from the nominal one, by that share of it."""

QUANTITIES = {
    "rms error": "m",
    "largest error": "m",
    "thrust effort": "N",
    "body rate effort": "rad/s",
    "saturated": "1",
    "error of the mass": "%",
}
"""Of a flight, with their units. After a step, the error is that from the step on."""

HARD = "hard"
"""The part whose flights have the air and the motors of the hard preset."""

LOST = 3.0
"""Distance from the path at which a flight counts as lost, m."""


class Task(NamedTuple):
    """A flight. mass: a profile, or one of `STEPS`. number: of the sensors' noise. failure: of the estimator, "" for none.
    pictured: whether curves are kept."""

    part: str
    trajectory: str
    mass: str
    number: int
    seed: int
    pilot: str
    failure: str = ""
    duration: float = 20.0
    pictured: bool = False


def flown(tasks: Sequence[Task], workers: int, stage: Stage) -> Part:
    """All of them, in the order of the tasks."""
    rows: list[Row] = []
    curves: list[Curve] = []
    for task, made in zip(tasks, by_processes(make, tasks, workers, stage), strict=True):
        row = Row(task.part, task.pilot, "", 0.0, "1", task.trajectory, task.mass, _setting(task), flights=1)
        rows += [
            dataclasses.replace(row, quantity=quantity, value=value, unit=QUANTITIES.get(quantity, "1"))
            for quantity, value in made["numbers"].items()
        ]
        part = f"{task.part}, {task.failure}" if task.failure else task.part
        for quantity, unit, t, value, std, truth in made["curves"]:
            of = [np.array(column, float) for column in (t, value, std, truth)]
            curves.append(
                Curve(
                    part, task.pilot, task.trajectory, task.mass, of[0], of[1], of[2], of[3], quantity, unit
                )
            )
    return Part(tuple(rows), tuple(curves))


def _setting(task: Task) -> str:
    return ", ".join([*([task.failure] if task.failure else []), f"flight={task.number}"])


def make(task: Task) -> bytes:
    """One flight, as JSON."""
    mass = mass_of(task)
    with jax.enable_x64(True):
        pilot = pilot_of(task, mass)
        flight = simulate_closed_loop(
            task.trajectory,
            mass,
            task.seed,
            pilot,
            duration=task.duration,
            stream=task.number,
            plant=scenario_preset("hard").draw_plant(task.seed) if task.part == HARD else Plant(),
        )
    return json.dumps({"numbers": numbers_of(task, flight), "curves": _curves(task, flight)}).encode()


def mass_of(task: Task) -> MassProfile:
    """The true mass of a task's flight."""
    if task.mass in STEPS:
        after = NOMINAL_MASS * (1.0 + STEPS[task.mass])
        return lambda t: np.where(t < STEP_AT * task.duration, NOMINAL_MASS, after)
    return lambda t: mass_profile(task.mass, task.seed, t, task.duration)


def pilot_of(task: Task, mass: MassProfile) -> MassProvider:
    """Who gives the controller its mass in a task's flight."""
    if task.pilot == "nominal":
        return MassProvider()
    if task.pilot == "known":
        return MassProvider(mass=mass)
    estimator, _, gated = task.pilot.partition(", ")
    failure = FAILURES[task.failure]() if task.failure else None
    return MassProvider(_stream(estimator), GATE if gated else None, failure)


@functools.cache
def _stream(estimator: str) -> Stream:
    """One for all flights of a process."""
    return Stream({"ekf": ekf, "adaptive": adaptive}[estimator](BareMultirotor()))


def numbers_of(task: Task, flight: ClosedLoopFlight) -> dict[str, float]:
    """`QUANTITIES` of a flight, and whether it was lost."""
    begin = STEP_AT * task.duration if task.mass in STEPS else 0.0
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
        "lost": float(not np.max(flight.position_error) < LOST),
    }


def _rms(values: Float64[np.ndarray, " n"]) -> float:
    return math.sqrt(float(np.mean(values**2)))


def _curves(task: Task, flight: ClosedLoopFlight) -> list[list[Any]]:
    """The mass that was planned with, what the estimator said where it failed, and the error; at each second control."""
    if not task.pictured:
        return []
    thin = slice(None, None, 2)
    t = flight.times[thin]
    truth = np.interp(t, flight.truth.times, flight.truth.mass)
    none = np.full(len(t), math.nan)
    error = 1000.0 * np.interp(t, flight.truth.times, flight.position_error)
    found = [
        ("mass", "kg", t, flight.controller_mass[thin], none, truth),
        ("error", "mm", t, error, none, none),
    ]
    if task.failure:
        found.append(("said", "kg", t, flight.estimate[thin], flight.estimate_std[thin], truth))
    return [[quantity, unit, *(column.tolist() for column in of)] for quantity, unit, *of in found]
