"""NMPC holds, tracks and recovers, on a vehicle and on a System without rotations; failures are counted."""

import dataclasses

import jax.numpy as jnp
import numpy as np
import pytest

from rotorid.control.nmpc import NMPC
from rotorid.errors import SettingError
from rotorid.geometry.spaces import Scalar, Space, Vector
from rotorid.models.multirotor.bare import BareMultirotor
from rotorid.models.system import Parameter, System

N = 20
WEIGHTS = {"attitude": 1.0, "position": 10.0, "velocity": 1.0}
BOUNDS = {"thrust": (0.0, 20.0), "body_rate": (-6.0, 6.0)}
HOVER = np.tile([1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], (N + 1, 1))
STILL = np.tile([9.81, 0.0, 0.0, 0.0], (N, 1))


@pytest.fixture(scope="module")
def controller():
    return NMPC(
        BareMultirotor(),
        state_weights=WEIGHTS,
        input_weights={"thrust": 0.01, "body_rate": 0.1},
        input_bounds=BOUNDS,
        parameters={"mass": 1.0},
    )


def settle(controller, x, calls=120):
    """Fly the plan itself; every plan is one real-time iteration but the first."""
    plan, used = None, []
    for _ in range(calls):
        plan = controller.solve(x, HOVER, STILL, plan, elapsed=0.05, iterations=1 if plan else 10)
        assert plan.is_solved
        used.append(plan.inputs)
        x = plan.states[1]
    return x, np.array(used)


def test_hover_takes_the_weight(controller):
    plan = controller.solve(HOVER[0], HOVER, STILL, iterations=3)
    np.testing.assert_allclose(plan.inputs, STILL, atol=1e-5)
    np.testing.assert_allclose(plan.states, HOVER, atol=1e-6)
    assert plan.seconds > 0.0


def test_a_step_is_flown_within_bounds(controller):
    x = HOVER[0].copy()
    x[4:7] = [1.5, -1.0, -0.5]
    x, used = settle(controller, x)
    np.testing.assert_allclose(x, HOVER[0], atol=0.01)
    assert used[..., 0].min() >= 0.0
    assert used[..., 0].max() <= 20.0
    assert np.abs(used[..., 1:]).max() <= 6.0
    assert np.abs(used[0, 0, 1:]).max() > 5.9  # and uses them


@pytest.mark.parametrize("seed", range(3))
def test_recovers_from_any_attitude(controller, seed):
    rng = np.random.default_rng(seed)
    q = rng.normal(size=4)
    x, _ = settle(controller, np.concatenate([q / np.linalg.norm(q), rng.normal(size=6)]))
    np.testing.assert_allclose(np.abs(x[0]), 1.0, atol=1e-3)
    np.testing.assert_allclose(x[4:], 0.0, atol=0.02)


def test_iterations_converge_to_a_feasible_plan(controller):
    x = HOVER[0].copy()
    x[4:7] = [1.0, 0.5, 0.3]
    coarse, fine = (controller.solve(x, HOVER, STILL, iterations=i) for i in (8, 16))
    np.testing.assert_allclose(coarse.inputs, fine.inputs, atol=0.02)
    np.testing.assert_allclose(np.linalg.norm(fine.states[:, :4], axis=1), 1.0, atol=1e-12)
    v, dt = fine.states[:, 7:10], controller.dt
    np.testing.assert_allclose(np.diff(fine.states[:, 4:7], axis=0), dt * (v[1:] + v[:-1]) / 2.0, atol=5e-3)


def test_equal_calls_give_equal_plans(controller):
    x = HOVER[0] + 0.0
    x[4] = 0.7
    first, second = (controller.solve(x, HOVER, STILL, iterations=2) for _ in range(2))
    np.testing.assert_array_equal(first.inputs, second.inputs)


def test_the_last_plan_continues_if_the_problem_cannot_be_solved(controller):
    x = HOVER[0].copy()
    x[4] = 1.0
    plan = controller.solve(x, HOVER, STILL, iterations=8)
    lost = controller.solve(x * np.nan, HOVER, STILL, plan, elapsed=0.05)
    assert (lost.is_solved, lost.failures) == (False, 1)
    np.testing.assert_allclose(lost.inputs[:-1], plan.inputs[1:], atol=1e-12)
    np.testing.assert_allclose(lost.states[:-1], plan.states[1:], atol=1e-9)
    lost = controller.solve(x, np.full_like(HOVER, np.inf), STILL, lost, elapsed=0.05)
    assert (lost.is_solved, lost.failures) == (False, 2)
    again = controller.solve(x, HOVER, STILL, lost, elapsed=0.05)
    assert (again.is_solved, again.failures) == (True, 0)


def test_an_overflow_is_a_failure_and_prints_nothing(controller, capfd):
    plan = controller.solve(HOVER[0], HOVER, STILL, iterations=3)
    states = plan.states.copy()
    states[3, 4:] = 1e308
    states[4, 4:] = -1e308
    lost = controller.solve(HOVER[0], HOVER, STILL, dataclasses.replace(plan, states=states))
    assert (lost.is_solved, lost.failures) == (False, 1)
    assert capfd.readouterr() == ("", "")


class Pendulum(System):
    states = Space.of(angle=Scalar("rad"), rate=Scalar("rad/s"))
    inputs = Space.of(torque=Scalar("N m"))
    outputs = Space.of(angle=Scalar("rad"))
    parameters = (Parameter("length", 1.0, std=0.3, unit="m", bounds=(0.0, np.inf)),)

    def dynamics(self, x, u, p):
        push = u["torque"] / p["length"] ** 2
        return {"angle": x["rate"], "rate": push - 9.81 / p["length"] * jnp.sin(x["angle"])}

    def observe(self, x, u, p):
        return {"angle": x["angle"]}


def test_swings_another_system_up():
    controller = NMPC(
        Pendulum(),
        horizon=30,
        state_weights={"angle": 10.0, "rate": 1.0},
        input_weights={"torque": 0.01},
        input_bounds={"torque": (-12.0, 12.0)},
    )
    target, plan, x = np.tile([np.pi, 0.0], (31, 1)), None, np.zeros(2)
    for _ in range(100):
        plan = controller.solve(
            x, target, np.zeros((30, 1)), plan, elapsed=0.05, iterations=1 if plan else 20
        )
        x = plan.states[1]
    np.testing.assert_allclose(x, [np.pi, 0.0], atol=0.02)
    assert np.abs(plan.inputs).max() <= 12.0


@pytest.mark.parametrize("most", [3.0, None])
def test_states_stay_within_their_bounds(most):
    controller = NMPC(
        Pendulum(),
        horizon=30,
        state_weights={"angle": 10.0, "rate": 1.0},
        input_weights={"torque": 0.01},
        input_bounds={"torque": (-12.0, 12.0)},
        state_bounds={"rate": (-most, most)} if most else None,
    )
    target, plan, x, seen = np.tile([np.pi, 0.0], (31, 1)), None, np.array([0.0, 3.5]), []
    for _ in range(100):
        plan = controller.solve(
            x, target, np.zeros((30, 1)), plan, elapsed=0.05, iterations=1 if plan else 20
        )
        assert plan.is_solved
        seen.append(plan.states[1:, 1])
        x = plan.states[1]
    np.testing.assert_allclose(x, [np.pi, 0.0], atol=0.02)
    fastest = np.max(seen)
    assert fastest == pytest.approx(3.0, abs=1e-6) if most else fastest > 3.5  # and it starts outside


@pytest.mark.parametrize("name", ["push", "wind"])
def test_a_free_parameter_equals_a_built_in_one(name):
    """A scalar and a vector; the default is the built-in value."""
    value = {"push": 1.7, "wind": (0.3, -0.2)}[name]
    rest = {"state_weights": {"place": 3.0, "speed": 0.5}, "input_weights": {"force": 0.1}}
    rest["input_bounds"] = {"force": (-4.0, 4.0)}
    built = NMPC(Blown(), horizon=10, parameters={name: value}, **rest)
    free = NMPC(Blown(), horizon=10, free=("wind", "push"), **rest)
    x, target, still = np.array([0.5, 0.1, 0.0, 0.0]), np.zeros((11, 4)), np.zeros((10, 2))
    found = [
        controller.solve(x, target, still, iterations=3, parameters=given).inputs
        for controller, given in ((built, None), (free, {name: value}), (free, None))
    ]
    np.testing.assert_allclose(found[0], found[1], atol=1e-5)
    assert np.abs(found[0] - found[2]).max() > 0.05
    with pytest.raises(SettingError, match="'wind' is not free"):
        built.solve(x, target, still, parameters={"wind": (0.0, 0.0)})
    with pytest.raises(SettingError, match="no parameter 'rain'"):
        NMPC(Blown(), free=("rain",), **rest)


class Blown(System):
    states = Space.of(place=Vector(2, "m"), speed=Vector(2, "m/s"))
    inputs = Space.of(force=Vector(2, "N"))
    outputs = Space.of(place=Vector(2, "m"))
    parameters = (Parameter("push", 1.0), Parameter("wind", (0.1, 0.2)))

    def dynamics(self, x, u, p):
        return {"place": x["speed"], "speed": p["push"] * u["force"] + p["wind"]}

    def observe(self, x, u, p):
        return {"place": x["place"]}


def test_wrong_settings_are_named():
    with pytest.raises(SettingError, match="input_bounds: no block 'thrusts'"):
        NMPC(BareMultirotor(), state_weights={}, input_weights={}, input_bounds={"thrusts": (0.0, 1.0)})
    unset = {"state_weights": {}, "input_weights": {}, "input_bounds": {}}
    for bounds, message in (
        ({"speed": (0.0, 1.0)}, "state_bounds: no block 'speed'"),
        ({"attitude": (0.0, 1.0)}, "'attitude' is a rotation"),
        ({"velocity": (1.0, 1.0)}, "'velocity' from 1 to 1; give the lower limit first"),
    ):
        with pytest.raises(SettingError, match=message):
            NMPC(BareMultirotor(), **unset, state_bounds=bounds)
    with pytest.raises(SettingError, match="horizon of 1"):
        NMPC(BareMultirotor(), horizon=1, state_weights={}, input_weights={}, input_bounds={})
