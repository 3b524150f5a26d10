"""The JSON of `rotorid calibrate`: the thrust scale, that of each flight, and the airframe with it."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import version
from typing import Any

from rotorid.models.airframe.airframe import Airframe
from rotorid.results.files import Input
from rotorid.workflows.airframes.summary import summarise_airframe
from rotorid.workflows.calibrate.thrust_scale import Calibration


def summarise_calibration(
    calibration: Calibration, airframe: Airframe, inputs: Sequence[Input] = ()
) -> dict[str, Any]:
    """A calibration as plain data.

    Args:
        calibration: the pooled thrust scale.
        airframe: with this scale, as it is written.
        inputs: the files that were read.
    Returns:
        `thrust_scale`: value, std (for one further flight), scatter (standard deviation between the flights) and unit;
        `flights`: the same of each flight; `known_mass`, kg; `airframe`: as `rotorid airframe --json` prints it.
    """
    return {
        "thrust_scale": {
            "value": calibration.value,
            "std": calibration.std,
            "scatter": calibration.scatter,
            "unit": "1",
        },
        "known_mass": {"value": calibration.mass, "unit": "kg"},
        "flights": [
            {"flight": f.flight, "value": f.value, "std": f.std, "unit": "1"} for f in calibration.flights
        ],
        "airframe": summarise_airframe(airframe),
        "inputs": list(inputs),
        "versions": {name: version(name) for name in ("rotorid", "jax")},
    }
