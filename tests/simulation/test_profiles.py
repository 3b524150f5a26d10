"""Masses stay positive and within 30 % of nominal, and each profile has its shape."""

import numpy as np
import pytest

from rotorid.errors import SettingError
from rotorid.simulation.profiles import MASS_PROFILES, mass_profile

TIMES = np.linspace(0.0, 20.0, 4001)
SEEDS = range(40)


def masses(name, seed):
    return mass_profile(name, seed, TIMES, 20.0)


@pytest.mark.parametrize("name", MASS_PROFILES)
def test_within_bounds_and_seeded(name):
    for seed in SEEDS:
        m = masses(name, seed)
        assert 0.7 <= m.min() < m.max() <= 1.3
        assert np.ptp(m) > 0.09
        np.testing.assert_array_equal(m, masses(name, seed))
    assert not np.array_equal(masses(name, 0), masses(name, 1))
    np.testing.assert_allclose(mass_profile(name, 3, TIMES, 20.0, nominal=2.0), 2.0 * masses(name, 3))


def test_shapes():
    for seed in SEEDS:
        np.testing.assert_allclose(np.diff(masses("linear", seed), 2), 0.0, atol=1e-12)
        assert (np.diff(masses("linear", seed)) < 0.0).all()
        assert (np.diff(masses("exponential", seed)) < 0.0).all()
        assert (np.diff(masses("exponential", seed), 2) > 0.0).all()
        assert np.count_nonzero(np.diff(masses("step", seed))) == 1
        assert 3 <= np.count_nonzero(np.diff(masses("steps", seed))) <= 5
        assert np.abs(np.diff(masses("sine", seed))).max() < 0.3 * 2.0 * np.pi / 8.0 * 0.005 + 1e-9


def test_an_unknown_name_lists_the_known():
    with pytest.raises(
        SettingError, match=r"no mass profile 'ramp'; there are linear, exponential, step, sine, steps"
    ):
        mass_profile("ramp", 0, TIMES, 20.0)
