"""References of poses: derivatives agree, curves are what they are said to be, and rotors can fly them."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from rotorid.errors import AirframeError
from rotorid.models.airframe.airframe import load_airframe
from rotorid.models.multirotor.rigid import rigid_multirotor
from rotorid.models.system import parameter_values
from rotorid.simulation.wrench.poses import (
    hover_reference,
    hover_thrusts,
    lemniscate_reference,
    rotor_thrusts,
)

HEXAROTOR = rigid_multirotor(load_airframe("fully-actuated-hexarotor"))
OTHER = {
    "products_of_inertia": (0.012, -0.008, 0.005),
    "centre_of_mass": (0.03, -0.02, 0.015),
    "drag": 0.4,
    "angular_drag": (0.05, 0.02, 0.08),
    "thrust_scale": 0.9,
}
LOPSIDED = dataclasses.replace(
    HEXAROTOR,
    parameters=tuple(p.with_prior(OTHER[p.name]) if p.name in OTHER else p for p in HEXAROTOR.parameters),
)
HOVER = 2.81 * 9.81 / (6 * np.cos(np.radians(20.0)))
BOUNDS = (0.25 * HOVER, 2.0 * HOVER)
H = 1e-4
T = np.arange(0.0, 20.0, H)[::20]
SEEDS = pytest.mark.parametrize("seed", range(6))


def wanted(make, seed, t):
    return make(HEXAROTOR, BOUNDS, np.random.default_rng(seed))(t)


@SEEDS
def test_each_is_the_rate_of_the_one_before(seed):
    before, at, after = (wanted(lemniscate_reference, seed, T + shift) for shift in (-H, 0.0, H))

    def rate(name):
        return (getattr(after, name) - getattr(before, name)) / (2.0 * H)

    np.testing.assert_allclose(at.velocity, rate("position"), atol=1e-6)
    np.testing.assert_allclose(at.acceleration, rate("velocity"), atol=1e-4)  # it bends where the ramp ends
    np.testing.assert_allclose(at.angular_acceleration, rate("body_rate"), atol=1e-6)
    turn = Rotation.from_quat(before.attitude, scalar_first=True).inv() * Rotation.from_quat(
        after.attitude, scalar_first=True
    )
    np.testing.assert_allclose(at.body_rate, turn.as_rotvec() / (2.0 * H), atol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(at.attitude, axis=1), 1.0, rtol=1e-12)


@SEEDS
def test_the_path_is_a_lemniscate_in_some_plane(seed):
    poses = wanted(lemniscate_reference, seed, np.arange(0.0, 120.0, 0.002))
    off = poses.position - poses.position[0]
    _, sizes, axes = np.linalg.svd(off, full_matrices=False)
    assert sizes[2] < 1e-9 * sizes[0]
    far = off[np.argmax(np.linalg.norm(off, axis=1))]
    half = np.linalg.norm(far)
    x, y = off @ far / half, off @ np.cross(axes[2], far / half)
    assert 0.75 <= half <= 2.5
    np.testing.assert_allclose(y**2, x**2 * (1.0 - (x / half) ** 2), atol=1e-3)
    crossings = np.sum(np.diff(np.sign(x[poses.velocity.any(axis=1)])) != 0)
    assert crossings > 6


def test_rotations_speeds_and_attitudes_differ():
    flights = [wanted(lemniscate_reference, seed, T) for seed in range(16)]
    normals = [np.linalg.svd(p.position - p.position[0], full_matrices=False)[2][2] for p in flights]
    assert np.abs([n[2] for n in normals]).min() < 0.3
    assert np.abs([n[2] for n in normals]).max() > 0.7
    fastest = [np.linalg.norm(p.velocity, axis=1).max() for p in flights]
    assert 0.4 < min(fastest) < 0.9
    assert 1.1 < max(fastest) < 3.0
    turning = [np.abs(p.body_rate).max() for p in flights]
    assert 3 < np.sum(np.array(turning) > 0.01) < 13
    tilt = [np.arccos(1.0 - 2.0 * np.sum(p.attitude[:, 1:3] ** 2, axis=1)).max() for p in flights]
    assert np.radians(3.0) < max(tilt) < np.radians(9.0)


@SEEDS
def test_the_rotors_can_fly_it(seed):
    still = rotor_thrusts(HEXAROTOR, wanted(hover_reference, seed, T)) / HOVER
    assert np.ptp(still, axis=0).max() < 1e-12
    used = (
        rotor_thrusts(HEXAROTOR, wanted(lemniscate_reference, seed, np.arange(0.0, 120.0, 0.02))) / HOVER
        - 1.0
    )
    assert 0.39 < max(-used.min() / 0.75, used.max()) < 0.852


@pytest.mark.parametrize("system", [HEXAROTOR, LOPSIDED], ids=["plain", "lopsided"])
def test_thrusts_are_those_that_the_model_needs(system):
    poses = wanted(lemniscate_reference, 3, T[::500])
    thrust = rotor_thrusts(system, poses)
    with jax.enable_x64(True):
        p = parameter_values(system)
        for k in range(len(thrust)):
            x = {n: jnp.asarray(getattr(poses, n)[k]) for n in system.states}
            rate = system.dynamics(x, {"rotor_thrust": jnp.asarray(thrust[k])}, p)
            np.testing.assert_allclose(rate["velocity"], poses.acceleration[k], atol=1e-9)
            np.testing.assert_allclose(rate["body_rate"], poses.angular_acceleration[k], atol=1e-9)
    np.testing.assert_allclose(hover_thrusts(HEXAROTOR), HOVER, rtol=1e-9)


def test_a_vehicle_that_cannot_push_in_all_directions_is_refused():
    quadrotor = rigid_multirotor(load_airframe("quadrotor-x"))
    with pytest.raises(AirframeError, match="not fully actuated: its 4 rotors"):
        hover_thrusts(quadrotor)
