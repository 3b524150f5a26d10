"""Export to RLtools: the parameters of its quadrotor simulator L2F, for Python (`l2f`) and C++.

Equations of `rl_tools/rl/environments/l2f`, with u the action from -1 to 1, r the state of a rotor that it calls rpm, and d
and e the directions of a rotor's thrust and torque:

    a = min + (u + 1) (max - min) / 2        r' = (a - r) / tau        tau: rising for a >= r, else falling
    T = k_0 + k_1 r + k_2 r^2
    m v' = R sum_i T_i d_i + m g             J w' = sum_i (p_i x T_i d_i + kappa_i T_i e_i) - w x J w

Here r is the command of a rotor, and min and max are the ends of its dead zone, so that k is the thrust curve over the command.
e = -d for a rotor that turns counter-clockwise about its thrust. A curve of higher order is fitted by least squares, exact at
the mean command of hover. Frames are rotorid's: x forward, y left, z up, quaternion w x y z from body to world.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np
from jaxtyping import Float

from rotorid.export.file_header import as_c_comment, as_docstring, file_header
from rotorid.export.limitations import (
    battery_voltage,
    command_delay,
    limitation,
    no_drag,
    rotor_aerodynamics,
    rotor_moments,
)
from rotorid.export.simulator.rotor_speeds import check_quadrotor, decimal, in_python
from rotorid.export.uncertainty import StandardDeviation, standard_deviations
from rotorid.export.xml import number
from rotorid.findings import Finding
from rotorid.models.airframe.airframe import Airframe
from rotorid.models.multirotor.properties import (
    RotorSet,
    VehicleProperties,
    hover_trim,
    largest_difference,
    vehicle_properties,
)
from rotorid.models.multirotor.thrust import ThrustCurve
from rotorid.models.system import GRAVITY
from rotorid.quoting import plain_name

SOURCE: Final = "l2f 2.0.18, and rl-tools/rl-tools at 9acdf5c8"
"""What was read and compiled."""

STEP: Final = 0.01
"""`dt` of l2f, s."""

_LARGEST_ERROR = 0.05  # of a step of the lag, over the gap
_SMALL = 1e-9
_ORDER = 2  # of the thrust curve in L2F
_NAME = 60  # letters
_GRID = np.linspace(0.0, 1.0, 101)

_UNITS: Final = {
    "rotor_positions": "m", "rotor_thrust_directions": "1", "rotor_torque_directions": "1",
    "rotor_thrust_coefficients": "N", "rotor_torque_constants": "m", "rotor_time_constants_rising": "s",
    "rotor_time_constants_falling": "s", "mass": "kg", "gravity": "m/s^2", "J": "kg m^2", "J_inv": "1/(kg m^2)",
    "hovering_throttle_relative": "1",
}  # fmt: skip
"""Fields of `Dynamics` in the order of C++, without the last one, `action_limit`."""

_RANDOMISED = (
    "thrust_to_weight", "torque_to_inertia", "mass", "rotor_time_constant_rising", "rotor_time_constant_falling",
    "rotor_torque_constant",
)  # fmt: skip

_TASK: Final[Mapping[str, Mapping[str, Any]]] = {
    "integration": {"dt": STEP},
    "mdp": {
        "init": {
            "guidance": 0.1, "max_position": 0.5, "max_angle": 0.5 * math.pi, "max_linear_velocity": 1.0,
            "max_angular_velocity": 1.0, "relative_rpm": True, "min_rpm": -1.0, "max_rpm": 0.0,
        },
        "reward": {
            "non_negative": False, "scale": 0.1, "constant": 1.1, "termination_penalty": 0.0, "position": 10.0,
            "position_clip": 2.5, "orientation": 1.0, "linear_velocity": 0.0, "angular_velocity": 0.0,
            "linear_acceleration": 0.0, "angular_acceleration": 2.0, "action": 0.0, "d_action": 0.0,
            "position_error_integral": 0.0,
        },
        "observation_noise": {
            "position": 0.0, "orientation": 0.0, "linear_velocity": 0.0, "angular_velocity": 0.0, "imu_acceleration": 0.0,
        },
        "action_noise": {"normalized_rpm": 0.0},
        "termination": {
            "enabled": True, "position_threshold": 1.0, "linear_velocity_threshold": 2.0, "angular_velocity_threshold": 35.0,
            "position_integral_threshold": 10000.0, "orientation_integral_threshold": 50000.0,
        },
    },
    "disturbances": {"random_force": {"mean": 0.0, "std": 0.0}, "random_torque": {"mean": 0.0, "std": 0.0}},
    "domain_randomization": {
        **{f"{name}_{end}": 0.0 for name in _RANDOMISED for end in ("min", "max")},
        "mass_size_deviation": 0.0, "orientation_offset_angle_max": 0.0, "disturbance_force_max": 0.0,
    },
    "trajectory": {
        "MIXTURE_N": 2, "mixture": [1.0, 0.0], "langevin": {"gamma": 1.0, "omega": 2.0, "sigma": 0.5, "alpha": 0.01},
    },
}  # fmt: skip
"""What is no property of a vehicle, as l2f 2.0.18 starts with it. Its parser needs every entry."""

_FLY = '''"""
{heading}"""

from pathlib import Path

import numpy as np

PARAMETERS = (Path(__file__).parent / "parameters.json").read_text()
ZERO, FULL = {zero}, {full}  # commands of the actions -1 and 1
HOVER = {hover}  # command of each rotor in hover
ATTITUDE = {attitude}  # in hover, w x y z


def action(command):
    """Actions of L2F from the commands of the rotors, 0 to 1."""
    return 2.0 * (np.clip(command, ZERO, FULL) - ZERO) / (FULL - ZERO) - 1.0


def command(action):
    """Commands of the rotors from the actions of L2F."""
    return ZERO + 0.5 * (np.clip(action, -1.0, 1.0) + 1.0) * (FULL - ZERO)


if __name__ == "__main__":
    import l2f

    device, rng, environment = l2f.Device(), l2f.Rng(), l2f.Environment()
    parameters, state, after = l2f.Parameters(), l2f.State(), l2f.State()
    l2f.initialize_rng(device, rng, 0)
    l2f.initialize_environment(device, environment)
    l2f.parameters_from_json(device, environment, PARAMETERS, parameters)
    l2f.initial_state(device, environment, parameters, state)
    state.rpm, state.orientation = HOVER, ATTITUDE
    for _ in range(100):
        l2f.step(device, environment, parameters, state, action(HOVER), after, rng)
        state.assign(after)
    print("after 1 s of hover: position", state.position, "m")
'''

_HEADER = """\
#pragma once
#include <rl_tools/rl/environments/l2f/multirotor.h>

namespace rotorid {{
    template <typename T, typename TI>
    constexpr rl_tools::rl::environments::l2f::parameters::Dynamics<T, TI, 4> {name} = {{
{fields}
        /* action_limit, commands */
        {{{low}, {high}}},
    }};
}}
"""


def rl_tools_files(airframe: Airframe) -> dict[str, bytes]:
    """parameters.json for l2f, dynamics.hpp for C++, and fly.py with the commands of actions and a hover."""
    vehicle = vehicle_properties(airframe)
    check_quadrotor(airframe, vehicle, "RLtools")
    hover, curve = hover_trim(vehicle), vehicle.rotors.thrust_curve
    dynamics = _dynamics(vehicle)
    stds = standard_deviations(rl_tools_values, airframe)
    paragraphs = [
        *file_header(airframe, "a vehicle for RLtools (L2F)", rl_tools_limitations(airframe)),
        f"Fields and equations as in {SOURCE}.",
        "Units: SI. Body: x forward, y left, z up, origin at the centre of mass. An action from -1 to 1 is a rotor command "
        f"from {number(curve.zero)} to {number(curve.full)}. Rotors are in the order of the airframe.",
    ]
    fields = "\n".join(
        f"        /* {field}, {_stds_text(dynamics, stds, field)} */\n        {_nested(dynamics[field], number)},"
        for field in _UNITS
    )
    name = f"airframe_{plain_name(airframe.name, '').lower().strip('_')}"[:_NAME]
    header = _HEADER.format(name=name, fields=fields, low=number(curve.zero), high=number(curve.full))
    fly = _FLY.format(
        heading=as_docstring(
            ["`action` computes the actions of commands, and `command` those of actions.", *paragraphs]
        ),
        zero=number(curve.zero),
        full=number(curve.full),
        hover=in_python(hover.command),
        attitude=in_python(hover.attitude),
    )
    return {
        "parameters.json": _json(dynamics, curve, _about(paragraphs, dynamics, stds)).encode(),
        "dynamics.hpp": (as_c_comment(paragraphs) + header).encode(),
        "fly.py": fly.encode(),
    }


def rl_tools_values(airframe: Airframe) -> Mapping[str, float]:
    """The numbers of the fields that may be uncertain; those of an array end in their indices."""
    dynamics = _dynamics(vehicle_properties(airframe))
    return {
        f"{field} {' '.join(map(str, index))}".strip(): float(value)
        for field in _UNITS
        for index, value in np.ndenumerate(np.asarray(dynamics[field]))
    }


def rl_tools_limitations(airframe: Airframe) -> list[Finding]:
    """What L2F cannot represent, with the size of each error."""
    vehicle = vehicle_properties(airframe)
    rotors, command = vehicle.rotors, hover_trim(vehicle).command
    found = [*_fitted_curve(rotors, command)]
    found += [*_lag_of_commands(airframe, rotors), *_short_lag(rotors)]
    if np.ptp(command) > _SMALL:
        found.append(limitation("one_hover_throttle", low=float(command.min()), high=float(command.max())))
    found += [*no_drag(vehicle), *rotor_aerodynamics(vehicle), *rotor_moments(vehicle)]
    return [*found, *command_delay(vehicle), *battery_voltage(vehicle)]


def _dynamics(vehicle: VehicleProperties) -> dict[str, Any]:
    """The fields of `Dynamics`, arrays as nested lists."""
    body, rotors, command = vehicle.body, vehicle.rotors, hover_trim(vehicle).command
    curve = rotors.thrust_curve
    width = curve.full - curve.zero
    in_range = np.polynomial.Polynomial([-curve.zero / width, 1.0 / width])
    k = _curve_in_range(rotors, command)(in_range).coef
    k = np.append(k, np.zeros(_ORDER + 1 - len(k)))
    count = rotors.count
    fields = {
        "rotor_positions": rotors.positions,
        "rotor_thrust_directions": rotors.axes,
        "rotor_torque_directions": -rotors.spins[:, None] * rotors.axes,
        "rotor_thrust_coefficients": np.outer(rotors.thrust_scales, k),
        "rotor_torque_constants": np.full(count, rotors.torque_ratio),
        "rotor_time_constants_rising": np.full(count, rotors.lag),
        "rotor_time_constants_falling": np.full(count, rotors.lag_down),
        "mass": np.array(body.mass),
        "gravity": np.array([0.0, 0.0, -GRAVITY]),
        "J": body.inertia,
        "J_inv": np.linalg.inv(body.inertia),
        "hovering_throttle_relative": rotors.command_in_range(command).mean(),
    }
    return {name: values.tolist() for name, values in fields.items()}


def _curve_in_range(rotors: RotorSet, command: Float[np.ndarray, " rotors"]) -> np.polynomial.Polynomial:
    """Thrust of a rotor of scale 1, N, over c from 0 to 1, of second order. command: in hover."""
    curve = np.polynomial.Polynomial(rotors.thrust_curve.coefficients)
    if curve.degree() <= _ORDER:
        return curve
    hover = float(rotors.command_in_range(command).mean())
    powers = np.stack([_GRID - hover, _GRID**2 - hover**2], axis=1)
    k = np.linalg.lstsq(powers, curve(_GRID) - curve(hover), rcond=None)[0]
    return np.polynomial.Polynomial([curve(hover) - k[0] * hover - k[1] * hover**2, *k])


def _fitted_curve(rotors: RotorSet, command: Float[np.ndarray, " rotors"]) -> list[Finding]:
    """The error of a curve of higher order."""
    fitted = _curve_in_range(rotors, command) / sum(rotors.thrust_curve.coefficients)
    worst = largest_difference(rotors.thrust_fraction_in_range, fitted)
    return (
        [limitation("thrust_curve_fitted", parameter="rotor_thrust_coefficients", share=worst)]
        if worst > _SMALL
        else []
    )


def _lag_of_commands(airframe: Airframe, rotors: RotorSet) -> list[Finding]:
    """The largest error of the thrust in a step from no to full command, or back, where thrusts or speeds lag."""
    start = float(rotors.thrust_fraction_in_range(0.0))
    if airframe.has_speed_lag:
        root = math.sqrt(max(start, 0.0))
        lagged = (root + (1.0 - root) * _GRID) ** 2
    else:
        lagged = start + (1.0 - start) * _GRID
    worst = float(np.abs(np.asarray(rotors.thrust_fraction_in_range(_GRID)) - lagged).max())
    of = "speeds" if airframe.has_speed_lag else "thrusts"
    return [limitation("lag_of_commands", of=of, share=worst)] if worst > _SMALL else []


def _short_lag(rotors: RotorSet) -> list[Finding]:
    """A lag that is too short for a Runge-Kutta step."""
    lag = min(rotors.lag, rotors.lag_down)
    x = STEP / lag
    closed, exact = x - x**2 / 2 + x**3 / 6 - x**4 / 24, 1.0 - math.exp(-x)
    if abs(closed - exact) < _LARGEST_ERROR:
        return []
    return [limitation("lag_short_for_step", lag=lag, step=STEP, closed=closed, exact=exact)]


def _about(
    paragraphs: Sequence[str], dynamics: Mapping[str, Any], stds: Mapping[str, StandardDeviation]
) -> dict[str, Any]:
    """The header, and the standard deviations of the fields in their shapes."""

    def std(name: str) -> float | None:
        return float(f"{stds[name].std:.3g}") if stds[name].std > 0 or stds[name].is_known else None

    return {
        "header": [
            *paragraphs,
            "standard_deviations: null where unknown, 0 for a given value; those of the fields in at_least also depend on "
            "parameters without a standard deviation.",
        ],
        "standard_deviations": {field: _nested_names(dynamics[field], field, std) for field in _UNITS},
        "at_least": [
            field
            for field in _UNITS
            if any(s.std > 0 and not s.is_known for name, s in stds.items() if name.split(" ")[0] == field)
        ],
    }


def _json(dynamics: Mapping[str, Any], curve: ThrustCurve, about: Mapping[str, Any]) -> str:
    """One object: what l2f reads, and `rotorid`, which it does not."""
    rounded = {name: json.loads(_nested(values, decimal, "[]")) for name, values in dynamics.items()}
    limits = {"min": curve.zero, "max": curve.full}
    sections = {"dynamics": {**rounded, "action_limit": limits}, **_TASK, "rotorid": about}
    return "{\n" + ",\n".join(f'  "{name}": {_section(s)}' for name, s in sections.items()) + "\n}\n"


def _section(section: Mapping[str, Any]) -> str:
    """A line for each of its entries."""
    entries = ",\n".join(f"    {json.dumps(name)}: {_entry(value)}" for name, value in section.items())
    return "{\n" + entries + "\n  }"


def _entry(value: Any) -> str:
    """A line for each entry of an object, and for each text of a list."""
    if isinstance(value, dict):
        lines = [f"{json.dumps(name)}: {json.dumps(v)}" for name, v in value.items()]
        return "{\n      " + ",\n      ".join(lines) + "\n    }"
    if isinstance(value, list) and value and isinstance(value[0], str):
        return "[\n      " + ",\n      ".join(map(json.dumps, value)) + "\n    ]"
    return json.dumps(value)


def _nested(values: Any, text: Callable[[Any], str], braces: str = "{}") -> str:
    """Nested lists as text."""
    if not isinstance(values, list):
        return text(values)
    return f"{braces[0]}{', '.join(_nested(v, text, braces) for v in values)}{braces[1]}"


def _nested_names(values: Any, name: str, of: Callable[[str], Any]) -> Any:
    """A function of the names of numbers, see `rl_tools_values`, in the shape of a field."""
    if not isinstance(values, list):
        return of(name)
    return [_nested_names(v, f"{name} {k}", of) for k, v in enumerate(values)]


def _stds_text(dynamics: Mapping[str, Any], stds: Mapping[str, StandardDeviation], field: str) -> str:
    """The standard deviations of a field: one text where they are equal, else in its shape."""
    unit = _UNITS[field]
    texts = _nested_names(dynamics[field], field, lambda name: stds[name].to_text(unit))
    own = dict.fromkeys(std.to_text(unit) for name, std in stds.items() if name.split(" ")[0] == field)
    shown = next(iter(own)) if len(own) == 1 else _nested(texts, lambda text: text.removesuffix(f" {unit}"))
    return shown if unit == "1" else f"{unit}, {shown}"
