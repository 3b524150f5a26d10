"""Hover of an airframe, with standard deviations."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from rotorid.errors import AirframeError
from rotorid.models.airframe.airframe import load_airframe, with_numbers
from rotorid.models.multirotor.properties import hover_quantities

ARDUPILOT = load_airframe("ardupilot-sitl-x")
CURVE = tuple(f"thrust_curve_{k}" for k in range(3))


def test_hover_of_ardupilots_simulator_agrees_with_its_frame() -> None:
    """hoverThrOut 0.39 at 9.80665 m/s^2, propExpo 0.65."""
    found = hover_quantities(ARDUPILOT, ("mass",), np.array([[0.03**2]]))
    assert found["hover_thrust"].value == pytest.approx(0.39 * 9.81 / 9.80665, rel=1e-4)
    assert found["hover_thrust"].std == pytest.approx(0.01 * found["hover_thrust"].value, rel=1e-3)
    c = (found["hover_command"].value - 0.15) / 0.8
    assert 0.35 * c + 0.65 * c**2 == pytest.approx(found["hover_thrust"].value, rel=1e-4)
    assert "thrust_expo" not in found


def test_its_standard_deviation_agrees_with_samples() -> None:
    P = np.array([[0.02, -0.05, 0.03], [-0.05, 0.2, -0.14], [0.03, -0.14, 0.11]]) * 0.01
    found = hover_quantities(ARDUPILOT, CURVE, P, mass_std=0.02)
    assert found["thrust_expo"].value == pytest.approx(0.65, abs=1e-4)
    coefficients = np.array(ARDUPILOT.thrust_curve.coefficients if ARDUPILOT.thrust_curve else ())
    rng = np.random.default_rng(0)
    samples = [
        hover_quantities(
            with_numbers(ARDUPILOT, dict(zip((*CURVE, "mass"), v, strict=True))), CURVE, np.zeros((3, 3))
        )
        for v in np.column_stack([rng.multivariate_normal(coefficients, P, 150), rng.normal(3.0, 0.02, 150)])
    ]
    for name, of in found.items():
        assert of.std == pytest.approx(np.std([d[name].value for d in samples]), rel=0.2), name


def test_an_airframe_that_cannot_hover_raises() -> None:
    heavy = with_numbers(ARDUPILOT, {"mass": 9.0})
    with pytest.raises(AirframeError, match="% of the full thrust of a rotor"):
        hover_quantities(heavy, (), np.zeros((0, 0)))
    level = dataclasses.replace(ARDUPILOT, thrust_curve=None)
    assert not hover_quantities(level, (), np.zeros((0, 0)))
    falling = with_numbers(ARDUPILOT, {"thrust_curve_0": 11.0, "thrust_curve_1": -5.0, "thrust_curve_2": 4.0})
    with pytest.raises(AirframeError, match="does not rise"):
        hover_quantities(falling, (), np.zeros((0, 0)))
