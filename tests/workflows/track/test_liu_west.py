"""`track` with the filter of Liu and West: thinned rows, and the one parameter that it identifies."""

from __future__ import annotations

import dataclasses

import jax
import numpy as np
import pytest

from rotorid.estimators.particle.liu_west import flight_filter
from rotorid.estimators.registry import TRACK_ESTIMATORS
from rotorid.models.airframe.airframe import load_airframe
from rotorid.models.registry import system_for
from rotorid.simulation.flight import simulate
from rotorid.workflows.track import track as track_module
from rotorid.workflows.track.track import prepare_flight, track_prepared


def test_a_flight_is_tracked_at_thinned_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    slow = dataclasses.replace(TRACK_ESTIMATORS["liu-west"], most_rate=25.0)
    monkeypatch.setattr(track_module, "TRACK_ESTIMATORS", {"liu-west": slow})
    monkeypatch.setattr(flight_filter, "__defaults__", (300,))
    flight, airframe = simulate("loop", "step", 1, duration=6.0), load_airframe("simulated-quad")
    with jax.enable_x64(True):
        system = system_for(flight, airframe, "multirotor", None)
        prepared = prepare_flight(flight, airframe, system)
        found = track_prepared(prepared, "liu-west", "multirotor")
    assert len(found.t) == len(prepared.t)
    mass = found.quantities["mass"]
    # each estimate is held for the four rows of 100 Hz until the next one
    changes = np.flatnonzero(np.diff(mass.value))
    assert set(np.diff(changes)) == {4}
    late = (found.t > 5.0) & mass.informed
    assert late.any()
    assert np.all(np.abs(mass.value[late] / found.truth["mass"][late] - 1.0) < 0.05)
    assert not any(q.informed.any() for name, q in found.quantities.items() if name != "mass")
    assert found.detected_changes is not None
