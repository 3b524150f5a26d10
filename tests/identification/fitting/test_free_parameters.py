"""Coordinates and priors: any z is a body, slopes are exact, the prior is where it was put."""

from __future__ import annotations

import dataclasses
import math

import jax.numpy as jnp
import numpy as np
import pytest

from rotorid.errors import SettingError
from rotorid.identification.airframe.multirotor_rules import rules_for
from rotorid.identification.airframe.priors import stated_stds
from rotorid.identification.fitting import free_parameters
from rotorid.identification.fitting.free_parameters import (
    Prior,
    coordinates_from_priors,
    evaluate_coordinates,
)
from rotorid.models.airframe.airframe import load_airframe
from rotorid.models.multirotor.rigid import inertia_matrix, rigid_multirotor
from rotorid.models.system import Parameter
from tests.identification.flying import hexarotor
from tests.systems import SYSTEMS

ALL = (
    "mass", "inertia", "products_of_inertia", "centre_of_mass", "torque_ratio", "thrust_coefficient", "thrust_scale",
    "arm_scale", "tilt_scale", "drag", "angular_drag", "motor_time_constant",
)  # fmt: skip


def make_priors(system, free, values):
    return free_parameters.make_priors(system, free, values, rules_for(system))


@pytest.mark.parametrize("free", [ALL, [n for n in ALL if n != "products_of_inertia"]])
def test_every_point_is_a_body_and_its_slopes_are_those_of_differences(free) -> None:
    coordinates, centre, scale = coordinates_from_priors(make_priors(hexarotor(), free, {}))
    draw = np.random.default_rng(0)
    least = coordinates.lower_bounds(centre, scale)
    for _ in range(20):
        z = np.maximum(0.7 * draw.standard_normal(coordinates.size), least + 1e-6)
        e, slopes, numbers, growth = (
            np.asarray(v) for v in evaluate_coordinates(coordinates, z, centre, scale)
        )
        J = np.diag(numbers[coordinates.slices["inertia"]])
        if "products_of_inertia" in free:
            p = {n: jnp.asarray(numbers[coordinates.slices[n]]) for n in ("inertia", "products_of_inertia")}
            J = np.asarray(inertia_matrix(p))
        moments = np.linalg.eigvalsh(J)
        assert moments[0] > 0
        assert moments[0] + moments[1] > moments[2]
        for name in ("mass", "thrust_coefficient", "arm_scale", "tilt_scale"):
            assert numbers[coordinates.slices[name]][0] > 0
        for name in ("drag", "angular_drag"):
            assert numbers[coordinates.slices[name]][0] >= 0
        h = 1e-6
        for k in range(coordinates.size):
            up, down = (
                evaluate_coordinates(coordinates, z + s * h * np.eye(len(z))[k], centre, scale)
                for s in (1, -1)
            )
            np.testing.assert_allclose(
                slopes[:, k], (np.asarray(up[0]) - np.asarray(down[0])) / (2 * h), atol=1e-5
            )
            np.testing.assert_allclose(
                growth[:, k], (np.asarray(up[2]) - np.asarray(down[2])) / (2 * h), atol=1e-6
            )
        assert np.isfinite(e).all()


def test_at_rest_everything_is_as_its_prior_has_it() -> None:
    values = {"products_of_inertia": (0.004, -0.002, 0.003), "drag": 0.2}
    priors = make_priors(hexarotor(), ALL, values)
    coordinates, centre, scale = coordinates_from_priors(priors)
    e, _, numbers, growth = (
        np.asarray(v) for v in evaluate_coordinates(coordinates, np.zeros(coordinates.size), centre, scale)
    )
    np.testing.assert_allclose(e, 0.0, atol=1e-9)
    np.testing.assert_allclose(numbers, [v for p in priors for v in p.value], rtol=1e-12)
    for p in priors:
        if "inertia" not in p.parameter.name:
            place = coordinates.slices[p.parameter.name]
            np.testing.assert_allclose(np.diag(growth)[place], p.std, rtol=1e-9)


def test_a_flat_frame_begins_inside() -> None:
    """ArduPilot's simulated frame has J_x + J_y = J_z: a plate without thickness."""
    frame, other = load_airframe("ardupilot-sitl-x"), load_airframe("quadrotor-x")
    quantities = {**frame.quantities, "torque_ratio": other.quantities["torque_ratio"]}
    system = rigid_multirotor(dataclasses.replace(frame, quantities=quantities), "rotor_thrust")
    coordinates, centre, scale = coordinates_from_priors(make_priors(system, ["inertia"], {}))
    _, _, numbers, growth = (
        np.asarray(v) for v in evaluate_coordinates(coordinates, np.zeros(3), centre, scale)
    )
    assert numbers[0] + numbers[1] > numbers[2]
    np.testing.assert_allclose(numbers, system.parameter("inertia").values, rtol=0.03)
    assert np.isfinite(growth).all()


def test_priors_are_the_files_then_the_usual_ones() -> None:
    airframe = load_airframe("fully-actuated-hexarotor")
    system = hexarotor()
    free = stated_stds(airframe, ["mass", "inertia", "centre_of_mass", "drag"])
    assert free == {"mass": (0.28,), "inertia": None, "centre_of_mass": None, "drag": None}
    found = {p.parameter.name: p for p in make_priors(system, free, {})}
    assert found["mass"].std == (0.28,)
    np.testing.assert_allclose(found["inertia"].std, 0.5 * np.array([0.115, 0.114, 0.194]))
    assert found["centre_of_mass"].std == pytest.approx((0.039, 0.039, 0.039))
    assert found["drag"].is_one_sided
    assert found["drag"].value == (0.0,)
    assert found["drag"].std[0] == pytest.approx(0.5 * 2.81)
    crooked = make_priors(system, ["inertia"], {"products_of_inertia": (0.001, 0.0, 0.0)})
    assert [p.parameter.name for p in crooked] == ["inertia", "products_of_inertia"]
    with pytest.raises(SettingError, match="no prior std"):
        make_priors(SYSTEMS["cart"], ["mass"], {})


def test_the_inertia_of_another_system_is_a_number_like_others() -> None:
    prior = Prior(Parameter("inertia", 2.0, unit="kg m^2", bounds=(0.0, math.inf)), (2.0,), (0.2,))
    coordinates, centre, scale = coordinates_from_priors((prior,))
    e, _, numbers, _ = (
        np.asarray(v) for v in evaluate_coordinates(coordinates, np.array([1.5]), centre, scale)
    )
    np.testing.assert_allclose(numbers, 2.0 * np.exp(1.5 * 0.1))
    np.testing.assert_allclose(e, 1.5)
