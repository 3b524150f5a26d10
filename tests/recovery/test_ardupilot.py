"""The mass of a body flown by ArduPilot, with its thrust law as the airframe's curve."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from rotorid.models.airframe.airframe import Quantity, load_airframe
from rotorid.results.metrics import coverage, rmspe
from rotorid.workflows.track.changes import settled_rows
from rotorid.workflows.track.track import track
from tests.recovery.tracked import flight_of, tracked

SETTLED = 3.0  # s after a change of mass
STILL = 0.15  # m/s


@pytest.mark.parametrize("estimator", ["ekf", "ukf"])
def test_mass_in_still_air_hovers(flights: Path, estimator: str) -> None:
    folder = flights / "ardupilot_sitl"
    log, truth = folder / "dev.BIN", folder / "dev_truth.csv.gz"
    flight = flight_of(log, truth)
    found = tracked(log, "ardupilot-sitl-x", estimator, truth=truth)
    velocity, wind, mass = (flight[n] for n in ("velocity", "true_wind", "true_mass"))
    speed = np.interp(found.t, velocity.times, np.linalg.norm(velocity.values, axis=1))
    blowing = np.interp(found.t, wind.times, np.linalg.norm(wind.values, axis=1))
    changes = mass.times[1:][np.diff(mass.values[:, 0]) != 0]
    recent = np.any([(found.t >= c) & (found.t < c + SETTLED) for c in [found.t[0], *changes]], axis=0)
    hover = (speed < STILL) & (blowing < 0.01) & ~recent
    error = found.quantities["mass"].value / found.truth["mass"] - 1.0
    for kilograms in (3.0, 4.0):
        rows = hover & (found.truth["mass"] == kilograms)
        assert rows.sum() > 25
        assert np.max(np.abs(error[rows])) <= 0.03


LANDS = 258.0  # s; later it lies on the ground with turning rotors


def test_mass_on_a_mission_with_a_drop(flights: Path) -> None:
    """Another body, with its commands at 10 Hz, that flies 5 m/s and drops 1 kg."""
    folder = flights / "ardupilot_sitl"
    flight = flight_of(folder / "mission.BIN", folder / "mission_truth.csv")
    default = load_airframe("ardupilot-sitl-x")
    assert default.thrust_curve is not None
    airframe = dataclasses.replace(
        default,
        quantities={**default.quantities, "mass": Quantity((3.6,), "kg", (1.0,))},
        thrust_curve=dataclasses.replace(default.thrust_curve, coefficients=(0.0, 7.73, 11.59), voltage=16.8),
    )
    found = track(flight, airframe, "ekf")
    mass, truth = found.quantities["mass"], found.truth["mass"]
    rows = settled_rows(found, "mass") & (found.t + flight.time_origin < LANDS)
    assert rmspe(mass.value[rows], truth[rows]) <= 2.0
    assert coverage(mass.value[rows], mass.change_std[rows], truth[rows]) >= 0.95
