"""An airframe as MuJoCo's MJCF: one body, a site and an actuator a rotor.

The body's frame is at the centre of mass, so that its position is the one of `rigid_multirotor`. Three slides along the world's
axes and a ball move it, with the coordinates of a free joint (position, quaternion w x y z; velocity in the world, rate in the
body), and with a damping of their own: linear and angular drag. The drag that grows with the square of the speed is MuJoCo's
blunt drag of a sphere, rho C pi r^2 |v| v (without the 1/2), small enough that its added mass is nothing. An actuator filters
the thrust that a rotor is asked for with the motors' lag, and pulls and turns at the rotor's site. A rotor's drag, by two more
actuators across its axis that are given the same thrust and filter it likewise, is that to first order around hover:

    F = -k_r sqrt(T) v = -k_r sqrt(T_0) / 2 (1 + T / T_0) v + O((T - T_0)^2)

which MuJoCo has as the gain and the bias of an actuator, both linear in its speed v.
"""

from __future__ import annotations

import math

import numpy as np

from rotorid.export.vehicle.facts import Facts, facts_of
from rotorid.export.vehicle.heading import heading, in_python, in_xml
from rotorid.export.vehicle.spread import spreads
from rotorid.export.vehicle.told import told
from rotorid.export.vehicle.vehicle_numbers import vehicle_numbers
from rotorid.export.vehicle.xml import name_in_xml, number, numbers, quaternion_of
from rotorid.models.airframe import Airframe
from rotorid.models.multirotor_air import AIR_DENSITY
from rotorid.models.system import GRAVITY

_SPHERE = 1e-3  # m
_TIMESTEP = 0.002  # s
_NONE = 1e-9

_COMMANDED = '''\
COEFFICIENTS = {coefficients}  # N, of one rotor, from the constant on
ZERO, FULL = {zero}, {full}  # commands between which the thrust grows
SCALES = {scales}  # of each rotor's thrust over the curve's
ROTORS = {rotors}  # whose thrust each actuator of model.xml takes
HOVER = {hover}  # command of each rotor that holds the vehicle in still air


def thrust(command):
    """Thrusts in N of the rotors' commands, 0 to 1: what the actuators take."""
    c = np.clip((np.asarray(command) - ZERO) / (FULL - ZERO), 0.0, 1.0)
    return (np.array(SCALES) * sum(k * c**power for power, k in enumerate(COEFFICIENTS)))[..., ROTORS]
'''

_ASKED = '''\
SCALES = {scales}  # of what each rotor pulls over what it is asked for
ROTORS = {rotors}  # whose thrust each actuator of model.xml takes
HOVER = {hover}  # N, asked of each rotor, that holds the vehicle in still air


def thrust(asked):
    """Thrusts in N of rotors of which these were asked, N: what the actuators take."""
    return (np.array(SCALES) * np.asarray(asked))[..., ROTORS]
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
    """model.xml, and fly.py, which makes thrusts of commands and hovers."""
    f = facts_of(airframe, commands=False)
    paragraphs = heading(airframe, "a model for MuJoCo", _sentences(f))
    paragraphs.append(
        "Units: SI. World: z up. Body: x forward, y left, z up, its frame at the centre of mass."
    )
    hover = f.hover()
    about = "What the actuators of model.xml are to be given: `thrust`."
    thrust = (_COMMANDED if f.commanded else _ASKED).format(
        coefficients=numbers_in_python(f.curve.coefficients),
        zero=number(f.curve.zero),
        full=number(f.curve.full),
        scales=numbers_in_python(f.scales),
        rotors=[*range(f.count), *np.repeat(_dragged(f), 2).tolist()],
        hover=numbers_in_python(hover.command if f.commanded else hover.thrust / f.scales),
    )
    fly = _FLY.format(heading=in_python([about, *paragraphs]), thrust=thrust)
    return {"model.xml": _model(airframe, f, paragraphs).encode(), "fly.py": fly.encode()}


def numbers_in_python(values) -> str:
    """A list of numbers with all their digits."""
    return f"[{', '.join(number(v) for v in values)}]"


def _model(airframe: Airframe, f: Facts, paragraphs: list[str]) -> str:
    told_numbers = told(vehicle_numbers(airframe), spreads(vehicle_numbers, airframe))
    hover = f.hover()
    J = f.inertia
    full_inertia = (J[0, 0], J[1, 1], J[2, 2], J[0, 1], J[0, 2], J[1, 2])
    sites = "".join(
        f'      <site name="rotor_{k}" pos="{numbers(f.places[k])}" quat="{numbers(quaternion_of(f.axes[k]))}" '
        f'size="0.005"/>\n'
        for k in range(f.count)
    )
    actuators = "".join(
        f'    <general name="rotor_{k}" site="rotor_{k}" gear="0 0 1 0 0 {number(-f.spins[k] * f.torque_ratio)}" '
        f'{_range(f, k)}dyntype="filter" dynprm="{number(f.lag)}"/>\n'
        for k in range(f.count)
    )
    slides = "".join(
        f'      <joint name="{axis}" type="slide" axis="{way}" damping="{number(f.drag)}"/>\n'
        for axis, way in (("x", "1 0 0"), ("y", "0 1 0"), ("z", "0 0 1"))
    )
    dragged = _dragged(f)
    sites += "".join(
        f'      <site name="drag_{k}" pos="0 0 0" quat="{numbers(quaternion_of(f.axes[k]))}" size="0.005"/>\n'
        for k in dragged
    )
    for k in dragged:
        half = 0.5 * f.rotor_drag * math.sqrt(hover.thrust[k])
        actuators += "".join(
            f'    <general name="drag_{k}_{axis}" site="drag_{k}" gear="{gear} 0 0 0 0" {_range(f, k)}dyntype="filter" '
            f'dynprm="{number(f.lag)}" gaintype="affine" gainprm="0 0 {number(-half / hover.thrust[k])}" '
            f'biastype="affine" biasprm="0 0 {number(-half)}"/>\n'
            for axis, gear in (("x", "1 0"), ("y", "0 1"))
        )
    blunt = 0.5 * f.drag_area / (math.pi * _SPHERE**2)
    air = (
        f'      <geom name="drag_area" type="sphere" size="{number(_SPHERE)}" mass="0" contype="0" conaffinity="0" '
        f'fluidshape="ellipsoid" fluidcoef="{number(blunt)} 0 0 0 0"/>\n'
        if f.drag_area
        else ""
    )
    density = f' density="{number(AIR_DENSITY)}"' if f.drag_area else ""
    inputs = [*hover.thrust, *np.repeat(hover.thrust[dragged], 2)]
    start = (*(0.0, 0.0, 0.0), *hover.attitude)
    return (
        f'<mujoco model="{name_in_xml(airframe.name)}">\n'
        + in_xml([*paragraphs, "", *told_numbers], "  ")
        + f'  <compiler angle="radian" inertiafromgeom="false"/>\n'
        f'  <option timestep="{number(_TIMESTEP)}" integrator="RK4" gravity="0 0 {number(-GRAVITY)}"{density}/>\n'
        f"  <worldbody>\n"
        f'    <body name="{name_in_xml(airframe.name)}">\n'
        f'      <inertial pos="0 0 0" mass="{number(f.mass)}" fullinertia="{numbers(full_inertia)}"/>\n'
        f"{slides}"
        f'      <joint name="attitude" type="ball" damping="{number(f.angular_drag)}"/>\n'
        f'      <site name="origin" pos="{numbers(-f.centre)}" size="0.005"/>\n'
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


def _dragged(f: Facts) -> list[int]:
    """The rotors whose drag is written: those that pull at hover."""
    if not f.rotor_drag:
        return []
    return np.flatnonzero(f.hover().thrust > _NONE * f.weight).tolist()


def _range(f: Facts, k: int) -> str:
    return f'ctrllimited="true" ctrlrange="0 {number(f.full[k])}" ' if f.commanded else ""


def _sentences(f: Facts) -> list[str]:
    """What MJCF cannot say of this airframe, and how large that is."""
    found = ["actuators take thrusts in N: MJCF has no curve before a filter; fly.py makes them of commands"]
    if not f.commanded:
        found = ["the airframe has no [thrust_curve]: actuators take thrusts in N, and have no limit"]
    if f.rotor_drag:
        found.append(
            "the rotors' drag is that to first order around the thrust of hover, by actuators drag_0_x, drag_0_y and so on, "
            "which are given the thrusts of their rotors, too; at twice the thrust of hover it is 6 % too large"
        )
        left = sorted({*range(f.count)} - {*_dragged(f)})
        if left:
            found.append(f"that of rotor {', '.join(map(str, left))} is left out: it does not pull at hover")
    if f.lag != f.lag_down:
        found.append(f"one lag, {f.lag:g} s; rotors slow down in {f.lag_down:g} s")
    if f.delay:
        found.append(f"commands arrive {1000 * f.delay:.3g} ms late: hold them back for as long")
    if f.curve.voltage_exponent:
        found.append(
            f"the curve holds at {f.curve.voltage:g} V; thrust goes with the power {f.curve.voltage_exponent:g} of the voltage"
        )
    return found
