"""The tracked mass and wind of a flight of RotorPy, with the truth beside them.

Each flight is tracked with `ekf` and two airframes: one with the true geometry, lag and thrust, as after a test of the thrust,
with a standard deviation of 1 %, and a mass that is 10 % off with a standard deviation of 30 %; and the one that was identified
from the excited flight of the same vehicle in still air. Scores over the rows from 5 s on:

    rmspe     root mean square of the relative error of the mass, %
    inside    share of the rows whose 95 % band contains the true mass
    ok_wrong  share of the rows with health "ok" whose band does not contain it
"""

from __future__ import annotations

import dataclasses
import json
import time
from pathlib import Path
from typing import Final

import numpy as np

from rotorid.errors import RotoridError
from rotorid.logs.flight import Flight
from rotorid.models.airframe.airframe import Airframe, Quantity, load_airframe
from rotorid.studies.rotorpy.cache import load_or_simulate
from rotorid.studies.rotorpy.flights import Task
from rotorid.studies.rotorpy.recovery import AIRFRAMES
from rotorid.studies.rotorpy.vehicles import parameters_of, true_airframe

SIGMAS: Final = 1.96
_START = 5.0  # s
_MASS_ERROR, _MASS_STD = 0.1, 0.3  # relative
_THRUST_STD = 0.01  # relative
_CURVE_POINTS = 400


def track_task(pair: tuple[Task, Task], folder: Path) -> bytes:
    """Track the flight of the first task, also with the airframe that was identified from that of the second.

    Returns:
        JSON: by method ("known thrust", "identified"): the scores with the time in s, or the error message.
    """
    task, source = pair
    flight = load_or_simulate(folder, task)
    truth = true_airframe(parameters_of(task.vehicle), task.vehicle)
    results = {"known thrust": _track(flight, _with_mass_error(truth))}
    path = folder / AIRFRAMES / f"{source.name}.toml"
    if path.exists():
        results["identified"] = _track(flight, load_airframe(path))
    return json.dumps(results).encode()


def _with_mass_error(airframe: Airframe) -> Airframe:
    mass = (1.0 + _MASS_ERROR) * airframe.mass.number
    quantity, curve = Quantity((mass,), "kg", (_MASS_STD * mass,)), airframe.thrust_curve
    assert curve is not None
    curve = dataclasses.replace(curve, std=tuple(_THRUST_STD * abs(c) for c in curve.coefficients))
    quantities = {**airframe.quantities, "mass": quantity}
    return dataclasses.replace(airframe, quantities=quantities, thrust_curve=curve)


def _track(flight: Flight, airframe: Airframe) -> dict[str, object]:
    from rotorid.estimators.base import Health
    from rotorid.workflows.track.track import track

    start = time.perf_counter()
    try:
        result = track(flight, airframe)
    except RotoridError as error:
        return {"error": str(error)}
    rows = result.t >= result.t[0] + _START
    mass, truth = result.quantities["mass"], result.truth["mass"]
    is_inside = np.abs(mass.value - truth) <= SIGMAS * mass.std
    is_ok = result.health == Health.OK
    scores: dict[str, object] = {
        "rmspe": 100.0 * float(np.sqrt(np.mean(((mass.value - truth) / truth)[rows] ** 2))),
        "inside": float(np.mean(is_inside[rows])),
        "ok_wrong": float(np.mean((is_ok & ~is_inside)[rows])),
        "ok": float(np.mean(is_ok[rows])),
        "seconds": time.perf_counter() - start,
    }
    for name in ("wind_x", "wind_y"):
        if name in result.truth:
            wind = result.quantities[name]
            is_inside_wind = np.abs(wind.value - result.truth[name]) <= SIGMAS * wind.std
            scores[f"{name} inside"] = float(np.mean(is_inside_wind[rows]))
    keep = np.unique(np.linspace(0, len(result.t) - 1, _CURVE_POINTS).astype(int))
    scores["curve"] = [
        np.asarray(column)[keep].round(7).tolist() for column in (result.t, mass.value, mass.std, truth)
    ]
    return scores
