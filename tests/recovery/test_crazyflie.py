"""Real Crazyflie flights: calibrated on some of known mass, the others are weighed."""

from __future__ import annotations

import functools
from pathlib import Path

import jax
import numpy as np
import pytest

from rotorid.logs.read import read
from rotorid.models.airframe import Airframe, load_airframe
from rotorid.results.calibration import Calibration, calibrate, with_thrust_scale
from rotorid.results.settled import settled
from rotorid.results.track import track

AIRFRAME = "crazyflie-crazyswarm2"


@functools.cache
def calibrated(folder: Path) -> tuple[Calibration, Airframe]:
    airframe = load_airframe(AIRFRAME)
    with jax.enable_x64(True):
        flights = [read(folder / f"log{n}") for n in (158, 162, 170, 180)]
        found = calibrate(flights, airframe, 0.032)
    return found, with_thrust_scale(airframe, found)


def test_the_command_is_weaker_than_newtons(flights: Path) -> None:
    found, airframe = calibrated(flights / "crazyflie_crazyswarm2")
    assert found.value == pytest.approx(1.065, abs=0.02)
    assert 0.005 < found.std < 0.04
    assert [f.flight for f in found.flights] == ["log158", "log162", "log170", "log180"]
    assert airframe.get("thrust_scale") is not None


@pytest.mark.parametrize(
    ("number", "mass", "estimator"),
    [
        *((n, 0.0419, "ekf") for n in (201, 202, 204, 206)),
        *((n, 0.033, "ekf") for n in (146, 148, 150)),
        (204, 0.0419, "ukf"),
    ],
)
def test_mass(flights: Path, number: int, mass: float, estimator: str) -> None:
    folder = flights / "crazyflie_crazyswarm2"
    with jax.enable_x64(True):
        found = track(read(folder / f"log{number}"), calibrated(folder)[1], estimator)  # pyright: ignore
    quantity = found.quantities["mass"]
    rows = settled(found, "mass", settling=np.inf)
    value, std = np.median(quantity.value[rows]), np.median(quantity.std[rows])
    assert value == pytest.approx(mass, rel=0.05)
    assert abs(value - mass) < 1.96 * std
