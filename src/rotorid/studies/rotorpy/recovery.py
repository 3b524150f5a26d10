"""The identification of a flight of RotorPy, with the truth beside every number.

The flight is identified and validated as by `rotorid identify --known mass`, with an engineer's airframe as prior. Numbers that
are functions of estimates get their standard deviation from the covariance, by finite differences. With s_h the root of the
thrust of a rotor in hover, and n rotors:

    drag_across = drag + n rotor_drag s_h         drag_along = drag + n rotor_inflow s_h           N s/m

where the drag is that of the axes x, y (their mean) and z. If the identification reports them itself, its numbers are taken.
"""

from __future__ import annotations

import dataclasses
import json
import math
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np

from rotorid.errors import RotoridError
from rotorid.logs.flight import Flight
from rotorid.models.airframe.airframe import (
    QUANTITIES,
    Airframe,
    Quantity,
    airframe_numbers,
    airframe_toml,
    with_numbers,
)
from rotorid.models.system import GRAVITY
from rotorid.simulation.datasets.generation import make_folder
from rotorid.studies.rotorpy.cache import load_or_simulate
from rotorid.studies.rotorpy.flights import Task
from rotorid.studies.rotorpy.vehicles import engineers_airframe, hover_signal, parameters_of, true_values

AIRFRAMES: Final = "airframes"
"""Folder of the identified airframes, in that of the study."""

_REPORTED: Final = ("drag_across", "drag_along")
_STEP = 0.01  # of a standard deviation
_SLOPE_STEP = 1e-4  # of the signal in hover

Estimates = dict[str, tuple[float, float]]
"""Value and standard deviation by name."""


def identify_task(task: Task, folder: Path) -> bytes:
    """Identify the flight of a task, and compare the result with the truth. The identified airframe is written to the folder.

    Returns:
        JSON: quantities (by name: truth, value, standard deviation), whether the model was accepted, the reasons if not, codes
        of warnings, and the time in s; or the error message.
    """
    from rotorid.workflows.identify.identify import identify_and_validate

    flight, parameters = load_or_simulate(folder, task), parameters_of(task.vehicle)
    prior = engineers_airframe(parameters, task.name, task.seed)
    start = time.perf_counter()
    try:
        result = identify_and_validate([flight], prior, known="mass", seed=task.seed)
    except RotoridError as error:
        return json.dumps({"error": str(error)}).encode()
    model = result.model
    make_folder(folder / AIRFRAMES)
    (folder / AIRFRAMES / f"{task.name}.toml").write_text(airframe_toml(model.airframe), encoding="utf-8")
    truth = true_values(parameters, task.rotors)
    estimates = estimates_of(model, hover_signal(parameters, task.rotors), task.rotors)
    quantities = {
        name: (truth[name], *estimate) for name, estimate in estimates.items() if name in truth
    } | wind_estimates(model, flight)
    validation = model.airframe.fly_back
    return json.dumps(
        {
            "quantities": quantities,
            "accepted": result.is_accepted,
            "reasons": [
                *(validation.reasons if validation and not result.is_accepted else ()),
                *(str(note.values.get("why", note.code)) for note in result.notes),
            ],
            "findings": sorted({finding.code for finding in model.findings if finding.severity > 1}),
            "seconds": time.perf_counter() - start,
        }
    ).encode()


def estimates_of(model: Any, signal: float, rotors: str) -> Estimates:
    """The estimates that are compared.

    Args:
        model: an `Identification`.
        signal: of each rotor in hover, command or rad/s.
        rotors: the logged signal.
    """
    names, covariance = model.covariance
    airframe = _with_all_numbers(model.airframe, model.fit.values)
    nominal = _functions(airframe, signal, rotors)
    numbers = airframe_numbers(airframe)
    slopes = np.zeros((len(names), len(nominal)))
    for k, name in enumerate(names):
        step = _STEP * math.sqrt(max(covariance[k, k], 0.0))
        if name not in numbers or step == 0.0:
            continue
        value = numbers[name][0]
        high, low = (
            _functions(with_numbers(airframe, {name: value + d}), signal, rotors) for d in (step, -step)
        )
        slopes[k] = [(high[n] - low[n]) / (2.0 * step) for n in nominal]
    variance = np.sum((covariance @ slopes) * slopes, axis=0)
    derived = {  # what follows from the prior alone is no estimate
        name: (v, math.sqrt(s)) for (name, v), s in zip(nominal.items(), variance, strict=True) if s > 0.0
    }
    direct = {n: (model.fit.values[n], model.fit.std[n]) for n in model.fit.names}
    reported = {n: (q.value, q.std) for n, q in model.hover.items() if n in _REPORTED}
    return direct | derived | reported


def _with_all_numbers(airframe: Airframe, values: Mapping[str, float]) -> Airframe:
    """The airframe with those quantities of one number that it leaves out since their estimate is 0."""
    missing = {
        name: Quantity((values[name],), QUANTITIES[name][0])
        for name in values
        if name in QUANTITIES and airframe.get(name) is None
    }
    return dataclasses.replace(airframe, quantities={**airframe.quantities, **missing})


def _functions(airframe: Airframe, signal: float, rotors: str) -> dict[str, float]:
    step = _SLOPE_STEP * signal
    high, low = (_thrust(airframe, signal + d, rotors) for d in (step, -step))
    count = len(airframe.rotors)
    root = math.sqrt(airframe.mass.number * GRAVITY / count)
    x, y, z = airframe.vector("drag")
    return {
        "thrust_at_hover": _thrust(airframe, signal, rotors),
        "thrust_slope_at_hover": (high - low) / (2.0 * step),
        "drag_across": 0.5 * (x + y) + count * root * airframe.number("rotor_drag"),
        "drag_along": z + count * root * airframe.number("rotor_inflow"),
        "yaw_inertia_ratio": airframe.vector("inertia")[2] / airframe.number("torque_ratio", math.nan),
    }


def _thrust(airframe: Airframe, signal: float, rotors: str) -> float:
    """Mean thrust of a rotor at a command or a speed, N."""
    scale = airframe.number("thrust_scale", 1.0) * float(np.mean([r.thrust_scale for r in airframe.rotors]))
    if rotors == "rotor_speed":
        return scale * airframe.number("thrust_coefficient") * signal**2
    assert airframe.thrust_curve is not None
    return scale * float(np.polynomial.polynomial.polyval(signal, airframe.thrust_curve.coefficients))


def wind_estimates(model: Any, flight: Flight) -> dict[str, tuple[float, float, float]]:
    """Truth, value and standard deviation of the wind (m/s, world) in the longest segment, whose truth is the mean there."""
    estimation = model.estimation
    place = estimation.problem.coordinates.slices.get("wind")
    names = estimation.fit.names
    if place is None or "true_wind" not in flight or place.stop - place.start < 2:
        return {}
    wind, stop = flight["true_wind"], max(end for parts in model.preparation.parts for _, end in parts)
    if place.stop - place.start > 2:  # several segments, whose boundaries are in the findings
        boundaries = [t for f in model.findings if f.code == "wind_changed" for t in f.values["times"]]
    else:
        boundaries = []
    edges = [0.0, *boundaries, stop]
    k = int(np.argmax(np.diff(edges)))
    rows = (wind.times >= edges[k]) & (wind.times < edges[k + 1])
    mean = wind.values[rows].mean(axis=0)
    return {
        f"wind_{axis}": (float(mean[i]), estimation.fit.values[name], estimation.fit.std[name])
        for i, axis in enumerate("xy")
        for name in [names[place.start + 2 * k + i]]
    }
