"""An airframe for Gazebo: SDF with its motor-model plugin, of today's Gazebo (gz-sim) and of Gazebo classic.

What the plugins compute (gz-sim: MulticopterMotorModel.cc, Hydrodynamics.cc):

    thrust = motorConstant w^2, torque = momentConstant thrust   w: rad/s, commanded, behind a lag of its own
    drag of a rotor = rotorDragCoefficient |w| v, across its axis
    drag of the body = -xU v_x - xUabsU |v_x| v_x, and so on

so that rotorDragCoefficient is k_r sqrt(motorConstant), exactly. Small changes of thrust lag as those of speed do. An airframe
without thrust_coefficient gets the speed 1000 rad/s at full command, which changes nothing but the number that is sent. Rotors
are links of a thousandth of the mass, which the body's own inertia makes up for.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from jaxtyping import Float

from rotorid.errors import AirframeError
from rotorid.export.vehicle.facts import Facts, facts_of, rotor_drag_sentence
from rotorid.export.vehicle.heading import heading, in_xml
from rotorid.export.vehicle.spread import spreads
from rotorid.export.vehicle.told import told
from rotorid.export.vehicle.vehicle_numbers import vehicle_numbers
from rotorid.export.vehicle.xml import angles_of, name_in_xml, number, numbers
from rotorid.models.airframe import Airframe
from rotorid.models.multirotor_air import AIR_DENSITY

SHARE = 1e-3
"""Of the vehicle's mass, a rotor's link."""

SLOWDOWN = 10.0
"""By how much Gazebo turns the rotors slower than they do, so as not to alias."""

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
)  # of water, kilogrammes if nobody says 0
_COMMANDS = np.linspace(0.0, 1.0, 501)


def gazebo_files(airframe: Airframe) -> dict[str, bytes]:
    """model.sdf and model.config of gz-sim; classic.sdf, the same model with the plugin of Gazebo classic.
    Either takes from model.config the file of the latest SDF that it reads."""
    f = facts_of(airframe)
    constants = _constants(airframe, f)
    numbers_told = told(vehicle_numbers(airframe), spreads(vehicle_numbers, airframe))
    name = name_in_xml(airframe.name)
    files = {"model.config": _config(name, airframe).encode()}
    for file, what, plugins, more in (
        ("model.sdf", "a model for Gazebo (gz-sim)", _gz_plugins, []),
        ("classic.sdf", "a model for Gazebo classic", _classic_plugins, _classic_sentences(f)),
    ):
        paragraphs = heading(airframe, what, [*_sentences(airframe, f, constants), *more])
        paragraphs.append("Units: SI. Body: x forward, y left, z up; base_link is at the centre of mass.")
        text = (
            f'<?xml version="1.0"?>\n<sdf version="{_VERSIONS[file]}">\n'
            + in_xml([*paragraphs, "", *numbers_told], "  ")
            + f'  <model name="{name}">\n{_links(f)}{plugins(name, f, constants)}  </model>\n</sdf>\n'
        )
        files[file] = text.encode()
    return files


def base_inertia(f: Facts) -> tuple[float, Float[np.ndarray, " 3"], Float[np.ndarray, "3 3"]]:
    """Mass, centre of mass from the vehicle's, and inertia about it of the body without its rotors' links."""
    light = SHARE * f.mass
    mass = f.mass - f.count * light
    centre = -light * f.places.sum(axis=0) / mass
    inertia = f.inertia - sum(light * _about(place) + _rotor_inertia(f) for place in f.places)
    inertia = inertia - mass * _about(centre)
    if np.linalg.eigvalsh(inertia).min() <= 0:
        raise AirframeError(
            "[inertia] is too small for rotors at these places; check [inertia] and the rotors' positions"
        )
    return mass, centre, inertia


def _about(place: Float[np.ndarray, " 3"]) -> Float[np.ndarray, "3 3"]:
    """Inertia of 1 kg at a place, m^2."""
    return float(place @ place) * np.eye(3) - np.outer(place, place)


def _rotor_inertia(f: Facts) -> Float[np.ndarray, "3 3"]:
    return SHARE * f.mass * _RADIUS**2 * np.eye(3)


def _constants(airframe: Airframe, f: Facts) -> Float[np.ndarray, " rotors"]:
    """motorConstant of each rotor, N s^2."""
    known = airframe.get("thrust_coefficient")
    return f.scales * known.number if known else f.full / _SPEED**2


def _speeds(f: Facts, constants: Float[np.ndarray, " rotors"]) -> Float[np.ndarray, " n"]:
    """Speed of the first rotor over commands from 0 to 1, rad/s."""
    return np.sqrt(np.maximum(f.full[0] * f.shape(_COMMANDS), 0.0) / constants[0])


def _links(f: Facts) -> str:
    mass, centre, J = base_inertia(f)
    text = (
        f'    <pose>0 0 0 0 0 0</pose>\n    <link name="base_link">\n'
        f"      <pose>{numbers(f.centre)} 0 0 0</pose>\n{_inertial(mass, centre, J)}    </link>\n"
    )
    for k in range(f.count):
        pose = numbers([*(f.places[k] + f.centre), *angles_of(f.axes[k])])
        text += (
            f'    <link name="rotor_{k}">\n      <pose>{pose}</pose>\n'
            f"{_inertial(SHARE * f.mass, np.zeros(3), _rotor_inertia(f))}    </link>\n"
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


def _motor(k: int, f: Facts, constants: Float[np.ndarray, " rotors"]) -> str:
    """What both generations of the plugin take."""
    entries = {
        "jointName": f"rotor_{k}_joint",
        "linkName": f"rotor_{k}",
        "turningDirection": "ccw" if f.spins[k] > 0 else "cw",
        "timeConstantUp": number(f.lag),
        "timeConstantDown": number(f.lag_down),
        "maxRotVelocity": number(np.sqrt(f.full[k] / constants[k])),
        "motorConstant": number(constants[k]),
        "momentConstant": number(f.torque_ratio),
        "motorNumber": str(k),
        "rotorDragCoefficient": number(f.rotor_drag * np.sqrt(constants[k])),
        "rollingMomentCoefficient": "0",
        "rotorVelocitySlowdownSim": number(SLOWDOWN),
    }
    return "".join(f"      <{n}>{v}</{n}>\n" for n, v in entries.items())


def _gz_plugins(name: str, f: Facts, constants: Float[np.ndarray, " rotors"]) -> str:
    text = ""
    for k in range(f.count):
        text += (
            '    <plugin filename="gz-sim-multicopter-motor-model-system" name="gz::sim::systems::MulticopterMotorModel">\n'
            f"      <robotNamespace>{name}</robotNamespace>\n{_motor(k, f, constants)}"
            "      <commandSubTopic>command/motor_speed</commandSubTopic>\n      <motorType>velocity</motorType>\n"
            "    </plugin>\n"
        )
    if f.drag or f.drag_area or f.angular_drag:
        quadratic = 0.5 * AIR_DENSITY * f.drag_area
        entries = {
            **dict.fromkeys(_ADDED_MASSES, 0.0),
            **dict.fromkeys(("xU", "yV", "zW"), -f.drag),
            **dict.fromkeys(("xUabsU", "yVabsV", "zWabsW"), -quadratic),
            **dict.fromkeys(("kP", "mQ", "nR"), -f.angular_drag),
        }
        text += (
            '    <plugin filename="gz-sim-hydrodynamics-system" name="gz::sim::systems::Hydrodynamics">\n'
            "      <link_name>base_link</link_name>\n      <disable_added_mass>true</disable_added_mass>\n"
            "      <disable_coriolis>true</disable_coriolis>\n"
            + "".join(f"      <{n}>{number(v)}</{n}>\n" for n, v in entries.items())
            + "    </plugin>\n"
        )
    return text


def _classic_plugins(name: str, f: Facts, constants: Float[np.ndarray, " rotors"]) -> str:
    return "".join(
        f'    <plugin name="rotor_{k}_motor_model" filename="libgazebo_motor_model.so">\n'
        f"      <robotNamespace></robotNamespace>\n{_motor(k, f, constants)}"
        "      <commandSubTopic>/gazebo/command/motor_speed</commandSubTopic>\n"
        f"      <motorSpeedPubTopic>/motor_speed/{k}</motorSpeedPubTopic>\n    </plugin>\n"
        for k in range(f.count)
    )


def _config(name: str, airframe: Airframe) -> str:
    from xml.sax.saxutils import escape

    return (
        f'<?xml version="1.0"?>\n<model>\n  <name>{name}</name>\n  <version>1.0</version>\n'
        + "".join(f'  <sdf version="{version}">{file}</sdf>\n' for file, version in _VERSIONS.items())
        + f"  <description>{escape(airframe.description)}</description>\n</model>\n"
    )


def _sentences(airframe: Airframe, f: Facts, constants: Float[np.ndarray, " rotors"]) -> list[str]:
    """What Gazebo cannot say of this airframe, and how large that is."""
    speeds = _speeds(f, constants)
    slope, offset = np.polyfit(_COMMANDS, speeds, 1)
    worst = np.abs(slope * _COMMANDS + offset - speeds).max() / speeds.max()
    found = [
        "the plugin takes speeds, not commands: send sqrt(thrust of the command / motorConstant). Nearest line (PX4: "
        f"SIM_GZ_EC_MIN and MAX): {offset:.4g} rad/s at command 0, {slope + offset:.4g} at 1, off by up to "
        f"{100 * worst:.2g} % of "
        "the largest speed",
        "speeds lag, not thrusts: the same for small changes; half-way through a step from rest, the thrust is 25 % of its end "
        "where the airframe's is 50 %",
    ]
    if airframe.get("thrust_coefficient") is None:
        found.append(
            f"the airframe has no [thrust_coefficient]: speeds are in units of full command at {_SPEED:g} rad/s"
        )
    if f.drag_area:
        found.append(
            "the drag area acts axis by axis of the body; at 45 deg between two axes the drag is 29 % less than the airframe's"
        )
    found += rotor_drag_sentence(f)
    if f.delay:
        found.append(f"commands arrive {1000 * f.delay:.3g} ms late; Gazebo has no number for it")
    if f.curve.voltage_exponent:
        found.append(f"speeds are those of the curve at {f.curve.voltage:g} V; the plugin knows no battery")
    return found


def _classic_sentences(f: Facts) -> list[str]:
    if not (f.drag or f.drag_area or f.angular_drag):
        return []
    return [
        f"Gazebo classic: no drag of the body here ({f.drag:g} N s/m, {f.drag_area:g} m^2, {f.angular_drag:g} N m s of turning)"
    ]
