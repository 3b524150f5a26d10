"""Hover thrust of both autopilots for a mass, against their own formulas, and parameters that cannot follow."""

from __future__ import annotations

import math

import pytest

from rotorid.errors import SettingError
from rotorid.live.estimation.thrust_model import collective_thrust
from rotorid.live.parameter.followed import parse_parameter
from rotorid.live.parameter.hover_thrust import (
    HoverCommand,
    VehicleConditions,
    ardupilot_hover_thrust,
    px4_hover_thrust,
)
from rotorid.live.snapshot import Reading
from rotorid.live.text import event_text
from rotorid.models.airframe.airframe import Airframe
from rotorid.models.multirotor.thrust import ThrustCurve
from tests.live.parameter.simulated_autopilot import Autopilot, check_writes, world

ARDUPILOT = {
    "MOT_THST_HOVER": 0.3,
    "MOT_HOVER_LEARN": 0.0,
    "MOT_THST_EXPO": 0.65,
    "MOT_SPIN_MIN": 0.15,
    "MOT_SPIN_MAX": 0.95,
    "MOT_BAT_VOLT_MAX": 16.8,
    "MOT_BAT_VOLT_MIN": 13.2,
    "MOT_OPTIONS": 1.0,
}
MASS = Reading(1.0, 0.02, "kg")


def conditions(
    parameters: dict[str, float], voltage: float = 14.8, altitude: float = 0.0
) -> VehicleConditions:
    """Four rotors of 6 N whose thrust is quadratic above a dead zone, by the square of the voltage."""
    curve = ThrustCurve((0.0, 2.0, 4.0), 0.1, 0.9, voltage=16.8, voltage_exponent=2.0)
    command = HoverCommand(lambda u: collective_thrust(curve, u, voltage), 4)
    return VehicleConditions(command, parameters, voltage, altitude)


def test_px4_is_the_setpoint_before_the_mixer() -> None:
    found = [px4_hover_thrust(MASS, conditions({"THR_MDL_FAC": f})) for f in (0.0, 0.3)]
    assert found[0] is not None
    assert found[1] is not None
    u = found[0][0]
    assert found[1][0] == pytest.approx(0.7 * u + 0.3 * u * u)
    curve = ThrustCurve((0.0, 2.0, 4.0), 0.1, 0.9, voltage=16.8, voltage_exponent=2.0)
    assert collective_thrust(curve, [u] * 4, 14.8) == pytest.approx(9.81, rel=1e-5)
    heavier = px4_hover_thrust(Reading(1.02, 0.0, "kg"), conditions({"THR_MDL_FAC": 0.0}))
    assert heavier is not None
    assert found[0][1] == pytest.approx(heavier[0] - u)


def motor_output(throttle: float, p: dict[str, float], voltage: float, density: float) -> float:
    """ArduPilot's way from the throttle to the output of a motor, 0 to 1: AP_Motors_Thrust_Linearization.cpp."""
    expo, filtered = p["MOT_THST_EXPO"], 1.0
    if p["MOT_BAT_VOLT_MAX"] > 0.0:
        low = max(p["MOT_BAT_VOLT_MIN"], 0.6 * p["MOT_BAT_VOLT_MAX"])
        filtered = min(max(voltage, low), p["MOT_BAT_VOLT_MAX"]) / p["MOT_BAT_VOLT_MAX"]
    lift_max = filtered * (1.0 - expo) + expo * filtered**2
    thrust = throttle / lift_max / density
    ratio = thrust * lift_max / filtered
    if expo:
        ratio = (
            (expo - 1.0 + math.sqrt((1.0 - expo) ** 2 + 4.0 * expo * lift_max * thrust))
            / (2.0 * expo)
            / filtered
        )
    return p["MOT_SPIN_MIN"] + (p["MOT_SPIN_MAX"] - p["MOT_SPIN_MIN"]) * ratio


@pytest.mark.parametrize("expo", [0.0, 0.65, -0.3])
@pytest.mark.parametrize("voltage", [12.0, 14.8, 17.5])
@pytest.mark.parametrize("limit", [0.0, 16.8])
def test_ardupilot_is_the_throttle_before_its_compensations(
    expo: float, voltage: float, limit: float
) -> None:
    p = ARDUPILOT | {"MOT_THST_EXPO": expo, "MOT_BAT_VOLT_MAX": limit}
    for altitude, density in ((0.0, 1.0), (1500.0, 0.8638)):
        c = conditions(p, voltage, altitude)
        found = ardupilot_hover_thrust(MASS, c)
        assert found is not None
        assert motor_output(found[0], p, voltage, density) == pytest.approx(c.command(1.0), rel=2e-4)


def test_ardupilot_needs_altitude_and_voltage() -> None:
    assert ardupilot_hover_thrust(MASS, conditions(ARDUPILOT, altitude=math.nan)) is None
    c = conditions(ARDUPILOT)
    assert ardupilot_hover_thrust(MASS, VehicleConditions(c.command, ARDUPILOT, math.nan, 0.0)) is None
    raw, resting = (
        ardupilot_hover_thrust(MASS, conditions(ARDUPILOT | {"MOT_OPTIONS": options}))
        for options in (1.0, 0.0)
    )
    assert raw is not None
    assert resting is not None
    assert resting[1] > raw[1]  # the resting voltage is not sent


@pytest.mark.parametrize("text", ["A_NAME_THAT_IS_LONG=mass", "MASS=drag", "=mass", "A B=mass", "MPC_XY_P"])
def test_parameters_that_cannot_follow(airframe: Airframe, text: str) -> None:
    with pytest.raises(SettingError):
        parse_parameter(text, airframe)


def test_a_mass_in_kg(airframe: Airframe) -> None:
    found = parse_parameter("MY_MASS=mass", airframe)
    assert found.convert(Reading(1.2, 0.1, "kg"), conditions({})) == (1.2, 0.1)


@pytest.fixture(autouse=True)
def _state(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROTORID_STATE", str(tmp_path / "state"))


def test_ardupilots_hover_thrust_follows_and_is_restored(airframe: Airframe) -> None:
    """The airframe's four rotors of 5 N, at 500 m; ArduPilot's curve is linear."""
    parameters = ARDUPILOT | {"MOT_THST_EXPO": 0.0, "MOT_BAT_VOLT_MAX": 0.0, "MOT_THST_HOVER": 0.45}
    made = world(airframe, "MOT_THST_HOVER", Autopilot(parameters, autopilot=3))
    made.fly(10.0, 1.2)
    wanted = 0.9529 * (1.2 * 9.81 / 20.0 - 0.15) / 0.8
    assert made.value == pytest.approx(wanted, abs=0.01 * 0.45)
    made.end()
    check_writes(made)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"MOT_HOVER_LEARN": 2.0}, "MOT_HOVER_LEARN is 2"),
        ({"MOT_HOVER_LEARN": 1.0}, "MOT_HOVER_LEARN is 1"),
        ({"MOT_SPIN_MIN": 0.96}, "not in order"),
    ],
)
def test_a_parameter_that_ardupilot_changes_itself_is_refused(
    airframe: Airframe, changes: dict[str, float], said: str
) -> None:
    made = world(airframe, "MOT_THST_HOVER", Autopilot(ARDUPILOT | changes, autopilot=3))
    made.fly(8.0, 1.2)
    assert not made.writes
    assert said in event_text(made.events[-1])


def test_what_px4_cannot_convert_is_refused(airframe: Airframe) -> None:
    for changes, said in (
        ({"MC_BAT_SCALE_EN": 1.0}, "MC_BAT_SCALE_EN is on"),
        ({"THR_MDL_FAC": 1.5}, "outside 0 to 1"),
    ):
        parameters = {"MPC_THR_HOVER": 0.49, "THR_MDL_FAC": 0.0, "MC_BAT_SCALE_EN": 0.0} | changes
        made = world(airframe, autopilot=Autopilot(parameters))
        made.fly(4.0, 1.2)
        assert said in event_text(made.events[-1])
    made = world(airframe, autopilot=Autopilot({"MPC_THR_HOVER": 0.49}))
    made.fly(15.0, 1.2)
    assert "no parameter THR_MDL_FAC" in event_text(made.events[-1])
    made = world(airframe, autopilot=Autopilot(parameters, autopilot=3))  # pyright: ignore[reportPossiblyUnboundVariable]
    made.fly(4.0, 1.2)
    assert "another autopilot" in event_text(made.events[-1])
