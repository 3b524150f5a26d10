"""Airframes for the tests of exports."""

from __future__ import annotations

import dataclasses
import math

import pytest

from rotorid.models.airframe.acceptance import fingerprint_of
from rotorid.models.airframe.airframe import Airframe, Quantity, load_airframe
from rotorid.models.airframe.validation import FlyBack
from tests.models.test_residual import any_residual


def accepted(airframe: Airframe) -> Airframe:
    """As accepted by fly-back."""
    record = FlyBack(True, ("It beats the prior.",), ("dev.ulg",), "prior", 10, (1.0,))
    record = dataclasses.replace(record, fingerprint=fingerprint_of(airframe))
    return dataclasses.replace(airframe, fly_back=record)


def with_quantities(airframe: Airframe, **values: Quantity) -> Airframe:
    return dataclasses.replace(airframe, quantities={**airframe.quantities, **values})


def for_target(target: str, airframe: Airframe) -> Airframe:
    """The airframe, with a learned residual where a target needs one, or a skip where the target's package is missing."""
    if target != "onnx":
        return airframe
    pytest.importorskip("onnx", reason="onnx is not installed: pip install 'rotorid[onnx]'")
    return dataclasses.replace(airframe, residual=any_residual(rotors=len(airframe.rotors)))


def skewed() -> Airframe:
    """A quadrotor with everything that a rigid body and its rotors can have."""
    airframe = with_quantities(
        load_airframe("px4-sih-quad"),
        inertia=Quantity((0.025, 0.022, 0.03), "kg m^2", (0.001, 0.002, 0.003)),
        products_of_inertia=Quantity((0.0025, -0.0012, 0.002), "kg m^2"),
        centre_of_mass=Quantity((0.01, -0.02, 0.005), "m", (0.001,)),
        drag_area=Quantity((0.05,), "m^2", (0.01,)),
        torque_ratio=Quantity((0.02,), "m", (0.001,)),
    )
    assert airframe.thrust_curve is not None
    curve = dataclasses.replace(
        airframe.thrust_curve, coefficients=(0.0, 1.5, 4.5), zero=0.05, std=(0.0, 0.1, 0.1)
    )
    tilt = math.radians(5.0)
    rotors = tuple(
        dataclasses.replace(
            rotor,
            axis=(math.sin(tilt) * (1 if k < 2 else -1), 0.0, math.cos(tilt)),
            thrust_scale=1.0 + 0.02 * k,
            thrust_scale_std=0.01,
        )
        for k, rotor in enumerate(airframe.rotors)
    )
    return dataclasses.replace(airframe, name="skewed", thrust_curve=curve, rotors=rotors)
