"""The numbers of an airframe by name, one by one: "mass", "inertia_x", "thrust_curve_2", "rotor_scale_0", and so on.

Each with its value and standard deviation, and an airframe with some of them replaced: what is drawn from a covariance, or
moved by a little, is an airframe again.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from rotorid.models.airframe.airframe import Airframe, Quantity
from rotorid.models.system import quantity_names


def airframe_numbers(airframe: Airframe) -> dict[str, tuple[float, float]]:
    """Value and standard deviation (0 where unknown) of every number, in the units of the file."""
    found: dict[str, tuple[float, float]] = {}
    for name, quantity in airframe.quantities.items():
        stds = quantity.std or (0.0,)
        stds = stds * len(quantity.value) if len(stds) == 1 else stds
        names = quantity_names(name, len(quantity.value))
        found |= dict(zip(names, zip(quantity.value, stds, strict=True), strict=True))
    curve = airframe.thrust_curve
    if curve is not None:
        stds = curve.std or (0.0,) * len(curve.coefficients)
        names = quantity_names("thrust_curve", len(stds))
        found |= dict(zip(names, zip(curve.coefficients, stds, strict=True), strict=True))
        if curve.voltage_exponent:
            found["voltage_exponent"] = (curve.voltage_exponent, curve.voltage_exponent_std)
    names = quantity_names("rotor_scale", len(airframe.rotors))
    scales = [(rotor.thrust_scale, rotor.thrust_scale_std) for rotor in airframe.rotors]
    return found | dict(zip(names, scales, strict=True))


def with_numbers(airframe: Airframe, values: Mapping[str, float]) -> Airframe:
    """An airframe with some of its numbers replaced. Those that it does not have are left out."""
    quantities = dict(airframe.quantities)
    for name, quantity in airframe.quantities.items():
        names = quantity_names(name, len(quantity.value))
        value = tuple(values.get(n, v) for n, v in zip(names, quantity.value, strict=True))
        quantities[name] = Quantity(value, quantity.unit, quantity.std, quantity.source)
    curve = airframe.thrust_curve
    if curve is not None:
        names = quantity_names("thrust_curve", len(curve.coefficients))
        coefficients = (values.get(n, c) for n, c in zip(names, curve.coefficients, strict=True))
        exponent = values.get("voltage_exponent", curve.voltage_exponent)
        curve = dataclasses.replace(curve, coefficients=tuple(coefficients), voltage_exponent=exponent)
    names = quantity_names("rotor_scale", len(airframe.rotors))
    rotors = tuple(
        dataclasses.replace(rotor, thrust_scale=values.get(n, rotor.thrust_scale))
        for n, rotor in zip(names, airframe.rotors, strict=True)
    )
    return dataclasses.replace(airframe, quantities=quantities, thrust_curve=curve, rotors=rotors)
