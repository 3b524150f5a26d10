"""Export to RotorPy: the dictionary of a vehicle, and the rotor speeds of commands.

Equations of `rotorpy.vehicles.multirotor.Multirotor` (3.0), with w the speed of a rotor and v its airspeed in the body frame:

    w' = (w_c - w) / tau_m          thrust = k_eta w^2 + k_h |v_xy|^2          yaw torque = direction k_m w^2
    force of a rotor = -w (k_d v_x, k_d v_y, k_z v_z)           flapping = k_flap w e_z x v
    drag of the body = -|v| (c_Dx v_x, c_Dy v_y, c_Dz v_z)

so that k_d = rotor_drag sqrt(k_eta), k_z = rotor_inflow sqrt(k_eta), k_h = translational_lift, k_flap = -flapping_moment
sqrt(k_eta), and c_D = 1/2 rho drag_area. RotorPy has no linear drag of the body; it is added to k_d and k_z, exact at the hover
thrust. Positions are about the centre of mass.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from rotorid.export.file_header import as_docstring, file_header
from rotorid.export.limitations import battery_voltage, command_delay, falling_lag, limitation, rotor_moments
from rotorid.export.simulator.rotor_speeds import (
    angular_drag_limitation,
    check_quadrotor,
    decimal,
    hover_speeds,
    in_python,
    speed_limitations,
    speeds_in_python,
    speeds_of_rotors_in_python,
    thrust_coefficient,
)
from rotorid.export.uncertainty import standard_deviations
from rotorid.findings import Finding
from rotorid.models.airframe.airframe import Airframe
from rotorid.models.multirotor.air import AIR_DENSITY
from rotorid.models.multirotor.properties import VehicleProperties, vehicle_properties

FILE = "rotorpy_vehicle.py"

_UNITS = {
    "mass": "kg", "I": "kg m^2", "c_D": "N s^2/m^2", "k_eta": "N s^2", "k_m": "N m s^2", "k_d": "N s^2/m",
    "k_z": "N s^2/m", "k_h": "N s^2/m^2", "k_flap": "N s^2", "tau_m": "s", "rotor_speed_min": "rad/s",
    "rotor_speed_max": "rad/s",
}  # fmt: skip

_FILE = '''"""
{heading}"""

import numpy as np

quad_params = {{
{values}
{largest_speed}    "num_rotors": {count},
    "rotor_pos": {{{positions}}},  # m, from the centre of mass
    "rotor_directions": np.array({directions}),  # of the torque about body z: 1 for a rotor that turns clockwise
    "rI": np.array({imu}),  # m, the IMU from the centre of mass
    "motor_noise_std": 0.0,
}}

{speeds}

if __name__ == "__main__":
    from rotorpy.vehicles.multirotor import Multirotor

    speeds = motor_speeds(HOVER)
    state = {{"x": np.zeros(3), "v": np.zeros(3), "q": np.array([0.0, 0.0, 0.0, 1.0]), "w": np.zeros(3)}}
    state |= {{"wind": np.zeros(3), "rotor_speeds": speeds}}
    vehicle = Multirotor(quad_params, initial_state=state)
    for _ in range(100):
        state = vehicle.step(state, {{"cmd_motor_speeds": speeds}}, 0.01)
    print("after 1 s of hover: position", state["x"], "m")
'''


def rotorpy_files(airframe: Airframe) -> dict[str, bytes]:
    """rotorpy_vehicle.py: `quad_params`, `motor_speeds`, and a hover when it is run."""
    vehicle = _properties(airframe)
    has_curve = vehicle.rotors.has_thrust_curve
    check_quadrotor(airframe, vehicle, "RotorPy")
    rotors = vehicle.rotors
    paragraphs = [
        "`quad_params` is the vehicle, and `motor_speeds` computes the inputs of `cmd_motor_speeds` from "
        + ("commands." if has_curve else "the speeds of the rotors."),
        *file_header(airframe, "a vehicle for RotorPy", rotorpy_limitations(airframe)),
        "Units: SI. Body: x forward, y left, z up, origin at the centre of mass.",
    ]
    stds = standard_deviations(rotorpy_values, airframe)
    values = "\n".join(
        f'    "{name}": {decimal(value)},  # {unit}, {stds[name].to_text(unit)}'
        for name, value in rotorpy_values(airframe).items()
        for unit in (_unit(name),)
    )
    imu = np.array(airframe.vector("imu_position")) - vehicle.body.centre_of_mass
    text = _FILE.format(
        heading=as_docstring(paragraphs),
        values=values,
        largest_speed="" if has_curve else '    "rotor_speed_max": np.inf,  # rad/s\n',
        count=rotors.count,
        positions=", ".join(
            f'"r{k + 1}": np.array({in_python(place)})' for k, place in enumerate(rotors.positions)
        ),
        directions=[-int(spin) for spin in rotors.spins],
        imu=in_python(imu),
        speeds=speeds_in_python(airframe, vehicle, function="motor_speeds", unit="rad/s")
        if has_curve
        else speeds_of_rotors_in_python(airframe, vehicle, function="motor_speeds"),
    )
    return {FILE: text.encode()}


def rotorpy_values(airframe: Airframe) -> Mapping[str, float]:
    """The numbers of `quad_params` by name."""
    vehicle = _properties(airframe)
    body, rotors, drag = vehicle.body, vehicle.rotors, vehicle.drag
    k_eta = thrust_coefficient(airframe, vehicle)
    root, speeds = np.sqrt(k_eta), hover_speeds(airframe, vehicle).sum()
    across, along = 0.5 * (drag.linear[0] + drag.linear[1]) / speeds, drag.linear[2] / speeds
    values = {
        "mass": body.mass,
        **{
            f"I{name}": float(body.inertia[i, k])
            for name, i, k in (
                ("xx", 0, 0), ("yy", 1, 1), ("zz", 2, 2), ("xy", 0, 1), ("yz", 1, 2), ("xz", 0, 2),
            )
        },
        **{f"c_D{axis}": float(0.5 * AIR_DENSITY * drag.area[k]) for k, axis in enumerate("xyz")},
        "k_eta": k_eta,
        "k_m": rotors.torque_ratio * k_eta,
        "k_d": float(drag.rotor * root + across),
        "k_z": float(drag.inflow * root + along),
        "k_h": drag.lift,
        "k_flap": float(-drag.flapping * root),
        "tau_m": rotors.lag,
        "rotor_speed_min": 0.0,
    }  # fmt: skip
    if rotors.has_thrust_curve:
        values["rotor_speed_max"] = float(np.sqrt(rotors.full_thrusts.max() / k_eta))
    return values


def rotorpy_limitations(airframe: Airframe) -> list[Finding]:
    """What RotorPy cannot represent, with the size of each error."""
    vehicle = _properties(airframe)
    found = [*speed_limitations(airframe, vehicle), *_linear_drag(airframe, vehicle)]
    found += [*angular_drag_limitation(vehicle), *falling_lag(vehicle, "tau_m")]
    found += [moment for moment in rotor_moments(vehicle) if moment.code != "no_flapping_moment"]
    return [*found, *command_delay(vehicle), *battery_voltage(vehicle)]


def _properties(airframe: Airframe) -> VehicleProperties:
    """With a thrust coefficient no thrust curve is needed, since the inputs are rotor speeds."""
    return vehicle_properties(airframe, needs_thrust_curve=airframe.get("thrust_coefficient") is None)


def _linear_drag(airframe: Airframe, vehicle: VehicleProperties) -> list[Finding]:
    """The linear drag in k_d and k_z, and the torques at 1 rad/s by which it damps rotation."""
    drag, places = vehicle.drag.linear, vehicle.rotors.positions
    if not drag.any():
        return []
    speeds = hover_speeds(airframe, vehicle)
    share = speeds / speeds.sum()
    damping = share @ (places[:, :2] ** 2) * drag[2]
    return [
        limitation(
            "linear_drag_at_rotors",
            values=tuple(drag.tolist()),
            damping=(float(damping[1]), float(damping[0])),
        )
    ]


def _unit(name: str) -> str:
    return _UNITS[max((key for key in _UNITS if name.startswith(key)), key=len)]
