"""Thrusts differ from flight to flight: what one of them may say of a vehicle."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from rotorid.identification.fit import Fit
from rotorid.logs.flight import Flight
from rotorid.models.airframe import Airframe, Quantity, load_airframe, with_mass
from rotorid.models.airframe_numbers import with_numbers
from rotorid.results.identify import identify
from rotorid.results.thrust_surety import BETWEEN, as_sure_as_mass, as_sure_as_thrust, surety
from tests.results.made_flown import TRUTH, made_flight

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


def test_no_surer_than_a_mass_that_is_known() -> None:
    plain = fit(thrust_curve_1=4.0, inertia_x=0.02, drag=0.5, motor_time_constant=0.05)
    plain = dataclasses.replace(plain, prior_std=dict.fromkeys(plain.names, 10.0) | {"drag": 0.001})
    weighed = Quantity((2.0,), "kg", (0.04,))
    found, beside = as_sure_as_mass(plain, ("thrust_curve", "inertia", "drag"), weighed)
    assert found.std["thrust_curve_1"] == pytest.approx(np.hypot(0.001, 0.08))
    assert found.std["inertia_x"] == pytest.approx(np.hypot(0.001, 0.0004))
    assert found.std["motor_time_constant"] == pytest.approx(0.001)
    assert found.std["drag"] == pytest.approx(0.001, rel=1e-6)  # not told: the prior holds it
    np.testing.assert_allclose(
        beside, [0.04**2 / 2.0 * 4.0, 0.04**2 / 2.0 * 0.02, 0.0, 0.0], rtol=1e-4, atol=1e-12
    )
    exact, none = as_sure_as_mass(plain, ("thrust_curve",), Quantity((2.0,), "kg"))
    assert exact is plain
    assert not none.any()


def test_a_mass_that_is_wrong_is_within_what_it_makes_unsure() -> None:
    """The true mass is one standard deviation below what is known, and so are thrust, inertia and drag."""
    prior = with_mass(with_numbers(TRUTH, {"inertia_x": 0.03, "drag": 0.4}), (1.05, 0.05))
    found = identify(
        [made_flight()],
        prior,
        ("thrust_curve", "inertia", "drag", "angular_drag"),
        assumed="mass",
        spans=[[(0.0, 6.0)]],
    )
    for name, value in {"thrust_curve_1": 5.0, "inertia_x": 0.025, "inertia_z": 0.03, "drag": 0.6}.items():
        assert (found.fit.values[name] - value) / found.fit.std[name] == pytest.approx(1.0, abs=0.25), name
    names, covariance = found.covariance
    heavier, pull = names.index("mass"), names.index("thrust_curve_1")
    std = np.sqrt(np.diag(covariance))
    assert covariance[heavier, pull] > 0.99 * std[heavier] * std[pull]
    assert np.linalg.eigvalsh(covariance / np.outer(std, std)).min() > -1e-9
    assert "no surer than its 5 %" in " ".join(found.verdicts)
