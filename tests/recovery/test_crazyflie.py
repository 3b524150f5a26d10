"""Real Crazyflie flights: calibrated on some of known mass, the others are weighed; and what was published of one is found from
its mass and geometry."""

from __future__ import annotations

import dataclasses
import functools
from pathlib import Path

import jax
import numpy as np
import pytest

from rotorid.identification.airframe import fit as flown_fit
from rotorid.logs.read import read
from rotorid.models.airframe.airframe import Airframe, Quantity, load_airframe
from rotorid.models.multirotor.thrust import ThrustCurve
from rotorid.workflows.calibrate.thrust_scale import Calibration, calibrate, with_thrust_scale
from rotorid.workflows.identify.identify import identify
from rotorid.workflows.track.changes import settled_rows
from rotorid.workflows.track.track import track

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
    rows = settled_rows(found, "mass", settling=np.inf)
    value, std = np.median(quantity.value[rows]), np.median(quantity.std[rows])
    assert value == pytest.approx(mass, rel=0.05)
    assert abs(value - mass) < 1.96 * std


def test_inertia_lag_and_thrust_are_those_published(flights: Path) -> None:
    """6 s of each of two flights without pose, from 27 g, the geometry and guesses. Published, for g = 9.81 m/s^2: 1.100e-5,
    1.181e-5 and 2.089e-5 kg m^2, and a lag of 0.072 s. Torques that nobody knows, steady in each window, made inertia too large
    by a seventh: an autopilot answers them all the time."""
    published = load_airframe("crazyflie-2.1")
    guesses = {
        "mass": Quantity((0.027,), "kg", (0.0,)),
        "inertia": Quantity((1.5e-5, 1.5e-5, 2.5e-5), "kg m^2", (1.0e-5, 1.0e-5, 2.0e-5)),
        "motor_time_constant": Quantity((0.04,), "s"),
    }
    prior = dataclasses.replace(
        published,
        quantities={**published.quantities, **guesses},
        thrust_curve=ThrustCurve((0.0, 0.05, 0.1), std=(0.03, 0.05, 0.05)),
    )
    free = ("inertia", "motor_time_constant", "command_delay", "thrust_curve")
    logs = [read(flights / "crazyflie_arpl" / name) for name in ("log15", "log10")]
    found = identify(logs, prior, free, spans=[[(20.0, 26.0)], [(26.0, 32.0)]])
    fit = found.fit
    for name, value in (("inertia_x", 1.100e-5), ("inertia_y", 1.181e-5), ("inertia_z", 2.089e-5)):
        assert abs(fit.values[name] - value) < 1.96 * fit.std[name], name
    for name, value in (
        ("inertia_x", 1.100e-5),
        ("inertia_y", 1.181e-5),
        ("motor_time_constant", 0.072),
    ):
        assert fit.values[name] == pytest.approx(value, rel=0.1), name
        assert fit.std[name] < 0.1 * value, name
    curve = found.airframe.thrust_curve
    assert curve is not None
    assert published.thrust_curve is not None
    for u in (0.6, 0.7, 0.8):
        there, here = (np.polynomial.Polynomial(c.coefficients)(u) for c in (published.thrust_curve, curve))
        assert here == pytest.approx(there, rel=0.06)


def test_parts_of_a_disturbed_flight_go_with_all_of_its_windows(
    flights: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """How torques change is chosen by few windows; what is cut into parts are all."""
    monkeypatch.setattr(flown_fit, "_FEW", 6)
    log = read(flights / "crazyflie_arpl" / "log15")
    found = identify([log], load_airframe("crazyflie-2.1"), ("mass",), spans=[[(20.0, 26.0)]])
    assert found.fit.search.windows > 6
    assert [part.value for part in found.masses] == pytest.approx([0.027] * len(found.masses), rel=0.06)
