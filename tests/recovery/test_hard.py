"""Hard flights: motor lag, gusts, saturation, late and missing measurements. Where an estimate is wrong, its band or health
says so."""

import numpy as np
import pytest

from rotorid.estimators.base import Health
from rotorid.models.airframe.airframe import load_airframe
from rotorid.results.metrics import rmspe
from rotorid.simulation.datasets.dataset import Key
from rotorid.simulation.datasets.generation import simulate_flight
from rotorid.simulation.trajectories import TRAJECTORIES
from rotorid.workflows.track.track import track

SILENT = 0.13
"""Share of the rows that may be outside of the 95 % band with nothing said, over all flights."""


@pytest.fixture(scope="module")
def flights():
    keys = [
        Key(t, p, 0)
        for t, p in zip(TRAJECTORIES, ("step", "steps", "sine", "linear", "exponential"), strict=True)
    ]
    return [simulate_flight(key, preset="hard") for key in keys]


@pytest.mark.parametrize(("name", "most"), [("ekf", 2.6), ("adaptive", 2.5)])
def test_never_silently_wrong(flights, name, most):
    errors, silent = [], []
    for flight in flights:
        found = track(flight, load_airframe("simulated-quad-hard"), name)
        mass, true = found.quantities["mass"], found.truth["mass"]
        late = found.t > 1.0
        errors.append(rmspe(mass.value[late], true[late]))
        outside = np.abs(mass.value - true) > 1.96 * mass.std
        silent.append(np.mean((outside & (found.health == Health.OK))[late]))
    assert np.mean(errors) <= most
    assert np.mean(silent) <= SILENT


def test_saturation_is_said(flights):
    found = track(flights[TRAJECTORIES.index("lemniscate")], load_airframe("simulated-quad-hard"))
    assert found.health_share(Health.OUT_OF_RANGE) > 0.01
