"""Export to a C header: constants as macros, in SI units, each with its standard deviation."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from rotorid.errors import AirframeError
from rotorid.export.file_header import as_c_comment, file_header
from rotorid.export.limitations import limitation
from rotorid.export.uncertainty import StandardDeviation, standard_deviations
from rotorid.models.airframe.airframe import Airframe
from rotorid.models.multirotor.properties import VehicleProperties, hover_trim, vehicle_properties
from rotorid.quoting import plain_name

_LONGEST = 60


def header_values(airframe: Airframe) -> Mapping[str, float]:
    """Values by name; elements of an array end in _0, _1 and so on."""
    return {
        name if len(values) == 1 and kind == "number" else f"{name}_{k}": v
        for name, kind, _, _, values in _constants(
            vehicle_properties(airframe, needs_torque_ratio=False, needs_thrust_curve=False)
        )
        for k, v in enumerate(values)
    }


def header_files(airframe: Airframe) -> dict[str, bytes]:
    """NAME.h."""
    stem = plain_name(airframe.name, "").lower().strip("_")
    if not stem:
        raise AirframeError(
            f"{airframe.source}: the name {airframe.name!r} has no letter or digit for a C name"
        )
    stem = f"airframe_{stem}" if stem[0].isdigit() else stem
    stem = stem[:_LONGEST]
    vehicle = vehicle_properties(airframe, needs_torque_ratio=False, needs_thrust_curve=False)
    stds, upper = standard_deviations(header_values, airframe), stem.upper()
    delay = vehicle.rotors.command_delay
    limitations = [limitation("delay_macro", delay=delay, macro=f"{upper}_COMMAND_DELAY")] if delay else []
    paragraphs = file_header(airframe, "constants for C", limitations)
    paragraphs.append(
        "Units: SI. Body: x forward, y left, z up (FLU). Array macros are initialisers: "
        f"static const double inertia[] = {upper}_INERTIA;"
    )
    text = as_c_comment(paragraphs) + f"#ifndef {upper}_H\n#define {upper}_H\n"
    for name, kind, unit, what, values in _constants(vehicle):
        own = [
            stds[name if len(values) == 1 and kind == "number" else f"{name}_{k}"] for k in range(len(values))
        ]
        text += f"\n/* {what}{'' if unit == '1' else f', {unit}'}; {_stds_text(own, unit)} */\n"
        shown = [_number(v) for v in values]
        body = shown[0] if kind == "number" else "{" + ", ".join(shown) + "}"
        text += f"#define {upper}_{name} {body}\n"
    text += f"\n/* number of rotors */\n#define {upper}_ROTORS {vehicle.rotors.count}\n\n#endif\n"
    return {f"{stem}.h": text.encode()}


def _constants(vehicle: VehicleProperties) -> list[tuple[str, str, str, str, Sequence[float]]]:
    """Name, kind, unit, meaning and values."""
    body, rotors, drag = vehicle.body, vehicle.rotors, vehicle.drag
    positions = rotors.positions + body.centre_of_mass
    J, hover, curve = body.inertia, hover_trim(vehicle), rotors.thrust_curve
    constants: list[tuple[str, str, str, str, Sequence[float]]] = [
        ("MASS", "number", "kg", "mass", [body.mass]),
        ("INERTIA", "array", "kg m^2", "moments of inertia xx, yy, zz", [J[0, 0], J[1, 1], J[2, 2]]),
        (
            "PRODUCTS_OF_INERTIA",
            "array",
            "kg m^2",
            "elements xy, xz, yz of the matrix of inertia",
            [J[0, 1], J[0, 2], J[1, 2]],
        ),
        ("CENTRE_OF_MASS", "array", "m", "from the origin of the body frame", list(body.centre_of_mass)),
        ("ROTOR_POSITION", "array", "m", "of each rotor from the origin, x, y, z", list(positions.ravel())),
        ("ROTOR_AXIS", "array", "1", "thrust axis of each rotor, x, y, z", list(rotors.axes.ravel())),
        ("ROTOR_SPIN", "array", "1", "1 for counter-clockwise rotation about the axis, else -1", list(rotors.spins)),
        ("ROTOR_SCALE", "array", "1", "thrust of each rotor over the thrust curve", list(rotors.thrust_scales)),
        ("THRUST_CURVE", "array", "N", "thrust of a rotor: sum of k_i c^i", list(curve.coefficients)),
        ("COMMAND_ZERO", "number", "1", "command at which c is 0", [curve.zero]),
        ("COMMAND_FULL", "number", "1", "command at which c is 1", [curve.full]),
        ("MOTOR_TIME_CONSTANT", "number", "s", "motor lag for rising thrust", [rotors.lag]),
        ("MOTOR_TIME_CONSTANT_DOWN", "number", "s", "motor lag for falling thrust", [rotors.lag_down]),
        ("COMMAND_DELAY", "number", "s", "from a command to the start of the motor response", [rotors.command_delay]),
        ("DRAG", "number", "N s/m", "force over speed", [drag.mean_linear]),
        ("ROTOR_DRAG", "number", "N^0.5 s/m", "force across a rotor's axis over speed and root of thrust", [drag.rotor]),
        ("ROTOR_INFLOW", "number", "N^0.5 s/m", "loss of thrust in a climb over speed and root of thrust", [drag.inflow]),
        ("TRANSLATIONAL_LIFT", "number", "N s^2/m^2", "thrust over the square of the speed across the axis", [drag.lift]),
        ("FLAPPING_MOMENT", "number", "N^0.5 s", "moment of a rotor over speed and root of thrust", [drag.flapping]),
        ("DRAG_AREA", "number", "m^2", "drag coefficient times area", [drag.mean_area]),
        ("ANGULAR_DRAG", "array", "N m s", "torque over rate about x, y, z", list(drag.angular)),
        ("ROTOR_MOMENTUM", "number", "N^0.5 m s", "angular momentum of a rotor over root of thrust", [rotors.momentum]),
        ("HOVER_COMMAND", "array", "1", "of each rotor in hover", list(hover.command)),
        ("HOVER_THRUST", "array", "N", "of each rotor in hover", list(hover.thrust)),
    ]  # fmt: skip
    if not rotors.has_thrust_curve:
        constants = [
            c
            for c in constants
            if c[0] not in ("THRUST_CURVE", "COMMAND_ZERO", "COMMAND_FULL", "HOVER_COMMAND")
        ]
    if math.isfinite(rotors.torque_ratio):
        constants.append(
            (
                "TORQUE_RATIO",
                "number",
                "m",
                "torque of a rotor over its thrust",
                [rotors.torque_ratio],
            )
        )
    if math.isfinite(curve.voltage):
        constants += [
            ("CURVE_VOLTAGE", "number", "V", "voltage of the thrust curve", [curve.voltage]),
            (
                "VOLTAGE_EXPONENT",
                "number",
                "1",
                "exponent of the voltage in the thrust",
                [curve.voltage_exponent],
            ),
        ]
    return constants


def _stds_text(stds: Sequence[StandardDeviation], unit: str) -> str:
    texts = [s.to_text(unit) for s in stds]
    return texts[0] if len(set(texts)) == 1 else "; ".join(texts)


def _number(value: float) -> str:
    text = f"{value + 0.0:.12g}"
    return text if any(c in text for c in ".en") else f"{text}.0"
