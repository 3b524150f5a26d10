"""A flight by the identified mass; and a gate between a failing estimator and the controller."""

import functools

import jax
import numpy as np
import pytest

from rotorid.control.gate import Mode, Reading
from rotorid.control.independent_mass_check import IndependentMassCheck
from rotorid.errors import SettingError
from rotorid.estimators.ekf import ekf
from rotorid.estimators.run import Stream
from rotorid.models.multirotor.bare import BareMultirotor
from rotorid.simulation.closed_loop import GATE, MassProvider, simulate_closed_loop
from rotorid.simulation.failures import FAILURE_TIME, FAILURES, REPORTED_STD
from rotorid.simulation.flight import simulate_truth
from rotorid.simulation.plant import Plant
from rotorid.simulation.profiles import MASS_PROFILES, mass_profile
from rotorid.simulation.sensors import Sensors

SECONDS = 4.0


def mass(t):
    return np.where(t < 2.0, 1.0, 1.3)


@functools.cache
def stream():
    return Stream(ekf(BareMultirotor()))


def flown(*pilot, **known):
    with jax.enable_x64(True):
        return simulate_closed_loop("loop", mass, 1, MassProvider(*pilot, **known), duration=SECONDS)


@functools.cache
def nominal():
    return flown()


def test_after_a_step_the_identified_mass_halves_the_error():
    """Without a gate it settles within 0.3 s of the step, without overshoot."""
    found, gated, known = flown(stream()), flown(stream(), GATE), flown(mass=mass)
    nominal_error = nominal().rms_error(2.0)
    assert nominal_error > 0.05
    for flight in (found, gated):
        assert flight.rms_error(2.0) < 0.5 * nominal_error
        assert abs(flight.controller_mass[-1] - 1.3) < 0.05
        assert flight.truth.failures == 0
    assert found.rms_error(2.0) < 3.5 * known.rms_error(2.0)
    assert np.max(found.controller_mass) < 1.03 * 1.3
    assert np.abs(found.controller_mass[found.times > 2.3] - 1.3).max() < 0.03 * 1.3
    np.testing.assert_array_equal(known.controller_mass, mass(known.times))
    assert np.all(np.isnan(known.estimate))
    assert set(gated.mode) >= {Mode.WAITING, Mode.FOLLOWING}
    assert set(found.mode) == {0}
    slowest = np.max(np.abs(np.diff(gated.controller_mass)))
    assert slowest <= GATE.quantity.rate * 0.02 + 1e-12
    assert np.all(np.isfinite(found.estimate) & (found.estimate_std > 0))


def test_one_who_is_wrong_from_the_start_is_never_believed():
    """The flight is the nominal one, to the last bit."""
    flight = flown(stream(), GATE, FAILURES["thrust high"]())
    np.testing.assert_array_equal(flight.truth.states, nominal().truth.states)
    assert set(flight.controller_mass) == {1.0}
    assert np.median(flight.estimate[-20:]) == pytest.approx(1.3 * 1.3, rel=0.05)
    bare = flown(stream(), None, FAILURES["thrust high"]())
    assert bare.rms_error(0.5) > 1.2 * nominal().rms_error(0.5)


def test_with_the_nominal_mass_it_is_the_flight_of_the_data_set():
    """Same path, mass and noise; the controller's mass is a parameter here and built in there."""
    profile = functools.partial(mass_profile, "sine", 3, duration=1.5)
    flown_there, _ = simulate_truth("square", "sine", 3, duration=1.5, sensors=Sensors(), plant=Plant())
    flight = simulate_closed_loop(
        "square", profile, 3, MassProvider(), duration=1.5, stream=MASS_PROFILES.index("sine")
    )
    np.testing.assert_allclose(flight.truth.states, flown_there.states, atol=1e-5)
    np.testing.assert_array_equal(flight.truth.mass, flown_there.mass)


def said(failure, seconds=12.0):
    """Reports of a failing estimator whose own value is 1.2 kg, once a tenth of a second."""
    of = FAILURES[failure]()
    times = np.arange(0.0, seconds, 0.1)
    return times, [of.corrupt_output(t, Reading(1.2 + 0.001 * t, 0.01)) for t in times]


def test_failures_begin_when_they_should_and_do_what_they_say():
    for failure in FAILURES:
        t, reports = said(failure)
        before = [r for time, r in zip(t, reports, strict=True) if time < FAILURE_TIME - 0.05]
        if failure != "delayed":
            assert all(r is not None and r.value < 1.21 for r in before)
    last = {failure: said(failure)[1][-1] for failure in FAILURES}
    assert last["mirrored"] == Reading(2.0 - 1.2 - 0.001 * 11.9, REPORTED_STD)
    assert last["stuck"].value == pytest.approx(1.2 + 0.001 * (FAILURE_TIME - 0.1))
    assert last["drifting"].value == pytest.approx(1.2119 * (1.0 + 0.03 * 6.9))
    assert last["no output"] is None
    assert last["delayed"].value == pytest.approx(1.2 + 0.001 * 8.9, abs=1.1e-4)
    assert said("delayed")[1][20] is None
    wild = [r.value for r in said("invalid")[1][60:]]
    assert sum(not 1.1 < v < 1.3 for v in wild) == 20
    frozen, low = FAILURES["frozen"](), FAILURES["thrust low"]()
    u = np.array([10.0, 1.0, 2.0, 3.0])
    for t in (1.0, 4.0, 6.0):
        assert frozen.corrupt_input(t, (u, np.full(10, t)))[1][0] == min(t, 4.0)
    np.testing.assert_array_equal(low.corrupt_input(6.0, (u, u))[0], [7.5, 1.0, 2.0, 3.0])
    np.testing.assert_array_equal(low.corrupt_input(4.0, (u, u))[0], u)


@pytest.mark.parametrize("true", [0.7, 1.3])
def test_the_independent_mass_check_is_consistent(true):
    """Random roll and thrust; noise of the velocity only."""
    rng, errors = np.random.default_rng(1), []
    for _ in range(200):
        check, v, dt = IndependentMassCheck(), np.zeros(3), 0.02
        assert np.isnan(check.update(0.0, np.array([1.0, 0.0, 0.0, 0.0]), v, 10.0)).all()
        roll = rng.normal(0.0, 0.3)
        thrust = rng.uniform(6.0, 14.0)
        q = np.array([np.cos(roll / 2), np.sin(roll / 2), 0.0, 0.0])
        up = np.array([0.0, -np.sin(roll), np.cos(roll)])
        for k in range(40):
            v = v + dt * (thrust / true * up - np.array([0.0, 0.0, 9.81]))
            found, std = check.update(1.0 + k * dt, q, v + 0.03 * rng.normal(size=3), thrust)
        errors.append((found - true) / std)
    assert np.sqrt(np.mean(np.square(errors))) == pytest.approx(1.0, abs=0.15)
    assert abs(np.mean(errors)) < 0.25


def test_the_independent_mass_check_needs_thrust():
    check = IndependentMassCheck()
    for k in range(20):
        found = check.update(
            0.02 * k, np.array([1.0, 0.0, 0.0, 0.0]), np.array([0.0, 0.0, -9.81 * 0.02 * k]), 0.0
        )
    assert np.isnan(found).all()


def test_wrong_settings_are_named():
    with pytest.raises(SettingError, match="positive duration"):
        simulate_closed_loop("loop", mass, 1, MassProvider(), duration=0.0)
