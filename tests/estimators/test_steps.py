"""Steps of the mass: EKF, UKF, MSCKF and SWLS follow them quickly, without overshoot beyond the noise of the estimate."""

import equinox as eqx
import numpy as np
import pytest

from rotorid.estimators.base import Health
from rotorid.estimators.registry import ESTIMATORS
from rotorid.estimators.run import run_many, stack
from tests.systems import SYSTEMS, matched

STEP = 400
"""Row of the step, 4 s after the start."""

FLIGHTS = 16


def stepped(name: str, factor: float):
    """Estimates of flights in which the mass changes by a factor: the same data, with the thrust of the new mass."""
    filter_ = ESTIMATORS[name].build(SYSTEMS["bare"])
    flights, masses = [], []
    for seed in range(FLIGHTS):
        samples, truth = matched(filter_, seed, STEP + 150)
        flights.append(eqx.tree_at(lambda s: s.u, samples, samples.u.at[STEP:, 0].multiply(factor)))
        masses.append(np.exp(truth[:, 10]) * np.where(np.arange(STEP + 150) < STEP, 1.0, factor))
    return run_many(filter_, stack(flights)), np.array(masses)


@pytest.mark.parametrize("factor", [0.85, 1.18])
@pytest.mark.parametrize("name", ["ekf", "ukf", "msckf", "swls"])
def test_a_step_of_the_mass_is_followed_without_overshoot(name, factor):
    """Within 0.3 s, and not by more than 4 % beyond the new mass; the standard deviation without a step is 1.3 %."""
    estimate, mass = stepped(name, factor)
    error = np.asarray(estimate.value)[:, STEP:, 0] / mass[:, STEP:] - 1.0
    assert np.max(np.sign(factor - 1.0) * error[:, :50]) < 0.04
    assert np.max(np.abs(error[:, 30])) < 0.04
    assert np.all(np.any(np.asarray(estimate.health)[:, STEP : STEP + 30] == Health.RECOVERING, axis=1))


@pytest.mark.parametrize("name", ["ekf", "ukf", "msckf", "swls"])
def test_the_agile_filter_can_be_left_out(name):
    build = ESTIMATORS[name].build
    filter_ = build(SYSTEMS["bare"])
    samples, _ = matched(filter_, 0, 50)
    assert filter_.init(samples).agile is not None
    assert build(SYSTEMS["bare"], agile=False).init(samples).agile is None
