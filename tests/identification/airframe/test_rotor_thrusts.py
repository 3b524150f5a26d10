"""Rotors of an airframe: their curve is that of what a log tells of them."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from rotorid.identification.airframe.rotor_thrusts import as_logged, rotor_model
from rotorid.logs.read import read
from rotorid.models.airframe.airframe import Quantity, load_airframe
from rotorid.workflows.identify.identify import identify

CRAZYFLIE = load_airframe("crazyflie-2.1")


def test_commands_newtons_and_speeds_ask_for_the_same_thrust() -> None:
    coefficient = Quantity((2e-8,), "N s^2")
    airframe = dataclasses.replace(
        CRAZYFLIE, quantities={**CRAZYFLIE.quantities, "thrust_coefficient": coefficient}
    )
    assert airframe.thrust_curve is not None
    command = np.array([0.3, 0.4, 0.5, 0.6])
    newtons = np.polynomial.polynomial.polyval(command, airframe.thrust_curve.coefficients)
    np.testing.assert_allclose(
        rotor_model(as_logged(airframe, "rotor_command")).commanded_thrust(command), newtons
    )
    for signal, u in (("rotor_thrust", newtons), ("thrust", newtons), ("rotor_speed", newtons / 2e-8)):
        rotors = rotor_model(as_logged(airframe, signal))
        p = rotors.chain.by_name(rotors.numbers)
        assert np.polynomial.polynomial.polyval(u, p["thrust_curve"]) == pytest.approx(newtons)


def test_newtons_in_a_log_are_not_taken_for_commands(flights: Path) -> None:
    """Of a flight of 33 g whose controller's newtons are 5 % weak (see its info file)."""
    flight = read(flights / "crazyflie_crazyswarm2" / "log146")
    (part,) = identify([flight], CRAZYFLIE, ("mass", "drag")).masses
    assert part.value == pytest.approx(0.95 * 0.033, rel=0.02)
