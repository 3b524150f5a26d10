"""The mass from a log and the mass at take-off alone, beside that with the airframe written by hand.

On the ArduPilot log the mass changes within a second of take-off: what is left to calibrate the thrust leaves 1 %."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from rotorid.models.airframe.from_log.make import airframe_from_log
from rotorid.results.metrics import rmspe
from rotorid.workflows.track.track import track
from tests.recovery.tracked import flight_of, tracked, window


@pytest.mark.parametrize(
    ("log", "truth", "airframe", "mass", "span", "times", "most"),
    [
        ("px4_sih/dev.ulg", "px4_sih/dev_truth.csv", "px4-sih-quad", 1.0, None, (24.0, 198.0), 1.0),
        (
            "px4_sih/default_logging.ulg",
            "px4_sih/default_logging_truth.csv",
            "px4-sih-quad",
            1.0,
            None,
            (24.0, np.inf),
            1.0,
        ),
        (
            "ardupilot_sitl/dev.BIN",
            "ardupilot_sitl/dev_truth.csv.gz",
            "ardupilot-sitl-x",
            3.0,
            0.7,
            (30.0, np.inf),
            3.5,
        ),
    ],
)
def test_the_mass_is_as_good_as_with_the_airframe_written_by_hand(
    flights: Path,
    log: str,
    truth: str,
    airframe: str,
    mass: float,
    span: float | None,
    times: tuple[float, float],
    most: float,
) -> None:
    flight = flight_of(flights / log, flights / truth)
    found = track(flight, airframe_from_log(flight, (mass, 0.005 * mass), span), "ekf")
    by_hand = tracked(flights / log, airframe, "ekf", truth=flights / truth)
    errors = []
    for result in (found, by_hand):
        rows = window(flight, result.t, *times)
        errors.append(rmspe(result.quantities["mass"].value[rows], result.truth["mass"][rows]))
    assert errors[0] < max(1.1 * errors[1], most)
    rows = window(flight, found.t, *times)
    quantity = found.quantities["mass"]
    inside = np.abs(quantity.value[rows] - found.truth["mass"][rows]) < 1.96 * quantity.std[rows]
    assert inside.mean() > 0.9
