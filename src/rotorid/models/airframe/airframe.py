"""Airframes: geometry and parameters of a vehicle, from a TOML file and back, and their numbers by name.

    name = "my-quad"

    [mass]
    value = 1.0
    std = 0.3
    unit = "kg"
    source = "kitchen scale, without payload"

    [thrust_curve]              # thrust of one rotor over its normalised command
    value = [0.0, 1.2, 3.8]     # N: 1.2 c + 3.8 c^2
    unit = "N"
    dead_zone = [0.0, 1.0]      # commands at which c is 0 and 1
    source = "thrust stand"

Every table is a quantity: value, unit, and where known std (of the value, in unit) and source. A quantity that is left
out takes the default of the model that needs it. The whole file is checked: the error names an unknown table, a wrong unit or
an impossible number in one line.

The same airframe gives the same text. Its numbers have names one by one: "mass", "inertia_x", "thrust_curve_2",
"rotor_scale_0". An airframe with some of them replaced, such as a draw from a covariance, is an airframe again.
"""

from __future__ import annotations

import dataclasses
import math
import tomllib
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any, Final

from rotorid.documents import parse_toml, read_text
from rotorid.errors import AirframeError
from rotorid.models.airframe.shipped_names import airframe_names, register_airframes, shipped_airframes
from rotorid.models.airframe.validation import FlyBack
from rotorid.models.airframe.validation_toml import fly_back_tables, parse_fly_back
from rotorid.models.multirotor.thrust import ThrustCurve
from rotorid.models.residual import Residual
from rotorid.models.residual_files import read_residual
from rotorid.models.system import quantity_names
from rotorid.quoting import toml_string


@dataclasses.dataclass(frozen=True)
class Quantity:
    """A number or a list of numbers with unit, standard deviation (same unit; None: the default) and source."""

    value: tuple[float, ...]
    unit: str
    std: tuple[float, ...] | None = None
    source: str = ""

    @property
    def number(self) -> float:
        return self.value[0]


@dataclasses.dataclass(frozen=True)
class Rotor:
    """A rotor: position in m and thrust axis in the body frame (FLU), and its turn seen from above, "cw" or "ccw".

    thrust_scale: its thrust over that of the vehicle's thrust curve or coefficient. thrust_scale_std: 0 where unknown.
    position_std: standard deviation of its distance from the origin, m, 0 where it was measured; the distances of all rotors
    are wrong by the same share.
    """

    position: tuple[float, float, float]
    direction: str
    axis: tuple[float, float, float] = (0.0, 0.0, 1.0)
    thrust_scale: float = 1.0
    thrust_scale_std: float = 0.0
    position_std: float = 0.0


@dataclasses.dataclass(frozen=True)
class Airframe:
    """The geometry and parameters of a vehicle, as an airframe file has them.

    name: name of the vehicle. description: one line about it. quantities: each with its unit and standard deviation, by name.
    rotors: position and axis of each. thrust_curve: from the command to the thrust of one rotor; None if unknown. source:
    path of the file. fly_back: result of the validation on held-out flights; None without one. lag_of: what follows the
    commands with the motor time constant, "thrust" or "speed"; "" means that the file does not give it, and thrust is
    assumed. residual: learned acceleration that the physics of the file does not explain; None without one.
    """

    name: str
    description: str
    quantities: Mapping[str, Quantity]
    rotors: tuple[Rotor, ...] = ()
    thrust_curve: ThrustCurve | None = None
    source: str = ""
    fly_back: FlyBack | None = None
    lag_of: str = ""
    residual: Residual | None = None

    @property
    def has_speed_lag(self) -> bool:
        """Whether the rotor speeds follow the commands with the motor time constant, and not the thrusts."""
        return self.lag_of == "speed"

    @property
    def arm_relative_std(self) -> float:
        """Relative standard deviation of the rotors' distances from the origin."""
        distance = sum(math.hypot(*rotor.position) for rotor in self.rotors)
        return sum(rotor.position_std for rotor in self.rotors) / distance if distance > 0.0 else 0.0

    @property
    def mass(self) -> Quantity:
        return self.quantities["mass"]

    def get(self, name: str) -> Quantity | None:
        """A quantity, None where the file does not give it."""
        return self.quantities.get(name)

    def number(self, name: str, default: float = 0.0) -> float:
        """The value of a quantity with one number, or the default if the file does not give it."""
        quantity = self.get(name)
        return quantity.number if quantity else default

    def by_axis(self, name: str) -> float | tuple[float, ...]:
        """The value of a quantity with one number for all axes or one for each body axis; 0 if the file does not give it."""
        quantity = self.get(name)
        if quantity is None:
            return 0.0
        return quantity.value if len(quantity.value) > 1 else quantity.number

    def vector(self, name: str) -> tuple[float, ...]:
        """The three numbers of a quantity; one number stands for all axes. Zeros if the file does not give it."""
        quantity = self.get(name)
        if quantity is None:
            return (0.0, 0.0, 0.0)
        return quantity.value if len(quantity.value) > 1 else quantity.value * 3


QUANTITIES: Final[Mapping[str, tuple[str, int, bool]]] = {
    "mass": ("kg", 1, True),
    "inertia": ("kg m^2", 3, True),
    "products_of_inertia": ("kg m^2", 3, False),
    "centre_of_mass": ("m", 3, False),
    "motor_time_constant": ("s", 1, True),
    "motor_time_constant_down": ("s", 1, True),
    "command_delay": ("s", 1, False),
    "thrust_coefficient": ("N s^2", 1, True),
    "torque_coefficient": ("N m s^2", 1, True),
    "torque_ratio": ("m", 1, True),
    "rotor_inertia": ("kg m^2", 1, True),
    "thrust_scale": ("1", 1, True),
    "drag": ("N s/m", 1, True),
    "rotor_drag": ("N^0.5 s/m", 1, True),
    "rotor_inflow": ("N^0.5 s/m", 1, True),
    "translational_lift": ("N s^2/m^2", 1, True),
    "flapping_moment": ("N^0.5 s", 1, False),
    "drag_area": ("m^2", 1, True),
    "angular_drag": ("N m s", 1, True),
    "rotor_momentum": ("N^0.5 m s", 1, True),
    "imu_position": ("m", 3, False),
    "velocity_delay": ("s", 1, False),
    "attitude_delay": ("s", 1, False),
}
"""Quantities of an airframe file: unit, how many numbers, whether they must be positive.

motor_time_constant_down: of a rotor that slows down, where that differs. command_delay: from a logged command to the motor that
begins to follow it. rotor_drag, rotor_inflow: force of a rotor in its plane, and loss of its thrust, over the speed of the air
and the root of its thrust; translational_lift: gain of its thrust over the square of the speed in its plane; flapping_moment:
moment of a rotor, over the speed of the air and the root of its thrust (see `rotorid.models.multirotor.air`). drag_area: drag
coefficient times area. angular_drag: torque over body rate. rotor_momentum: angular momentum of a rotor over the root of its
thrust. drag, drag_area and angular_drag may have three numbers, by body axis. imu_position: of the accelerometer, from the
origin of the body frame. velocity_delay: by which logged velocity and position are later than the IMU; attitude_delay: by which
the attitude is.
"""

BY_AXIS: Final = ("drag", "drag_area", "angular_drag")
"""Quantities with one number for all axes, or one for each body axis."""

MOTOR_LAG: Final = 0.03
"""Time constant of motors in s, where a file does not give it."""

LAGS: Final = ("thrust", "speed")
"""What may follow the commands with the motor time constant."""

_TABLES = (*QUANTITIES, "thrust_curve", "rotor", "residual", "fly_back")
_ENTRIES = {"value", "unit", "std", "source"}
_UNIT = 1e-9
_CURVE_ENTRIES = _ENTRIES | {"dead_zone", "voltage", "voltage_exponent", "voltage_exponent_std"}
_ROTOR_ENTRIES = {"position", "position_std", "direction", "axis", "thrust_scale", "thrust_scale_std"}


def load_airframe(name: str | Path) -> Airframe:
    """Read the airframe of a TOML file, or one that comes with the package by its name.

    Args:
        name: path of a TOML file, or one of `airframe_names()`.
    Returns:
        The airframe, in SI units, body frame FLU.
    Raises:
        AirframeError: the file cannot be read or has a wrong entry, in one line that names the file and the
            entry.
    """
    path = Path(name)
    if path.suffix != ".toml" and not path.exists():
        folder = resources.files("rotorid.models.airframe")
        if str(name) in shipped_airframes():
            return parse_airframe(
                (folder / "shipped" / f"{name}.toml").read_text(encoding="utf-8"), f"{name}.toml (shipped)"
            )
        if str(name) in register_airframes():
            text = (folder / "identified" / str(name) / "airframe.toml").read_text(encoding="utf-8")
            return parse_airframe(text, f"{name} (register)")
        raise AirframeError(
            f"no airframe {str(name)!r}: give a TOML file, or one of {', '.join(airframe_names())}"
        )
    return parse_airframe(text_of(path, "an airframe is a TOML file"), str(path), path.parent)


def text_of(path: Path, expected: str) -> str:
    """The text of a file. expected: the kind of file, for the error. Raises AirframeError if it cannot be read."""
    try:
        return read_text(path)
    except UnicodeDecodeError:
        raise AirframeError(f"{path}: not a text file; {expected}") from None
    except OSError as error:
        raise AirframeError(f"{path}: cannot be read ({error.strerror})") from None


def parse_airframe(text: str, source: str, folder: Path | None = None) -> Airframe:
    """The airframe of a TOML text; source names it in errors. folder: of the files of its `[residual]`."""
    try:
        table = parse_toml(text)
    except tomllib.TOMLDecodeError as error:
        raise AirframeError(f"{source}: not valid TOML: {error}") from None
    name = str(table.pop("name", Path(source).stem))
    description = str(table.pop("description", ""))
    lag_of = table.pop("motor_lag", "")
    if lag_of not in ("", *LAGS):
        raise AirframeError(f'{source}: motor_lag must be "thrust" or "speed", what follows the commands')
    for key in table:
        if key not in _TABLES:
            raise AirframeError(f"{source}: unknown entry [{key}]; an airframe has {', '.join(_TABLES)}")
    if "mass" not in table:
        raise AirframeError(f"{source}: no [mass]; give its value in kg, and its std (default 30 %)")
    if not isinstance(table.get("rotor", []), list):
        raise AirframeError(f"{source}: [rotor] must be a list of tables, each [[rotor]]")
    quantities = {k: _quantity(source, k, table[k]) for k in QUANTITIES if k in table}
    _check_consistency(source, quantities)
    return Airframe(
        name=name,
        description=description,
        quantities=quantities,
        rotors=tuple(_rotor(source, i, r) for i, r in enumerate(table.get("rotor", []))),
        thrust_curve=_thrust_curve(source, table["thrust_curve"]) if "thrust_curve" in table else None,
        source=source,
        fly_back=parse_fly_back(source, table["fly_back"]) if "fly_back" in table else None,
        lag_of=lag_of,
        residual=read_residual(source, table["residual"], folder) if "residual" in table else None,
    )


def _check_consistency(source: str, quantities: Mapping[str, Quantity]) -> None:
    """Raise AirframeError if quantities contradict each other."""
    if "products_of_inertia" in quantities:
        if "inertia" not in quantities:
            raise AirframeError(f"{source}: [products_of_inertia] without [inertia]; give both")
        x, y, z = quantities["inertia"].value
        xy, xz, yz = quantities["products_of_inertia"].value
        determinant = x * (y * z - yz * yz) - xy * (xy * z - yz * xz) + xz * (xy * yz - y * xz)
        if x * y <= xy * xy or determinant <= 0:
            raise AirframeError(
                f"{source}: [inertia] with [products_of_inertia] is not positive definite; no body has such an inertia"
            )
    if {"torque_ratio", "torque_coefficient"} <= set(quantities):
        raise AirframeError(
            f"{source}: [torque_ratio] and [torque_coefficient] define the same quantity; give one of them"
        )


def _numbers(source: str, label: str, value: Any) -> tuple[float, ...]:
    items = value if isinstance(value, list) else [value]
    if not items or not all(isinstance(v, (int, float)) and not isinstance(v, bool) for v in items):
        raise AirframeError(f"{source}: {label} must be a number or a list of numbers, not {value!r}")
    if not all(math.isfinite(v) for v in items):
        raise AirframeError(f"{source}: {label} must be finite, not {value!r}")
    return tuple(float(v) for v in items)


def _table(source: str, key: str, table: Any, entries: set[str]) -> dict[str, Any]:
    if not isinstance(table, dict) or "value" not in table or "unit" not in table:
        raise AirframeError(f"{source}: [{key}] needs at least value and unit")
    for entry in table:
        if entry not in entries:
            raise AirframeError(
                f"{source}: [{key}] has an unknown entry {entry!r} (known: {', '.join(sorted(entries))})"
            )
    return table


def _quantity(source: str, key: str, raw: Any) -> Quantity:
    unit, count, positive = QUANTITIES[key]
    table = _table(source, key, raw, _ENTRIES)
    if table["unit"] != unit:
        raise AirframeError(f"{source}: [{key}] has unit {table['unit']!r}; give it in {unit!r}")
    value = _numbers(source, f"[{key}] value", table["value"])
    if len(value) == 3 and key in BY_AXIS:
        return _axis_quantity(source, key, value, table)
    if len(value) != count:
        raise AirframeError(f"{source}: [{key}] has {len(value)} numbers where {count} are needed")
    if positive and min(value) <= 0:
        raise AirframeError(f"{source}: [{key}] value {min(value):g} {unit} must be positive")
    return Quantity(value, unit, _std(source, key, table, count), str(table.get("source", "")))


def _axis_quantity(source: str, key: str, value: tuple[float, ...], table: Mapping[str, Any]) -> Quantity:
    """A quantity with one number for each body axis, some of which may be 0."""
    if min(value) < 0.0 or max(value) <= 0.0:
        raise AirframeError(f"{source}: [{key}] needs values of 0 or more, one of them above 0")
    return Quantity(value, QUANTITIES[key][0], _std(source, key, table, 3), str(table.get("source", "")))


def _std(source: str, key: str, table: Mapping[str, Any], count: int) -> tuple[float, ...] | None:
    std = _numbers(source, f"[{key}] std", table["std"]) if "std" in table else None
    if std is not None and (min(std) < 0 or len(std) not in (1, count)):
        raise AirframeError(f"{source}: [{key}] std must be 0 or more, one number or one per value")
    return std


def _thrust_curve(source: str, raw: Any) -> ThrustCurve:
    table = _table(source, "thrust_curve", raw, _CURVE_ENTRIES)
    if table["unit"] != "N":
        raise AirframeError(f"{source}: [thrust_curve] has unit {table['unit']!r}; give it in 'N'")
    coefficients = _numbers(source, "[thrust_curve] value", table["value"])
    dead_zone = _numbers(source, "[thrust_curve] dead_zone", table.get("dead_zone", [0.0, 1.0]))
    if len(dead_zone) != 2 or dead_zone[0] >= dead_zone[1]:
        raise AirframeError(f"{source}: [thrust_curve] dead_zone needs two commands, the lower first")
    if sum(coefficients) <= 0:
        raise AirframeError(
            f"{source}: [thrust_curve] gives no thrust at full command; check the signs of value"
        )
    exponent = _numbers(source, "[thrust_curve] voltage_exponent", table.get("voltage_exponent", 0.0))[0]
    if exponent != 0.0 and "voltage" not in table:
        raise AirframeError(f"{source}: [thrust_curve] with voltage_exponent needs voltage, in V")
    voltage = (
        _numbers(source, "[thrust_curve] voltage", table["voltage"])[0] if "voltage" in table else math.nan
    )
    if voltage <= 0:
        raise AirframeError(f"{source}: [thrust_curve] voltage {voltage:g} V must be positive")
    std = _numbers(source, "[thrust_curve] std", table["std"]) if "std" in table else ()
    exponent_std = _numbers(
        source, "[thrust_curve] voltage_exponent_std", table.get("voltage_exponent_std", 0.0)
    )[0]
    if min(*std, exponent_std, 0.0) < 0 or len(std) not in (0, len(coefficients)):
        raise AirframeError(f"{source}: [thrust_curve] std must be 0 or more, one number per value")
    return ThrustCurve(
        coefficients,
        dead_zone[0],
        dead_zone[1],
        voltage,
        exponent,
        str(table.get("source", "")),
        std,
        exponent_std,
    )


def _rotor(source: str, index: int, raw: Any) -> Rotor:
    label = f"[[rotor]] {index}"
    if not isinstance(raw, dict) or set(raw) - _ROTOR_ENTRIES or "position" not in raw:
        raise AirframeError(
            f'{source}: {label} needs position = [x, y, z] in m and direction = "cw" or "ccw"'
        )
    position = _numbers(source, f"{label} position", raw["position"])
    axis = _numbers(source, f"{label} axis", raw.get("axis", [0.0, 0.0, 1.0]))
    if len(position) != 3 or len(axis) != 3:
        raise AirframeError(f"{source}: {label} position and axis need three numbers")
    if raw.get("direction") not in ("cw", "ccw"):
        raise AirframeError(f'{source}: {label} direction must be "cw" or "ccw" as seen from above')
    length = math.hypot(*axis)
    if not 0.0 < length < math.inf:
        raise AirframeError(f"{source}: {label} axis has no length")
    if abs(length - 1.0) < _UNIT:
        length = 1.0  # so that an axis that was written with all digits is read back unchanged
    unit_axis = (axis[0] / length, axis[1] / length, axis[2] / length)
    scale, std, position_std = (
        _numbers(source, f"{label} {entry}", raw.get(entry, default))[0]
        for entry, default in (("thrust_scale", 1.0), ("thrust_scale_std", 0.0), ("position_std", 0.0))
    )
    if min(scale, std, position_std) < 0:
        raise AirframeError(
            f"{source}: {label} thrust_scale, thrust_scale_std and position_std must be 0 or more"
        )
    place = (position[0], position[1], position[2])
    return Rotor(place, raw["direction"], unit_axis, scale, std, position_std)


def airframe_numbers(airframe: Airframe) -> dict[str, tuple[float, float]]:
    """Value and standard deviation (0 where unknown) of every number, in the units of the file."""
    numbers: dict[str, tuple[float, float]] = {}
    for name, quantity in airframe.quantities.items():
        stds = quantity.std or (0.0,)
        stds = stds * len(quantity.value) if len(stds) == 1 else stds
        names = quantity_names(name, len(quantity.value))
        numbers |= dict(zip(names, zip(quantity.value, stds, strict=True), strict=True))
    curve = airframe.thrust_curve
    if curve is not None:
        stds = curve.std or (0.0,) * len(curve.coefficients)
        names = quantity_names("thrust_curve", len(stds))
        numbers |= dict(zip(names, zip(curve.coefficients, stds, strict=True), strict=True))
        if curve.voltage_exponent:
            numbers["voltage_exponent"] = (curve.voltage_exponent, curve.voltage_exponent_std)
    names = quantity_names("rotor_scale", len(airframe.rotors))
    scales = [(rotor.thrust_scale, rotor.thrust_scale_std) for rotor in airframe.rotors]
    return numbers | dict(zip(names, scales, strict=True))


def with_numbers(airframe: Airframe, values: Mapping[str, float]) -> Airframe:
    """An airframe with some of its numbers replaced. Numbers that it does not have are ignored."""
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


_FORWARD_Z = (0.0, 0.0, 1.0)


def airframe_toml(airframe: Airframe) -> str:
    """The TOML text of an airframe. The files of a residual are those of `rotorid.learning.model_files`."""
    tables = [[f"name = {toml_string(airframe.name)}", f"description = {toml_string(airframe.description)}"]]
    if airframe.lag_of:
        tables[0].append(f"motor_lag = {toml_string(airframe.lag_of)}")
    tables += [_quantity_lines(name, quantity) for name, quantity in airframe.quantities.items()]
    if airframe.thrust_curve is not None:
        tables.append(_curve_lines(airframe.thrust_curve))
    tables += [rotor_lines(rotor) for rotor in airframe.rotors]
    if airframe.residual is not None:
        tables.append(["[residual]", 'model = "model.json"', 'weights = "weights.safetensors"'])
    if airframe.fly_back is not None:
        tables += fly_back_tables(airframe.fly_back)
    return "\n\n".join("\n".join(table) for table in tables) + "\n"


def _quantity_lines(name: str, quantity: Quantity) -> list[str]:
    lines = [f"[{name}]", f"value = {_numbers_text(quantity.value)}"]
    if quantity.std is not None:
        lines.append(f"std = {_numbers_text(quantity.std)}")
    lines.append(f"unit = {toml_string(quantity.unit)}")
    return lines + ([f"source = {toml_string(quantity.source)}"] if quantity.source else [])


def _curve_lines(curve: ThrustCurve) -> list[str]:
    lines = ["[thrust_curve]", f"value = {_list_text(curve.coefficients)}"]
    lines += [f"std = {_list_text(curve.std)}"] if curve.std else []
    lines.append('unit = "N"')
    lines.append(f"dead_zone = {_list_text((curve.zero, curve.full))}")
    if math.isfinite(curve.voltage):
        lines += [f"voltage = {curve.voltage!r}", f"voltage_exponent = {curve.voltage_exponent!r}"]
    if curve.voltage_exponent_std:
        lines.append(f"voltage_exponent_std = {curve.voltage_exponent_std!r}")
    return lines + ([f"source = {toml_string(curve.source)}"] if curve.source else [])


def rotor_lines(rotor: Rotor) -> list[str]:
    """The lines of a rotor's table in an airframe file, the header first."""
    lines = [
        "[[rotor]]",
        f"position = {_list_text(rotor.position)}",
        *([f"position_std = {rotor.position_std!r}"] if rotor.position_std else []),
        f"direction = {toml_string(rotor.direction)}",
    ]
    lines += [f"axis = {_list_text(rotor.axis)}"] if rotor.axis != _FORWARD_Z else []
    lines += [f"thrust_scale = {rotor.thrust_scale!r}"] if rotor.thrust_scale != 1.0 else []
    return lines + ([f"thrust_scale_std = {rotor.thrust_scale_std!r}"] if rotor.thrust_scale_std else [])


def _numbers_text(values: Sequence[float]) -> str:
    return repr(float(values[0])) if len(values) == 1 else _list_text(values)


def _list_text(values: Sequence[float]) -> str:
    return f"[{', '.join(repr(float(v)) for v in values)}]"
