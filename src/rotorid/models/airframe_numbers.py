"""The numbers of an airframe by name, one by one: "mass", "inertia_x", "thrust_curve_2", "rotor_scale_0", and so on.

Each with its value and standard deviation, and an airframe with some of them replaced: what is drawn from a covariance, or
moved by a little, is an airframe again.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from rotorid.models.airframe import Airframe, Quantity

_AXES = ("_x", "_y", "_z")


def airframe_numbers(airframe: Airframe) -> dict[str, tuple[float, float]]:
    """Value and standard deviation (0 where unknown) of every number, in the units of the file."""
    found: dict[str, tuple[float, float]] = {}
    for name, quantity in airframe.quantities.items():
        stds = quantity.std or (0.0,)
        stds = stds * len(quantity.value) if len(stds) == 1 else stds
        found |= dict(
            zip(_names(name, len(quantity.value)), zip(quantity.value, stds, strict=True), strict=True)
        )
    curve = airframe.thrust_curve
    if curve is not None:
        stds = curve.std or (0.0,) * len(curve.coefficients)
        for k, pair in enumerate(zip(curve.coefficients, stds, strict=True)):
            found[f"thrust_curve_{k}"] = pair
        if curve.voltage_exponent:
            found["voltage_exponent"] = (curve.voltage_exponent, curve.voltage_exponent_std)
    for k, rotor in enumerate(airframe.rotors):
        found[f"rotor_scale_{k}"] = (rotor.thrust_scale, rotor.thrust_scale_std)
    return found


def with_numbers(airframe: Airframe, values: Mapping[str, float]) -> Airframe:
    """An airframe with some of its numbers replaced. Those that it does not have are left out."""
    quantities = dict(airframe.quantities)
    for name, quantity in airframe.quantities.items():
        names = _names(name, len(quantity.value))
        value = tuple(values.get(n, v) for n, v in zip(names, quantity.value, strict=True))
        quantities[name] = Quantity(value, quantity.unit, quantity.std, quantity.source)
    curve = airframe.thrust_curve
    if curve is not None:
        coefficients = (values.get(f"thrust_curve_{k}", c) for k, c in enumerate(curve.coefficients))
        exponent = values.get("voltage_exponent", curve.voltage_exponent)
        curve = dataclasses.replace(curve, coefficients=tuple(coefficients), voltage_exponent=exponent)
    rotors = tuple(
        dataclasses.replace(rotor, thrust_scale=values.get(f"rotor_scale_{k}", rotor.thrust_scale))
        for k, rotor in enumerate(airframe.rotors)
    )
    return dataclasses.replace(airframe, quantities=quantities, thrust_curve=curve, rotors=rotors)


def _names(name: str, count: int) -> tuple[str, ...]:
    return (name,) if count == 1 else tuple(name + axis for axis in _AXES[:count])
