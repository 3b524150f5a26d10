"""The referee of the mass in gusts: its physics, and its quick form."""

from __future__ import annotations

import sys
from pathlib import Path

import jax
import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks import gusts
from benchmarks.gusty_flights import MASS, RATE, Telemetry, Wind, fly, thrust

HOVER = slice(14 * RATE, 20 * RATE)  # rows


@pytest.fixture(scope="module")
def gusty() -> Telemetry:
    with jax.enable_x64(True):
        return fly([0, 1], Wind(gusts.WIND, 1.5), 40.0)


def test_in_still_air_the_rotors_carry_the_weight() -> None:
    with jax.enable_x64(True):
        telemetry = fly([0], Wind(np.zeros(3), 0.0), 20.0)
    weight = thrust(telemetry.rotor_command[0][HOVER]).sum(axis=1)
    np.testing.assert_allclose(weight, MASS * 9.80665, rtol=0.01)
    np.testing.assert_allclose(telemetry.position[0][HOVER], [[0.0, 0.0, 12.0]] * 6 * RATE, atol=0.1)


def test_turbulence_has_its_size_and_correlation_time(gusty: Telemetry) -> None:
    """1.5 m/s; 0.98 for each of the 24 steps of a row."""
    vertical = gusty.wind[:, 6 * RATE :, 2]
    assert np.std(vertical) == pytest.approx(1.5, rel=0.1)
    correlation = np.mean(vertical[:, 1:] * vertical[:, :-1]) / np.var(vertical)
    assert correlation == pytest.approx(0.98**24, abs=0.06)


def test_flights_differ_by_their_seed_only(gusty: Telemetry) -> None:
    with jax.enable_x64(True):
        again = fly([1], Wind(gusts.WIND, 1.5), 40.0)
    np.testing.assert_allclose(again.velocity[0], gusty.velocity[1], atol=1e-9)
    assert np.max(np.abs(gusty.velocity[0] - gusty.velocity[1])) > 0.5


def test_the_mass_in_gusts(gusty: Telemetry) -> None:
    """It drifted away by 5 to 30 % while brief gusts counted as white noise."""
    with jax.enable_x64(True):
        scores = [gusts.score(gusts.track_live(gusty, k, gusts.stated_airframe())) for k in range(2)]
    for score in scores:
        assert score.error < 4.0
        assert score.covered > 90.0
        assert score.band < 9.0


def test_quick_form(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["gusts", "--quick"])
    with jax.enable_x64(True):
        assert gusts.main() == 0
    assert "flight 0: mass" in capsys.readouterr().out
