"""Export to MuJoCo's MJCF: one body, with a site and an actuator for each rotor.

The body frame is at the centre of mass, as the position of `rigid_multirotor`. Three slide joints along the world axes and a
ball joint move the body, with the coordinates of a free joint (position, quaternion w x y z; velocity in the world, rate in the
body); their damping is the linear and angular drag. Quadratic drag is MuJoCo's blunt drag of a sphere, rho C pi r^2 |v| v
(without the 1/2), so small that its added mass is negligible. An actuator filters the commanded thrust of a rotor with the
motor lag, and applies force and torque at the rotor's site. Two more actuators across its axis, with the same input and
filter, apply rotor drag to first order around hover:

    F = -k_r sqrt(T) v = -k_r sqrt(T_0) / 2 (1 + T / T_0) v + O((T - T_0)^2)

the gain and the bias of an actuator, both linear in its velocity v.
"""

from __future__ import annotations

import math

import numpy as np

from rotorid.export.annotated_values import annotated_values
from rotorid.export.file_header import as_docstring, as_xml_comment, file_header
from rotorid.export.limitations import (
    angular_drag_by_axis,
    battery_voltage,
    command_delay,
    drag_by_axis,
    falling_lag,
    limitation,
    rotor_moments,
    translational_lift,
)
from rotorid.export.uncertainty import standard_deviations
from rotorid.export.vehicle_values import vehicle_values
from rotorid.export.xml import number, numbers, quaternion_of_axis, xml_name
from rotorid.findings import Finding
from rotorid.models.airframe.airframe import Airframe
from rotorid.models.multirotor.air import AIR_DENSITY
from rotorid.models.multirotor.properties import VehicleProperties, hover_trim, vehicle_properties
from rotorid.models.system import GRAVITY

_SPHERE = 1e-3  # m
_TIMESTEP = 0.002  # s
_NONE = 1e-9

_COMMAND_INPUTS = '''\
COEFFICIENTS = {coefficients}  # N, of one rotor, from the constant on
ZERO, FULL = {zero}, {full}  # the thrust rises between these commands
SCALES = {scales}  # thrust of each rotor over the curve
ROTORS = {rotors}  # whose thrust each actuator of model.xml takes
HOVER = {hover}  # command of each rotor in hover


def thrust(command):
    """Inputs of the actuators (thrusts, N) from the commands of the rotors, 0 to 1."""
    c = np.clip((np.asarray(command) - ZERO) / (FULL - ZERO), 0.0, 1.0)
    return (np.array(SCALES) * sum(k * c**power for power, k in enumerate(COEFFICIENTS)))[..., ROTORS]
'''

_THRUST_INPUTS = '''\
SCALES = {scales}  # thrust of each rotor over its commanded thrust
ROTORS = {rotors}  # whose thrust each actuator of model.xml takes
HOVER = {hover}  # N, commanded thrust of each rotor in hover


def thrust(commanded):
    """Inputs of the actuators (thrusts, N) from the commanded thrusts of the rotors, N."""
    return (np.array(SCALES) * np.asarray(commanded))[..., ROTORS]
'''

_FLY = '''"""
{heading}"""

import numpy as np

{thrust}

if __name__ == "__main__":
    from pathlib import Path

    import mujoco

    model = mujoco.MjModel.from_xml_path(str(Path(__file__).parent / "model.xml"))
    data = mujoco.MjData(model)
    mujoco.mj_resetDataKeyframe(model, data, 0)
    data.ctrl[:] = thrust(HOVER)
    while data.time < 1.0:
        mujoco.mj_step(model, data)
    print("after 1 s of hover: position", data.qpos[:3], "m")
'''


def mujoco_files(airframe: Airframe) -> dict[str, bytes]:
    """model.xml, and fly.py, which converts commands to thrusts and simulates a hover."""
    vehicle = vehicle_properties(airframe, needs_thrust_curve=False)
    paragraphs = file_header(airframe, "a model for MuJoCo", mujoco_limitations(vehicle))
    paragraphs.append("Units: SI. World: z up. Body: x forward, y left, z up, origin at the centre of mass.")
    hover = hover_trim(vehicle)
    about = "`thrust` computes the inputs of the actuators of model.xml."
    thrust = (_COMMAND_INPUTS if vehicle.rotors.has_thrust_curve else _THRUST_INPUTS).format(
        coefficients=numbers_in_python(vehicle.rotors.thrust_curve.coefficients),
        zero=number(vehicle.rotors.thrust_curve.zero),
        full=number(vehicle.rotors.thrust_curve.full),
        scales=numbers_in_python(vehicle.rotors.thrust_scales),
        rotors=[
            *range(vehicle.rotors.count),
            *np.repeat(_rotors_with_drag(vehicle), len(_drag_axes(vehicle))).tolist(),
        ],
        hover=numbers_in_python(
            hover.command if vehicle.rotors.has_thrust_curve else hover.thrust / vehicle.rotors.thrust_scales
        ),
    )
    fly = _FLY.format(heading=as_docstring([about, *paragraphs]), thrust=thrust)
    return {"model.xml": _model(airframe, vehicle, paragraphs).encode(), "fly.py": fly.encode()}


def numbers_in_python(values) -> str:
    """A list of numbers with twelve digits."""
    return f"[{', '.join(number(v) for v in values)}]"


def _model(airframe: Airframe, vehicle: VehicleProperties, paragraphs: list[str]) -> str:
    value_lines = annotated_values(vehicle_values(airframe), standard_deviations(vehicle_values, airframe))
    rotors, hover = vehicle.rotors, hover_trim(vehicle)
    J = vehicle.body.inertia
    full_inertia = (J[0, 0], J[1, 1], J[2, 2], J[0, 1], J[0, 2], J[1, 2])
    sites = "".join(
        f'      <site name="rotor_{k}" pos="{numbers(rotors.positions[k])}" '
        f'quat="{numbers(quaternion_of_axis(rotors.axes[k]))}" size="0.005"/>\n'
        for k in range(rotors.count)
    )
    actuators = "".join(
        f'    <general name="rotor_{k}" site="rotor_{k}" gear="0 0 1 0 0 {number(-rotors.spins[k] * rotors.torque_ratio)}" '
        f'{_range(vehicle, k)}dyntype="filter" dynprm="{number(rotors.lag)}"/>\n'
        for k in range(rotors.count)
    )
    slides = "".join(
        f'      <joint name="{axis}" type="slide" axis="{way}" damping="{number(vehicle.drag.mean_linear)}"/>\n'
        for axis, way in (("x", "1 0 0"), ("y", "0 1 0"), ("z", "0 0 1"))
    )
    with_drag = _rotors_with_drag(vehicle)
    sites += "".join(
        f'      <site name="drag_{k}" pos="{numbers(rotors.positions[k])}" '
        f'quat="{numbers(quaternion_of_axis(rotors.axes[k]))}" size="0.005"/>\n'
        for k in with_drag
    )
    for k in with_drag:
        root = math.sqrt(hover.thrust[k])
        actuators += "".join(
            f'    <general name="drag_{k}_{axis}" site="drag_{k}" gear="{gear} 0 0 0" {_range(vehicle, k)}dyntype="filter" '
            f'dynprm="{number(rotors.lag)}" gaintype="affine" gainprm="0 0 {number(-0.5 * drag / root)}" '
            f'biastype="affine" biasprm="0 0 {number(-0.5 * drag * root)}"/>\n'
            for axis, gear, drag in _drag_axes(vehicle)
        )
    blunt = 0.5 * vehicle.drag.mean_area / (math.pi * _SPHERE**2)
    air = (
        f'      <geom name="drag_area" type="sphere" size="{number(_SPHERE)}" mass="0" contype="0" conaffinity="0" '
        f'fluidshape="ellipsoid" fluidcoef="{number(blunt)} 0 0 0 0"/>\n'
        if vehicle.drag.mean_area
        else ""
    )
    density = f' density="{number(AIR_DENSITY)}"' if vehicle.drag.mean_area else ""
    inputs = [*hover.thrust, *np.repeat(hover.thrust[with_drag], len(_drag_axes(vehicle)))]
    start = (*(0.0, 0.0, 0.0), *hover.attitude)
    return (
        f'<mujoco model="{xml_name(airframe.name)}">\n'
        + as_xml_comment([*paragraphs, "", *value_lines], "  ")
        + f'  <compiler angle="radian" inertiafromgeom="false"/>\n'
        f'  <option timestep="{number(_TIMESTEP)}" integrator="RK4" gravity="0 0 {number(-GRAVITY)}"{density}/>\n'
        f"  <worldbody>\n"
        f'    <body name="{xml_name(airframe.name)}">\n'
        f'      <inertial pos="0 0 0" mass="{number(vehicle.body.mass)}" fullinertia="{numbers(full_inertia)}"/>\n'
        f"{slides}"
        f'      <joint name="attitude" type="ball" damping="{number(vehicle.drag.mean_angular)}"/>\n'
        f'      <site name="origin" pos="{numbers(-vehicle.body.centre_of_mass)}" size="0.005"/>\n'
        f"{air}{sites}"
        f"    </body>\n"
        f"  </worldbody>\n"
        f"  <actuator>\n{actuators}  </actuator>\n"
        f"  <sensor>\n"
        f'    <gyro name="body_rate" site="origin"/>\n'
        f'    <accelerometer name="specific_force" site="origin"/>\n'
        f"  </sensor>\n"
        f"  <keyframe>\n"
        f'    <key name="hover" qpos="{numbers(start)}" act="{numbers(inputs)}" ctrl="{numbers(inputs)}"/>\n'
        f"  </keyframe>\n"
        f"</mujoco>\n"
    )


def _drag_axes(vehicle: VehicleProperties) -> list[tuple[str, str, float]]:
    """Axes of a rotor along which it has drag: name, direction, and force over speed and root of thrust, N^0.5 s/m."""
    drag = vehicle.drag
    axes = [("x", "1 0 0", drag.rotor), ("y", "0 1 0", drag.rotor), ("z", "0 0 1", drag.inflow)]
    return [axis for axis in axes if axis[2]]


def _rotors_with_drag(vehicle: VehicleProperties) -> list[int]:
    """The rotors whose drag is exported: those with thrust in hover."""
    if not _drag_axes(vehicle):
        return []
    return np.flatnonzero(hover_trim(vehicle).thrust > _NONE * vehicle.body.weight).tolist()


def _range(vehicle: VehicleProperties, k: int) -> str:
    return (
        f'ctrllimited="true" ctrlrange="0 {number(vehicle.rotors.full_thrusts[k])}" '
        if vehicle.rotors.has_thrust_curve
        else ""
    )


def mujoco_limitations(vehicle: VehicleProperties) -> list[Finding]:
    """What MJCF cannot represent, with the size of each error."""
    rotors = vehicle.rotors
    found = [limitation("inputs_are_thrusts" if rotors.has_thrust_curve else "inputs_without_limit")]
    if _drag_axes(vehicle):
        found.append(limitation("rotor_drag_first_order"))
        without_drag = tuple(sorted({*range(rotors.count)} - {*_rotors_with_drag(vehicle)}))
        if without_drag:
            found.append(limitation("rotor_drag_without_thrust", rotors=without_drag))
    found += [*translational_lift(vehicle), *drag_by_axis(vehicle), *angular_drag_by_axis(vehicle)]
    found += [*falling_lag(vehicle, "motor lag"), *rotor_moments(vehicle)]
    return [*found, *command_delay(vehicle, "delay_inputs"), *battery_voltage(vehicle)]
