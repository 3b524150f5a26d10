"""Over five trajectories and five mass profiles, both filters find the mass with their defaults."""

import dataclasses

import numpy as np
import pytest

from rotorid.estimators.ekf import ekf
from rotorid.estimators.run import run_many, stack, stack_tunings
from rotorid.estimators.ukf import ukf
from rotorid.models.airframe.mass import DEFAULT_MASS_STD
from rotorid.models.multirotor.bare import MASS, BareMultirotor
from rotorid.results.metrics import coverage, rmspe
from rotorid.signals.sampling import sample, truth_at
from rotorid.simulation.flight import simulate
from rotorid.simulation.profiles import MASS_PROFILES
from rotorid.simulation.trajectories import TRAJECTORIES

SETTLED = 2.0  # s
SMOOTH = ("linear", "exponential", "sine")


@pytest.fixture(scope="module")
def flights():
    return [(p, simulate(t, p, seed=0)) for t in TRAJECTORIES for p in MASS_PROFILES]


@pytest.mark.parametrize("make", [ekf, ukf])
@pytest.mark.parametrize("wrong", [0.7, 1.3])
def test_mass_of_25_flights(flights, make, wrong):
    """Attitude, position and velocity with 0.01 rad, 0.01 m and 0.03 m/s at 100 Hz, initial mass 30 % wrong."""
    system = BareMultirotor()
    samples = [sample(flight, system.inputs, system.outputs) for _, flight in flights]
    truths = [
        truth_at(f, "true_mass", np.asarray(s.t))[:, 0] for s, (_, f) in zip(samples, flights, strict=True)
    ]
    priors = [
        MASS.with_prior(wrong * m[0], DEFAULT_MASS_STD * wrong * m[0], MASS.drift * wrong * m[0])
        for m in truths
    ]
    filters = stack_tunings([make(system, priors={"mass": p}) for p in priors])
    found = run_many(filters, stack(samples), tunings=True)

    errors, covered = [], {p: [] for p in MASS_PROFILES}
    for i, (profile, _) in enumerate(flights):
        n, m = len(truths[i]), truths[i]
        value, std = np.asarray(found.value[i, :n, 0]), np.asarray(found.std[i, :n, 0])
        settled = np.asarray(samples[i].t) > SETTLED
        errors.append(rmspe(value, m))
        covered[profile].append(coverage(value[settled], std[settled], m[settled]))
    assert np.mean(errors) <= 2.5
    assert 0.9 <= np.mean([np.mean(covered[p]) for p in SMOOTH]) <= 0.99
    assert all(np.mean(c) >= 0.88 for c in covered.values())


def test_the_default_prior_is_of_one_kilogram():
    assert dataclasses.astuple(BareMultirotor().mass) == dataclasses.astuple(MASS)
    assert (MASS.value, MASS.unit, MASS.std) == (1.0, "kg", DEFAULT_MASS_STD)
