"""Thrusts differ from flight to flight: what one of them may say of a vehicle."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from rotorid.identification.fit import Fit
from rotorid.logs.flight import Flight
from rotorid.models.airframe import Airframe, Quantity, load_airframe
from rotorid.results.thrust_surety import BETWEEN, as_sure_as_thrust, surety

ONE, TWO = (Flight({}, Path(name), "csv") for name in ("a.csv", "b.csv"))


def fit(**values: float) -> Fit:
    names = tuple(values)
    same = dict.fromkeys(names, 0.001)
    return Fit(
        names, values, same, dict.fromkeys(names, ""), 1e-6 * np.eye(len(names)), values, same, (), same, (), {}, {}, {}, (),
        1, 1, True, {},
    )  # fmt: skip


def known(**quantities: tuple[float, float | None]) -> Airframe:
    airframe = load_airframe("crazyflie-crazyswarm2")
    found = {n: Quantity((v,), "", None if s is None else (s,)) for n, (v, s) in quantities.items()}
    return dataclasses.replace(airframe, quantities={**airframe.quantities, **found})


def test_more_flights_are_surer_and_simulated_ones_do_not_differ() -> None:
    prior = known()
    assert surety(prior, ("thrust_scale",), [ONE]) == pytest.approx(BETWEEN)
    assert surety(prior, ("thrust_scale",), [ONE, TWO]) == pytest.approx(BETWEEN / 2**0.5)
    simulated = dataclasses.replace(ONE, format="simulation")
    assert surety(prior, ("thrust_scale",), [simulated]) == 0.0
    uncertain = known(thrust_scale=(1.05, 0.021))
    assert surety(uncertain, ("mass",), [simulated]) == pytest.approx(0.02)
    assert surety(uncertain, ("mass",), [ONE]) == pytest.approx(np.hypot(0.02, BETWEEN))


def test_what_goes_with_the_thrust_goes_together() -> None:
    plain = fit(thrust_curve_1=4.0, inertia_x=0.02, motor_time_constant=0.05)
    found = as_sure_as_thrust(plain, ("thrust_curve", "inertia"), 0.01)
    assert found.std["thrust_curve_1"] == pytest.approx(np.hypot(0.001, 0.04))
    assert found.std["inertia_x"] == pytest.approx(0.001)
    weighed = as_sure_as_thrust(fit(mass=1.0, drag=0.5), ("mass", "drag"), 0.01)
    assert weighed.covariance[0, 1] == pytest.approx(1e-4 * 0.5)
