"""The recursive identification finds the airframe of a simulated quadrotor, and says what it does not know."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

from rotorid.errors import AirframeError
from rotorid.identification.recursive.estimates import Estimate, make_estimates
from rotorid.identification.recursive.estimator import AirframeIdentifier, identify_recursively
from rotorid.identification.recursive.excitation import (
    ClimbRange,
    CommandSampling,
    MassMonitor,
    UnmodelledLift,
    vertical_gust_std,
)
from rotorid.identification.recursive.hover_shape import HoverShape
from rotorid.identification.recursive.identified_airframe import identified_airframe
from rotorid.identification.recursive.lagged_thrusts import LaggedThrusts
from rotorid.identification.recursive.posterior import THRUST_DELAYS, THRUST_LAGS, LagPosterior
from rotorid.identification.recursive.translation import DragBank, ThrustBank, ThrustPrior
from rotorid.logs.flight import Flight
from rotorid.models.airframe.airframe import Quantity, airframe_toml, parse_airframe
from rotorid.models.multirotor.thrust import ThrustCurve
from tests.identification.recursive.small_flight import CURVE, MASS, TRUTH, exchanged, flight, prior


def thrust_rows(thrust: float, shape: float) -> np.ndarray:
    """Rows of the thrust that are the same at every delay and lag."""
    return np.broadcast_to([thrust, shape, 0.0], (len(THRUST_DELAYS), len(THRUST_LAGS), 3))


TARGETS = {"motor_time_constant": 0.15, "inertia_x": 0.15, "inertia_y": 0.15, "drag": 0.1}
START, END = 0.5, 12.0


def identified(log: Flight, airframe=None, end: float = END) -> AirframeIdentifier:
    *_, (_, identifier) = identify_recursively(log, airframe or prior(), [(START, end)], end - START - 0.1)
    return identifier


@pytest.fixture(scope="module")
def log() -> Flight:
    return flight(0, END)


@pytest.fixture(scope="module")
def result(log: Flight) -> AirframeIdentifier:
    return identified(log)


def true_thrust_scale() -> float:
    thrust = MASS * 9.81 / 4.0
    command = (-CURVE[1] + math.sqrt(CURVE[1] ** 2 + 4.0 * CURVE[2] * thrust)) / (2.0 * CURVE[2])
    return thrust / (2.6 * command + 4.2 * command**2)


def test_it_finds_the_vehicle_after_twelve_seconds(result):
    estimates = result.estimates()
    for name, share in TARGETS.items():
        estimate, truth = estimates[name], TRUTH[name]
        assert estimate.value == pytest.approx(truth, rel=share)
        assert abs(estimate.value - truth) < 3.0 * estimate.std
        assert estimate.std < 1.3 * share * truth
        assert estimate.is_identified
    scale = estimates["thrust_scale"]
    assert scale.value == pytest.approx(true_thrust_scale(), rel=0.02)
    assert scale.std < 0.03 * scale.value


def test_the_same_measurements_give_the_same_numbers(log):
    assert identified(log, end=4.0).estimates() == identified(log, end=4.0).estimates()


def test_an_unknown_mass_is_in_every_band(log, result):
    airframe = prior()
    quantities = {**airframe.quantities, "mass": Quantity((MASS,), "kg", (0.2,))}
    unknown = identified(log, dataclasses.replace(airframe, quantities=quantities), 5.0).estimates()
    known = result.estimates()
    for name in ("thrust_scale", "drag", "inertia_x", "inertia_y"):
        assert unknown[name].std > 0.15 * known[name].value
        assert known[name].std < 0.1 * known[name].value


def test_without_motion_it_returns_the_priors():
    quiet = flight(1, 4.0)
    still = quiet.with_signals(
        dataclasses.replace(
            quiet["body_rate"],
            values=0.01 * np.random.default_rng(0).normal(size=quiet["body_rate"].values.shape),
        )
    )
    estimates = identified(still, end=4.0).estimates()
    for name in ("motor_time_constant", "inertia_x", "inertia_y"):
        assert not estimates[name].is_identified
        assert (estimates[name].value, estimates[name].std) == (
            estimates[name].prior,
            estimates[name].prior_std,
        )
        assert math.isinf(estimates[name].measured_std)
    assert estimates["thrust_scale"].is_identified


def test_slow_commands_identify_no_lag():
    slow = flight(2, END)
    commands = slow["rotor_command"]
    sparse = dataclasses.replace(commands, times=commands.times[::10], values=commands.values[::10])
    estimates = identified(slow.with_signals(sparse)).estimates()
    assert not estimates["motor_time_constant"].is_identified
    for name in ("motor_time_constant", "inertia_x", "inertia_y"):
        assert abs(estimates[name].value - TRUTH[name]) < 2.5 * estimates[name].std


@pytest.mark.parametrize("fast", [0.0, 0.1])
def test_errors_of_the_velocity_do_not_attenuate_the_drag(fast):
    rng, bank, d, dt = np.random.default_rng(0), DragBank(), 0.5, 0.01
    error, size = np.zeros(2), 0.11 if fast == 0.0 else 0.5
    for k in range(2000):
        true = size * np.array([math.sin(1.7 * k * dt), math.cos(2.3 * k * dt)])
        error = error * 0.995 + 0.035 * math.sqrt(1.0 - 0.995**2) * rng.standard_normal(2)
        force = -d * true + 0.09 * rng.standard_normal(2)
        measured = true + error + fast * rng.standard_normal(2)
        bank.add(k * dt, tuple(force), np.array([*measured, 0.0]), np.eye(3))
    value, std = bank.posterior()
    assert value == pytest.approx(d, rel=0.06)
    assert abs(value - d) < 2.5 * std


def test_a_hover_in_still_air_gives_no_drag():
    """Forces below the resolution of the message are zero, as are the velocities but for their error."""
    rng, bank = np.random.default_rng(0), DragBank()
    for k in range(1000):
        bank.add(0.01 * k, (0.0, 0.0), 0.005 * rng.standard_normal(3), np.eye(3))
    value, std = bank.posterior()
    assert std > value > 0.1


def test_a_climb_alone_does_not_tell_the_thrust_in_hover():
    """The thrust falls with the climb and its square. The vehicle climbs for 3 s, slows down for 3 s, and hovers."""
    rng, bank, climbs = np.random.default_rng(2), ThrustBank(), ClimbRange()
    prior = ThrustPrior(0.3, (0.0, 0.15))
    errors, stds, without = [], [], []
    for k in range(900):
        t = 0.01 * k
        climb = 2.5 - 1.3 * math.exp(-t) if t < 3.0 else 2.5 * max(1.0 - (t - 3.0) / 3.0, 0.0)
        accel = 1.3 * math.exp(-t) if t < 3.0 else (-2.5 / 3.0 if t < 6.0 else 0.0)
        force = 9.81 + accel + 0.05 * rng.standard_normal()
        thrust = 9.81 + accel + 0.25 * climb + 0.05 * climb**2
        bank.step(force, thrust_rows(thrust, thrust - 9.81), climb, 0.01)
        climbs.add(climb, 0.01)
        states, covariance = bank.posterior(prior, (math.log(0.02), 0.4), (0.006, 0.008))
        errors.append(abs(states[0] - 1.0))
        without.append(math.hypot(math.sqrt(covariance[0, 0]), 0.008))
        stds.append(math.hypot(without[-1], climbs.thrust_std))
    late = np.array(errors)[100:]
    assert np.all(late < 2.0 * np.array(stds)[100:])
    assert np.mean(late[:300] < 2.0 * np.array(without)[100:400]) < 0.7
    assert errors[-1] < 0.01
    assert climbs.thrust_std < 0.003


def test_a_quantity_that_the_flight_knows_is_identified_beside_a_good_prior():
    good = Estimate(1.0, 0.06, 1.0, 0.1, 1.0, 0.08, "1")
    assert good.is_identified
    assert not good._replace(measured_std=0.2, std=0.09).is_identified


def test_a_move_after_a_long_hover_does_not_interrupt_it():
    rng, bank, monitor = np.random.default_rng(1), ThrustBank(), MassMonitor()
    prior = ThrustPrior(0.15, (0.0, 0.15))
    for k in range(600):
        t = 0.01 * k
        move = max(t - 4.0, 0.0)
        thrust = 9.8 + 2.0 * math.sin(3.0 * move)  # of 20 % more slope than by the file
        climb = 1.2 * math.sin(2.0 * move)
        force = thrust + 0.2 * (thrust - 9.8) - 0.4 * climb + 0.1 * rng.standard_normal()
        rows = thrust_rows(thrust, thrust - 9.8 + 0.003 * rng.standard_normal())
        expected, std = bank.predict(rows, climb, prior, is_refreshed=k % 10 == 0)
        assert monitor.update((force - expected) / 9.81, std / 9.81, 0.01)
        bank.step(force, rows, climb, 0.01)


@pytest.mark.parametrize("forgets", [True, False])
def test_after_a_pause_the_old_coloured_noise_is_forgotten(forgets):
    rng, bank, prior = np.random.default_rng(2), ThrustBank(), ThrustPrior(0.12, (0.0, 0.15))

    def fly(rows: int, level: float, excess: float) -> float:
        """Estimate of s e after a flight with a mean thrust and an unmodelled force, m/s^2."""
        for k in range(rows):
            thrust = level + 0.3 * math.sin(0.07 * k)
            force = thrust + excess + 0.1 * rng.standard_normal()
            bank.step(force, thrust_rows(thrust, thrust - 9.81), 0.0, 0.02)
        return float(bank.posterior(prior, (math.log(0.03), 0.1), (0.006, 0.008))[0][1])

    fly(500, 9.81, 0.0)
    fly(8, 9.81, 2.5)  # a payload falls, before it is noticed
    if forgets:
        bank.restart()
    error = abs(fly(40, 13.1, 0.0))
    assert error < 0.1 if forgets else error > 0.4


def test_a_wrong_first_thrust_is_replaced(log, result):
    force = log["specific_force"]
    values = force.values.copy()
    values[force.times < START + 2.5, 2] *= 0.8  # the ground bears a part of the weight
    identifier = identified(log.with_signals(dataclasses.replace(force, values=values)), end=9.5)
    assert identifier.mass_monitor.restarts == 1
    estimates = identifier.estimates()
    whole = result.estimates()["thrust_scale"]
    assert estimates["thrust_scale"].value == pytest.approx(whole.value, rel=0.02)
    for name in ("inertia_x", "inertia_y", "motor_time_constant"):
        assert abs(estimates[name].value - TRUTH[name]) < 2.5 * estimates[name].std


def test_the_shape_of_the_thrust_curve_lags_like_the_thrust():
    lags = np.array([0.05])
    thrusts = LaggedThrusts(lags, 1, lambda thrust: thrust**2)
    for k in range(100):
        thrusts.add(0.004 * k, np.array([1.0 if k < 25 else 3.0]))
    before, after = thrusts.impulse(0.3, np.array([0.2, 0.0]))
    since = 0.2 - 0.05 * (1.0 - math.exp(-0.2 / 0.05))
    np.testing.assert_allclose((after - before)[0, :2, 0], [0.2 + 2.0 * since, 0.2 + 8.0 * since], rtol=0.01)


@pytest.mark.parametrize("has_speed_lag", [False, True])
def test_the_lags_of_thrust_and_speed_differ_by_delta(has_speed_lag):
    tau, end = 0.05, 0.2
    thrusts = LaggedThrusts(np.array([tau]), 1, lambda thrust: thrust, has_speed_lag=has_speed_lag)
    for k in range(100):
        thrusts.add(0.004 * k, np.array([1.0 if k < 25 else 4.0]))
    before, after = thrusts.impulse(0.3, np.array([0.2, 0.0]))
    T, _, delta = (after - before)[0, :, 0]
    rise, square = tau * (1.0 - math.exp(-end / tau)), 0.5 * tau * (1.0 - math.exp(-2.0 * end / tau))
    thrust_lags = 4.0 * end - 3.0 * rise
    speed_lags = 4.0 * end - 4.0 * rise + square  # the integral of (2 - exp(-t / tau))^2
    assert pytest.approx(speed_lags if has_speed_lag else thrust_lags, rel=0.01) == T
    assert delta == pytest.approx(thrust_lags - speed_lags, rel=0.02)


def test_a_weakened_measurement_of_the_slope_keeps_the_thrust_in_hover():
    shape = HoverShape(ThrustCurve((0.0, 2.6, 4.2)), 2.0)
    covariance = np.array([[0.02**2, 1e-4], [1e-4, 0.02**2]])
    for s, se in ((1.0, 0.2), (0.75, -0.15)):
        raw = shape.at_hover(s, se, covariance)
        weak = shape.at_hover(*shape.weaken(s, se, covariance, 0.12, 0.12))
        same = shape.at_hover(*shape.weaken(s, se, covariance, 0.12, 0.0))
        assert weak.scale == pytest.approx(raw.scale, rel=1e-6)
        assert 0.4 < (weak.slope / weak.scale - 1.0) / (raw.slope / raw.scale - 1.0) < 0.6
        assert weak.slope_std > 2.0 * raw.slope_std
        assert same.slope == pytest.approx(raw.slope, rel=1e-3)
        assert same.slope_std == pytest.approx(raw.slope_std, rel=0.01)


def test_commands_that_follow_the_noise_make_the_lag_uncertain():
    rng = np.random.default_rng(0)
    rough, smooth = CommandSampling(0.0105), CommandSampling(0.0105)
    for k in range(500):
        rough.add(0.004 * k, rng.standard_normal(2))
        smooth.add(0.004 * k, np.array([math.sin(0.02 * k), math.cos(0.03 * k)]))
    assert rough.lag_std > 0.004
    assert smooth.lag_std < 0.0005


def test_the_slope_of_the_thrust_curve_is_uncertain_in_wind_and_in_hover():
    errors = {}
    for name, change, wind in (("moves", 1.0, 0.0), ("hover", 0.1, 0.0), ("wind", 1.0, 0.2)):
        error = errors[name] = UnmodelledLift()
        for k in range(200):
            error.add(change * math.sin(0.3 * k), wind * math.sin(0.2 * k))
    assert errors["moves"].slope_std < 0.06
    assert errors["hover"].slope_std > 0.1
    assert errors["wind"].slope_std > 1.5 * errors["moves"].slope_std
    assert math.isinf(UnmodelledLift().slope_std)


def test_vertical_gusts_make_the_thrust_of_a_short_flight_in_wind_uncertain():
    assert vertical_gust_std(0.0, 10.0) == 0.0
    short, long = vertical_gust_std(1.0, 10.0), vertical_gust_std(1.0, 1000.0)
    assert 0.01 < short < 0.02
    assert short > 5.0 * long


def test_a_lag_that_the_commands_do_not_resolve_is_not_identified(result):
    def lag(sampling):
        return make_estimates(
            result.airframe,
            result.inertia,
            hover=None,
            lag=LagPosterior((math.log(0.015), 0.1), (0.006, 0.001), ()),
            lag_prior=(math.log(0.03), 0.8),
            gains={},
            drag=(0.3, 0.1),
            load=1.0,
            lift_std=0.0,
            slope=(1.0, 0.0),
            sampling=sampling,
        )["motor_time_constant"]

    rough, rng = CommandSampling(), np.random.default_rng(0)
    for k in range(500):
        rough.add(0.02 * k, rng.standard_normal(2))  # commands that follow the noise of the gyroscope
    assert not lag(rough).is_identified
    assert lag(result.sampling).is_identified


def test_a_lag_beyond_the_grid_widens_the_inertia(result):
    estimates = result.estimates()
    arguments = {
        "hover": None,
        "lag_prior": (math.log(0.03), 0.8),
        "gains": {0: (1.0, 0.02), 1: (1.0, 0.02)},
        "drag": (0.3, 0.1),
        "load": 1.0,
        "lift_std": 0.0,
        "slope": (1.0, 0.0),
        "sampling": result.sampling,
    }
    short = LagPosterior((math.log(0.006), 0.05), (0.006, 0.001), ())
    wide = make_estimates(result.airframe, result.inertia, lag=short, **arguments)
    assert not wide["motor_time_constant"].is_identified
    assert math.isinf(wide["motor_time_constant"].measured_std)
    assert wide["inertia_x"].measured_std > 0.2 * wide["inertia_x"].measured
    assert estimates["inertia_x"].measured_std < 0.1 * estimates["inertia_x"].measured


def test_a_gap_does_not_disturb_it(log, result):
    cut = log.with_signals(
        *(
            dataclasses.replace(log[name], times=log[name].times[keep], values=log[name].values[keep])
            for name in ("rotor_command", "body_rate", "specific_force", "velocity", "attitude")
            for keep in [(log[name].times < 4.0) | (log[name].times > 5.5)]
        )
    )
    estimates, whole = identified(cut, end=9.0).estimates(), result.estimates()
    for name, estimate in estimates.items():
        assert abs(estimate.value - whole[name].value) < 2.0 * estimate.std


def test_a_payload_interrupts_it(log, result):
    force = log["specific_force"]
    values = force.values.copy()
    values[force.times > 6.0, 2] *= 0.75
    loaded = identified(log.with_signals(dataclasses.replace(force, values=values)), end=9.0)
    assert not loaded.mass_monitor.is_constant
    scale, before = loaded.estimates()["thrust_scale"], result.estimates()["thrust_scale"]
    assert scale.value == pytest.approx(before.value, abs=3.0 * scale.std)


def test_the_airframe_is_written_with_its_source(result):
    airframe = identified_airframe(result, "a test")
    assert airframe is not None
    assert airframe.fly_back is None
    assert "not validated" in airframe.description
    read = parse_airframe(airframe_toml(airframe), "identified.toml")
    assert read.number("motor_time_constant") == pytest.approx(TRUTH["motor_time_constant"], rel=0.15)
    assert read.quantities["inertia"].value[0] == pytest.approx(TRUTH["inertia_x"], rel=0.1)
    assert "a test" in read.quantities["drag"].source
    assert read.thrust_curve is not None
    command = np.array([0.35, 0.45])
    by_file, true = (
        np.polynomial.polynomial.polyval(command, c) for c in (read.thrust_curve.coefficients, CURVE)
    )
    np.testing.assert_allclose(by_file, true, rtol=0.03)


def test_it_needs_rotors_and_a_thrust_curve():
    with pytest.raises(AirframeError, match="thrust_curve"):
        AirframeIdentifier(dataclasses.replace(prior(), thrust_curve=None))
    assert exchanged(prior(), 0, 1).rotors[0] == prior().rotors[1]
