"""An airframe for ArduPilot: parameters of its motors and estimator, and the frame of its simulator (see `ardupilot_frame`).

What ArduPilot computes (its sources: AP_MotorsMulticopter, AP_NavEKF3):

    thrust / full thrust = e c^2 + (1 - e) c     c: from MOT_SPIN_MIN to MOT_SPIN_MAX of the range of PWM, e: MOT_THST_EXPO
    specific force of drag = -MCOEF v - 1/2 rho |v| v / BCOEF       of the body's x and y
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Final

from rotorid.export.vehicle.ardupilot_frame import (
    GRAVITY_MSS,
    PWM,
    delay_sentence,
    frame_sentences,
    frame_unit,
    frame_values,
    share_over_c,
)
from rotorid.export.vehicle.curve_fit import curve_sentence, thrust_factor
from rotorid.export.vehicle.facts import DRAGS, NO_AREA, Facts, facts_of
from rotorid.export.vehicle.heading import hashed, heading, in_markdown, left_out
from rotorid.export.vehicle.spread import Spread, spreads
from rotorid.models.airframe import Airframe

_FRAMES: Final = {3: "tri", 4: "x", 6: "hexax", 8: "octa", 10: "deca", 12: "dodeca-hexa"}
_LIMITS: Final = {"MOT_THST_HOVER": (0.125, 0.6875), "MOT_SPIN_MIN": (0.0, 0.3), "MOT_SPIN_MAX": (0.9, 1.0)}


def parameter_values(airframe: Airframe) -> Mapping[str, float]:
    """Parameters of the autopilot by name."""
    f = facts_of(airframe, torque=False)
    hover = f.hover()
    values = {
        "MOT_PWM_MIN": PWM[0],
        "MOT_PWM_MAX": PWM[1],
        "MOT_SPIN_MIN": f.curve.zero,
        "MOT_SPIN_MAX": f.curve.full,
        "MOT_THST_EXPO": thrust_factor(share_over_c(f)),
        "MOT_THST_HOVER": f.mass * GRAVITY_MSS / float(f.full @ f.axes[:, 2]),
    }
    if math.isfinite(f.curve.voltage):
        values["MOT_BAT_VOLT_MAX"] = f.curve.voltage
    bluff = f.mass / f.drag_area if f.drag_area else 0.0
    if not any(airframe.get(name) for name in DRAGS):
        return values
    return values | {
        "EK3_DRAG_BCOEF_X": bluff,
        "EK3_DRAG_BCOEF_Y": bluff,
        "EK3_DRAG_MCOEF": (f.drag + f.rotor_drag_at(hover.thrust)) / f.mass,
    }


def ardupilot_files(airframe: Airframe) -> dict[str, bytes]:
    """vehicle.param for the autopilot, frame.json for SITL, and README.md with standard deviations and mismatches."""
    f = facts_of(airframe, torque=False)
    values, stds = parameter_values(airframe), spreads(parameter_values, airframe)
    missing = {"EK3_DRAG_BCOEF_X", "EK3_DRAG_BCOEF_Y", "EK3_DRAG_MCOEF"} - set(values)
    sentences = [*left_out(missing), *_parameter_sentences(f, values)]
    text = hashed([*heading(airframe, "parameters of ArduPilot", sentences, fills=False), ""])
    for name, value in values.items():
        words = NO_AREA if "BCOEF" in name and not value else stds[name].words("1")
        text += f"# {name}{_unit(name)}: {words}\n{name},{value + 0.0:.9g}\n"
    frame, frame_stds = frame_values(airframe), spreads(frame_values, airframe)
    about = f"{airframe.name}, by rotorid; standard deviations, and what is not exact: README.md"
    packed: dict[str, object] = {"about": about.replace("#", "no. "), **_packed(frame)}
    return {
        "vehicle.param": text.encode(),
        "frame.json": (json.dumps(packed, indent=1) + "\n").encode(),
        "README.md": _readme(airframe, f, frame, frame_stds).encode(),
    }


def _packed(values: Mapping[str, float]) -> dict[str, object]:
    """With vectors as lists, and whole numbers without a point."""
    packed: dict[str, object] = {}
    for name, value in values.items():
        stem, _, last = name.rpartition("_")
        number = int(value) if name == "num_motors" else float(f"{value + 0.0:.9g}")
        if last in ("0", "1", "2") and stem:
            vector = packed.setdefault(stem, [])
            assert isinstance(vector, list)
            vector.append(number)
        else:
            packed[name] = number
    return packed


def _readme(airframe: Airframe, f: Facts, values: Mapping[str, float], stds: Mapping[str, Spread]) -> str:
    name = _FRAMES.get(f.count, "FRAME")
    lines = [
        f"# {airframe.name} in ArduPilot's simulator",
        "",
        in_markdown(heading(airframe, "the simulator's frame of ArduPilot", frame_sentences(f, values))),
        "    sim_vehicle.py -v ArduCopter --model "
        + f"{name}:$PWD/frame.json --add-param-file=vehicle.param",
        "",
        f"Rotors are in the order of their outputs; FRAME_CLASS and FRAME_TYPE must have the same {f.count} in the same order.",
        "",
        "What follows from uncertain numbers (the others are as the airframe has them, or choices):",
        "",
        "| number | value | unit | standard deviation |",
        "|---|---|---|---|",
    ]
    for name, value in values.items():
        words = stds[name].words(frame_unit(name))
        if words != "as given":
            lines.append(f"| `{name}` | {value + 0.0:.6g} | {frame_unit(name)} | {words} |")
    return "\n".join(lines) + "\n"


def _unit(name: str) -> str:
    return {
        "MOT_PWM_MIN": ", us",
        "MOT_PWM_MAX": ", us",
        "MOT_BAT_VOLT_MAX": ", V",
        "EK3_DRAG_MCOEF": ", 1/s",
    }.get(name, ", kg/m^2" if "BCOEF" in name else "")


def _parameter_sentences(f: Facts, values: Mapping[str, float]) -> list[str]:
    found = curve_sentence("MOT_THST_EXPO", values["MOT_THST_EXPO"], share_over_c(f))
    found.append(
        "MOT_PWM_MIN, MOT_PWM_MAX: the range over which commands were counted; if the vehicle has another, keep its own"
    )
    found += [
        f"{name} {values[name]:.3g} is outside of ArduPilot's range, {low:g} to {high:g}"
        for name, (low, high) in _LIMITS.items()
        if not low <= values[name] <= high
    ]
    if f.curve.voltage_exponent:
        found.append(
            "MOT_BAT_VOLT_MAX: the voltage at which the curve holds; ArduPilot compensates once MOT_BAT_VOLT_MIN is set, too. "
            "It takes the exponent 1 for the linear part of the curve and 2 for the other; found were "
            f"{f.curve.voltage_exponent:g}"
        )
    if f.rotor_drag:
        found.append("EK3_DRAG_MCOEF has the rotors' drag at the thrust of hover")
    return found + delay_sentence(f)
