"""Export to drone-models and crazyflow: the parameters of their first-principles model.

Equations of `drone_models.first_principles.dynamics` (0.1), with n the speed of a rotor in rpm:

    n' = (n_c - n) / tau, tau by rising and falling n        thrust = rpm2thrust[2] n^2        torque = rpm2torque[2] n^2
    (L, L, 0) * (mixing_matrix thrust) + (0, 0, 1) * (mixing_matrix torque)                    drag_matrix v, body frame

A column of mixing_matrix is (y / L, -x / L, direction of the torque) of a rotor, for any L; L is the mean arm along x and y.
The model of crazyflow (0.4) has the same parameters. Drag is linear there: see `rotor_speeds.linear_drag`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from rotorid.export.file_header import as_docstring, as_hash_comments, file_header
from rotorid.export.limitations import (
    battery_voltage,
    command_delay,
    limitation,
    rotor_moments,
    translational_lift,
)
from rotorid.export.simulator.rotor_speeds import (
    DRAG_SPEED,
    angular_drag_limitation,
    check_quadrotor,
    decimal,
    in_python,
    linear_drag,
    speed_limitations,
    speeds_in_python,
    thrust_coefficient,
)
from rotorid.export.uncertainty import StandardDeviation, standard_deviations
from rotorid.findings import Finding
from rotorid.models.airframe.airframe import Airframe
from rotorid.models.multirotor.air import AIR_DENSITY
from rotorid.models.multirotor.properties import vehicle_properties
from rotorid.models.system import GRAVITY
from rotorid.quoting import plain_name

_RPM = 60.0 / (2.0 * math.pi)  # per rad/s
_SECTION = 60  # letters of a name

_UNITS = {
    "mass": "kg", "L": "m", "J": "kg m^2", "rpm2thrust": "N min^2", "rpm2torque": "N m min^2", "thrust2torque": "m",
    "rotor_dyn_coef": "1/s", "drag_matrix": "N s/m", "thrust_max": "N", "prop_inertia": "kg m^2",
}  # fmt: skip

_FLY = '''"""
{heading}"""

import inspect
import tomllib
from functools import partial
from pathlib import Path

import numpy as np

parameters = tomllib.loads((Path(__file__).parent / "params.toml").read_text(encoding="utf-8"))["{section}"]

{speeds}

def first_principles(dynamics):
    """The `dynamics` of `drone_models.first_principles` or `crazyflow.dynamics.first_principles` with these parameters."""
    values = {{name: np.asarray(value) for name, value in parameters.items()}}
    values["J_inv"] = np.linalg.inv(values["J"])
    names = inspect.signature(inspect.unwrap(dynamics)).parameters
    return partial(dynamics, **{{name: value for name, value in values.items() if name in names}})


if __name__ == "__main__":
    from drone_models.first_principles import dynamics

    speeds = motor_rpm(HOVER)
    rest = np.zeros(3), np.array([0.0, 0.0, 0.0, 1.0]), np.zeros(3), np.zeros(3)
    rates = first_principles(dynamics)(*rest, speeds, speeds)
    print("in hover: acceleration", rates[2], "m/s^2, angular acceleration", rates[3], "rad/s^2")
'''


def drone_models_files(airframe: Airframe) -> dict[str, bytes]:
    """params.toml, a section of the same name in the packages' files, and fly.py, which gives it to their functions."""
    vehicle = vehicle_properties(airframe)
    check_quadrotor(airframe, vehicle, "drone-models")
    section = plain_name(airframe.name, "_-")[:_SECTION] or "airframe"
    paragraphs = [
        *file_header(
            airframe, "parameters for drone-models and crazyflow", drone_models_limitations(airframe)
        ),
        "Units: SI, and speeds in rpm. Body: x forward, y left, z up, origin at the centre of mass.",
    ]
    fly = _FLY.format(
        heading=as_docstring(
            ["`motor_rpm` computes the inputs from commands; `first_principles` is the model.", *paragraphs]
        ),
        section=section,
        speeds=speeds_in_python(
            airframe, vehicle, function="motor_rpm", unit="rpm", factor="60.0 / (2.0 * np.pi) * "
        ),
    )
    return {
        "params.toml": (as_hash_comments(paragraphs) + _section(section, airframe)).encode(),
        "fly.py": fly.encode(),
    }


def drone_models_values(airframe: Airframe) -> Mapping[str, float]:
    """The numbers of params.toml; those of an array end in their indices."""
    vehicle = vehicle_properties(airframe)
    body, rotors = vehicle.body, vehicle.rotors
    k = thrust_coefficient(airframe, vehicle)
    per_rpm = k / _RPM**2
    drag = linear_drag(vehicle)
    return {
        "mass": body.mass,
        "L": float(np.abs(rotors.positions[:, :2]).mean()),
        **{f"J {i}{j}": float(body.inertia[i, j]) for i in range(3) for j in range(3)},
        "rpm2thrust": per_rpm,
        "rpm2torque": rotors.torque_ratio * per_rpm,
        "thrust2torque": rotors.torque_ratio,
        "rotor_dyn_coef up": 1.0 / rotors.lag,
        "rotor_dyn_coef down": 1.0 / rotors.lag_down,
        **{f"drag_matrix {i}": float(-drag[i]) for i in range(3)},
        "thrust_max": float(rotors.full_thrusts.max()),
        "prop_inertia": rotors.momentum * math.sqrt(k),
    }


def _section(section: str, airframe: Airframe) -> str:
    v, stds = drone_models_values(airframe), standard_deviations(drone_models_values, airframe)
    rotors = vehicle_properties(airframe).rotors
    arms = rotors.positions / v["L"]
    mixing = [arms[:, 1], -arms[:, 0], -rotors.spins]

    def std(name: str, *keys: str) -> str:
        return f"{_UNITS[name]}, {_stds([stds[key] for key in keys or (name,)], _UNITS[name])}"

    def matrix(rows) -> str:
        return "[" + ", ".join(in_python(row) for row in rows) + "]"

    inertia = [[v[f"J {i}{j}"] for j in range(3)] for i in range(3)]
    drag = np.diag([v[f"drag_matrix {i}"] for i in range(3)])
    return f"""
[{section}]
gravity_vec = [0.0, 0.0, {decimal(-GRAVITY)}]  # m/s^2
mass = {decimal(v["mass"])}  # {std("mass")}
L = {decimal(v["L"])}  # m, mean arm along x and y
J = {matrix(inertia)}  # {std("J", "J 00", "J 11", "J 22", "J 01", "J 02", "J 12")} (xx, yy, zz, xy, xz, yz)
rpm2thrust = [0.0, 0.0, {decimal(v["rpm2thrust"])}]  # {std("rpm2thrust")}
rpm2torque = [0.0, 0.0, {decimal(v["rpm2torque"])}]  # {std("rpm2torque")}
thrust2torque = {decimal(v["thrust2torque"])}  # {std("thrust2torque")}
rotor_dyn_coef = [{decimal(v["rotor_dyn_coef up"])}, 0.0, {decimal(v["rotor_dyn_coef down"])}, 0.0]  # {
        std("rotor_dyn_coef", "rotor_dyn_coef up", "rotor_dyn_coef down")
    }
mixing_matrix = {matrix(mixing)}
drag_matrix = {matrix(drag)}  # {std("drag_matrix", "drag_matrix 0", "drag_matrix 1", "drag_matrix 2")}
thrust_min = 0.0  # N
thrust_max = {decimal(v["thrust_max"])}  # {std("thrust_max")}
prop_inertia = {decimal(v["prop_inertia"])}  # {std("prop_inertia")}
"""


def _stds(stds: list[StandardDeviation], unit: str) -> str:
    texts = [s.to_text(unit) for s in stds]
    return texts[0] if len(set(texts)) == 1 else "; ".join(texts)


def drone_models_limitations(airframe: Airframe) -> list[Finding]:
    """What the first-principles model cannot represent, with the size of each error."""
    vehicle = vehicle_properties(airframe)
    drag = vehicle.drag
    found = speed_limitations(airframe, vehicle)
    if drag.rotor or drag.inflow:
        found.append(limitation("rotor_drag_at_hover", parameter="drag_matrix"))
    if drag.mean_area:
        linear = tuple((0.5 * AIR_DENSITY * drag.area * DRAG_SPEED).tolist())
        found.append(limitation("drag_matrix_of_area", drag=linear, speed=DRAG_SPEED))
    found += [*translational_lift(vehicle), *angular_drag_limitation(vehicle)]
    found += [moment for moment in rotor_moments(vehicle) if moment.code != "no_rotor_momentum"]
    if vehicle.rotors.momentum:
        found.append(limitation("momentum_sign"))
    return [*found, *command_delay(vehicle), *battery_voltage(vehicle)]
