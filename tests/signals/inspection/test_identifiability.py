"""What a log can tell follows from what is in it and from how it was flown."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from rotorid.logs.flight import Flight
from rotorid.logs.read import read
from rotorid.signals.inspection.identifiability import Identifiability, Verdict, assess_identifiability
from rotorid.signals.inspection.inspection import inspect_flight
from tests.signals.flying import change, cut, make_flight


def verdicts(flight: Flight) -> dict[str, Identifiability]:
    return {
        a.quantity.partition(",")[0] + a.quantity.partition(",")[2]: a for a in assess_identifiability(flight)
    }


def test_a_lively_flight_with_everything_logged_tells_everything() -> None:
    found = verdicts(make_flight())
    weak = {name for name, a in found.items() if a.verdict is not Verdict.YES}
    assert weak == {"battery sag"}
    assert all(a.reason for a in found.values())
    assert not any(a.recommendations for a in found.values() if a.verdict is Verdict.YES)


def test_a_hover_tells_the_mass_and_little_else() -> None:
    flight = make_flight()
    hover = [change(flight, n, flight[n].values * 0.01)[n] for n in ("velocity", "body_rate")]
    command = flight["rotor_command"]
    level = change(flight, "rotor_command", 0.49 + 0.005 * (command.values - 0.49))
    found = verdicts(cut(level.with_signals(*hover), 12.0, 35.0))
    assert found["mass from thrust and velocity"].verdict is Verdict.YES
    for name in ("drag", "wind", "inertia", "thrust curve"):
        assert found[name].verdict is not Verdict.YES
        assert found[name].recommendations


@pytest.mark.parametrize(
    ("format", "words"),
    [
        ("px4-ulog", "SDLOG_PROFILE"),
        ("ardupilot-bin", "RCOU"),
        ("crazyflie-usd", "motor.m1"),
        ("table-csv", "record"),
    ],
)
def test_what_is_missing_is_asked_for_in_the_words_of_the_autopilot(format: str, words: str) -> None:
    flight = dataclasses.replace(make_flight(leave_out=("rotor_command",)), format=format)
    inertia = verdicts(flight)["inertia"]
    assert inertia.verdict is Verdict.NO
    assert any(words in wish for wish in inertia.recommendations)


def test_slow_motors_make_the_motor_lag_weak() -> None:
    flight = make_flight()
    command = flight["rotor_command"]
    slow = change(flight, "rotor_command", command.values[::10], command.times[::10])
    lag = verdicts(slow)["motor lag"]
    assert lag.verdict is Verdict.WEAK
    assert "10 Hz" in lag.reason


def test_a_log_on_the_ground_tells_nothing() -> None:
    found = verdicts(cut(make_flight(), 0.0, 3.0))
    assert all(a.verdict is Verdict.NO for a in found.values())
    assert "no flight" in found["drag"].reason


def test_one_line_of_flight_does_not_tell_wind_from_drag() -> None:
    flight = make_flight()
    found = verdicts(change(flight, "velocity", flight["velocity"].values * np.array([1.0, 0.01, 1.0])))
    assert found["drag"].verdict is Verdict.YES
    assert found["wind"].verdict is Verdict.NO


def test_an_inspection_is_plain_data(tmp_path: Path) -> None:
    import json

    data = json.loads(json.dumps(inspect_flight(make_flight()).as_dict()))
    assert set(data) >= {"file", "format", "airborne", "signals", "findings", "identifiability", "duration"}
    assert {"name", "rate", "gaps", "source"} <= set(data["signals"][0])
    assert {f["severity"] for f in data["findings"]} == {"ok"}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (
            "px4_sih/dev.ulg",
            {"mass from thrust and velocity": "yes", "drag": "yes", "wind": "yes", "motor lag": "yes"},
        ),
        (
            "ardupilot_sitl/dev.BIN",
            {"mass from thrust and velocity": "weak", "drag": "yes", "inertia": "weak"},
        ),
        (
            "crazyflie_arpl/log15",
            {"mass from thrust and velocity": "no", "mass from the accelerometer": "yes", "inertia": "yes"},
        ),
        (
            "crazyflie_crazyswarm2/log202",
            {"mass from thrust and velocity": "yes", "inertia": "no", "drag": "weak"},
        ),
        ("px4_samples/sample.ulg", {"mass from the accelerometer": "no"}),
    ],
)
def test_recorded_flights(flights: Path, name: str, expected: dict[str, str]) -> None:
    path = flights / name
    if not path.exists():
        pytest.skip(f"no {name} here")
    found = verdicts(read(path))
    assert {k: found[k].verdict.value for k in expected} == expected
