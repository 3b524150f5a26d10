"""The frame of the specific force: of a flight whose every property is known, and of real ones."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from rotorid.geometry.rotation_rows import interpolate, inverse, rotate
from rotorid.logs.flight import Flight
from rotorid.logs.read import read
from rotorid.models.airframe.airframe import load_airframe
from rotorid.models.registry import system_for
from rotorid.signals.airborne import airborne_intervals
from rotorid.signals.force_frame import is_force_in_world_frame, with_body_force
from rotorid.studies.benchmarks.nanodrone import MAPPING
from rotorid.workflows.track.track import prepare_flight
from tests.signals.flying import LIFT_OFF, TOUCH_DOWN, change, make_flight

FLYING = [(LIFT_OFF + 1.0, TOUCH_DOWN - 1.0)]


def in_world(flight: Flight) -> Flight:
    f, q = flight["specific_force"], flight["attitude"]
    return change(flight, "specific_force", rotate(interpolate(f.times, q.times, q.values), f.values))


def test_a_force_in_the_world_frame_is_turned_back() -> None:
    flight = make_flight()
    turned, is_turned = with_body_force(in_world(flight), FLYING)
    assert is_turned
    np.testing.assert_allclose(turned["specific_force"].values, flight["specific_force"].values, atol=1e-9)


def test_the_tracker_turns_it_and_says_so() -> None:
    flight = dataclasses.replace(make_flight(), format="simulation")
    airframe = load_airframe("px4-sih-quad")
    system = system_for(flight, airframe, "multirotor", None)
    right, turned = (prepare_flight(f, airframe, system) for f in (flight, in_world(flight)))
    assert [f.code for f in turned.findings] == ["force_in_world_frame"]
    assert not right.findings
    np.testing.assert_allclose(turned.samples.y, right.samples.y, atol=1e-9)


def test_a_force_in_the_body_frame_stays() -> None:
    flight = make_flight()
    assert with_body_force(flight, FLYING) == (flight, False)


def test_a_wrong_attitude_is_no_force_in_the_world_frame() -> None:
    """Neither a quaternion the wrong way round, nor yaw off by 90 degrees, nor a flight that hardly moves."""
    flight = make_flight()
    q = flight["attitude"].values
    half = np.sqrt(0.5)
    w, x, y, z = q.T
    yawed = np.stack([half * (w - z), half * (x - y), half * (y + x), half * (z + w)], axis=1)
    for wrong in (inverse(q), yawed):
        assert not is_force_in_world_frame(change(flight, "attitude", wrong), FLYING)
    assert not is_force_in_world_frame(in_world(flight), [(0.0, LIFT_OFF - 2.0)])
    assert not is_force_in_world_frame(dataclasses.replace(flight, signals={}), FLYING)


@pytest.mark.parametrize("name", ["square_20251017_run1", "multisine_20251017_run2", "melon_20251017_run4"])
def test_the_nano_drone_logs_its_acceleration_in_the_world_frame(flights: Path, name: str) -> None:
    flight = read(flights / "nanodrone" / f"{name}.parquet", MAPPING)
    assert is_force_in_world_frame(flight, [(flight.start, flight.end)])


@pytest.mark.parametrize("path", ["px4_sih/dev.ulg", "px4_samples/sample.ulg", "ardupilot_sitl/mission.BIN"])
def test_autopilots_log_it_in_the_body_frame(flights: Path, path: str) -> None:
    flight = read(flights / path)
    assert not is_force_in_world_frame(flight, airborne_intervals(flight))
