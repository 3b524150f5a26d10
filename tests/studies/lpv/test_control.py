"""The gain schedule has smaller errors with the nonlinear quadrotor than the LQR."""

import jax.numpy as jnp
import numpy as np
import pytest

from rotorid.control.heading import ControllerState, HeadingController, TrajectoryPoint, hover_lqr
from rotorid.errors import SettingError
from rotorid.models.quadrotor.quadrotor import quadrotor
from rotorid.studies.lpv.control import (
    COURSES,
    STEP,
    Row,
    compare,
    fly,
    payload,
    row,
    setpoint_at,
    tracked_mass,
)


@pytest.fixture(scope="module")
def rows() -> dict[tuple[str, str, str], Row]:
    found = compare(
        ("spin", "steps"), ("heavy", "sprayed"), ("LQR", "LQR with known mass", "LPV"), duration=3.0
    )
    return {(r.course, r.payload, r.controller): r for r in found}


def test_lpv_is_closer_than_lqr_over_the_range(rows):
    assert len(rows) == 2 * 2 * 3
    for (course, kind, name), r in rows.items():
        assert not r.is_crashed, (course, kind, name)
        if name.startswith("LPV"):
            assert r.rms < 0.8 * rows[course, kind, "LQR"].rms
            assert r.rms < rows[course, kind, "LQR with known mass"].rms
            assert r.rms_height < 0.5 * rows[course, kind, "LQR"].rms_height
            assert r.outside < 0.03
    mean = {n: np.mean([r.rms for (*_, name), r in rows.items() if name == n]) for n in ("LQR", "LPV")}
    assert mean["LPV"] < 0.5 * mean["LQR"]


@pytest.mark.parametrize("course", COURSES)
def test_velocity_and_acceleration_are_derivatives_of_the_position(course):
    for t in np.arange(0.05, 15.9, 0.31):
        h = 1e-5
        a, b, c = (setpoint_at(course, t + s * h) for s in (-1, 0, 1))
        np.testing.assert_allclose((c.position - a.position) / (2 * h), b.velocity, atol=1e-6)
        np.testing.assert_allclose((c.velocity - a.velocity) / (2 * h), b.acceleration, atol=3e-4)
        np.testing.assert_allclose((c.yaw - a.yaw) / (2 * h), b.yaw_rate, atol=1e-6)


def test_payloads_and_their_tracks():
    t = np.arange(0.0, 16.0, STEP)
    assert payload("taken", t)[[0, 600, -1]].tolist() == [1.0, 1.5, 1.0]
    assert (np.diff(payload("sprayed", t)) <= 0).all()
    estimate = tracked_mass(payload("taken", t), lag=0.3, std=0.01, seed=1)
    assert abs(estimate[int(4.3 / STEP)] - (1.5 - 0.5 * np.exp(-1.0))) < 0.06
    assert np.std(tracked_mass(np.ones(20_000), std=0.01)) == pytest.approx(0.01, rel=0.15)
    with pytest.raises(SettingError, match="no payload 'full'"):
        payload("full", t)


def test_commands_of_one_vehicle_are_those_of_several():
    vehicle = quadrotor()
    controller = HeadingController(vehicle, hover_lqr(vehicle), rotor_speed=(100.0, 500.0))
    rng = np.random.default_rng(0)
    x, mass = rng.normal(size=(3, 12)) * 0.2, np.array([0.9, 1.0, 1.2])
    aim = TrajectoryPoint(
        *(rng.normal(size=(3, 3)) for _ in range(3)), rng.normal(size=3), rng.normal(size=3)
    )
    memory = ControllerState(rng.normal(size=(3, 3)), rng.normal(size=3), np.full((3, 4), 210.0))
    speeds, after = controller.command(x, aim, memory, STEP, mass)
    for k in range(3):
        one = TrajectoryPoint(
            aim.position[k], aim.velocity[k], aim.acceleration[k], float(aim.yaw[k]), float(aim.yaw_rate[k])
        )
        state = ControllerState(memory.position[k], float(memory.yaw[k]), memory.speeds[k])
        alone, later = controller.command(x[k], one, state, STEP, float(mass[k]))
        np.testing.assert_allclose(alone, speeds[k], rtol=1e-12)
        np.testing.assert_allclose(later.position, after.position[k])


def test_a_crash_is_reported():
    vehicle = quadrotor()
    wrong = HeadingController(vehicle, -hover_lqr(vehicle), rotor_speed=(100.0, 500.0))
    trajectories = fly(wrong, quadrotor(exact=True), [("steps", "none"), ("hover", "none")], duration=1.5)
    found = row(trajectories, 0, "steps", "none", "small angles", "wrong")
    assert found.is_crashed
    assert found.rms == np.inf
    assert jnp.isnan(trajectories.x[-1]).all()
