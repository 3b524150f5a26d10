"""An airframe as a C header: constants as macros, in SI units, each with its standard deviation."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence

from rotorid.errors import AirframeError
from rotorid.export.vehicle.facts import Facts, facts_of
from rotorid.export.vehicle.heading import heading, in_c
from rotorid.export.vehicle.spread import Spread, spreads
from rotorid.models.airframe import Airframe

_LONGEST = 60


def header_values(airframe: Airframe) -> Mapping[str, float]:
    """Numbers by name; those of an array with _0, _1 and so on after it."""
    return {
        name if len(values) == 1 and kind == "number" else f"{name}_{k}": v
        for name, kind, _, _, values in _constants(facts_of(airframe, torque=False, commands=False))
        for k, v in enumerate(values)
    }


def header_files(airframe: Airframe) -> dict[str, bytes]:
    """NAME.h."""
    stem = re.sub(r"[^a-z0-9]+", "_", airframe.name.lower()).strip("_")
    if not stem:
        raise AirframeError(
            f"{airframe.source}: its name {airframe.name!r} has no letter or digit for names in C"
        )
    stem = f"airframe_{stem}" if stem[0].isdigit() else stem
    stem = stem[:_LONGEST]
    f = facts_of(airframe, torque=False, commands=False)
    stds, upper = spreads(header_values, airframe), stem.upper()
    delay = [f"commands arrive {f.delay:g} s late: {upper}_COMMAND_DELAY"] if f.delay else []
    paragraphs = heading(airframe, "constants for C", delay)
    paragraphs.append(
        "Units: SI. Body: x forward, y left, z up (FLU); an element of a vector is positive in that direction. Arrays "
        "are initialisers: "
        f"static const double inertia[] = {upper}_INERTIA;"
    )
    text = in_c(paragraphs) + f"#ifndef {upper}_H\n#define {upper}_H\n"
    for name, kind, unit, what, values in _constants(f):
        own = [
            stds[name if len(values) == 1 and kind == "number" else f"{name}_{k}"] for k in range(len(values))
        ]
        text += f"\n/* {what}{'' if unit == '1' else f', {unit}'}; {_words(own, unit)} */\n"
        shown = [_number(v) for v in values]
        body = shown[0] if kind == "number" else "{" + ", ".join(shown) + "}"
        text += f"#define {upper}_{name} {body}\n"
    text += f"\n/* how many rotors */\n#define {upper}_ROTORS {f.count}\n\n#endif\n"
    return {f"{stem}.h": text.encode()}


def _constants(f: Facts) -> list[tuple[str, str, str, str, Sequence[float]]]:
    """Name, kind, unit, meaning and values."""
    J, hover, curve = f.inertia, f.hover(), f.curve
    found: list[tuple[str, str, str, str, Sequence[float]]] = [
        ("MASS", "number", "kg", "mass", [f.mass]),
        ("INERTIA", "array", "kg m^2", "moments of inertia xx, yy, zz", [J[0, 0], J[1, 1], J[2, 2]]),
        (
            "PRODUCTS_OF_INERTIA",
            "array",
            "kg m^2",
            "elements xy, xz, yz of the matrix of inertia",
            [J[0, 1], J[0, 2], J[1, 2]],
        ),
        ("CENTRE_OF_MASS", "array", "m", "from the origin of the body frame", list(f.centre)),
        ("ROTOR_POSITION", "array", "m", "of each rotor from the origin, x, y, z", list((f.places + f.centre).ravel())),
        ("ROTOR_AXIS", "array", "1", "along which each rotor pulls, x, y, z", list(f.axes.ravel())),
        ("ROTOR_SPIN", "array", "1", "1 for a rotor that turns counter-clockwise about its axis, else -1", list(f.spins)),
        ("ROTOR_SCALE", "array", "1", "thrust of each rotor over the curve's", list(f.scales)),
        ("THRUST_CURVE", "array", "N", "thrust of a rotor: sum of k_i c^i", list(curve.coefficients)),
        ("COMMAND_ZERO", "number", "1", "command at which c is 0", [curve.zero]),
        ("COMMAND_FULL", "number", "1", "command at which c is 1", [curve.full]),
        ("MOTOR_TIME_CONSTANT", "number", "s", "of a rotor that speeds up", [f.lag]),
        ("MOTOR_TIME_CONSTANT_DOWN", "number", "s", "of a rotor that slows down", [f.lag_down]),
        ("COMMAND_DELAY", "number", "s", "from a command to the motor that follows it", [f.delay]),
        ("DRAG", "number", "N s/m", "force over speed", [f.drag]),
        ("ROTOR_DRAG", "number", "N^0.5 s/m", "force across a rotor's axis over speed and root of thrust", [f.rotor_drag]),
        ("DRAG_AREA", "number", "m^2", "drag coefficient times area", [f.drag_area]),
        ("ANGULAR_DRAG", "number", "N m s", "torque over rate", [f.angular_drag]),
        ("HOVER_COMMAND", "array", "1", "of each rotor in a hover", list(hover.command)),
        ("HOVER_THRUST", "array", "N", "of each rotor in a hover", list(hover.thrust)),
    ]  # fmt: skip
    if not f.commanded:
        found = [
            c for c in found if c[0] not in ("THRUST_CURVE", "COMMAND_ZERO", "COMMAND_FULL", "HOVER_COMMAND")
        ]
    if math.isfinite(f.torque_ratio):
        found.append(("TORQUE_RATIO", "number", "m", "torque of a rotor over its thrust", [f.torque_ratio]))
    if math.isfinite(curve.voltage):
        found += [
            ("CURVE_VOLTAGE", "number", "V", "at which the curve holds", [curve.voltage]),
            (
                "VOLTAGE_EXPONENT",
                "number",
                "1",
                "thrust goes with this power of the voltage",
                [curve.voltage_exponent],
            ),
        ]
    return found


def _words(stds: Sequence[Spread], unit: str) -> str:
    words = [s.words(unit) for s in stds]
    return words[0] if len(set(words)) == 1 else "; ".join(words)


def _number(value: float) -> str:
    text = f"{value + 0.0:.12g}"
    return text if any(c in text for c in ".en") else f"{text}.0"
