"""Whether thrusts or speeds of the rotors lag behind their commands, and what the other lag would change."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from rotorid.identification.airframe.alternatives.lag_kind import other_lag_probability
from rotorid.studies.identify.flights import FREE, Task, prior, random_airframe, simulate_task, true_values
from rotorid.workflows.identify.identify import identify


@pytest.mark.parametrize("lag_of", ["thrust", "speed"])
def test_the_lag_is_that_of_the_vehicle(lag_of: str) -> None:
    airframe = dataclasses.replace(random_airframe(0), lag_of=lag_of)
    model = identify([simulate_task(Task(0, 0, 20.0), airframe)], prior(), free=FREE)
    (finding,) = [f for f in model.findings if f.code == "motor_lag"]
    assert model.airframe.lag_of == finding.values["lag_of"] == lag_of
    assert 0.9 < finding.values["probability"] < 1.0
    truth = true_values(airframe)
    for name in ("thrust_curve_0", "thrust_curve_1", "motor_time_constant"):
        assert abs(model.fit.values[name] - truth[name]) < 2.4 * model.fit.std[name], name


def test_probability_follows_from_the_scatter_of_the_blocks() -> None:
    rng = np.random.default_rng(0)
    gains = rng.normal(0.3, 1.0, (2000, 20))
    share = np.mean([g.sum() < 0.0 for g in gains])  # of repeated flights that favour the other lag
    assert np.mean([other_lag_probability(g, 0.0) for g in gains]) == pytest.approx(share, abs=0.15)
    assert other_lag_probability(np.full(1, 3.0), 0.0) == 0.5
    assert other_lag_probability(-gains[0], 0.0) == pytest.approx(1.0 - other_lag_probability(gains[0], 0.0))
    assert other_lag_probability(gains[0], 5.0) < other_lag_probability(gains[0], 0.0)
