"""The uncertainty of the thrust, and of a mass that was held fixed, in the result of an identification."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from rotorid.identification.airframe.alternatives.structures import Structure, add_structure_uncertainty
from rotorid.identification.fitting.result import Fit, ResidualStatistics, SearchRecord
from rotorid.logs.flight import Flight
from rotorid.models.airframe.airframe import Airframe, Quantity, load_airframe, with_numbers
from rotorid.models.airframe.mass import with_mass
from rotorid.workflows.identify.identify import identify
from rotorid.workflows.identify.result import (
    BETWEEN_FLIGHTS,
    add_arm_uncertainty,
    add_force_uncertainty,
    add_mass_uncertainty,
    add_thrust_uncertainty,
    remaining_thrust_std,
)
from tests.workflows.flights_for_tests import TRUTH, made_flight

ONE, TWO = (Flight({}, Path(name), "csv") for name in ("a.csv", "b.csv"))


def fit(**values: float) -> Fit:
    names = tuple(values)
    same = dict.fromkeys(names, 0.001)
    return Fit(
        values, same, dict.fromkeys(names, ""), 1e-6 * np.eye(len(names)), values, same, (), same, (),
        ResidualStatistics({}, {}, {}, ()), SearchRecord(1, 1, True), {},
    )  # fmt: skip


def airframe_with_known(**quantities: tuple[float, float | None]) -> Airframe:
    airframe = load_airframe("crazyflie-crazyswarm2")
    found = {n: Quantity((v,), "", None if s is None else (s,)) for n, (v, s) in quantities.items()}
    return dataclasses.replace(airframe, quantities={**airframe.quantities, **found})


def test_more_flights_reduce_the_uncertainty_and_simulated_ones_have_none() -> None:
    prior = airframe_with_known()
    assert remaining_thrust_std(prior, ("thrust_scale",), [ONE]) == pytest.approx(BETWEEN_FLIGHTS)
    assert remaining_thrust_std(prior, ("thrust_scale",), [ONE, TWO]) == pytest.approx(
        BETWEEN_FLIGHTS / 2**0.5
    )
    simulated = dataclasses.replace(ONE, format="simulation")
    assert remaining_thrust_std(prior, ("thrust_scale",), [simulated]) == 0.0
    uncertain = airframe_with_known(thrust_scale=(1.05, 0.021))
    assert remaining_thrust_std(uncertain, ("mass",), [simulated]) == pytest.approx(0.02)
    unstated = airframe_with_known(thrust_scale=(1.05, None))
    assert remaining_thrust_std(unstated, ("mass",), [simulated]) == pytest.approx(0.1)
    assert remaining_thrust_std(uncertain, ("mass",), [ONE]) == pytest.approx(np.hypot(0.02, BETWEEN_FLIGHTS))


def test_differences_between_probable_structures_are_added() -> None:
    bare = Structure("bare", (), -1.0, 0.25, {"inertia_x": 0.004, "elsewhere": 1.0}, {})
    found = add_structure_uncertainty(fit(inertia_x=0.02, drag=0.5), (bare,))
    assert found.std["inertia_x"] == pytest.approx(np.hypot(0.001, 0.002))
    assert found.std["drag"] == pytest.approx(0.001)


def test_quantities_that_scale_with_the_thrust_share_its_uncertainty() -> None:
    plain = fit(thrust_curve_1=4.0, inertia_x=0.02, motor_time_constant=0.05)
    found = add_thrust_uncertainty(plain, ("thrust_curve", "inertia"), 0.01)
    assert found.std["thrust_curve_1"] == pytest.approx(np.hypot(0.001, 0.04))
    assert found.std["inertia_x"] == pytest.approx(0.001)
    weighed = add_thrust_uncertainty(fit(mass=1.0, drag=0.5), ("mass", "drag"), 0.01)
    assert weighed.covariance[0, 1] == pytest.approx(1e-4 * 0.5)


def test_moments_about_x_and_y_are_as_uncertain_as_the_arms() -> None:
    measured = load_airframe("px4-sih-quad")
    rotors = tuple(
        dataclasses.replace(r, position_std=0.2 * np.hypot(*r.position[:2])) for r in measured.rotors
    )
    estimates = fit(inertia_x=0.02, inertia_z=0.04, drag=0.5)
    assert add_arm_uncertainty(estimates, measured) is estimates
    found = add_arm_uncertainty(estimates, dataclasses.replace(measured, rotors=rotors))
    assert found.std["inertia_x"] == pytest.approx(np.hypot(0.001, 0.004))
    assert found.std["inertia_z"] == found.std["drag"] == pytest.approx(0.001)


def test_the_uncertainty_of_a_known_mass_is_added() -> None:
    plain = fit(thrust_curve_1=4.0, inertia_x=0.02, drag=0.5, motor_time_constant=0.05)
    plain = dataclasses.replace(plain, prior_std=dict.fromkeys(plain.names, 10.0) | {"drag": 0.001})
    weighed = with_mass(TRUTH, (2.0, 0.04))
    found, with_mass_covariance = add_mass_uncertainty(plain, ("thrust_curve", "inertia", "drag"), weighed)
    assert found.std["thrust_curve_1"] == pytest.approx(np.hypot(0.001, 0.08))
    assert found.std["inertia_x"] == pytest.approx(np.hypot(0.001, 0.0004))
    assert found.std["motor_time_constant"] == pytest.approx(0.001)
    assert found.std["drag"] == pytest.approx(0.001, rel=1e-6)  # not identified: the prior determines it
    np.testing.assert_allclose(
        with_mass_covariance, [0.04**2 / 2.0 * 4.0, 0.04**2 / 2.0 * 0.02, 0.0, 0.0], rtol=1e-4, atol=1e-12
    )
    exact, none = add_mass_uncertainty(plain, ("thrust_curve",), with_mass(TRUTH, (2.0, 0.0)))
    assert exact is plain
    assert not none.any()


def test_a_mean_vertical_force_is_taken_as_thrust_or_as_mass() -> None:
    plain = fit(thrust_curve_1=4.0, inertia_x=0.02, drag=0.5, motor_time_constant=0.05)
    plain = dataclasses.replace(plain, prior_std=dict.fromkeys(plain.names, 10.0))
    found = add_force_uncertainty(plain, ("thrust_curve", "inertia", "drag"), 0.02)
    assert found.std["thrust_curve_1"] == pytest.approx(np.hypot(0.001, 0.08))
    assert found.std["inertia_x"] == pytest.approx(np.hypot(0.001, 0.0004))
    assert found.std["drag"] == found.std["motor_time_constant"] == pytest.approx(0.001)
    assert add_force_uncertainty(plain, ("thrust_curve",), 0.0) is plain
    plain = fit(mass=2.0, inertia_x=0.02)
    plain = dataclasses.replace(plain, prior_std=dict.fromkeys(plain.names, 10.0))
    weighed = add_force_uncertainty(plain, ("mass", "inertia"), 0.02)
    assert weighed.std["mass"] == pytest.approx(np.hypot(0.001, 0.04))
    assert weighed.std["inertia_x"] == pytest.approx(0.001)


def test_a_wrong_mass_is_within_the_uncertainty_that_it_adds() -> None:
    """The true mass is one standard deviation below the known one, and so are thrust, inertia and drag."""
    prior = with_mass(with_numbers(TRUTH, {"inertia_x": 0.03, "drag": 0.4}), (1.05, 0.05))
    found = identify(
        [made_flight()],
        prior,
        ("thrust_curve", "inertia", "drag", "angular_drag"),
        known="mass",
        spans=[[(0.0, 6.0)]],
    )
    for name, value in {"thrust_curve_1": 5.0, "inertia_x": 0.025, "inertia_z": 0.03, "drag": 0.6}.items():
        assert (found.fit.values[name] - value) / found.fit.std[name] == pytest.approx(1.0, abs=0.25), name
    names, covariance = found.covariance
    heavier, pull = names.index("mass"), names.index("thrust_curve_1")
    std = np.sqrt(np.diag(covariance))
    assert covariance[heavier, pull] > 0.99 * std[heavier] * std[pull]
    assert np.linalg.eigvalsh(covariance / np.outer(std, std)).min() > -1e-9
    (held,) = [f for f in found.findings if f.code == "mass_known"]
    assert held.values == {"mass": 1.05, "std": 0.05}
