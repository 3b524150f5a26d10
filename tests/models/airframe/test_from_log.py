"""Airframes from the parameters of a log and a mass: geometry, thrust, and what a log does not know."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest

from rotorid.errors import AirframeError, SettingError
from rotorid.findings import Severity
from rotorid.logs.flight import Flight, Signal
from rotorid.logs.read import read
from rotorid.models.airframe.airframe import Airframe, airframe_toml, load_airframe, parse_airframe
from rotorid.models.airframe.argument import airframe_of_flight
from rotorid.models.airframe.from_log import frames
from rotorid.models.airframe.from_log.make import airframe_from_log, airframe_to_track, calibration_conflict
from rotorid.models.airframe.measured import mass_with_std
from rotorid.models.airframe.size_priors import arm_length_prior
from rotorid.models.multirotor.rotors import allocation
from rotorid.models.multirotor.thrust_uncertainty import is_weighed
from rotorid.models.system import GRAVITY
from rotorid.workflows.track.plausibility import plausibility_findings
from rotorid.workflows.track.text import to_text

ARDUPILOT = {
    "FRAME_CLASS": 1.0,
    "FRAME_TYPE": 1.0,
    "MOT_THST_EXPO": 0.65,
    "MOT_SPIN_MIN": 0.15,
    "MOT_SPIN_MAX": 0.95,
}


def px4(arm: float) -> dict[str, float]:
    """PX4's parameters of its quadrotor in X, with each coordinate of a rotor `arm` m from the centre."""
    places = ((1, 1, 0.05), (-1, -1, 0.05), (1, -1, -0.05), (-1, 1, -0.05))
    parameters = {"CA_ROTOR_COUNT": 4.0, "THR_MDL_FAC": 0.3}
    for i, (x, y, moment) in enumerate(places):
        parameters |= {f"CA_ROTOR{i}_PX": arm * x, f"CA_ROTOR{i}_PY": arm * y, f"CA_ROTOR{i}_KM": moment}
        parameters |= {f"CA_ROTOR{i}_AX": 0.0, f"CA_ROTOR{i}_AY": 0.0, f"CA_ROTOR{i}_AZ": -1.0}
    return parameters


def hover(parameters: dict[str, float], *, rotors: int = 4, command: float = 0.5, **signals: float) -> Flight:
    """A minute of hover; the battery falls where its voltage is among the signals."""
    t = np.arange(0.0, 60.0, 0.02)
    values = {
        "rotor_command": np.full((len(t), rotors), command),
        "specific_force": np.tile([0.0, 0.0, GRAVITY], (len(t), 1)),
    }
    values |= {name: np.full((len(t), rotors if "rotor" in name else 1), v) for name, v in signals.items()}
    if "battery_voltage" in values:
        values["battery_voltage"] += np.linspace(0.4, -0.4, len(t))[:, None]
    logged = {name: Signal(name, t, v, "test") for name, v in values.items()}
    return Flight(logged, Path("hover.log"), "test", parameters=parameters)


def levers(airframe: Airframe) -> np.ndarray:
    return np.array([(*r.position, 1.0 if r.direction == "ccw" else -1.0) for r in airframe.rotors])


@pytest.mark.parametrize("name", sorted(frames._ARDUPILOT))
def test_every_frame_is_balanced_and_controllable(name: str) -> None:
    rotors = frames._rotors(frames._ARDUPILOT[name])
    places = np.array([(r.forward, r.left) for r in rotors])
    turns = np.array([1.0 if r.direction == "ccw" else -1.0 for r in rotors])
    assert np.hypot(*places.T).max() == pytest.approx(1.0)
    assert places.sum(axis=0) == pytest.approx(0.0, abs=0.01)
    assert turns.sum() == 0.0
    assert np.linalg.matrix_rank(np.column_stack([places, turns, np.ones(len(turns))])) == 4


def test_the_frames_are_those_of_the_shipped_airframes() -> None:
    made = airframe_from_log(hover(ARDUPILOT), (3.0, 0.01), span=0.7)
    np.testing.assert_allclose(levers(made), levers(load_airframe("ardupilot-sitl-x")), atol=1e-4)
    made = airframe_from_log(hover(px4(0.2)), (1.0, 0.01))
    np.testing.assert_allclose(levers(made), levers(load_airframe("px4-sih-quad")), atol=1e-9)
    old = {"MAV_TYPE": 2.0, "SYS_AUTOSTART": 4001.0}
    np.testing.assert_allclose(
        levers(airframe_from_log(hover(old), (1.0, 0.01), 0.4 * math.sqrt(2.0))), levers(made), atol=1e-6
    )


def test_unit_arms_are_replaced_by_the_prior_and_measured_ones_are_kept() -> None:
    prior = arm_length_prior(1.0, 4)
    made = airframe_from_log(hover(px4(1.0)), (1.0, 0.01))
    assert math.hypot(*made.rotors[0].position) == pytest.approx(prior.number, rel=1e-4)
    assert made.arm_relative_std == pytest.approx(prior.std[0] / prior.number, rel=1e-3)
    large = airframe_from_log(hover(px4(1.0)), (60.0, 0.1))
    assert math.hypot(*large.rotors[0].position) == pytest.approx(math.sqrt(2.0))
    assert large.arm_relative_std == 0.0
    narrow = airframe_from_log(hover(px4(0.2)), (1.0, 0.01)).quantities["inertia"]
    wide = made.quantities["inertia"]
    assert wide.std[0] / wide.value[0] > narrow.std[0] / narrow.value[0]
    again = parse_airframe(airframe_toml(made), "again")
    assert again.arm_relative_std == pytest.approx(made.arm_relative_std)


def test_the_hover_carries_the_mass() -> None:
    for flight in (
        hover(ARDUPILOT, command=0.47),
        hover(ARDUPILOT, command=0.47, battery_voltage=11.0),
        hover(px4(0.2), command=0.6),
    ):
        made = airframe_from_log(flight, (1.7, 0.01))
        voltage = (
            jnp.asarray(flight["battery_voltage"].values[:1500, 0]) if "battery_voltage" in flight else None
        )
        command = jnp.asarray(flight["rotor_command"].values[:1500])
        thrust = np.asarray(made.thrust_curve.collective(command, voltage))
        assert thrust.mean() == pytest.approx(1.7 * GRAVITY, rel=2e-3)
        assert made.thrust_curve.std
        assert np.linalg.matrix_rank(np.asarray(allocation(made.rotors, 0.02))[2:]) == 4


def test_speeds_give_the_thrust_coefficient() -> None:
    flight = hover(px4(0.2), rotor_speed=500.0)
    only_speeds = dataclasses.replace(
        flight, signals={n: s for n, s in flight.signals.items() if n != "rotor_command"}
    )
    made = airframe_from_log(only_speeds, (1.0, 0.01))
    assert made.number("thrust_coefficient") == pytest.approx(GRAVITY / 4 / 500.0**2, rel=1e-3)


@pytest.mark.parametrize(
    ("parameters", "mass", "rotors", "message"),
    [
        (px4(0.2), None, 4, "no log knows the mass of its vehicle"),
        ({}, 1.0, 4, "no parameters that say where the rotors are; give an airframe by --airframe"),
        (ARDUPILOT, 1.0, 6, "QUAD/X is a vehicle with 4 rotors, and the log has commands of 6"),
        ({**ARDUPILOT, "FRAME_CLASS": 6.0}, 1.0, 4, "no multirotor whose rotors all thrust upwards"),
        ({"MAV_TYPE": 1.0, "SYS_AUTOSTART": 2100.0}, 1.0, 4, "the vehicle is a fixed wing (MAV_TYPE 1)"),
        ({**px4(0.2), "CA_AIRFRAME": 2.0}, 1.0, 4, "the vehicle is a VTOL (CA_AIRFRAME 2)"),
        ({**px4(0.2), "CA_AIRFRAME": 5.0}, None, 4, "the vehicle is a rover (CA_AIRFRAME 5)"),
        ({"MAV_TYPE": 10.0, "SYS_AUTOSTART": 50000.0}, 1.0, 4, "the vehicle is a rover (MAV_TYPE 10)"),
        ({"Q_ENABLE": 1.0, "Q_FRAME_CLASS": 1.0}, 1.0, 4, "the vehicle is a plane (it has Q_ENABLE)"),
        ({"FRAME_CLASS": 1.0, "CRUISE_SPEED": 2.0}, 1.0, 4, "the vehicle is a rover (it has CRUISE_SPEED)"),
        (px4(0.0), 1.0, 4, "all rotors are at one place"),
    ],
)
def test_what_a_log_does_not_know_is_one_line(
    parameters: dict[str, float], mass: float | None, rotors: int, message: str
) -> None:
    with pytest.raises(AirframeError, match=r"hover\.log: ") as error:
        airframe_from_log(hover(parameters, rotors=rotors), None if mass is None else (mass, 0.01))
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_channels_that_do_not_move_are_not_rotors() -> None:
    flight = hover(px4(0.2))
    command = flight["rotor_command"]
    values = command.values + 0.01 * np.sin(command.times)[:, None]
    moving = flight.with_signals(dataclasses.replace(command, values=values))
    assert airframe_from_log(moving, (1.0, 0.01)).rotors
    values = values.copy()
    values[:, 3] = 0.1
    still = flight.with_signals(dataclasses.replace(command, values=values))
    with pytest.raises(
        AirframeError, match="those of rotor 3 never change in the air, those of the other 3 do"
    ):
        airframe_from_log(still, (1.0, 0.01))


def test_a_hover_throttle_that_contradicts_the_flight_is_noted() -> None:
    for throttle, is_noted in ((0.45, False), (0.2, True), (0.35, False)):  # 0.35 is the default
        flight = hover({**ARDUPILOT, "MOT_THST_HOVER": throttle}, command=0.55)
        curve = airframe_from_log(flight, (1.7, 0.01)).thrust_curve
        assert curve is not None
        assert ("MOT_THST_HOVER says 0.20" in curve.source) == is_noted
        assert (
            curve.coefficients
            == airframe_from_log(hover(ARDUPILOT, command=0.55), (1.7, 0.01)).thrust_curve.coefficients
        )


@pytest.mark.parametrize(("throttle", "is_told"), [(0.3, False), (0.22, True), (0.15, True), (0.35, False)])
def test_a_mass_that_the_hover_throttle_contradicts_calibrates_less(throttle: float, is_told: bool) -> None:
    """With a payload that was not stated, the rotors need a share of their thrust that the autopilot does not expect."""
    flight = hover({**ARDUPILOT, "MOT_THST_HOVER": throttle}, command=0.55)
    made = airframe_from_log(flight, (1.7, 0.01))
    tracked = airframe_to_track(made, flight)
    conflict = calibration_conflict(tracked, flight)
    std = tracked.quantities["thrust_scale"].std
    assert std is not None
    assert (conflict is not None) == is_told
    assert calibration_conflict(made, flight) is None
    assert not is_weighed(tracked)
    if conflict is None:
        assert std[0] == pytest.approx(math.hypot(0.03, 0.01 / 1.7), rel=1e-3)
        return
    assert conflict.flown == pytest.approx(0.3375, abs=0.001)
    assert 1.96 * std[0] > math.log(conflict.flown / throttle)
    assert std[0] < math.log(conflict.flown / throttle)


def test_the_thrust_of_a_take_off_with_an_unstated_payload_contains_it(flights: Path) -> None:
    """ArduPilot's simulated quadrotor of 2.6 kg carries 1 kg more from 0.7 s after the take-off on."""
    flight = read(flights / "ardupilot_sitl/mission.BIN")
    tracked = airframe_to_track(airframe_from_log(flight, (2.6, 0.013)), flight)
    std = tracked.quantities["thrust_scale"].std
    assert std is not None
    assert 1.0 < math.log(3.6 / 2.6) / std[0] < 1.96
    conflict = calibration_conflict(tracked, flight)
    assert conflict is not None
    (finding,) = (
        f
        for f in plausibility_findings(flight, tracked, flight["rotor_command"].times)
        if "throttle" in f.code
    )
    assert (finding.code, finding.severity) == ("hover_throttle", Severity.WARNING)
    assert "carried more than when that was learnt (by a factor of about 1.5)" in to_text(finding)


@pytest.mark.parametrize(("mass", "expected"), [(1.5, (1.5, 0.0075)), ((1.5, 0.1), (1.5, 0.1)), (None, None)])
def test_a_mass_is_a_number_or_a_pair(mass: object, expected: tuple[float, float] | None) -> None:
    assert mass_with_std(mass) == pytest.approx(expected)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("mass", [0.0, -1.0, math.nan, (1.0, -0.1)])
def test_another_mass_is_refused(mass: object) -> None:
    with pytest.raises(SettingError, match="give a mass in kg"):
        mass_with_std(mass)  # pyright: ignore[reportArgumentType]


def test_the_airframe_of_a_flight_is_made_or_gets_the_mass() -> None:
    flight = hover(px4(0.2))
    assert airframe_of_flight(None, flight, (1.2, 0.1)) == airframe_from_log(flight, (1.2, 0.1))
    given = airframe_of_flight("px4-sih-quad", flight, 1.2)
    assert (given.mass.number, given.mass.std) == (1.2, (0.006,))
    with pytest.raises(AirframeError, match="in Python mass=KG"):
        airframe_of_flight(None, flight)
    with pytest.raises(SettingError, match="leave it out with an airframe"):
        airframe_of_flight("px4-sih-quad", flight, 1.2, 0.5)
    with pytest.raises(SettingError, match="span -1"):
        airframe_of_flight(None, flight, 1.2, -1.0)


def test_the_thrust_carries_the_mass_of_most_of_the_first_seconds() -> None:
    """A payload of a third of the mass, for 9 s of the first 30."""
    flight = hover(ARDUPILOT, command=0.47)
    signal = flight["rotor_command"]
    loaded = (signal.times > 1.0) & (signal.times < 10.0)
    values = np.where(loaded[:, None], 1.2 * signal.values, signal.values)
    signals = {**flight.signals, "rotor_command": dataclasses.replace(signal, values=values)}
    curves = [
        airframe_from_log(f, (1.7, 0.01)).thrust_curve
        for f in (flight, dataclasses.replace(flight, signals=signals))
    ]
    np.testing.assert_allclose(curves[1].coefficients, curves[0].coefficients, rtol=5e-3)


def test_a_simulated_vehicle_with_another_number_of_rotors_is_refused(flights: Path) -> None:
    flight = read(flights / "px4_sih" / "default_logging.ulg")
    assert len(airframe_from_log(flight, None).rotors) == 4
    six = dataclasses.replace(flight, parameters={**flight.parameters, "CA_ROTOR_COUNT": 6.0})
    with pytest.raises(
        AirframeError, match=r"default_logging.ulg: CA_ROTOR_COUNT is a vehicle with 6 rotors, .* 4"
    ):
        airframe_from_log(six, None)
    plane = dataclasses.replace(flight, parameters={**flight.parameters, "CA_AIRFRAME": 1.0})
    with pytest.raises(AirframeError, match="the vehicle is a fixed wing"):
        airframe_from_log(plane, (1.0, 0.01))
