"""Airframes identified from flights with known truth. Times of PX4's and ArduPilot's logs are those since boot, s."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from scipy.signal import butter, sosfiltfilt

from rotorid.identification.airframe.rotor_thrusts import rotor_thrusts
from rotorid.logs.flight import Flight
from rotorid.logs.read import read
from rotorid.models.airframe.airframe import QUANTITIES, Airframe, Quantity, load_airframe
from rotorid.models.multirotor.rotors import allocation, torque_ratio_of
from rotorid.signals.series import interpolate_linear
from rotorid.workflows.identify.identify import identify
from rotorid.workflows.identify.preparation import time_in_air
from rotorid.workflows.identify.result import Identification


def with_guesses(name: str, **guesses: tuple[tuple[float, ...], tuple[float, ...] | None]) -> Airframe:
    """An airframe of the package with other values and standard deviations."""
    airframe = load_airframe(name)
    found = {n: Quantity(value, QUANTITIES[n][0], std) for n, (value, std) in guesses.items()}
    return dataclasses.replace(airframe, quantities={**airframe.quantities, **found})


def since_boot(flight: Flight, start: float, end: float) -> list[list[tuple[float, float]]]:
    return [[(start - flight.time_origin, end - flight.time_origin)]]


def codes(found: Identification) -> set[str]:
    return {finding.code for finding in found.findings}


def deviations(found: Identification, name: str, truth: float) -> float:
    """How far a value is from the truth, in its standard deviations."""
    return abs(found.fit.values[name] - truth) / found.fit.std[name]


def test_px4_tells_mass_inertia_lag_and_drag(flights: Path) -> None:
    """The simulator integrates the motors' lag of 0.05 s by Euler steps of 4 ms, which makes it act as one of 0.048 s."""
    flight = read(flights / "px4_sih" / "dev.ulg")
    prior = with_guesses(
        "px4-sih-quad",
        inertia=((0.03, 0.02, 0.04), None),
        motor_time_constant=((0.08,), None),
        angular_drag=((0.01,), None),
        drag=((0.3,), None),
    )
    free = (
        "mass", "inertia", "drag", "angular_drag", "motor_time_constant", "command_delay", "velocity_delay",
        "attitude_delay",
    )  # fmt: skip
    found = identify([flight], prior, free, spans=since_boot(flight, 62.0, 85.0))
    masses = [(part.value, part.std) for part in found.masses]
    assert [value for value, _ in masses] == pytest.approx([1.0, 1.25], rel=0.002)
    assert all(abs(value - truth) < 3 * std for (value, std), truth in zip(masses, (1.0, 1.25), strict=True))
    assert found.masses[1].start + flight.time_origin == pytest.approx(73.64, abs=0.2)
    truth = {
        "inertia_x": (0.025, 0.01),
        "inertia_y": (0.025, 0.01),
        "inertia_z": (0.03, 0.01),
        "drag": (0.6, 0.03),
        **{f"angular_drag_{axis}": (0.025, 0.02) for axis in "xyz"},
        "motor_time_constant": (0.04797, 0.02),
    }
    for name, (value, most) in truth.items():
        assert found.fit.values[name] == pytest.approx(value, rel=most), name
        assert deviations(found, name, value) < 3.0, name
    assert "rotor_saturated" in codes(found)


def test_px4_of_known_mass_tells_slope_of_thrust_and_inertia(flights: Path) -> None:
    """Velocity and attitude of its estimator have errors that are autocorrelated over a hundred rows; the accelerometer's noise
    is white, and its weight must not be reduced with theirs."""
    flight = read(flights / "px4_sih" / "dev.ulg")
    prior = with_guesses(
        "px4-sih-quad", mass=((1.0,), (0.0,)), drag=((0.3,), None), angular_drag=((0.01,), None)
    )
    free = (
        "thrust_curve", "inertia", "drag", "angular_drag", "motor_time_constant", "command_delay", "velocity_delay",
        "attitude_delay",
    )  # fmt: skip
    found = identify([flight], prior, free, spans=since_boot(flight, 40.0, 60.0))
    truth = {"thrust_curve_1": 5.0, "inertia_x": 0.025, "inertia_y": 0.025, "inertia_z": 0.03, "drag": 0.6}
    for name, value in truth.items():
        assert found.fit.values[name] == pytest.approx(value, rel=0.015), name
    assert deviations(found, "thrust_curve_1", 5.0) < 2.0


def test_what_px4_logs_by_default_tells_mass_and_drag(flights: Path) -> None:
    flight = read(flights / "px4_sih" / "default_logging.ulg")
    found = identify(
        [flight], load_airframe("px4-sih-quad"), ("mass", "drag"), spans=since_boot(flight, 30.0, 72.0)
    )
    truth = (1.0, 1.2, 1.0)
    assert [part.value for part in found.masses] == pytest.approx(truth, rel=0.003)
    for part, mass in zip(found.masses, truth, strict=True):
        assert abs(part.value - mass) < 3 * part.std
    starts = [part.start + flight.time_origin for part in found.masses[1:]]
    assert starts == pytest.approx([43.54, 62.63], abs=0.3)
    assert found.fit.values["drag"] == pytest.approx(0.4, rel=0.03)
    assert "torques_not_identifiable" in codes(found)


ARDUPILOT_DRAG_AREA = 0.1743 * 1.15677 / 1.225
"""Its frame's, m^2, in air of the density that rotorid counts with."""


def ardupilot(**guesses: tuple[tuple[float, ...], tuple[float, ...] | None]) -> Airframe:
    """Its rotors' momentum drag acts along their axes, too: it is a linear one, about 0.72 N s/m in hover."""
    drags = {"drag": ((0.5,), (0.5,)), "drag_area": ((0.1,), (0.2,))}
    return with_guesses("ardupilot-sitl-x", **drags, **guesses)


def test_ardupilot_tells_mass_and_drag_area(flights: Path) -> None:
    """Accelerations are logged 0.1 % high. The drag of its body is that of each axis by itself, which no sphere has. A wind of
    4.5 m/s comes and goes. Noise of 0.1 m/s in one axis of the velocity also agrees with its residuals, and is less likely."""
    flight = read(flights / "ardupilot_sitl" / "dev.BIN")
    free = ("mass", "drag", "drag_area", "velocity_delay")
    found = identify([flight], ardupilot(), free, spans=since_boot(flight, 95.0, 195.0))
    truth = (3.0, 4.0, 3.0)
    assert [part.value for part in found.masses] == pytest.approx(truth, rel=0.005)
    assert all(abs(part.value - mass) < 3 * part.std for part, mass in zip(found.masses, truth, strict=True))
    starts = [part.start + flight.time_origin for part in found.masses[1:]]
    assert starts == pytest.approx([122.52, 148.52], abs=0.4)
    assert [f.values["flight"] for f in found.findings if f.code == "wind_changed"] == ["dev.BIN"]
    assert found.fit.values["drag_area"] == pytest.approx(ARDUPILOT_DRAG_AREA, rel=0.15)
    assert deviations(found, "drag_area", ARDUPILOT_DRAG_AREA) < 3
    assert max(found.fit.residuals.noise["velocity"]) < 0.02


def test_ardupilot_of_known_mass_tells_its_thrust_curve(flights: Path) -> None:
    """From commands at 10 Hz, of 0.51 to 0.62 on average: 75.436 N (0.35 c + 0.65 c^2), behind motors without a lag. A payload
    of 1 kg is left out, and a wind of 4.5 m/s comes and goes."""
    flight = read(flights / "ardupilot_sitl" / "dev.BIN")
    prior = ardupilot(mass=((3.0,), None))
    assert prior.thrust_curve is not None
    curve = dataclasses.replace(prior.thrust_curve, coefficients=(0.0, 9.0, 9.0))
    free = ("thrust_curve", "motor_time_constant", "drag", "drag_area", "velocity_delay")
    found = identify([flight], dataclasses.replace(prior, thrust_curve=curve), free)
    (payload,) = [f for f in found.findings if f.code == "payload"]
    assert payload.values["flight"] == "dev.BIN"
    assert payload.values["parts"][0].change == pytest.approx(0.3, abs=0.005)
    c = (np.sqrt(0.35**2 + 4.0 * 0.65 * 0.39) - 0.35) / 1.3
    truth = {"thrust_expo": 0.65, "hover_thrust": 0.39, "hover_command": 0.15 + 0.8 * c}
    for name, value in truth.items():
        assert found.hover[name].value == pytest.approx(value, rel=0.1 if name == "thrust_expo" else 0.02), (
            name
        )
        assert abs(found.hover[name].value - value) < 3 * found.hover[name].std, name
    assert {"hover_point", "axis_drag"} <= codes(found)
    assert found.fit.values["motor_time_constant"] < 0.03
    assert found.fit.values["drag_area"] == pytest.approx(ARDUPILOT_DRAG_AREA, rel=0.1)
    assert deviations(found, "drag_area", ARDUPILOT_DRAG_AREA) < 3


def test_a_crazyflie_of_known_mass_tells_the_thrust_that_weighs_others(flights: Path) -> None:
    """Its controller's newtons are some 5 % weak. Masses: of the flights' info files."""

    def log(number: int) -> Flight:
        return read(flights / "crazyflie_crazyswarm2" / f"log{number}")

    known = with_guesses("crazyflie-crazyswarm2", mass=((0.033,), None))
    scale = identify([log(146)], known, ("thrust_scale", "drag")).airframe.quantities["thrust_scale"]
    assert 1.0 / scale.number == pytest.approx(0.95, abs=0.01)
    assert scale.std is not None
    weighing = with_guesses(
        "crazyflie-crazyswarm2", thrust_scale=(scale.value, None), mass=((0.034,), (0.01,))
    )
    for number, mass in ((162, 0.032), (202, 0.0419)):
        (part,) = identify([log(number)], weighing, ("mass", "drag")).masses
        assert part.value == pytest.approx(mass, rel=0.03)


def test_what_was_published_of_a_crazyflie_is_a_regression_on_what_was_measured(flights: Path) -> None:
    """Regressing torque on the measured angular acceleration, at the published lag, gives the published moments of inertia; on
    the torque, larger ones: noise in what is regressed on makes the first too small by the share that it explains."""
    flight, airframe = read(flights / "crazyflie_arpl" / "log15"), load_airframe("crazyflie-2.1")
    (span,) = time_in_air(flight)
    step, rate = 0.002, flight["body_rate"]
    t = np.arange(span[0], span[1], step)
    acceleration = np.gradient(interpolate_linear(t, rate.times, rate.values), step, axis=0)
    G = np.asarray(allocation(airframe.rotors, torque_ratio_of(airframe)))[3:]
    torque = rotor_thrusts(airframe, flight, t)[0] @ G.T
    low = butter(2, 20.0, fs=1.0 / step, output="sos")
    a, b = (sosfiltfilt(low, v, axis=0)[500:-500, :2] for v in (acceleration, torque))
    a, b = a - a.mean(axis=0), b - b.mean(axis=0)
    forward, inverse = (a * b).sum(axis=0) / (a * a).sum(axis=0), (b * b).sum(axis=0) / (a * b).sum(axis=0)
    assert forward == pytest.approx([1.10e-5, 1.18e-5], rel=0.03)
    assert inverse == pytest.approx([1.28e-5, 1.33e-5], rel=0.03)
    assert forward / inverse == pytest.approx([0.867, 0.888], abs=0.02)
