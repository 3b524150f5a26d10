"""Thrust curves."""

from __future__ import annotations

from rotorid.models.multirotor.thrust import ThrustCurve


def test_curves_of_unknown_voltage_are_equal() -> None:
    """NaN is not equal to itself, and dataclasses compare field by field from Python 3.13 on."""
    curve, other = (ThrustCurve((0.0, 2.0), voltage=float("nan")) for _ in range(2))
    assert curve == other
    assert hash(curve) == hash(other)
    assert curve != ThrustCurve((0.0, 2.0), voltage=12.0)
    assert curve != ThrustCurve((0.0, 3.0))
