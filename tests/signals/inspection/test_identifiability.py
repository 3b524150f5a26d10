"""Identifiability depends on the logged signals and on the excitation."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from rotorid.findings import Finding, Severity
from rotorid.logs.flight import Flight
from rotorid.logs.read import read
from rotorid.signals.inspection.identifiability import Identifiability, Verdict, assess_identifiability
from tests.signals.flying import change, cut, make_flight


def verdicts(flight: Flight) -> dict[str, Identifiability]:
    return {result.quantity: result for result in assess_identifiability(flight)}


def codes(findings: Sequence[Finding]) -> set[str]:
    return {finding.code for finding in findings}


def test_an_exciting_flight_with_all_signals_identifies_all_quantities() -> None:
    results = verdicts(make_flight())
    assert {name for name, a in results.items() if a.verdict is not Verdict.YES} == {"battery_sag"}
    assert all(a.reasons for a in results.values())
    assert not any(a.recommendations for a in results.values() if a.verdict is Verdict.YES)


def test_a_hover_identifies_the_mass_only() -> None:
    flight = make_flight()
    hover = [change(flight, n, flight[n].values * 0.01)[n] for n in ("velocity", "body_rate")]
    command = flight["rotor_command"]
    level = change(flight, "rotor_command", 0.49 + 0.005 * (command.values - 0.49))
    results = verdicts(cut(level.with_signals(*hover), 12.0, 35.0))
    assert results["mass_from_motion"].verdict is Verdict.YES
    for name in ("drag", "wind", "inertia", "thrust_curve"):
        assert results[name].verdict is not Verdict.YES
        assert results[name].recommendations


def test_a_missing_signal_is_recommended_for_the_format() -> None:
    flight = dataclasses.replace(make_flight(leave_out=("rotor_command",)), format="px4-ulog")
    inertia = verdicts(flight)["inertia"]
    assert inertia.verdict is Verdict.NO
    expected = Finding("log_signal", Severity.NOTE, {"format": "px4-ulog"}, ("rotor_command",))
    assert expected in inertia.recommendations


def test_slowly_logged_commands_weaken_the_motor_lag() -> None:
    flight = make_flight()
    command = flight["rotor_command"]
    slow = change(flight, "rotor_command", command.values[::10], command.times[::10])
    lag = verdicts(slow)["motor_lag"]
    assert lag.verdict is Verdict.WEAK
    (reason,) = lag.reasons
    assert reason.code == "signal_slow"
    assert reason.values["rate"] == pytest.approx(10.0, rel=0.01)


def test_a_log_on_the_ground_identifies_nothing() -> None:
    results = verdicts(cut(make_flight(), 0.0, 3.0))
    assert all(a.verdict is Verdict.NO for a in results.values())
    assert "no_flight" in codes(results["drag"].reasons)


def test_a_straight_flight_does_not_separate_wind_from_drag() -> None:
    flight = make_flight()
    results = verdicts(change(flight, "velocity", flight["velocity"].values * np.array([1.0, 0.01, 1.0])))
    assert results["drag"].verdict is Verdict.YES
    assert results["wind"].verdict is Verdict.NO
    assert codes(results["wind"].recommendations) == {"fly_circle"}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (
            "px4_sih/dev.ulg",
            {"mass_from_motion": "yes", "drag": "yes", "wind": "yes", "motor_lag": "yes"},
        ),
        (
            "ardupilot_sitl/dev.BIN",
            {"mass_from_motion": "weak", "drag": "yes", "inertia": "weak"},
        ),
        (
            "crazyflie_arpl/log15",
            {"mass_from_motion": "no", "mass_from_accelerometer": "yes", "inertia": "yes"},
        ),
        (
            "crazyflie_crazyswarm2/log202",
            {"mass_from_motion": "yes", "inertia": "no", "drag": "weak"},
        ),
        ("px4_samples/sample.ulg", {"mass_from_accelerometer": "no"}),
    ],
)
def test_recorded_flights(flights: Path, name: str, expected: dict[str, str]) -> None:
    path = flights / name
    if not path.exists():
        pytest.skip(f"no {name} here")
    results = verdicts(read(path))
    assert {k: results[k].verdict.value for k in expected} == expected
