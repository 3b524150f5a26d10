"""States with a lag: steps of filters are exact however short the lag, and filters stay stable and right."""

from __future__ import annotations

import dataclasses
import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import quad

from rotorid.estimators.ekf import ekf
from rotorid.estimators.run import run
from rotorid.models.airframe.airframe import Quantity, load_airframe
from rotorid.models.joint import Joint
from rotorid.models.multirotor.rigid import rigid_multirotor
from rotorid.models.multirotor.with_drag import Multirotor, multirotor
from rotorid.numerics.lag import cascade_end_and_mean, hermite_rate_factor, lag_end_and_mean
from rotorid.signals.samples import Samples

LAGS = (0.0005, 0.002, 0.005, 0.02)
PERIODS = (0.02, 0.01, 0.002)


def _with_lag(lag: float, period: float | None = None) -> Multirotor:
    airframe = load_airframe("px4-sih-quad")
    entry = {"motor_time_constant": Quantity((lag,), "s", (0.1 * lag,))}
    airframe = dataclasses.replace(airframe, quantities={**airframe.quantities, **entry})
    return multirotor(airframe, "rotor_thrust", command_period=period)


@pytest.mark.parametrize("lag", LAGS)
@pytest.mark.parametrize("h", [*PERIODS, 0.0])
def test_end_and_mean_are_those_of_the_solution(lag: float, h: float) -> None:
    for of_speed in (False, True):
        with jax.enable_x64(True):
            end, mean = lag_end_and_mean(3.0, 5.0, h, (lag, lag), of_speed=of_speed)

        def thrust(t, of_speed=of_speed):
            power = 2.0 if of_speed else 1.0
            low, high = 3.0 ** (1.0 / power), 5.0 ** (1.0 / power)
            return (high + (low - high) * np.exp(-t / lag)) ** power

        exact = quad(thrust, 0.0, h, epsabs=1e-12, points=[min(lag, h)])[0] / h if h else 3.0
        assert end == pytest.approx(thrust(h), rel=1e-6)
        assert mean == pytest.approx(exact, rel=1e-6)


@pytest.mark.parametrize("lag", [*LAGS, 0.25])
def test_end_and_mean_of_two_lags_are_those_of_the_solution(lag: float) -> None:
    """By many small steps of both."""
    h, y, x, c, second, count = 0.05, 3.0, 4.0, 5.0, 0.25, 200_000
    with jax.enable_x64(True):
        end, mean = cascade_end_and_mean(y, x, c, h, (lag, second))
    t = (np.arange(count) + 0.5) * h / count
    first = c + (x - c) * np.exp(-t / lag)
    decay = np.exp(-t / second)
    z = decay * (y + np.cumsum(first / decay) * h / count / second)
    assert end == pytest.approx(z[-1], rel=1e-3 * abs(y - c) if lag == second else 1e-5)
    assert mean == pytest.approx(np.mean(z), rel=1e-3)
    with jax.enable_x64(True):
        assert cascade_end_and_mean(y, x, c, 0.0, (lag, second)) == (y, y)


@pytest.mark.parametrize("s", [1e-4, 0.009, 0.011, 0.5, 5.0, 200.0])
def test_hermites_rule_gives_the_impulse_of_a_lag(s: float) -> None:
    h, y, c = 0.01, 3.0, 5.0
    tau, end = h / s, c + (y - c) * np.exp(-s)
    with jax.enable_x64(True):
        factor = float(hermite_rate_factor(h, tau))
    rule = 0.5 * h * (y + end) + h**2 / 12.0 * factor * (c - y - (c - end)) / tau
    assert rule == pytest.approx(c * h + (y - c) * tau * -np.expm1(-s), rel=1e-5)


def _fine(joint: Joint, z, u, values, dt: float, count: int = 4000):
    h = dt / count

    def step(_, point):
        middle = joint.space.plus(point, 0.5 * h * joint.rate(point, u, values))
        return joint.space.plus(point, h * joint.rate(middle, u, values))

    return jax.lax.fori_loop(0, count, step, z)


@pytest.mark.parametrize(
    "system", [_with_lag(0.05, period=0.004), rigid_multirotor(load_airframe("px4-sih-quad"))]
)
def test_a_step_and_its_transition_are_those_of_many_small_ones(system) -> None:
    joint = Joint(system)
    with jax.enable_x64(True):
        initial = np.concatenate([system.states.initial(), np.zeros(joint.space.size - system.states.size)])
        rng = np.random.default_rng(0)
        z = joint.space.plus(jnp.asarray(initial), jnp.asarray(0.1 * rng.standard_normal(joint.space.dim)))
        u = jnp.asarray(0.6 + 0.1 * rng.standard_normal(system.inputs.size))
        earlier = itertools.takewhile(lambda p: p.name != "motor_time_constant", system.parameters)
        place = sum(len(p.values) for p in earlier)
        is_tracked = system.parameter("motor_time_constant").tracked

        @jax.jit
        def both(z, values, dt):
            def error(d):
                return joint.space.minus(
                    joint.step(joint.space.plus(z, d), u, values, dt), joint.step(z, u, values, dt)
                )

            z_next, F = joint.transition(z, u, values, dt)
            exact = _fine(joint, z, u, values, dt)
            return joint.space.minus(z_next, exact), F - jax.jacfwd(error)(jnp.zeros(joint.space.dim)), F

        for lag in LAGS:
            values = joint.values()
            values[place] = lag
            at = z.at[joint.space.stored["motor_time_constant"]].set(np.log(lag)) if is_tracked else z
            for dt in PERIODS:
                off, difference, F = both(at, jnp.asarray(values), dt)
                assert np.abs(off).max() < 5.0 * dt**2
                assert np.abs(difference).max() < 60.0 * dt**2, (lag, dt)
                assert np.abs(F).max() < 1e3


@functools.cache
def _climbs(lag: float, rate: float) -> Samples:
    """A body of 1.2 kg that climbs and sinks by commanded thrusts which jump, in closed form, with noise."""
    rng, dt, count = np.random.default_rng(1), 1.0 / rate, round(8.0 * rate)
    command = 1.2 * 9.81 + np.repeat(rng.choice([-3.0, 3.0], count // 4 + 1), 4)[:count]
    thrust, velocity, rows = command[0], 0.0, []
    for target in command:
        decay = np.exp(-dt / lag)
        mean = target + (thrust - target) * lag / dt * (1.0 - decay)
        thrust = target + (thrust - target) * decay
        velocity += dt * (mean / 1.2 - 9.81 - 0.6 / 1.2 * velocity)
        rows.append((velocity, thrust / 1.2 - 0.6 / 1.2 * velocity))
    v, f = np.array(rows).T
    system = _with_lag(lag)
    q = np.tile([1.0, 0.0, 0.0, 0.0], (count, 1))
    zeros = np.zeros(count)
    noise = 0.02 * rng.standard_normal((count, 6))
    y = np.column_stack([q, np.stack([zeros, zeros, v, zeros, zeros, f], axis=1) + noise])
    u = np.column_stack([np.tile(command[:, None] / 4.0, (1, 4)), np.zeros((count, 3))])
    steps = np.full(count, dt)
    steps[0] = 0.0
    mask = np.ones((count, system.outputs.dim), bool)
    return Samples(*map(jnp.asarray, (dt * np.arange(1, count + 1), steps, u, y, mask)))


@pytest.mark.parametrize(("lag", "rate"), [(0.0005, 50.0), (0.002, 100.0), (0.02, 500.0)])
def test_the_mass_is_found_with_a_lag_far_below_the_interval_of_the_rows(lag: float, rate: float) -> None:
    with jax.enable_x64(True):
        estimates = run(ekf(_with_lag(lag)), _climbs(lag, rate))
    mass, std = np.asarray(estimates.value)[:, 0], np.asarray(estimates.std)[:, 0]
    late = slice(len(mass) // 2, None)
    assert np.abs(mass[late] / 1.2 - 1.0).max() < 0.03
    assert np.all(np.abs(mass[late] - 1.2) < 4.0 * std[late])
