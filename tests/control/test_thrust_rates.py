"""Thrusts and their rates stay within bounds, on a fully actuated and on an underactuated vehicle."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rotorid.control.thrust_rates import HORIZON, STEP, ThrustRates, thrust_rate_controller
from rotorid.errors import SettingError
from rotorid.models.airframe.airframe import load_airframe
from rotorid.models.multirotor.rigid import rigid_multirotor
from rotorid.models.system import parameter_values

HEXAROTOR = rigid_multirotor(load_airframe("fully-actuated-hexarotor"))
QUADROTOR = rigid_multirotor(load_airframe("quadrotor-x"))
TILT = {HEXAROTOR: 1.0 / np.cos(np.radians(20.0)), QUADROTOR: 1.0}


def hovering(vehicle):
    """Hover thrust, controller, and its references."""
    hover = TILT[vehicle] * vehicle.weight / len(vehicle.rotors)
    x = np.array(ThrustRates(vehicle).states.initial())
    x[13:] = hover
    still = np.zeros((HORIZON, len(vehicle.rotors)))
    controller = thrust_rate_controller(vehicle, (0.25 * hover, 2.0 * hover), 10.0 * hover)
    return hover, controller, np.tile(x, (HORIZON + 1, 1)), still


@pytest.mark.parametrize("vehicle", [HEXAROTOR, QUADROTOR], ids=["hexarotor", "quadrotor"])
def test_a_large_step_is_flown_within_both_bounds(vehicle):
    hover, controller, wanted, still = hovering(vehicle)
    x, plan, thrusts, rates = wanted[0].copy(), None, [], []
    x[4:7] = [2.0, -1.5, 1.0]
    for _ in range(100):
        plan = controller.solve(x, wanted, still, plan, elapsed=STEP, iterations=1 if plan else 10)
        assert plan.is_solved
        thrusts.append(plan.states[1:, 13:])
        rates.append(plan.inputs)
        x = plan.states[1]
    np.testing.assert_allclose(x[:13], wanted[0, :13], atol=0.02)
    np.testing.assert_allclose(x[13:], hover, rtol=0.01)
    thrusts, rates = np.array(thrusts) / hover, np.array(rates) / hover
    assert thrusts.min() == pytest.approx(0.25, abs=1e-6)  # kept, and used
    assert thrusts.max() < 2.0 + 1e-6
    assert np.abs(rates).max() <= 10.0
    assert np.abs(rates).max() > 9.9
    np.testing.assert_allclose(np.diff(thrusts, axis=1), STEP * rates[:, 1:], atol=1e-6)


@pytest.mark.parametrize("off", [0.0, 1e-12, 1e-6, 0.5, 20.0])
@pytest.mark.parametrize("side", [-1, 1])
def test_a_start_outside_the_bounds_is_brought_back(off, side):
    hover, controller, wanted, still = hovering(HEXAROTOR)
    x = wanted[0].copy()
    x[13] = 2.0 * hover + off if side > 0 else 0.25 * hover - off
    plan = controller.solve(x, wanted, still, iterations=3)
    assert plan.is_solved
    assert side * plan.inputs[0, 0] < -9.9 * hover
    assert plan.states[-1, 13:].min() > 0.25 * hover - 1e-6
    assert plan.states[-1, 13:].max() < 2.0 * hover + 1e-6


def test_the_dynamics_are_the_vehicles_own():
    system = ThrustRates(HEXAROTOR)
    with jax.enable_x64(True):
        rng, p = np.random.default_rng(0), parameter_values(system)
        x = dict(system.states.unpack(jnp.asarray(rng.normal(size=system.states.size))))
        u = {"thrust_rate": jnp.asarray(rng.normal(size=6))}
        found = dict(system.dynamics(x, u, p))
        np.testing.assert_array_equal(found.pop("rotor_thrust"), u["thrust_rate"])
        inner = {"rotor_thrust": x.pop("rotor_thrust")}
        expected = HEXAROTOR.dynamics(x, inner, p)
        assert set(found) == set(expected)
        for name, value in expected.items():
            np.testing.assert_array_equal(found[name], value)
        seen = system.observe({**x, **inner}, u, p)
        for name, value in HEXAROTOR.observe(x, inner, p).items():
            np.testing.assert_array_equal(seen[name], value)


def test_wrong_settings_are_named():
    with pytest.raises(SettingError, match="not 'rotor_speed'"):
        ThrustRates(rigid_multirotor(load_airframe("fully-actuated-hexarotor"), "rotor_speed"))
    with pytest.raises(SettingError, match="largest thrust rate 0 N/s must be positive"):
        thrust_rate_controller(HEXAROTOR, (1.0, 10.0), 0.0)
    with pytest.raises(SettingError, match="give the lower limit first"):
        thrust_rate_controller(HEXAROTOR, (10.0, 1.0), 50.0)
