"""Properties of a vehicle, its hover, and standard deviations of exported values."""

from __future__ import annotations

import dataclasses

import jax
import numpy as np
import pytest

from rotorid.errors import AirframeError
from rotorid.export.uncertainty import standard_deviations
from rotorid.export.xml import euler_angles_of_axis, quaternion_of_axis
from rotorid.models.airframe.airframe import Quantity, Rotor, load_airframe
from rotorid.models.multirotor.properties import hover_trim, vehicle_properties
from rotorid.models.multirotor.rotors import allocation
from rotorid.models.system import GRAVITY
from tests.export.vehicles import skewed, with_quantities


def test_the_wrench_is_the_allocation():
    airframe = skewed()
    vehicle = vehicle_properties(airframe)
    with jax.enable_x64(True):
        G = np.asarray(
            allocation(airframe.rotors, vehicle.rotors.torque_ratio, tuple(vehicle.body.centre_of_mass))
        )
    np.testing.assert_allclose(vehicle.rotors.allocation, G, atol=1e-12)


def test_a_hover_carries_the_weight_and_does_not_turn():
    vehicle = vehicle_properties(skewed())
    hover = hover_trim(vehicle)
    wrench = vehicle.rotors.allocation @ hover.thrust
    np.testing.assert_allclose(wrench[3:], 0.0, atol=1e-12)
    w, *v = hover.attitude
    lifted = wrench[:3] + 2.0 * np.cross(v, np.cross(v, wrench[:3]) + w * wrench[:3])
    np.testing.assert_allclose(lifted, [0.0, 0.0, vehicle.body.weight], atol=1e-12)
    np.testing.assert_allclose(
        vehicle.rotors.thrust_fraction(hover.command) * vehicle.rotors.full_thrusts, hover.thrust, rtol=1e-12
    )


def test_an_airframe_that_cannot_hover_raises():
    heavy = with_quantities(skewed(), mass=Quantity((9.0,), "kg"))
    with pytest.raises(AirframeError, match="of the full thrust of a rotor"):
        hover_trim(vehicle_properties(heavy))
    lame = dataclasses.replace(
        skewed(), rotors=(Rotor((0.2, 0.2, 0.0), "ccw"), Rotor((0.2, -0.2, 0.0), "cw"))
    )
    with pytest.raises(AirframeError, match="cannot carry the weight without a torque"):
        hover_trim(vehicle_properties(lame))
    with pytest.raises(AirframeError, match=r"no \[thrust_curve\]"):
        vehicle_properties(load_airframe("quadrotor-plus"))


@pytest.mark.parametrize("axis", [(0.0, 0.0, 1.0), (0.6, 0.0, 0.8), (0.0, -0.8, -0.6), (0.0, 0.0, -1.0)])
def test_rotations_take_z_to_the_axis(axis):
    w, x, y, z = quaternion_of_axis(np.array(axis))
    np.testing.assert_allclose(
        [2 * (x * z + w * y), 2 * (y * z - w * x), 1 - 2 * (x * x + y * y)], axis, atol=1e-12
    )
    roll, pitch, yaw = euler_angles_of_axis(np.array(axis))
    c, s = np.cos, np.sin
    turned = [
        c(yaw) * s(pitch) * c(roll) + s(yaw) * s(roll),
        s(yaw) * s(pitch) * c(roll) - c(yaw) * s(roll),
        c(pitch) * c(roll),
    ]
    np.testing.assert_allclose(turned, axis, atol=1e-12)


def test_standard_deviations_are_propagated():
    airframe = with_quantities(
        load_airframe("px4-sih-quad"),
        mass=Quantity((1.0,), "kg", (0.1,)),
        drag=Quantity((0.5,), "N s/m", (0.2,)),
    )

    def values(airframe):
        vehicle = vehicle_properties(airframe)
        return {
            "hover": hover_trim(vehicle).command[0],
            "decay": vehicle.drag.mean_linear / vehicle.body.mass,
            "lag": vehicle.rotors.lag,
            "place": vehicle.rotors.positions[0, 0],
            "rounded": 0.2 + 1e-17 * vehicle.body.mass - vehicle.body.mass + vehicle.body.mass,
        }

    found = standard_deviations(values, airframe)
    assert found["hover"].std == pytest.approx(np.hypot(0.1, 1.0 * 0.001) * GRAVITY / 20.0, rel=1e-5)
    assert not found["hover"].is_known  # of T_MAX nothing is known
    assert found["decay"].std == pytest.approx(np.hypot(0.2, 0.5 * 0.1), rel=1e-5)
    assert found["decay"].is_known
    assert found["decay"].to_text("1/s") == "std 0.206 1/s"
    assert found["hover"].to_text("1").startswith("std at least 0.049")
    assert found["lag"].to_text("s") == "std unknown"
    assert found["place"].to_text("m") == found["rounded"].to_text("m") == "given value"


def test_rotors_and_curves_have_theirs():
    found = standard_deviations(lambda a: {"full": vehicle_properties(a).rotors.full_thrusts[1]}, skewed())[
        "full"
    ]
    assert found.is_known
    assert found.std == pytest.approx(
        np.sqrt((1.02 * 0.1) ** 2 * 2 + (6.0 * 0.01) ** 2 + (1.02 * 6.0 * 0.001) ** 2), rel=1e-5
    )
