"""Coordinates and priors: any z is a body, slopes are exact, the prior is where it was put."""

from __future__ import annotations

import dataclasses
import math

import jax.numpy as jnp
import numpy as np
import pytest

from rotorid.errors import SettingError
from rotorid.identification.coordinates import Prior, coordinates_of, mapped
from rotorid.identification.priors import airframe_priors, priors_of
from rotorid.models.airframe import load_airframe
from rotorid.models.rigid_multirotor import inertia_matrix, rigid_multirotor
from rotorid.models.system import Parameter
from tests.identification.flying import hexarotor
from tests.systems import SYSTEMS

ALL = (
    "mass", "inertia", "products_of_inertia", "centre_of_mass", "torque_ratio", "thrust_coefficient", "thrust_scale",
    "arm_scale", "tilt_scale", "drag", "angular_drag", "motor_time_constant",
)  # fmt: skip


@pytest.mark.parametrize("free", [ALL, [n for n in ALL if n != "products_of_inertia"]])
def test_every_point_is_a_body_and_its_slopes_are_those_of_differences(free) -> None:
    coordinates, centre, scale = coordinates_of(priors_of(hexarotor(), free, {}))
    draw = np.random.default_rng(0)
    least = coordinates.least(centre, scale)
    for _ in range(20):
        z = np.maximum(0.7 * draw.standard_normal(coordinates.size), least + 1e-6)
        e, slopes, numbers, growth = (np.asarray(v) for v in mapped(coordinates, z, centre, scale))
        J = np.diag(numbers[coordinates.places["inertia"]])
        if "products_of_inertia" in free:
            p = {n: jnp.asarray(numbers[coordinates.places[n]]) for n in ("inertia", "products_of_inertia")}
            J = np.asarray(inertia_matrix(p))
        moments = np.linalg.eigvalsh(J)
        assert moments[0] > 0
        assert moments[0] + moments[1] > moments[2]
        for name in ("mass", "thrust_coefficient", "arm_scale", "tilt_scale"):
            assert numbers[coordinates.places[name]][0] > 0
        for name in ("drag", "angular_drag"):
            assert numbers[coordinates.places[name]][0] >= 0
        h = 1e-6
        for k in range(coordinates.size):
            up, down = (mapped(coordinates, z + s * h * np.eye(len(z))[k], centre, scale) for s in (1, -1))
            np.testing.assert_allclose(
                slopes[:, k], (np.asarray(up[0]) - np.asarray(down[0])) / (2 * h), atol=1e-5
            )
            np.testing.assert_allclose(
                growth[:, k], (np.asarray(up[2]) - np.asarray(down[2])) / (2 * h), atol=1e-6
            )
        assert np.isfinite(e).all()


def test_at_rest_everything_is_as_its_prior_has_it() -> None:
    values = {"products_of_inertia": (0.004, -0.002, 0.003), "drag": 0.2}
    priors = priors_of(hexarotor(), ALL, values)
    coordinates, centre, scale = coordinates_of(priors)
    e, _, numbers, growth = (
        np.asarray(v) for v in mapped(coordinates, np.zeros(coordinates.size), centre, scale)
    )
    np.testing.assert_allclose(e, 0.0, atol=1e-9)
    np.testing.assert_allclose(numbers, [v for p in priors for v in p.value], rtol=1e-12)
    for p in priors:
        if "inertia" not in p.parameter.name:
            place = coordinates.places[p.parameter.name]
            np.testing.assert_allclose(np.diag(growth)[place], p.std, rtol=1e-9)


def test_a_flat_frame_begins_inside() -> None:
    """ArduPilot's simulated frame has J_x + J_y = J_z: a plate without thickness."""
    frame, other = load_airframe("ardupilot-sitl-x"), load_airframe("quadrotor-x")
    quantities = {**frame.quantities, "torque_ratio": other.quantities["torque_ratio"]}
    system = rigid_multirotor(dataclasses.replace(frame, quantities=quantities), "rotor_thrust")
    coordinates, centre, scale = coordinates_of(priors_of(system, ["inertia"], {}))
    _, _, numbers, growth = (np.asarray(v) for v in mapped(coordinates, np.zeros(3), centre, scale))
    assert numbers[0] + numbers[1] > numbers[2]
    np.testing.assert_allclose(numbers, system.parameter("inertia").values, rtol=0.03)
    assert np.isfinite(growth).all()


def test_priors_are_the_files_then_the_usual_ones() -> None:
    airframe = load_airframe("fully-actuated-hexarotor")
    system = hexarotor()
    free = airframe_priors(airframe, ["mass", "inertia", "centre_of_mass", "drag"])
    assert free == {"mass": 0.28, "inertia": None, "centre_of_mass": None, "drag": None}
    found = {p.parameter.name: p for p in priors_of(system, free, {})}
    assert found["mass"].std == (0.28,)
    np.testing.assert_allclose(found["inertia"].std, [0.0115, 0.0114, 0.0194])
    assert found["centre_of_mass"].std == (0.02, 0.02, 0.02)
    assert found["drag"].one_sided
    assert found["drag"].value == (0.0,)
    assert found["drag"].std[0] == pytest.approx(2.81)
    crooked = priors_of(system, ["inertia"], {"products_of_inertia": (0.001, 0.0, 0.0)})
    assert [p.parameter.name for p in crooked] == ["inertia", "products_of_inertia"]
    with pytest.raises(SettingError, match="no prior std"):
        priors_of(SYSTEMS["cart"], ["mass"], {})


def test_the_inertia_of_another_system_is_a_number_like_others() -> None:
    prior = Prior(Parameter("inertia", 2.0, unit="kg m^2", bounds=(0.0, math.inf)), (2.0,), (0.2,))
    coordinates, centre, scale = coordinates_of((prior,))
    e, _, numbers, _ = (np.asarray(v) for v in mapped(coordinates, np.array([1.5]), centre, scale))
    np.testing.assert_allclose(numbers, 2.0 * np.exp(1.5 * 0.1))
    np.testing.assert_allclose(e, 1.5)
