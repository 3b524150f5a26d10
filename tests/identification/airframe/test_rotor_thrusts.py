"""Thrusts from commands against a fine integration of the lag, and derivatives against differences."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from rotorid.identification.airframe import rotor_chain
from rotorid.identification.airframe.rotor_thrusts import (
    RotorChain,
    RotorCommands,
    as_logged,
    commanded_thrusts,
    rotor_model,
    step_thrusts,
)
from rotorid.logs.read import read
from rotorid.models.airframe.airframe import Quantity, load_airframe
from rotorid.workflows.identify.identify import identify

CHAIN = RotorChain(2, 2)


def numbers(**given) -> np.ndarray:
    values = {
        "thrust_curve": [0.02, -0.01, 0.12], "voltage_exponent": 1.3, "thrust_scale": 1.1, "motor_time_constant": 0.05,
        "motor_time_constant_down": 0.08, "command_delay": 0.0063, "rotor_scale": [1.0, 0.9],
    } | given  # fmt: skip
    found = np.zeros(CHAIN.size)
    for name, place in CHAIN.indices.items():
        found[place] = values[name]
    return found


def commands() -> RotorCommands:
    rng = np.random.default_rng(0)
    t = np.cumsum(rng.uniform(0.003, 0.006, 120))
    return RotorCommands(t, rng.uniform(0.2, 0.8, (120, 2)), rng.uniform(0.9, 1.0, 120))


@pytest.mark.parametrize("of_speed", [False, True])
def test_thrusts_follow_the_commands_as_the_lag_integrated_in_small_steps(of_speed: bool) -> None:
    given, p = commands(), numbers()
    chain = dataclasses.replace(CHAIN, has_speed_lag=of_speed)
    h = 1e-5
    fine = np.arange(given.t[0], given.t[-1], h)
    held = np.clip(np.searchsorted(given.t, fine - 0.0063, side="right") - 1, 0, None)
    u, v = given.u[held], given.voltage[held, None]
    asked = 1.1 * np.array([1.0, 0.9]) * (0.02 - 0.01 * u + 0.12 * u**2) * v**1.3
    power = 0.5 if of_speed else 1.0
    goal = asked**power
    y = np.empty_like(goal)
    y[0] = goal[0]
    for k in range(1, len(fine)):
        tau = np.where(goal[k - 1] > y[k - 1], 0.05, 0.08)
        y[k] = goal[k - 1] + (y[k - 1] - goal[k - 1]) * np.exp(-h / tau)
    T = y ** (1.0 / power)
    end = np.arange(0.1, 0.4, 0.004)
    value, _ = step_thrusts(chain, p, given, end, np.full(len(end), 0.004))
    row = np.rint((end - fine[0]) / h).astype(int)
    mean = np.array([T[r - 400 : r].mean(axis=0) for r in row])
    np.testing.assert_allclose(value[:, 2:], T[row], atol=2e-5)
    np.testing.assert_allclose(value[:, :2], mean, atol=2e-5)


@pytest.mark.parametrize(("has_lag", "of_speed"), [(True, False), (True, True), (False, False)])
def test_slopes_are_those_of_differences(has_lag: bool, of_speed: bool) -> None:
    given, p = commands(), numbers()
    chain = dataclasses.replace(CHAIN, has_lag=has_lag, has_speed_lag=of_speed)
    end = np.arange(0.1, 0.4, 0.004) + 1e-4
    dt = np.where(np.arange(len(end)) % 5 == 0, 0.0, 0.004)
    every = tuple(range(CHAIN.size))
    _, slopes = step_thrusts(chain, p, given, end, dt, every)
    for k in every:
        step = np.zeros(CHAIN.size)
        step[k] = 1e-7
        ahead, behind = (step_thrusts(chain, p + s, given, end, dt)[0] for s in (step, -step))
        assert np.median(np.abs((ahead - behind) / 2e-7 - slopes[..., k])) < 1e-6


@pytest.mark.skipif(rotor_chain._library() is None, reason="no C compiler on this machine")
@pytest.mark.parametrize("of_speed", [False, True])
@pytest.mark.parametrize("delay", [0.0, 0.0063])
def test_without_a_compiler_the_numbers_are_the_same(monkeypatch, of_speed: bool, delay: float) -> None:
    given, p = commands(), numbers(command_delay=delay, motor_time_constant=0.9 * rotor_chain.LEAST_LAG)
    given.u[::20] = 0.0
    chain = dataclasses.replace(CHAIN, has_speed_lag=of_speed)
    end = np.concatenate([given.t[:50] + delay, np.arange(-0.1, 0.7, 0.004)])
    dt = np.where(np.arange(len(end)) % 5 == 0, 0.0, 0.004)
    every = tuple(range(CHAIN.size))
    value, slopes = step_thrusts(chain, p, given, end, dt, every)
    single, _ = step_thrusts(chain, p, given, end.astype(np.float32), dt.astype(np.float32))
    assert np.median(np.abs(single - value)) < 1e-5
    monkeypatch.setattr(rotor_chain, "_library", lambda: None)
    expected, expected_slopes = step_thrusts(chain, p, given, end, dt, every)
    np.testing.assert_allclose(value, expected, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(slopes, expected_slopes, rtol=1e-8, atol=1e-9)


def test_rotors_without_lag_pull_what_they_are_asked_for() -> None:
    chain, given = RotorChain(1, 2, has_lag=False), commands()
    p = np.zeros(chain.size)
    for name, value in {"thrust_curve": [0.0, 2.0], "thrust_scale": 1.0, "rotor_scale": 1.0}.items():
        p[chain.indices[name]] = value
    value, _ = step_thrusts(chain, p, given, given.t[10:20] + 1e-9, np.full(10, 1e-3))
    assert value[:, 2:] == pytest.approx(2.0 * given.u[10:20])


@pytest.mark.parametrize("lags", [True, False])
def test_the_first_command_holds_before_it(lags: bool) -> None:
    chain, given = RotorChain(2, 2, lags), commands()
    end = given.t[0] - np.array([3.0, 0.5, -1e-9])
    value, _ = step_thrusts(chain, numbers(command_delay=0.0), given, end, np.full(3, 0.02))
    asked = commanded_thrusts(CHAIN.by_name(numbers()), given.u[:1], given.voltage[:1])
    np.testing.assert_allclose(value, np.tile(asked, (3, 2)), rtol=1e-9)


def test_commands_before_and_after_do_not_count() -> None:
    given, p = commands(), numbers(motor_time_constant=0.02, motor_time_constant_down=0.02)
    end = np.array([0.30, 0.31])
    whole, _ = step_thrusts(CHAIN, p, given, end, np.full(2, 0.004))
    part, _ = step_thrusts(CHAIN, p, given.within(0.01, 0.31), end, np.full(2, 0.004))
    np.testing.assert_allclose(whole, part, atol=1e-7)


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
