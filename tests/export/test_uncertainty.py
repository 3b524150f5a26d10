"""The numbers that exports are made of, and their standard deviations."""

from __future__ import annotations

import dataclasses

import jax
import numpy as np
import pytest

from rotorid.errors import AirframeError
from rotorid.export.vehicle.facts import facts_of
from rotorid.export.vehicle.spread import spreads
from rotorid.export.vehicle.xml import angles_of, quaternion_of
from rotorid.models.airframe import Quantity, Rotor, load_airframe
from rotorid.models.rotors import allocation
from rotorid.models.system import GRAVITY
from tests.export.vehicle.vehicles import skewed, with_quantities


def test_the_wrench_is_the_allocation():
    airframe = skewed()
    f = facts_of(airframe)
    with jax.enable_x64(True):
        G = np.asarray(allocation(airframe.rotors, f.torque_ratio, tuple(f.centre)))
    np.testing.assert_allclose(f.wrench, G, atol=1e-12)


def test_a_hover_carries_the_weight_and_does_not_turn():
    f = facts_of(skewed())
    hover = f.hover()
    wrench = f.wrench @ hover.thrust
    np.testing.assert_allclose(wrench[3:], 0.0, atol=1e-12)
    w, *v = hover.attitude
    lifted = wrench[:3] + 2.0 * np.cross(v, np.cross(v, wrench[:3]) + w * wrench[:3])
    np.testing.assert_allclose(lifted, [0.0, 0.0, f.weight], atol=1e-12)
    np.testing.assert_allclose(f.shape(hover.command) * f.full, hover.thrust, rtol=1e-12)


def test_what_cannot_hover_is_told():
    heavy = with_quantities(skewed(), mass=Quantity((9.0,), "kg"))
    with pytest.raises(AirframeError, match="would have to pull"):
        facts_of(heavy).hover()
    lame = dataclasses.replace(
        skewed(), rotors=(Rotor((0.2, 0.2, 0.0), "ccw"), Rotor((0.2, -0.2, 0.0), "cw"))
    )
    with pytest.raises(AirframeError, match="cannot carry this vehicle without turning"):
        facts_of(lame).hover()
    with pytest.raises(AirframeError, match=r"no \[thrust_curve\]"):
        facts_of(load_airframe("quadrotor-plus"))


@pytest.mark.parametrize("axis", [(0.0, 0.0, 1.0), (0.6, 0.0, 0.8), (0.0, -0.8, -0.6), (0.0, 0.0, -1.0)])
def test_rotations_take_z_to_the_axis(axis):
    w, x, y, z = quaternion_of(np.array(axis))
    np.testing.assert_allclose(
        [2 * (x * z + w * y), 2 * (y * z - w * x), 1 - 2 * (x * x + y * y)], axis, atol=1e-12
    )
    roll, pitch, yaw = angles_of(np.array(axis))
    c, s = np.cos, np.sin
    turned = [
        c(yaw) * s(pitch) * c(roll) + s(yaw) * s(roll),
        s(yaw) * s(pitch) * c(roll) - c(yaw) * s(roll),
        c(pitch) * c(roll),
    ]
    np.testing.assert_allclose(turned, axis, atol=1e-12)


def test_standard_deviations_are_carried_through():
    airframe = with_quantities(
        load_airframe("px4-sih-quad"),
        mass=Quantity((1.0,), "kg", (0.1,)),
        drag=Quantity((0.5,), "N s/m", (0.2,)),
    )

    def values(airframe):
        f = facts_of(airframe)
        return {
            "hover": f.hover().command[0],
            "decay": f.drag / f.mass,
            "lag": f.lag,
            "place": f.places[0, 0],
            "rounded": 0.2 + 1e-17 * f.mass - f.mass + f.mass,
        }

    found = spreads(values, airframe)
    assert found["hover"].std == pytest.approx(0.1 * GRAVITY / 20.0, rel=1e-5)
    assert not found["hover"].known  # of T_MAX nothing is known
    assert found["decay"].std == pytest.approx(np.hypot(0.2, 0.5 * 0.1), rel=1e-5)
    assert found["decay"].known
    assert found["decay"].words("1/s") == "std 0.206 1/s"
    assert found["hover"].words("1").startswith("std at least 0.049")
    assert found["lag"].words("s") == "std not known"
    assert found["place"].words("m") == found["rounded"].words("m") == "as given"


def test_rotors_and_curves_have_theirs():
    found = spreads(lambda a: {"full": facts_of(a).full[1]}, skewed())["full"]
    assert found.known
    assert found.std == pytest.approx(np.sqrt((1.02 * 0.1) ** 2 * 2 + (6.0 * 0.01) ** 2), rel=1e-5)
