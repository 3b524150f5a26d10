"""Mass networks on recorded flights: on another flight of the vehicle, with another mass, and on another vehicle."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from rotorid.errors import AirframeError
from rotorid.estimators.base import Health
from rotorid.learning.mass_network_files import TrainedMassModel
from rotorid.logs.read import read
from rotorid.models.airframe.airframe import load_airframe
from rotorid.workflows.learn_mass.learn_mass import learn_mass
from rotorid.workflows.track.track import Track, track
from tests.recovery.tracked import flight_of

CRAZYFLIES = {
    **dict.fromkeys((146, 148, 150), 0.033),
    **dict.fromkeys((158, 162, 170, 180), 0.032),
    **dict.fromkeys((201, 202, 204, 206), 0.0419),
}


@functools.cache
def px4_network(flights: Path, name: str) -> TrainedMassModel:
    folder = flights / "px4_sih"
    flight = flight_of(folder / f"{name}.ulg", folder / f"{name}_truth.csv")
    model = learn_mass([flight], load_airframe("px4-sih-quad")).model
    return dataclasses.replace(model, is_same_vehicle=True)


@functools.cache
def crazyflie_network(flights: Path, numbers: tuple[int, ...]) -> TrainedMassModel:
    logs = [read(flights / "crazyflie_crazyswarm2" / f"log{n}") for n in numbers]
    model = learn_mass(logs, load_airframe("crazyflie-crazyswarm2"), [CRAZYFLIES[n] for n in numbers]).model
    return dataclasses.replace(model, is_same_vehicle=True)


def longest_miss(found: Track, truth: np.ndarray) -> float:
    """Longest time in a row, s, with the truth outside of a healthy 95 % band."""
    mass = found.quantities["mass"]
    is_out = (found.health == Health.OK) & (np.abs(mass.value - truth) > 1.96 * mass.std)
    edges = np.flatnonzero(np.diff(np.concatenate([[False], is_out, [False]]).astype(int)))
    ends = found.t[np.minimum(edges[1::2], len(found.t) - 1)]
    return float(np.max(ends - found.t[edges[::2]], initial=0.0))


@pytest.mark.parametrize(
    ("trained", "other", "error", "miss"),
    [("dev", "default_logging", 2.5, 0.4), ("default_logging", "dev", 3.5, 1.5)],
)
def test_px4(flights: Path, trained: str, other: str, error: float, miss: float) -> None:
    """Masses of 0.85 to 1.25 kg in one flight and 1.0 and 1.2 kg in the other, which drag and wind make different."""
    folder = flights / "px4_sih"
    flight = flight_of(folder / f"{other}.ulg", folder / f"{other}_truth.csv")
    found = track(flight, None, "elm", network=px4_network(flights, trained))
    mass, truth = found.quantities["mass"], found.truth["mass"]
    healthy = found.health == Health.OK
    assert healthy.mean() > 0.5
    e = mass.value[healthy] / truth[healthy] - 1.0
    assert 100.0 * np.sqrt(np.mean(e**2)) < error
    inside = np.abs(mass.value - truth)[healthy] < 1.96 * mass.std[healthy]
    assert inside.mean() > 0.95
    assert longest_miss(found, truth) < miss


def test_crazyflies_that_were_not_in_the_training(flights: Path) -> None:
    network = crazyflie_network(flights, (158, 162, 201, 202, 204))
    seen = 0
    for number in (146, 148, 150, 170, 180, 206):
        found = track(read(flights / "crazyflie_crazyswarm2" / f"log{number}"), None, "elm", network=network)
        mass, healthy = found.quantities["mass"], found.health == Health.OK
        seen += int(healthy.sum())
        e = mass.value[healthy] / CRAZYFLIES[number] - 1.0
        assert np.max(np.abs(e), initial=0.0) < 0.06, number
        assert (np.abs(e) < 1.96 * mass.std[healthy] / mass.value[healthy]).all(), number
    assert seen > 1000


def test_a_mass_outside_of_the_training_is_not_healthy(flights: Path) -> None:
    network = crazyflie_network(flights, (158, 162, 170, 180))
    for number in (201, 202, 204, 206):
        found = track(read(flights / "crazyflie_crazyswarm2" / f"log{number}"), None, "elm", network=network)
        assert not (found.health == Health.OK).any()
        assert (found.health == Health.OUT_OF_RANGE).sum() > 300
        mass, out = found.quantities["mass"], found.health == Health.OUT_OF_RANGE
        assert (np.abs(mass.value[out] - 0.0419) < 1.96 * mass.std[out]).mean() > 0.95


@pytest.mark.parametrize(
    "log",
    [
        "ardupilot_sitl/dev.BIN",
        "ardupilot_sitl/mission.BIN",
        "ardupilot_propeller/good_hover_1.BIN",
        "ardupilot_delorean/00000005.BIN",
        "px4_faults/motor_failure.ulg",
        "px4_faults/battery_brownout.ulg",
    ],
)
def test_another_vehicle_is_refused(flights: Path, log: str) -> None:
    """With the airframe of the network, as a user would who mixes up the logs."""
    with pytest.raises(AirframeError, match="autopilot"):
        track(flights / log, None, "elm", network=px4_network(flights, "dev"))


def test_another_vehicle_that_no_log_tells_is_not_healthy(flights: Path) -> None:
    unnamed = dataclasses.replace(px4_network(flights, "dev"), autopilots=())
    found = track(flights / "ardupilot_sitl" / "dev.BIN", None, "elm", network=unnamed)
    assert not (found.health == Health.OK).any()


def test_another_airframe_is_refused(flights: Path) -> None:
    others: Sequence[str] = ("crazyflie-2.1", "ardupilot-sitl-x")
    for name in others:
        with pytest.raises(AirframeError, match="px4-sih-quad"):
            track(flights / "ardupilot_sitl" / "dev.BIN", name, "elm", network=px4_network(flights, "dev"))
