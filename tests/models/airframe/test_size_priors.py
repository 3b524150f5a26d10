"""Priors by size: what they contain of left-out vehicles, their scaling, possible inertia, and the table they come from."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from jaxtyping import Float

from rotorid.errors import AirframeError
from rotorid.models.airframe.airframe import Quantity
from rotorid.models.airframe.size_priors import (
    REGRESSORS,
    PublicVehicle,
    SizeLaws,
    arm_length_prior,
    arms_of,
    fit_inertia_law,
    fit_power_law,
    fit_size_laws,
    left_out_errors,
    public_vehicles,
    size_laws,
    size_priors,
    student_factor,
)

VEHICLES = public_vehicles()
WHOLE = [v for v in VEHICLES if v.inertia and v.mean_time_constant and v.torque_ratio]
"""With inertia, lag and torque ratio."""

OUTSIDE = {
    ("AscTec Hummingbird of RotorPy", "motor_time_constant"),
    ("LMF, NTNU Autonomous Robots Lab", "inertia"),
    ("RMF, NTNU Autonomous Robots Lab", "inertia"),
    ("RMF, NTNU Autonomous Robots Lab", "arm_length"),
    ("Mini quadrotor of HiPeRLab with payload", "arm_length"),
    ("PX4 SIH quadrotor", "arm_length"),
}
"""Vehicles beyond two standard deviations of the prior that is fitted without their family."""


def rectangle(x: float, y: float) -> Float[np.ndarray, "4 3"]:
    return np.array([[x, y, 0.0], [x, -y, 0.0], [-x, y, 0.0], [-x, -y, 0.0]])


def without(family: str) -> SizeLaws:
    return fit_size_laws([v for v in VEHICLES if v.family != family])


def priors_of(vehicle: PublicVehicle, laws: SizeLaws) -> dict[str, Quantity]:
    priors = size_priors(vehicle.mass, rectangle(*vehicle.arms), laws)
    return {**priors, "arm_length": arm_length_prior(vehicle.mass, vehicle.rotors, laws)}


def truths(vehicle: PublicVehicle) -> dict[str, tuple[float, ...]]:
    numbers = {"motor_time_constant": vehicle.mean_time_constant, "torque_ratio": vehicle.torque_ratio}
    known = {name: (number,) for name, number in numbers.items() if number is not None}
    inertia = {"inertia": vehicle.inertia} if vehicle.inertia else {}
    return {**inertia, **known, "arm_length": (vehicle.arm_length,)}


def z_scores(vehicle: PublicVehicle, laws: SizeLaws) -> dict[str, list[float]]:
    """Distances of the truth from the prior, in standard deviations of the logarithm."""
    priors = priors_of(vehicle, laws)
    return {
        name: [
            math.log(number / value) / (std / value)
            for number, value, std in zip(truth, priors[name].value, priors[name].std or (), strict=True)
        ]
        for name, truth in truths(vehicle).items()
    }


@pytest.fixture(scope="module")
def left_out() -> dict[str, dict[str, list[float]]]:
    """Distances of every vehicle from the prior without its family."""
    laws = {family: without(family) for family in {v.family for v in VEHICLES}}
    return {v.name: z_scores(v, laws[v.family]) for v in VEHICLES}


def test_two_standard_deviations_contain_left_out_vehicles(
    left_out: dict[str, dict[str, list[float]]],
) -> None:
    names = ("inertia", "motor_time_constant", "torque_ratio")
    inside = [v.name for v in WHOLE if all(abs(z) <= 2.0 for n in names for z in left_out[v.name][n])]
    assert len(inside) >= 8
    assert len({v.family for v in WHOLE if v.name in inside}) >= 7
    assert set(inside) == {v.name for v in WHOLE} - {"AscTec Hummingbird of RotorPy"}


def test_the_spread_is_as_large_as_stated(left_out: dict[str, dict[str, list[float]]]) -> None:
    outside = {(name, n) for name, zs in left_out.items() for n, z in zs.items() if max(map(abs, z)) > 2.0}
    assert outside == OUTSIDE
    every = np.abs([z for zs in left_out.values() for values in zs.values() for z in values])
    assert 0.93 <= np.mean(every <= 2.0) <= 0.975
    assert 0.6 <= np.mean(every <= 1.0) <= 0.85


@pytest.mark.parametrize("name", sorted(REGRESSORS))
def test_the_regressors_predict_best(name: str) -> None:
    sizes = ((), ("mass",), ("arm_length",), ("mass", "arm_length"))
    if name == "arm_length":
        sizes = ((), ("mass",), ("mass", "rotors"))
    known = [v for v in VEHICLES if getattr(v, name) is not None]
    weights = np.array([1.0 / sum(o.family == v.family for o in known) for v in known])
    error = {size: float(weights @ left_out_errors(VEHICLES, name, size)[0] ** 2) for size in sizes}
    assert min(error, key=error.__getitem__) == REGRESSORS[name]


def test_inertia_is_proportional_to_mass_and_squared_arm_length() -> None:
    """No power of mass or arm length besides m L^2 improves the prediction of left-out vehicles."""

    @dataclasses.dataclass(frozen=True)
    class Relative(PublicVehicle):
        @property
        def relative(self) -> float | None:
            return self.inertia[2] / (self.mass * self.arm_length**2) if self.inertia else None

    vehicles = [Relative(**vars(v)) for v in VEHICLES]
    known = [v for v in vehicles if v.inertia]
    weights = np.array([1.0 / sum(o.family == v.family for o in known) for v in known])
    sizes = ((), ("mass",), ("arm_length",), ("mass", "arm_length"))
    error = {size: float(weights @ left_out_errors(vehicles, "relative", size)[0] ** 2) for size in sizes}
    assert min(error, key=error.__getitem__) == ()


def test_coefficients_are_those_of_the_table() -> None:
    """By numpy's own least squares, with the rows scaled by the roots of the weights."""
    laws = size_laws()
    named = {"mean_time_constant": laws.motor_time_constant, "torque_ratio": laws.torque_ratio}
    for name, law in {**named, "arm_length": laws.arm_length}.items():
        known = [v for v in VEHICLES if getattr(v, name) is not None]
        root = np.sqrt([1.0 / sum(o.family == v.family for o in known) for v in known])
        X = np.array([[1.0, *(math.log(getattr(v, r)) for r in law.regressors)] for v in known])
        y = np.log([getattr(v, name) for v in known])
        np.testing.assert_allclose(
            law.coefficients, np.linalg.lstsq(root[:, None] * X, root * y)[0], rtol=1e-9
        )
    assert laws.inertia == fit_inertia_law(VEHICLES)


def test_inertia_law_is_a_minimum() -> None:
    law = size_laws().inertia
    known = [v for v in VEHICLES if v.inertia]
    weights = np.array([1.0 / sum(o.family == v.family for o in known) for v in known])

    def cost(scale: float, layout: float, height: float) -> float:
        trial = dataclasses.replace(law, scale=scale, layout=layout, height=height)
        error = np.log([np.array(v.inertia) / trial.moments(v.mass, v.arms) for v in known])
        return float(weights @ np.sum(error**2, axis=1))

    best = cost(law.scale, law.layout, law.height)
    for i in range(3):
        for factor in (0.98, 1.02):
            shape = [law.scale, law.layout, law.height]
            shape[i] *= factor
            assert cost(*shape) > best


def test_a_family_counts_as_one_vehicle() -> None:
    """Copies of a vehicle change nothing."""
    twins = [dataclasses.replace(v, name=f"{v.name} again") for v in VEHICLES]
    once, twice = size_laws(), fit_size_laws([*VEHICLES, *twins])
    np.testing.assert_allclose(twice.torque_ratio.coefficients, once.torque_ratio.coefficients, rtol=1e-9)
    assert twice.arm_length.noise == pytest.approx(once.arm_length.noise)
    assert twice.inertia.log_std == pytest.approx(once.inertia.log_std, rel=1e-3)


@pytest.mark.parametrize("mass", [0.027, 0.5, 3.0])
@pytest.mark.parametrize("arms", [(0.1, 0.1), (0.05, 0.3), (0.4, 0.001)])
def test_inertia_scales_and_is_that_of_a_body(mass: float, arms: tuple[float, float]) -> None:
    J = np.array(size_priors(mass, rectangle(*arms))["inertia"].value)
    assert np.all(J > 0.0)
    assert np.all(np.sum(J) - J > J)
    np.testing.assert_allclose(size_priors(2.0 * mass, rectangle(*arms))["inertia"].value, 2.0 * J)
    np.testing.assert_allclose(size_priors(mass, 3.0 * rectangle(*arms))["inertia"].value, 9.0 * J)
    assert (J[0] > J[1]) == (arms[1] > arms[0])


def test_priors_depend_on_the_layout_only_by_its_arms() -> None:
    """Neither a rotation by 90 degrees, nor the number of rotors, nor where the origin is."""
    angles = np.arange(6) * math.pi / 3.0
    hexa = 0.2 * np.stack([np.cos(angles), np.sin(angles), 0.0 * angles], axis=1)
    quad = rectangle(0.2 / math.sqrt(2.0), 0.2 / math.sqrt(2.0))
    np.testing.assert_allclose(
        size_priors(1.5, hexa)["inertia"].value, size_priors(1.5, quad)["inertia"].value
    )
    np.testing.assert_allclose(arms_of(quad + np.array([0.1, -0.3, 2.0])), arms_of(quad))
    x, y, z = size_priors(1.5, rectangle(0.1, 0.2))["inertia"].value
    np.testing.assert_allclose(size_priors(1.5, rectangle(0.2, 0.1))["inertia"].value, (y, x, z))


def test_priors_grow_with_the_vehicle() -> None:
    masses = (0.03, 0.3, 1.0, 3.0, 10.0)
    arms = [arm_length_prior(m, 4).number for m in masses]
    ratios = [size_priors(m, rectangle(0.1, 0.1))["torque_ratio"].number for m in masses]
    assert arms == sorted(arms)
    assert ratios == sorted(ratios)


def test_uncertainty_grows_beyond_the_table() -> None:
    def relative(mass: float) -> float:
        prior = arm_length_prior(mass, 4)
        return (prior.std or (0.0,))[0] / prior.number

    assert relative(0.001) > relative(0.03) > relative(1.0)
    assert relative(1000.0) > relative(20.0) > relative(1.0)


def test_quantities_have_units_and_say_where_they_are_from() -> None:
    priors = size_priors(1.0, rectangle(0.15, 0.15))
    assert {name: q.unit for name, q in priors.items()} == {
        "inertia": "kg m^2",
        "motor_time_constant": "s",
        "torque_ratio": "m",
    }
    assert all(q.std is not None and len(q.std) == len(q.value) for q in priors.values())
    assert (
        priors["inertia"].source == "prior from 19 types of public multirotors, by mass and rotor positions"
    )
    assert arm_length_prior(1.0, 4).source == "prior from 32 types of public multirotors, by mass"


@pytest.mark.parametrize("freedom", [3, 10, 18])
def test_student_factor_keeps_the_probability(freedom: int) -> None:
    """By simulation: a sample of n gives the spread, and the next sample lies within twice the widened spread."""
    rng = np.random.default_rng(freedom)
    samples = rng.normal(size=(200_000, freedom + 1))
    spread = np.std(samples, axis=1, ddof=1) * math.sqrt(1.0 + 1.0 / (freedom + 1)) * student_factor(freedom)
    error = rng.normal(size=len(samples)) - np.mean(samples, axis=1)
    assert np.mean(np.abs(error) <= 2.0 * spread) == pytest.approx(0.9545, abs=0.002)


def test_the_table_is_complete_and_possible() -> None:
    assert len({v.family for v in VEHICLES if v.inertia}) >= 12
    assert min(v.mass for v in VEHICLES) == 0.027
    assert {v.rotors for v in VEHICLES} == {4, 6, 8}
    assert len({v.name for v in VEHICLES}) == len(VEHICLES)
    for v in VEHICLES:
        assert v.origin.kind in ("measured", "model")
        assert v.origin.source
        assert v.origin.license
        assert len(v.arms) == 2
        for name in v.origin.left_out:
            assert getattr(v, name) is None, f"{v.name}: {name} is used and left out"
        if v.inertia:
            J = np.array(v.inertia)
            assert np.all(np.sum(J) - J >= J * (1.0 - 1e-9)), f"{v.name}: no rigid body has this inertia"
        if v.torque_ratio and v.thrust_coefficient and v.propeller_radius:
            R = v.propeller_radius
            ideal = R * math.sqrt(v.thrust_coefficient / (2.0 * 1.225 * math.pi * R**4))
            assert 0.25 <= ideal / v.torque_ratio <= 0.95, f"{v.name}: no propeller has this figure of merit"


@pytest.mark.parametrize(
    ("mass", "positions", "message"),
    [
        (0.0, rectangle(0.1, 0.1), "0 kg; it must be above 0"),
        (math.nan, rectangle(0.1, 0.1), "nan kg"),
        (1.0, rectangle(0.1, 0.1)[:2], "2 rotors: priors by size are those of multirotors"),
        (1.0, rectangle(0.1, 0.0), "same x or at the same y"),
        (1.0, rectangle(math.inf, 0.1), "must be finite"),
    ],
)
def test_impossible_sizes_are_named(
    mass: float, positions: Float[np.ndarray, "rotors 3"], message: str
) -> None:
    with pytest.raises(AirframeError, match=message):
        size_priors(mass, positions)


def test_arm_length_prior_checks_its_arguments() -> None:
    with pytest.raises(AirframeError, match="above 0"):
        arm_length_prior(-1.0, 4)
    with pytest.raises(AirframeError, match="2 rotors"):
        arm_length_prior(1.0, 2)


def test_a_law_needs_enough_types_of_vehicles() -> None:
    with pytest.raises(AirframeError, match=r"too few types of vehicles \(3\) for 2 coefficients"):
        fit_power_law([v for v in VEHICLES if v.family in ("iris", "x500", "neo")], "arm_length", ("mass",))
