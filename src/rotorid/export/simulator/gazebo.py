"""Export to Gazebo: SDF with the motor-model plugin, for current Gazebo (gz-sim) and for Gazebo classic.

Equations of the plugins (gz-sim: MulticopterMotorModel.cc, Hydrodynamics.cc):

    thrust = motorConstant w^2, torque = momentConstant thrust   w: rad/s, commanded, behind a lag of its own
    drag of a rotor = rotorDragCoefficient |w| v, across its axis
    drag of the body = -xU v_x - xUabsU |v_x| v_x, and so on

so that rotorDragCoefficient is k_r sqrt(motorConstant), exactly. Thrust and speed have the same lag for small changes. An
airframe without thrust_coefficient gets 1000 rad/s at full command; only the scale of the speed input depends on this choice.
Each rotor is a link of 1/1000 of the mass; mass and inertia of the body are reduced by those of the links.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from jaxtyping import Float

from rotorid.errors import AirframeError
from rotorid.export.annotated_values import annotated_values
from rotorid.export.file_header import as_xml_comment, file_header
from rotorid.export.limitations import (
    battery_voltage,
    command_delay,
    limitation,
    rotor_aerodynamics,
    rotor_moments,
)
from rotorid.export.uncertainty import standard_deviations
from rotorid.export.vehicle_values import vehicle_values
from rotorid.export.xml import euler_angles_of_axis, number, numbers, xml_name
from rotorid.findings import Finding
from rotorid.models.airframe.airframe import Airframe
from rotorid.models.multirotor.air import AIR_DENSITY
from rotorid.models.multirotor.properties import VehicleProperties, vehicle_properties
from rotorid.quoting import xml_text

SHARE = 1e-3
"""Mass of a rotor link over the mass of the vehicle."""

SLOWDOWN = 10.0
"""Factor by which Gazebo shows the rotors slower, against aliasing."""

_SPEED = 1000.0  # rad/s
_RADIUS = 0.01  # m, of gyration of a rotor's link
_VERSIONS: Final = {
    "model.sdf": "1.9",
    "classic.sdf": "1.6",
}  # of SDF: Gazebo classic reads 1.6 (9) or 1.7 (11) at most
_ADDED_MASSES: Final = (
    "xDotU",
    "yDotV",
    "zDotW",
    "kDotP",
    "mDotQ",
    "nDotR",
)  # of water; the plugin has non-zero defaults
_COMMANDS = np.linspace(0.0, 1.0, 501)


def gazebo_files(airframe: Airframe) -> dict[str, bytes]:
    """model.sdf and model.config for gz-sim; classic.sdf, the same model with the plugin of Gazebo classic.

    Each program takes from model.config the file of the latest SDF version that it reads."""
    vehicle = vehicle_properties(airframe)
    constants = _constants(airframe, vehicle)
    value_lines = annotated_values(vehicle_values(airframe), standard_deviations(vehicle_values, airframe))
    name = xml_name(airframe.name)
    files = {"model.config": _config(name, airframe).encode()}
    for file, what, plugins, more in (
        ("model.sdf", "a model for Gazebo (gz-sim)", _gz_plugins, []),
        ("classic.sdf", "a model for Gazebo classic", _classic_plugins, classic_limitations(vehicle)),
    ):
        paragraphs = file_header(airframe, what, [*gazebo_limitations(airframe), *more])
        paragraphs.append("Units: SI. Body: x forward, y left, z up; base_link is at the centre of mass.")
        text = (
            f'<?xml version="1.0"?>\n<sdf version="{_VERSIONS[file]}">\n'
            + as_xml_comment([*paragraphs, "", *value_lines], "  ")
            + f'  <model name="{name}">\n{_links(vehicle)}{plugins(name, vehicle, constants)}  </model>\n</sdf>\n'
        )
        files[file] = text.encode()
    return files


def base_inertia(
    vehicle: VehicleProperties,
) -> tuple[float, Float[np.ndarray, " 3"], Float[np.ndarray, "3 3"]]:
    """Mass (kg), centre of mass from the vehicle's (m), and inertia (kg m^2) of the body without the rotor links."""
    light = SHARE * vehicle.body.mass
    mass = vehicle.body.mass - vehicle.rotors.count * light
    centre = -light * vehicle.rotors.positions.sum(axis=0) / mass
    inertia = vehicle.body.inertia - sum(
        light * _about(place) + _rotor_inertia(vehicle) for place in vehicle.rotors.positions
    )
    inertia = inertia - mass * _about(centre)
    if np.linalg.eigvalsh(inertia).min() <= 0:
        raise AirframeError(
            "[inertia] is too small for rotors at these positions; check [inertia] and the rotor positions"
        )
    return mass, centre, inertia


def _about(place: Float[np.ndarray, " 3"]) -> Float[np.ndarray, "3 3"]:
    """Inertia of a point mass of 1 kg at a position, m^2."""
    return float(place @ place) * np.eye(3) - np.outer(place, place)


def _rotor_inertia(vehicle: VehicleProperties) -> Float[np.ndarray, "3 3"]:
    return SHARE * vehicle.body.mass * _RADIUS**2 * np.eye(3)


def _constants(airframe: Airframe, vehicle: VehicleProperties) -> Float[np.ndarray, " rotors"]:
    """motorConstant of each rotor, N s^2."""
    known = airframe.get("thrust_coefficient")
    return vehicle.rotors.thrust_scales * known.number if known else vehicle.rotors.full_thrusts / _SPEED**2


def _speeds(vehicle: VehicleProperties, constants: Float[np.ndarray, " rotors"]) -> Float[np.ndarray, " n"]:
    """Speed of the first rotor over commands from 0 to 1, rad/s."""
    return np.sqrt(
        np.maximum(vehicle.rotors.full_thrusts[0] * vehicle.rotors.thrust_fraction(_COMMANDS), 0.0)
        / constants[0]
    )


def _links(vehicle: VehicleProperties) -> str:
    mass, centre, J = base_inertia(vehicle)
    text = (
        f'    <pose>0 0 0 0 0 0</pose>\n    <link name="base_link">\n'
        f"      <pose>{numbers(vehicle.body.centre_of_mass)} 0 0 0</pose>\n{_inertial(mass, centre, J)}    </link>\n"
    )
    for k in range(vehicle.rotors.count):
        pose = numbers(
            [
                *(vehicle.rotors.positions[k] + vehicle.body.centre_of_mass),
                *euler_angles_of_axis(vehicle.rotors.axes[k]),
            ]
        )
        text += (
            f'    <link name="rotor_{k}">\n      <pose>{pose}</pose>\n'
            f"{_inertial(SHARE * vehicle.body.mass, np.zeros(3), _rotor_inertia(vehicle))}    </link>\n"
            f'    <joint name="rotor_{k}_joint" type="revolute">\n      <parent>base_link</parent>\n'
            f"      <child>rotor_{k}</child>\n      <axis>\n        <xyz>0 0 1</xyz>\n"
            f"        <limit>\n          <lower>-1e16</lower>\n          <upper>1e16</upper>\n        </limit>\n"
            f"      </axis>\n    </joint>\n"
        )
    return text


def _inertial(mass: float, centre: Float[np.ndarray, " 3"], J: Float[np.ndarray, "3 3"]) -> str:
    elements = "".join(
        f"          <{n}>{number(J[i, k])}</{n}>\n"
        for n, i, k in (
            ("ixx", 0, 0),
            ("ixy", 0, 1),
            ("ixz", 0, 2),
            ("iyy", 1, 1),
            ("iyz", 1, 2),
            ("izz", 2, 2),
        )
    )
    return (
        f"      <inertial>\n        <pose>{numbers(centre)} 0 0 0</pose>\n        <mass>{number(mass)}</mass>\n"
        f"        <inertia>\n{elements}        </inertia>\n      </inertial>\n"
    )


def _motor(k: int, vehicle: VehicleProperties, constants: Float[np.ndarray, " rotors"]) -> str:
    """Elements that both versions of the plugin have."""
    entries = {
        "jointName": f"rotor_{k}_joint",
        "linkName": f"rotor_{k}",
        "turningDirection": "ccw" if vehicle.rotors.spins[k] > 0 else "cw",
        "timeConstantUp": number(vehicle.rotors.lag),
        "timeConstantDown": number(vehicle.rotors.lag_down),
        "maxRotVelocity": number(np.sqrt(vehicle.rotors.full_thrusts[k] / constants[k])),
        "motorConstant": number(constants[k]),
        "momentConstant": number(vehicle.rotors.torque_ratio),
        "motorNumber": str(k),
        "rotorDragCoefficient": number(vehicle.drag.rotor * np.sqrt(constants[k])),
        "rollingMomentCoefficient": "0",
        "rotorVelocitySlowdownSim": number(SLOWDOWN),
    }
    return "".join(f"      <{n}>{v}</{n}>\n" for n, v in entries.items())


def _gz_plugins(name: str, vehicle: VehicleProperties, constants: Float[np.ndarray, " rotors"]) -> str:
    text = ""
    for k in range(vehicle.rotors.count):
        text += (
            '    <plugin filename="gz-sim-multicopter-motor-model-system" name="gz::sim::systems::MulticopterMotorModel">\n'
            f"      <robotNamespace>{name}</robotNamespace>\n{_motor(k, vehicle, constants)}"
            "      <commandSubTopic>command/motor_speed</commandSubTopic>\n      <motorType>velocity</motorType>\n"
            "    </plugin>\n"
        )
    if vehicle.drag.mean_linear or vehicle.drag.mean_area or vehicle.drag.mean_angular:
        quadratic = 0.5 * AIR_DENSITY * vehicle.drag.area
        entries = {
            **dict.fromkeys(_ADDED_MASSES, 0.0),
            **dict(zip(("xU", "yV", "zW"), -vehicle.drag.linear, strict=True)),
            **dict(zip(("xUabsU", "yVabsV", "zWabsW"), -quadratic, strict=True)),
            **dict(zip(("kP", "mQ", "nR"), -vehicle.drag.angular, strict=True)),
        }
        text += (
            '    <plugin filename="gz-sim-hydrodynamics-system" name="gz::sim::systems::Hydrodynamics">\n'
            "      <link_name>base_link</link_name>\n      <disable_added_mass>true</disable_added_mass>\n"
            "      <disable_coriolis>true</disable_coriolis>\n"
            + "".join(f"      <{n}>{number(v)}</{n}>\n" for n, v in entries.items())
            + "    </plugin>\n"
        )
    return text


def _classic_plugins(name: str, vehicle: VehicleProperties, constants: Float[np.ndarray, " rotors"]) -> str:
    return "".join(
        f'    <plugin name="rotor_{k}_motor_model" filename="libgazebo_motor_model.so">\n'
        f"      <robotNamespace></robotNamespace>\n{_motor(k, vehicle, constants)}"
        "      <commandSubTopic>/gazebo/command/motor_speed</commandSubTopic>\n"
        f"      <motorSpeedPubTopic>/motor_speed/{k}</motorSpeedPubTopic>\n    </plugin>\n"
        for k in range(vehicle.rotors.count)
    )


def _config(name: str, airframe: Airframe) -> str:
    return (
        f'<?xml version="1.0"?>\n<model>\n  <name>{name}</name>\n  <version>1.0</version>\n'
        + "".join(f'  <sdf version="{version}">{file}</sdf>\n' for file, version in _VERSIONS.items())
        + f"  <description>{xml_text(airframe.description)}</description>\n</model>\n"
    )


def gazebo_limitations(airframe: Airframe) -> list[Finding]:
    """What Gazebo cannot represent, with the size of each error."""
    vehicle = vehicle_properties(airframe)
    speeds = _speeds(vehicle, _constants(airframe, vehicle))
    slope, offset = np.polyfit(_COMMANDS, speeds, 1)
    worst = np.abs(slope * _COMMANDS + offset - speeds).max() / speeds.max()
    at_0, at_1 = float(offset), float(slope + offset)
    found = [
        limitation("inputs_are_speeds", speed_at_0=at_0, speed_at_1=at_1, share=float(worst)),
        limitation("lag_of_speeds"),
    ]
    if airframe.get("thrust_coefficient") is None:
        found.append(limitation("no_thrust_coefficient", speed=_SPEED))
    if vehicle.drag.mean_area:
        found.append(limitation("drag_area_by_axis", parameter="drag area"))
    found += [*rotor_aerodynamics(vehicle), *rotor_moments(vehicle)]
    return [*found, *command_delay(vehicle), *battery_voltage(vehicle)]


def classic_limitations(vehicle: VehicleProperties) -> list[Finding]:
    """What only Gazebo classic cannot represent."""
    drag = vehicle.drag
    if not (drag.mean_linear or drag.mean_area or drag.mean_angular):
        return []
    return [limitation("body_drag", linear=drag.mean_linear, area=drag.mean_area, angular=drag.mean_angular)]
