"""A push that is known appears while it lasts, within its band."""

from __future__ import annotations

import dataclasses

import numpy as np

from rotorid.models.airframe.airframe import Airframe, Quantity
from tests.live import simulated_flight
from tests.live.conftest import estimates, fed, session

PUSH = np.array([0.0, 2.5, 0.0])
"""N, NED: to the east."""


def push(t: float) -> np.ndarray:
    """From 8 to 10 s, with flanks of 0.3 s."""
    return PUSH * np.interp(t, [8.0, 8.3, 10.0, 10.3], [0.0, 1.0, 1.0, 0.0])


def test_a_push_is_seen_while_it_lasts(airframe: Airframe) -> None:
    weighed = {
        "mass": Quantity((simulated_flight.MASS,), "kg", (0.02,), "scales"),
        "drag": Quantity((simulated_flight.DRAG,), "N s/m", (0.05,), "earlier flights"),
    }
    known = dataclasses.replace(airframe, quantities={**airframe.quantities, **weighed})
    snapshots = estimates(fed(session(known, wrench=True), list(simulated_flight.flight(12.5, push=push))))
    seen = [(m.t, [m.readings[f"force_{axis}"] for axis in "xyz"]) for m in snapshots]
    counted = 0
    for t, forces in seen:
        steady = np.ptp([push(s)[1] for s in np.linspace(t - 0.6, t, 7)]) < 0.01
        if t < 6.5 or not steady:  # the observer follows within a tenth of a second
            continue
        counted += 1
        for force, expected in zip(forces, (push(t)[1], 0.0, 0.0), strict=True):
            assert abs(force.value - expected) < 3.0 * force.std, (t, force)
            assert force.std < 0.6 * PUSH[1]
    assert counted > 150
    pushed, before = (
        np.mean([forces[0].value for t, forces in seen if a < t < b]) for a, b in ((8.8, 9.8), (6.8, 7.8))
    )
    assert abs(pushed - before - PUSH[1]) < 0.4
