"""Errors of thrust curve, lag, drag and mass in flights made of the equations of motion, and the bands that contain them."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path

import numpy as np
import pytest

from rotorid.findings import Severity
from rotorid.logs.flight import Flight, Signal
from rotorid.models.airframe.airframe import Airframe, Quantity, load_airframe
from rotorid.models.multirotor.thrust import ThrustCurve
from rotorid.workflows.track.model_errors import (
    ThrustResponse,
    body_velocity,
    drag_gain,
    model_errors,
    thrust_response,
    with_model_errors,
)
from rotorid.workflows.track.text import to_text
from tests.workflows.tracks_for_tests import made_track, quantity

GRAVITY, MASS, DRAG, WIND, LAG = 9.80665, 1.0, 0.5, 2.0, 0.03
T = np.arange(0.0, 40.0, 0.004)
PARTS = [(0.0, 39.9)]
FULL = 5.0  # N of a rotor


def made_flight(*, noise: float = 0.05, command_noise: float = 0.0, frequency: float = 0.7) -> Flight:
    """A flight up and down and along x, in wind along x; the thrust of a rotor is quadratic in the command.

    noise: of the specific force, m/s^2. command_noise: of the commands. frequency: of the vertical motion, Hz.
    """
    rng = np.random.default_rng(0)
    wave = 2.0 * np.pi * frequency * T
    thrust = MASS * (GRAVITY + 1.5 * np.sin(wave) + np.cos(2.3 * wave))
    command = np.sqrt((thrust + LAG * np.gradient(thrust, T)) / (4.0 * FULL))
    velocity = np.stack([3.0 * np.sin(0.9 * T), np.cos(0.7 * T), 0.0 * T], axis=1)
    force = -DRAG / MASS * (velocity - np.array([WIND, 0.0, 0.0]))
    force[:, 2] = thrust / MASS
    values = {
        "rotor_command": command[:, None] + command_noise * rng.standard_normal((len(T), 4)),
        "velocity": velocity,
        "attitude": np.tile([1.0, 0.0, 0.0, 0.0], (len(T), 1)),
        "specific_force": force + noise * rng.standard_normal((len(T), 3)),
    }
    signals = {name: Signal(name, T, value, "made") for name, value in values.items()}
    return Flight(signals, Path("made.csv"), "simulation")


def airframe_of(
    curve: tuple[float, ...] = (0.0, 0.0, FULL), mass: float = MASS, mass_std: float = 0.3, lag: float = LAG
) -> Airframe:
    """An airframe with this thrust curve (N, known to 1 %), mass (kg; standard deviation relative) and lag (s)."""
    frame = load_airframe("quadrotor-x")
    quantities = {
        **frame.quantities,
        "mass": Quantity((mass,), "kg", (mass_std * mass,)),
        "motor_time_constant": Quantity((lag,), "s"),
    }
    quantities.pop("thrust_scale", None)
    thrust_curve = ThrustCurve(curve, std=tuple(0.01 * c for c in curve))
    return dataclasses.replace(frame, quantities=quantities, thrust_curve=thrust_curve)


HOVER = math.sqrt(MASS * GRAVITY / (4.0 * FULL))
LINEAR = (0.0, MASS * GRAVITY / 4.0 / HOVER)  # right in hover, half the slope


def response_of(flight: Flight, airframe: Airframe) -> ThrustResponse | None:
    return thrust_response(flight, airframe, PARTS, body_velocity(flight, PARTS))


@pytest.mark.parametrize("noise", [0.0, 0.1, 0.5])
def test_a_right_thrust_curve_has_no_error(noise: float) -> None:
    response = response_of(made_flight(noise=noise), airframe_of())
    assert response is not None
    assert response.low - 2.0 * response.std < 0.05
    assert response.high + 2.0 * response.std > -0.05
    assert response.error < 0.01


@pytest.mark.parametrize("noise", [0.0, 0.1, 0.3])
def test_half_the_slope_is_a_response_of_two(noise: float) -> None:
    response = response_of(made_flight(noise=noise), airframe_of(LINEAR))
    assert response is not None
    assert response.low - 0.05 < math.log(2.0) < response.high + 0.05
    assert response.error == pytest.approx(1.0, rel=0.1)
    assert response.sigmas > 3.0


def test_errors_of_the_commands_alone_are_no_error() -> None:
    for noise in np.geomspace(1e-3, 0.3, 8):
        response = response_of(made_flight(command_noise=float(noise)), airframe_of())
        assert response is None or response.error < 0.01


def test_a_lag_that_is_too_long_is_an_error() -> None:
    flight = made_flight(frequency=1.2)
    right, wrong = (response_of(flight, airframe_of(lag=lag)) for lag in (LAG, 4.0 * LAG))
    assert right is not None
    assert wrong is not None
    assert right.error < 0.05
    assert wrong.error > 0.1


def test_a_hover_shows_nothing() -> None:
    flight = made_flight()
    signals = {
        n: dataclasses.replace(s, values=0.0 * s.values + s.values[:1]) for n, s in flight.signals.items()
    }
    noise = 0.1 * np.random.default_rng(1).standard_normal((len(T), 3))
    force = dataclasses.replace(signals["specific_force"], values=signals["specific_force"].values + noise)
    still = dataclasses.replace(flight, signals={**signals, "specific_force": force})
    assert response_of(still, airframe_of()) is None
    velocity = body_velocity(still, PARTS)
    assert velocity is not None
    assert drag_gain(still, made_track(1.0, t=T, drag=quantity(DRAG, unit="N s/m", t=T)), velocity) is None


def test_the_band_of_the_mass_grows_with_the_distance_from_the_stated_weight() -> None:
    flight, frame = made_flight(), airframe_of(LINEAR, mass_std=0.05)
    errors = model_errors(flight, frame, T)
    (finding,) = errors.findings(frame.name)
    assert (finding.code, finding.severity) == ("thrust_response_implausible", Severity.WARNING)
    assert "the slope of the curve or the lag is wrong" in to_text(finding)
    track = made_track(quantity(1.0, 0.01, t=T), t=T)
    wide = with_model_errors(track, flight, errors).quantities["mass"]
    thrust = flight["rotor_command"].values.sum(axis=1) * LINEAR[1] / (MASS * GRAVITY)
    near, far = np.abs(thrust - 1.0) < 0.01, np.abs(thrust - 1.0) > 0.05
    assert np.median(wide.std[far]) > np.median(wide.std[near]) + 0.02 > 0.1
    heavy = model_errors(flight, airframe_of(LINEAR, mass=0.5), T)
    assert np.all(with_model_errors(track, flight, heavy).quantities["mass"].std > 0.3)


def test_a_right_model_leaves_the_bands() -> None:
    flight = made_flight()
    track = made_track(
        1.0, t=T, drag=quantity(DRAG, 0.01, "N s/m", t=T), wind_x=quantity(WIND, 0.1, "m/s", t=T)
    )
    errors = model_errors(flight, airframe_of(), T)
    assert not errors.findings("made")
    same = with_model_errors(track, flight, errors)
    for name, q in same.quantities.items():
        np.testing.assert_allclose(q.std, track.quantities[name].std, rtol=0.02)


@pytest.mark.parametrize("factor", [1.0 / 3.0, 3.0])
def test_a_wrong_drag_widens_the_wind_that_follows_from_it(factor: float) -> None:
    """The wind by a drag k' is v + (k / k') (w - v)."""
    flight, k = made_flight(), factor * DRAG
    v = flight["velocity"].values[:, 0]
    wind = quantity(v + (WIND - v) / factor, 0.05, "m/s", t=T)
    track = made_track(1.0, t=T, drag=quantity(k, 0.01 * k, "N s/m", t=T), wind_x=wind)
    velocity = body_velocity(flight, PARTS)
    assert velocity is not None
    gain = drag_gain(flight, track, velocity)
    assert gain is not None
    assert gain.value == pytest.approx(1.0 / factor, rel=0.03)
    wide = with_model_errors(track, flight, model_errors(flight, airframe_of(), T)).quantities
    assert np.mean(np.abs(wind.value - WIND) < 1.96 * wind.std) < 0.2
    assert np.mean(np.abs(wind.value - WIND) < 1.96 * wide["wind_x"].std) > 0.9
    assert np.all(np.abs(k - DRAG) < 1.96 * wide["drag"].std)


@pytest.mark.parametrize(("stated", "std"), [(0.8, 0.01), (1.25, 0.01)])
def test_where_mass_and_thrust_contradict_each_other_the_band_contains_both(
    stated: float, std: float
) -> None:
    flight, frame = made_flight(), airframe_of(mass=stated, mass_std=std)
    errors = model_errors(flight, frame, T)
    for tracked in (stated, MASS):
        track = made_track(quantity(tracked, 0.01, t=T), t=T)
        wide = with_model_errors(track, flight, errors).quantities["mass"]
        assert np.all(np.abs(wide.value - stated) < 1.96 * wide.std)
        assert np.all(np.abs(wide.value - MASS) < 1.96 * wide.std)
        np.testing.assert_allclose(wide.change_std, 0.01, rtol=0.02)
    known = model_errors(flight, frame, T, known_mass=MASS)
    assert known.conflict is None


def test_an_uncertain_mass_contradicts_nothing() -> None:
    errors = model_errors(made_flight(), airframe_of(mass=1.2, mass_std=0.3), T)
    assert errors.conflict is not None
    assert errors.conflict.weight == 0.0


def test_the_error_starts_where_the_range_excludes_one() -> None:
    assert ThrustResponse(-0.2, 0.3, 0.01).error == 0.0
    assert ThrustResponse(0.01, 0.3, 0.01).error == 0.0
    assert 0.0 < ThrustResponse(0.05, 0.3, 0.01).error < math.expm1(0.175)
    assert ThrustResponse(0.2, 0.4, 0.01).error == pytest.approx(math.expm1(0.3))
    assert ThrustResponse(-0.4, -0.2, 0.01).error == pytest.approx(-math.expm1(-0.3))


def test_gusts_that_the_wind_shows_are_in_the_band_of_the_mass() -> None:
    """r k sigma_w / (m g), beyond the standard deviation of the wind's estimates."""
    flight, rng = made_flight(), np.random.default_rng(0)
    gusts = np.repeat(rng.standard_normal(40), 250)
    errors = model_errors(flight, airframe_of(), T)
    drag, ratio = quantity(DRAG, 0.01, "N s/m", t=T), quantity(2.0, 0.1, "1", t=T)
    for sigma, std in ((0.0, 0.1), (1.0, 0.1), (1.0, 2.0)):
        x, y = (quantity(sigma * gusts, std, "m/s", t=T) for _ in "xy")
        track = made_track(
            quantity(MASS, 1e-4, t=T), t=T, drag=drag, axial_drag_ratio=ratio, wind_x=x, wind_y=y
        )
        wide = with_model_errors(track, flight, errors).quantities["mass"].std
        middle = np.abs(T - 20.0) < 1.0
        rms = float(np.std(gusts[np.abs(T - 20.0) < 10.0]))
        expected = 2.0 * DRAG * math.sqrt(max((sigma * rms) ** 2 - std**2, 0.0)) / GRAVITY
        assert np.median(wide[middle]) == pytest.approx(math.hypot(1e-4, expected), rel=0.1)


def test_the_exponent_of_the_voltage_widens_the_band_as_the_battery_empties() -> None:
    t = np.arange(0.0, 100.0, 0.5)
    volts = 16.0 * np.exp(-0.001 * t)
    curve = ThrustCurve(
        (0.0, 5.0), voltage=16.0, voltage_exponent=1.5, std=(0.0, 0.5), voltage_exponent_std=0.7
    )
    airframe = dataclasses.replace(load_airframe("px4-sih-quad"), thrust_curve=curve)
    signals = {
        "rotor_command": Signal("rotor_command", t, np.full((len(t), 4), 0.5), "made"),
        "battery_voltage": Signal("battery_voltage", t, volts[:, None], "made"),
    }
    logged = model_errors(Flight(signals, Path("made"), "made"), airframe, t).voltage
    assert logged is not None
    np.testing.assert_allclose(logged, np.hypot(0.7 * 0.001 * t, 0.025), atol=0.7 * 0.006)
    unlogged = {"rotor_command": signals["rotor_command"]}
    without = dataclasses.replace(curve, voltage=math.nan, voltage_exponent=0.0, voltage_exponent_std=1.7)
    known = dataclasses.replace(curve, voltage=math.nan, voltage_exponent=0.0, voltage_exponent_std=0.0)
    flight = Flight(unlogged, Path("made"), "made")
    assert model_errors(flight, dataclasses.replace(airframe, thrust_curve=known), t).voltage is None
    assumed = model_errors(flight, dataclasses.replace(airframe, thrust_curve=without), t).voltage
    assert assumed is not None
    assert assumed[0] == pytest.approx(0.025)
    assert assumed[-1] == pytest.approx(np.hypot(0.051, 0.025), rel=0.01)
