"""Standard deviations of exported numbers: those of the airframe carried through whatever made the number of them.

    var f = sum_i (df/dp_i)^2 var p_i

by central differences over every number of the airframe, taken as independent: an airframe file keeps no correlations. A number
that follows from another whose standard deviation is not known has at least what is found.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator, Mapping, Sequence

from rotorid.models.airframe import Airframe, Quantity

_STEP = 1e-5  # of a number or of its standard deviation, whichever is larger
_ROUNDING = 1e-13  # a change, of the number, that rounding alone may make
_MOVES = 1e-9  # a change, of the number, below which it does not depend


@dataclasses.dataclass(frozen=True)
class Spread:
    """Standard deviation of a number. known: that of everything that it follows from is."""

    std: float
    known: bool

    def words(self, unit: str) -> str:
        """`std 0.1 kg`, `std at least 0.1 kg`, `std not known`, or of what has none `as given`."""
        unit = "" if unit == "1" else f" {unit}"
        if self.std > 0:
            return f"std {'' if self.known else 'at least '}{self.std:.3g}{unit}"
        return "as given" if self.known else "std not known"


def spreads(values: Callable[[Airframe], Mapping[str, float]], airframe: Airframe) -> Mapping[str, Spread]:
    """The standard deviation of every number that a function makes of an airframe."""
    middle = values(airframe)
    variance, known = dict.fromkeys(middle, 0.0), dict.fromkeys(middle, True)
    for std, moved in _numbers(airframe):
        step, ahead, behind = moved
        low, high = values(behind), values(ahead)
        for name, value in middle.items():
            change = high[name] - low[name]
            if abs(change) <= _ROUNDING * abs(value):
                continue
            if std is not None:
                variance[name] += (change / (2.0 * step) * std) ** 2
            elif abs(change) > _MOVES * max(abs(value), _MOVES):
                known[name] = False
    return {name: Spread(math.sqrt(variance[name]), known[name]) for name in middle}


def _numbers(airframe: Airframe) -> Iterator[tuple[float | None, tuple[float, Airframe, Airframe]]]:
    """Standard deviation of each number, None where unknown, and how far it was moved in two airframes, up and down."""

    def moved(value: float, std: float | None, put: Callable[[float], Airframe]):
        step = _STEP * max(abs(value), std or 0.0)
        return std, (step, put(value + step), put(value - step))

    for name, quantity in airframe.quantities.items():
        stds = _each(quantity)
        for k, (value, std) in enumerate(zip(quantity.value, stds, strict=True)):
            if std == 0.0 or (std is None and value == 0.0):
                continue

            def put(new: float, name: str = name, quantity: Quantity = quantity, k: int = k) -> Airframe:
                changed = dataclasses.replace(quantity, value=_with(quantity.value, k, new))
                return dataclasses.replace(airframe, quantities={**airframe.quantities, name: changed})

            yield moved(value, std, put)
    curve = airframe.thrust_curve
    if curve is not None:
        for k, value in enumerate(curve.coefficients):
            std = curve.std[k] if curve.std else None
            if std == 0.0 or (std is None and value == 0.0):
                continue

            def bend(new: float, k: int = k) -> Airframe:
                assert curve is not None
                bent = dataclasses.replace(curve, coefficients=_with(curve.coefficients, k, new))
                return dataclasses.replace(airframe, thrust_curve=bent)

            yield moved(value, std, bend)
    for k, rotor in enumerate(airframe.rotors):
        if rotor.thrust_scale_std > 0:

            def scale(new: float, k: int = k) -> Airframe:
                rotors = list(airframe.rotors)
                rotors[k] = dataclasses.replace(rotors[k], thrust_scale=new)
                return dataclasses.replace(airframe, rotors=tuple(rotors))

            yield moved(rotor.thrust_scale, rotor.thrust_scale_std, scale)


def _each(quantity: Quantity) -> Sequence[float | None]:
    if quantity.std is None:
        return [None] * len(quantity.value)
    return quantity.std if len(quantity.std) == len(quantity.value) else quantity.std * len(quantity.value)


def _with(values: Sequence[float], k: int, new: float) -> tuple[float, ...]:
    return (*values[:k], new, *values[k + 1 :])
