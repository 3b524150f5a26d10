"""The mass from a log and the mass at take-off alone, beside that with the airframe written by hand.

On the ArduPilot log the mass changes within a second of take-off, and is that of take-off in most of the first 30 s."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from rotorid.estimators.base import Health
from rotorid.logs.read import read
from rotorid.results.metrics import rmspe
from rotorid.workflows.track.track import Track, track
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
            3.0,
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
    found = track(flight, mass=mass, span=span)
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


@pytest.mark.parametrize("log", ["dev.ulg", "default_logging.ulg"])
def test_a_thrust_that_does_not_depend_on_the_voltage_is_inside_the_band(flights: Path, log: str) -> None:
    """PX4's simulation without its own parameters, as a vehicle of which only the mass is known."""
    flight = flight_of(flights / "px4_sih" / log, flights / "px4_sih" / log.replace(".ulg", "_truth.csv"))
    parameters = {k: v for k, v in flight.parameters.items() if not k.startswith(("SIH_", "SYS_AUTOSTART"))}
    found = track(dataclasses.replace(flight, parameters=parameters), mass=1.0)
    _assert_inside(found, 0.95)


@pytest.mark.parametrize("log", ["cut10_hover_1", "cut25_line_1", "good_hover_1", "good_line_1"])
def test_a_constant_mass_is_inside_the_band_while_real_motors_warm_up(flights: Path, log: str) -> None:
    flight = read(flights / "ardupilot_propeller" / f"{log}.BIN")
    found = track(flight, mass=1.5)
    _assert_inside(dataclasses.replace(found, truth={"mass": np.full(len(found.t), 1.5)}), 0.95)


def _assert_inside(found: Track, share: float) -> None:
    quantity, is_ok = found.quantities["mass"], found.health == Health.OK
    inside = np.abs(quantity.value - found.truth["mass"]) < 1.96 * quantity.std
    assert is_ok.mean() > 0.9
    assert inside[is_ok].mean() > share
    assert np.median(quantity.std / quantity.value) < 0.08
