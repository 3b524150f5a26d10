"""References are smooth, consistent with themselves, and can be flown."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from rotorid.errors import SettingError
from rotorid.simulation.flight import MAXIMUM_BODY_RATE, MAXIMUM_THRUST
from rotorid.simulation.trajectories import HOVER, RATE, TRAJECTORIES, reference

EVERY = pytest.mark.parametrize("name", TRAJECTORIES)
SEEDS = range(6)
LIMIT = {"random": 7.0, "loop": 7.0, "lemniscate": 14.5, "zigzag": 7.0, "square": 7.0}
"""m/s^2."""


@EVERY
def test_derivatives_are_consistent_and_smooth(name):
    for seed in SEEDS:
        r = reference(name, seed, 20.0)
        assert len(r.times) == 20 * RATE + 1
        for x, rate, tolerance in ((r.position, r.velocity, 1e-3), (r.velocity, r.acceleration, 5e-2)):
            np.testing.assert_allclose((x[2:] - x[:-2]) * RATE / 2.0, rate[1:-1], atol=tolerance)
        jerk = np.diff(r.acceleration, axis=0) * RATE
        assert np.linalg.norm(jerk, axis=1).max() < 60.0
        assert np.linalg.norm(np.diff(jerk, axis=0), axis=1).max() < 10.0  # a continuous jerk


@EVERY
def test_it_can_be_flown(name):
    for seed in SEEDS:
        r = reference(name, seed, 20.0)
        assert np.linalg.norm(r.acceleration, axis=1).max() < LIMIT[name]
        assert 3.0 < r.thrust.min() < r.thrust.max() < 0.9 * MAXIMUM_THRUST
        assert np.abs(r.body_rate).max() < 0.7 * MAXIMUM_BODY_RATE
        assert r.position[:, 2].min() > 1.0


@EVERY
def test_flatness_gives_attitude_thrust_and_rate(name):
    r = reference(name, 1, 10.0, mass=1.7)
    attitude = Rotation.from_quat(r.attitude, scalar_first=True)
    force = attitude.apply(np.outer(r.thrust, [0.0, 0.0, 1.0]))
    np.testing.assert_allclose(force / 1.7 - [0.0, 0.0, 9.81], r.acceleration, atol=1e-9)
    turn = (attitude[:-2].inv() * attitude[2:]).as_rotvec() * RATE / 2.0
    np.testing.assert_allclose(turn, r.body_rate[1:-1], atol=2e-2)
    np.testing.assert_allclose(np.linalg.norm(r.attitude, axis=1), 1.0, atol=1e-12)


@EVERY
def test_begins_with_a_hover(name):
    r = reference(name, 2, 5.0)
    rest = r.times < HOVER - 0.02
    np.testing.assert_allclose(r.position[rest], np.tile([0.0, 0.0, 3.0], (rest.sum(), 1)), atol=1e-9)
    np.testing.assert_allclose(r.velocity[rest], 0.0, atol=1e-9)
    np.testing.assert_allclose(r.thrust[rest], 9.81, atol=1e-5)


@EVERY
def test_it_moves_in_three_dimensions_and_differs_by_seed(name):
    a, b = reference(name, 0, 20.0), reference(name, 1, 20.0)
    assert np.ptp(a.position, axis=0).min() > 0.25
    assert np.abs(a.position - b.position).max() > 0.5
    np.testing.assert_array_equal(a.position, reference(name, 0, 20.0).position)


def test_an_unknown_name_lists_the_known():
    with pytest.raises(
        SettingError, match=r"no trajectory 'spiral'; there are random, loop, lemniscate, zigzag, square"
    ):
        reference("spiral", 0, 10.0)
