"""Flights of the closed-loop study with the whole identified model: in controller, state estimator and planner, and in a team.

part     flights                                                             sources
model    a mass step of 30 %, up or down, in wind, with drag and motor lag   nominal, true and identified model
team     a vehicle that takes off 10 s after another one                     with and without its message
"""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Sequence
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from rotorid.progress import Stage
from rotorid.simulation.datasets.generation import Key, flight_seed
from rotorid.simulation.datasets.scenario_presets import scenario_preset
from rotorid.simulation.model_based_flight import Message, ModelBasedFlight, Uses, fly_with_model
from rotorid.simulation.plant import Plant
from rotorid.simulation.profiles import NOMINAL_MASS
from rotorid.studies.loop.flights import LOST_DISTANCE, STEP_TIME, STEPS, part_of_flight
from rotorid.studies.parts import join_parts, run_tasks
from rotorid.studies.study_files import Part, Row

MODEL, TEAM = "model", "team"
"""Names of the parts."""

MODEL_SOURCES = {
    "nominal": Uses(),
    "true model": Uses(controller=True, state=True),
    "controller": Uses(controller=True),
    "controller, state": Uses(controller=True, state=True),
    "controller, state, planner": Uses(controller=True, planner=True, state=True),
}
"""What uses the identified model; "true model" has the true one in controller and state."""

TEAM_SOURCES = ("nominal", "message", "identification", "message, identification")
"""What the second vehicle knows: its nominal model, the message of the first one, and what it identifies itself."""

TEAM_LEAD = 10.0
"""Time for which the first vehicle has flown when the second one takes off, s."""

TEAM_WINDOW = 4.0
"""Time after its take-off for which the second vehicle is compared, s; later it has identified the model itself."""

QUANTITIES = {
    "rms error": "m",
    "largest error": "m",
    "path error": "m",
    "delay": "%",
    "thrust change": "N",
    "error of the mass": "%",
    "mass in band": "1",
    "drag in band": "1",
    "motor_time_constant in band": "1",
}
"""Quantities of a flight, with their units; in band: share of the time in which the 95 % band contains the truth. They are
evaluated after the step of the mass, and for a team from the take-off on."""


class ModelTask(NamedTuple):
    """A flight. mass: one of `STEPS`, or "constant". number: of the noise. source: of the model. duration: s."""

    part: str
    trajectory: str
    mass: str
    number: int
    seed: int
    source: str
    duration: float
    has_curves: bool = False


def model_tasks(trajectories: Sequence[str], flights: int, duration: float, seed: int) -> list[ModelTask]:
    """Each trajectory with each step and each source. flights: of each. duration: s."""
    return [
        ModelTask(
            MODEL, t, m, n, flight_seed(seed, Key(t, "step", n)), source, duration,
            t == trajectories[0] and n == 0,
        )
        for t, m, n, source in product(trajectories, STEPS, range(flights), MODEL_SOURCES)
    ]  # fmt: skip


def team_tasks(trajectories: Sequence[str], flights: int, seed: int) -> list[ModelTask]:
    """The second vehicle on each trajectory with each source. flights: of each."""
    return [
        ModelTask(TEAM, t, "constant", n, flight_seed(seed, Key(t, "step", n)), source, TEAM_WINDOW)
        for t, n, source in product(trajectories, range(flights), TEAM_SOURCES)
    ]


def model_part(tasks: Sequence[ModelTask], workers: int, stage: Stage) -> Part:
    """The results of all tasks, in their order. workers: number of processes."""
    results = run_tasks(simulate_model_task, tasks, workers, stage)
    return join_parts(
        [
            part_of_flight(
                Row(t.part, t.source, "", 0.0, "1", t.trajectory, t.mass, f"flight={t.number}", flights=1),
                result,
                QUANTITIES,
                t.part,
            )
            for t, result in zip(tasks, results, strict=True)
        ]
    )


def simulate_model_task(task: ModelTask) -> bytes:
    """Simulate the flight of a task; its numbers and curves as JSON."""
    plant = scenario_preset("hard").draw_plant(task.seed)
    flight = _second_vehicle(task, plant) if task.part == TEAM else _stepped_vehicle(task, plant)
    begin = 0.0 if task.part == TEAM else STEP_TIME * task.duration
    numbers = _numbers(flight, begin) | _shares_in_band(flight, plant, begin)
    return json.dumps({"numbers": numbers, "curves": _curves(task, flight, plant)}).encode()


def _stepped_vehicle(task: ModelTask, plant: Plant) -> ModelBasedFlight:
    after = NOMINAL_MASS * (1.0 + STEPS[task.mass])
    return fly_with_model(
        task.trajectory,
        lambda t: np.where(t < STEP_TIME * task.duration, NOMINAL_MASS, after),
        task.seed,
        MODEL_SOURCES[task.source],
        duration=task.duration,
        number=2 * task.number,
        plant=plant,
        is_known=task.source == "true model",
    )


def _second_vehicle(task: ModelTask, plant: Plant) -> ModelBasedFlight:
    message = _first_message(task.trajectory, task.seed, task.number) if "message" in task.source else None
    identifies = "identification" in task.source
    uses = Uses(controller=True, planner=identifies, state=identifies) if task.source != "nominal" else Uses()
    return fly_with_model(
        task.trajectory,
        _constant_mass,
        task.seed,
        uses,
        duration=task.duration,
        number=2 * task.number + 1,
        plant=plant,
        message=message,
        identifies=identifies,
    )


@functools.lru_cache(maxsize=4)
def _first_message(trajectory: str, seed: int, number: int) -> Message:
    """What the first vehicle of a team has published when the second one takes off."""
    plant = scenario_preset("hard").draw_plant(seed)
    whole = MODEL_SOURCES["controller, state, planner"]
    return fly_with_model(
        trajectory, _constant_mass, seed, whole, duration=TEAM_LEAD, number=2 * number, plant=plant
    ).message


def _constant_mass(t: np.ndarray) -> np.ndarray:
    return np.full(np.shape(t), NOMINAL_MASS)


def _numbers(flight: ModelBasedFlight, begin: float) -> dict[str, float]:
    """`QUANTITIES` of a flight from t = begin (s) on, and "lost": 1 for a lost flight, else 0."""
    rows, controls = flight.times >= begin, flight.control_times >= begin
    mass = flight.value[controls, flight.names.index("mass")]
    truth = np.interp(flight.control_times[controls], flight.times, flight.true_mass)
    change = np.diff(flight.thrust[rows][::2])
    return {
        "rms error": flight.rms(flight.error, begin),
        "largest error": float(np.max(flight.error[rows])),
        "path error": flight.rms(flight.path_distance, begin),
        "delay": 100.0 * flight.delay,
        "thrust change": float(np.sqrt(np.mean(change**2))),
        "error of the mass": 100.0 * float(np.sqrt(np.mean((mass / truth - 1.0) ** 2))),
        "lost": float(not np.max(flight.path_distance) < LOST_DISTANCE),
    }


def _truths(flight: ModelBasedFlight, plant: Plant) -> dict[str, np.ndarray]:
    """True parameters at the controls."""
    t = flight.control_times
    return {
        "mass": np.interp(t, flight.times, flight.true_mass),
        "drag": np.full(len(t), plant.drag),
        "motor_time_constant": np.full(len(t), plant.motor_time_constant),
    }


def _shares_in_band(flight: ModelBasedFlight, plant: Plant, begin: float) -> dict[str, float]:
    """Shares of the controls from t = begin (s) on at which the 95 % bands contain the true parameters."""
    controls, shares = flight.control_times >= begin, {}
    for name, truth in _truths(flight, plant).items():
        column = flight.names.index(name)
        is_inside = np.abs(flight.value[:, column] - truth) <= 1.96 * flight.std[:, column]
        shares[f"{name} in band"] = float(np.mean(is_inside[controls]))
    return shares


def _curves(task: ModelTask, flight: ModelBasedFlight, plant: Plant) -> list[list[Any]]:
    """Path error, and identified mass, drag and motor lag with their standard deviations, at the controls."""
    if not task.has_curves:
        return []
    t = flight.control_times
    missing = np.full(len(t), math.nan)
    curves = [
        ("path error", "mm", t, 1000.0 * np.interp(t, flight.times, flight.path_distance), missing, missing)
    ]
    if task.source == "controller, state, planner":
        for (name, truth), unit in zip(_truths(flight, plant).items(), ("kg", "N s/m", "s"), strict=True):
            column = flight.names.index(name)
            curves.append((name, unit, t, flight.value[:, column], flight.std[:, column], truth))
    return [[quantity, unit, *(column.tolist() for column in columns)] for quantity, unit, *columns in curves]
