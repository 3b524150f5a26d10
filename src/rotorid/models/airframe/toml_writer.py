"""Airframes as TOML text, as `load_airframe` reads it back: the same airframe gives the same text."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence

from rotorid.models.airframe.airframe import Airframe, Quantity, Rotor
from rotorid.models.airframe.validation_toml import fly_back_tables
from rotorid.models.multirotor.thrust import ThrustCurve

_FORWARD_Z = (0.0, 0.0, 1.0)


def airframe_toml(airframe: Airframe) -> str:
    """The TOML text of an airframe."""
    tables = [[f"name = {_text(airframe.name)}", f"description = {_text(airframe.description)}"]]
    tables += [_quantity(name, quantity) for name, quantity in airframe.quantities.items()]
    if airframe.thrust_curve is not None:
        tables.append(_curve(airframe.thrust_curve))
    tables += [_rotor(rotor) for rotor in airframe.rotors]
    if airframe.fly_back is not None:
        tables += fly_back_tables(airframe.fly_back)
    return "\n\n".join("\n".join(table) for table in tables) + "\n"


def _quantity(name: str, quantity: Quantity) -> list[str]:
    lines = [f"[{name}]", f"value = {_numbers(quantity.value)}"]
    if quantity.std is not None:
        lines.append(f"std = {_numbers(quantity.std)}")
    lines.append(f"unit = {_text(quantity.unit)}")
    return lines + ([f"source = {_text(quantity.source)}"] if quantity.source else [])


def _curve(curve: ThrustCurve) -> list[str]:
    lines = ["[thrust_curve]", f"value = {_list(curve.coefficients)}"]
    lines += [f"std = {_list(curve.std)}"] if curve.std else []
    lines.append('unit = "N"')
    lines.append(f"dead_zone = {_list((curve.zero, curve.full))}")
    if math.isfinite(curve.voltage):
        lines += [f"voltage = {curve.voltage!r}", f"voltage_exponent = {curve.voltage_exponent!r}"]
        if curve.voltage_exponent_std:
            lines.append(f"voltage_exponent_std = {curve.voltage_exponent_std!r}")
    return lines + ([f"source = {_text(curve.source)}"] if curve.source else [])


def _rotor(rotor: Rotor) -> list[str]:
    lines = ["[[rotor]]", f"position = {_list(rotor.position)}", f"direction = {_text(rotor.direction)}"]
    lines += [f"axis = {_list(rotor.axis)}"] if rotor.axis != _FORWARD_Z else []
    lines += [f"thrust_scale = {rotor.thrust_scale!r}"] if rotor.thrust_scale != 1.0 else []
    return lines + ([f"thrust_scale_std = {rotor.thrust_scale_std!r}"] if rotor.thrust_scale_std else [])


def _numbers(values: Sequence[float]) -> str:
    return repr(float(values[0])) if len(values) == 1 else _list(values)


def _list(values: Sequence[float]) -> str:
    return f"[{', '.join(repr(float(v)) for v in values)}]"


def _text(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
