"""Standard deviations of exported values, by first-order propagation from the airframe.

    var f = sum_i (df/dp_i)^2 var p_i

by central differences over every parameter of the airframe. Parameters are treated as independent, since an airframe file has
no correlations. If a value depends on a parameter without a standard deviation, the result is a lower bound.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator, Mapping, Sequence

from rotorid.models.airframe.airframe import Airframe, Quantity

_STEP = 1e-5  # of a parameter or of its standard deviation, whichever is larger
_ROUNDING = 1e-13  # largest relative change by rounding
_INDEPENDENT = 1e-9  # relative change below which a value does not depend on a parameter


@dataclasses.dataclass(frozen=True)
class StandardDeviation:
    """Standard deviation of a value. is_known: whether those of all its parameters are known; else std is a lower bound."""

    std: float
    is_known: bool

    def to_text(self, unit: str) -> str:
        """`std 0.1 kg`, `std at least 0.1 kg`, `std unknown`, or `given value` for a value without uncertainty."""
        unit = "" if unit == "1" else f" {unit}"
        if self.std > 0:
            return f"std {'' if self.is_known else 'at least '}{self.std:.3g}{unit}"
        return "given value" if self.is_known else "std unknown"


def standard_deviations(
    values: Callable[[Airframe], Mapping[str, float]], airframe: Airframe
) -> Mapping[str, StandardDeviation]:
    """Propagate the standard deviations of an airframe.

    Args:
        values: computes the values by name.
        airframe: the airframe.
    Returns:
        The standard deviation of each value, by name.
    """
    middle = values(airframe)
    variance, known = dict.fromkeys(middle, 0.0), dict.fromkeys(middle, True)
    for std, (step, ahead, behind) in _perturbed(airframe):
        low, high = values(behind), values(ahead)
        for name, value in middle.items():
            change = high[name] - low[name]
            if abs(change) <= _ROUNDING * abs(value):
                continue
            if std is not None:
                variance[name] += (change / (2.0 * step) * std) ** 2
            elif abs(change) > _INDEPENDENT * max(abs(value), _INDEPENDENT):
                known[name] = False
    return {name: StandardDeviation(math.sqrt(variance[name]), known[name]) for name in middle}


def _perturbed(airframe: Airframe) -> Iterator[tuple[float | None, tuple[float, Airframe, Airframe]]]:
    """Standard deviation of each parameter (None: unknown), the step, and the airframes with it increased and decreased."""

    def perturbed(value: float, std: float | None, with_value: Callable[[float], Airframe]):
        step = _STEP * max(abs(value), std or 0.0)
        return std, (step, with_value(value + step), with_value(value - step))

    for name, quantity in airframe.quantities.items():
        stds = _stds(quantity)
        for k, (value, std) in enumerate(zip(quantity.value, stds, strict=True)):
            if std == 0.0 or (std is None and value == 0.0):
                continue

            def with_value(
                new: float, name: str = name, quantity: Quantity = quantity, k: int = k
            ) -> Airframe:
                changed = dataclasses.replace(quantity, value=_replaced(quantity.value, k, new))
                return dataclasses.replace(airframe, quantities={**airframe.quantities, name: changed})

            yield perturbed(value, std, with_value)
    curve = airframe.thrust_curve
    if curve is not None:
        for k, value in enumerate(curve.coefficients):
            std = curve.std[k] if curve.std else None
            if std == 0.0 or (std is None and value == 0.0):
                continue

            def with_coefficient(new: float, k: int = k) -> Airframe:
                assert curve is not None
                changed = dataclasses.replace(curve, coefficients=_replaced(curve.coefficients, k, new))
                return dataclasses.replace(airframe, thrust_curve=changed)

            yield perturbed(value, std, with_coefficient)
    for k, rotor in enumerate(airframe.rotors):
        if rotor.thrust_scale_std > 0:

            def with_scale(new: float, k: int = k) -> Airframe:
                rotors = list(airframe.rotors)
                rotors[k] = dataclasses.replace(rotors[k], thrust_scale=new)
                return dataclasses.replace(airframe, rotors=tuple(rotors))

            yield perturbed(rotor.thrust_scale, rotor.thrust_scale_std, with_scale)


def _stds(quantity: Quantity) -> Sequence[float | None]:
    if quantity.std is None:
        return [None] * len(quantity.value)
    return quantity.std if len(quantity.std) == len(quantity.value) else quantity.std * len(quantity.value)


def _replaced(values: Sequence[float], k: int, new: float) -> tuple[float, ...]:
    return (*values[:k], new, *values[k + 1 :])
