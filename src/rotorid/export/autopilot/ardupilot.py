"""Export to ArduPilot: parameters of its motors and estimator, and the frame of its simulator (see `ardupilot_frame`).

ArduPilot's equations (its sources: AP_MotorsMulticopter, AP_NavEKF3):

    thrust / full thrust = e c^2 + (1 - e) c     c: from MOT_SPIN_MIN to MOT_SPIN_MAX of the range of PWM, e: MOT_THST_EXPO
    specific force of drag = -MCOEF v - 1/2 rho |v| v / BCOEF       of the body's x and y
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Final

from rotorid.export.autopilot.ardupilot_frame import PWM, frame_limitations, frame_unit, frame_values
from rotorid.export.file_header import as_hash_comments, as_markdown, file_header
from rotorid.export.limitations import (
    DRAG_QUANTITIES,
    command_delay,
    limitation,
    missing_parameters,
    out_of_range,
    thrust_curve_error,
)
from rotorid.export.text import NO_DRAG_AREA
from rotorid.export.uncertainty import StandardDeviation, standard_deviations
from rotorid.findings import Finding
from rotorid.geometry.gravity import STANDARD_GRAVITY
from rotorid.models.airframe.airframe import Airframe
from rotorid.models.multirotor.properties import (
    VehicleProperties,
    collective_fraction,
    hover_trim,
    limited_thrust_expo,
    vehicle_properties,
)
from rotorid.quoting import markdown_text, one_line

_FRAMES: Final = {3: "tri", 4: "x", 6: "hexax", 8: "octa", 10: "deca", 12: "dodeca-hexa"}
_LIMITS: Final = {"MOT_THST_HOVER": (0.125, 0.6875), "MOT_SPIN_MIN": (0.0, 0.3), "MOT_SPIN_MAX": (0.9, 1.0)}


def parameter_values(airframe: Airframe) -> Mapping[str, float]:
    """Parameters of the autopilot by name."""
    vehicle = vehicle_properties(airframe, needs_torque_ratio=False)
    hover = hover_trim(vehicle)
    values = {
        "MOT_PWM_MIN": PWM[0],
        "MOT_PWM_MAX": PWM[1],
        "MOT_SPIN_MIN": vehicle.rotors.thrust_curve.zero,
        "MOT_SPIN_MAX": vehicle.rotors.thrust_curve.full,
        "MOT_THST_EXPO": limited_thrust_expo(vehicle.rotors.thrust_fraction_in_range),
        "MOT_THST_HOVER": collective_fraction(vehicle, STANDARD_GRAVITY),
    }
    if math.isfinite(vehicle.rotors.thrust_curve.voltage):
        values["MOT_BAT_VOLT_MAX"] = vehicle.rotors.thrust_curve.voltage
    bluff = vehicle.body.mass / vehicle.drag.mean_area if vehicle.drag.mean_area else 0.0
    if not any(airframe.get(name) for name in DRAG_QUANTITIES):
        return values
    return values | {
        "EK3_DRAG_BCOEF_X": bluff,
        "EK3_DRAG_BCOEF_Y": bluff,
        "EK3_DRAG_MCOEF": (vehicle.drag.mean_linear + vehicle.drag.rotor_coefficient(hover.thrust))
        / vehicle.body.mass,
    }


def ardupilot_files(airframe: Airframe) -> dict[str, bytes]:
    """vehicle.param for the autopilot, frame.json for SITL, and README.md with standard deviations and limitations."""
    vehicle = vehicle_properties(airframe, needs_torque_ratio=False)
    values, stds = parameter_values(airframe), standard_deviations(parameter_values, airframe)
    limitations = parameter_limitations(vehicle, values)
    text = as_hash_comments(
        [*file_header(airframe, "parameters of ArduPilot", limitations, fills_missing=False), ""]
    )
    for name, value in values.items():
        comment = NO_DRAG_AREA if "BCOEF" in name and not value else stds[name].to_text("1")
        text += f"# {name}{_unit(name)}: {comment}\n{name},{value + 0.0:.9g}\n"
    frame, frame_stds = frame_values(airframe), standard_deviations(frame_values, airframe)
    about = f"{one_line(airframe.name)}, by rotorid; standard deviations, and limitations: README.md"
    packed: dict[str, object] = {"about": about.replace("#", "no. "), **_packed(frame)}
    return {
        "vehicle.param": text.encode(),
        "frame.json": (json.dumps(packed, indent=1) + "\n").encode(),
        "README.md": _readme(airframe, vehicle, frame, frame_stds).encode(),
    }


def _packed(values: Mapping[str, float]) -> dict[str, object]:
    """Collect vectors as lists, and counts as integers."""
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


def _readme(
    airframe: Airframe,
    vehicle: VehicleProperties,
    values: Mapping[str, float],
    stds: Mapping[str, StandardDeviation],
) -> str:
    name = _FRAMES.get(vehicle.rotors.count, "FRAME")
    lines = [
        f"# {markdown_text(airframe.name)} in ArduPilot's simulator",
        "",
        as_markdown(
            file_header(airframe, "the simulator's frame of ArduPilot", frame_limitations(vehicle, values))
        ),
        "    sim_vehicle.py -v ArduCopter --model "
        + f"{name}:$PWD/frame.json --add-param-file=vehicle.param",
        "",
        "Rotors are numbered by their outputs. FRAME_CLASS and FRAME_TYPE must select a frame with the same "
        f"{vehicle.rotors.count} rotors in the same order.",
        "",
        "Numbers with a standard deviation (all others are given by the airframe, or chosen):",
        "",
        "| number | value | unit | standard deviation |",
        "|---|---|---|---|",
    ]
    for name, value in values.items():
        std = stds[name].to_text(frame_unit(name))
        if std != "given value":
            lines.append(f"| `{name}` | {value + 0.0:.6g} | {frame_unit(name)} | {std} |")
    return "\n".join(lines) + "\n"


def _unit(name: str) -> str:
    return {
        "MOT_PWM_MIN": ", us",
        "MOT_PWM_MAX": ", us",
        "MOT_BAT_VOLT_MAX": ", V",
        "EK3_DRAG_MCOEF": ", 1/s",
    }.get(name, ", kg/m^2" if "BCOEF" in name else "")


def parameter_limitations(vehicle: VehicleProperties, values: Mapping[str, float]) -> list[Finding]:
    """What the parameters cannot represent, with the size of each error. values: from `parameter_values`."""
    rotors = vehicle.rotors
    found = missing_parameters({"EK3_DRAG_BCOEF_X", "EK3_DRAG_BCOEF_Y", "EK3_DRAG_MCOEF"} - set(values))
    found += thrust_curve_error("MOT_THST_EXPO", values["MOT_THST_EXPO"], rotors.thrust_fraction_in_range)
    found.append(limitation("pwm_range_assumed"))
    found += out_of_range("ArduPilot", values, _LIMITS)
    if rotors.thrust_curve.voltage_exponent:
        found.append(limitation("battery_compensation", exponent=rotors.thrust_curve.voltage_exponent))
    if vehicle.drag.rotor:
        found.append(limitation("rotor_drag_at_hover", parameter="EK3_DRAG_MCOEF"))
    return found + command_delay(vehicle)
