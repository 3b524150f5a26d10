"""An airframe as URDF: the body with its inertia, and a frame for each rotor whose z is the axis along which it pulls.

URDF has no forces: thrust, drag and motors are told in its comment.
"""

from __future__ import annotations

from rotorid.export.vehicle.facts import Facts, facts_of
from rotorid.export.vehicle.heading import heading, in_xml
from rotorid.export.vehicle.spread import spreads
from rotorid.export.vehicle.told import told
from rotorid.export.vehicle.vehicle_numbers import vehicle_numbers
from rotorid.export.vehicle.xml import angles_of, name_in_xml, number, numbers
from rotorid.models.airframe import Airframe

BASE = "base_link"


_ELEMENTS = (("ixx", 0, 0), ("iyy", 1, 1), ("izz", 2, 2), ("ixy", 0, 1), ("ixz", 0, 2), ("iyz", 1, 2))


def urdf_files(airframe: Airframe) -> dict[str, bytes]:
    """model.urdf."""
    f = facts_of(airframe, torque=False, commands=False)
    values, stds = vehicle_numbers(airframe), spreads(vehicle_numbers, airframe)
    paragraphs = heading(airframe, "URDF", _sentences(f))
    paragraphs.append("Units: SI. Body: x forward, y left, z up.")
    paragraphs += ["", *told(values, stds)]
    elements = " ".join(f'{n}="{number(f.inertia[i, k])}"' for n, i, k in _ELEMENTS)
    rotors = "".join(
        f'  <link name="rotor_{k}"/>\n'
        f'  <joint name="rotor_{k}_joint" type="fixed">\n'
        f'    <parent link="{BASE}"/>\n'
        f'    <child link="rotor_{k}"/>\n'
        f'    <origin xyz="{numbers(f.places[k] + f.centre)}" rpy="{numbers(angles_of(f.axes[k]))}"/>\n'
        f"  </joint>\n"
        for k in range(f.count)
    )
    text = (
        f'<?xml version="1.0"?>\n<robot name="{name_in_xml(airframe.name)}">\n{in_xml(paragraphs, "  ")}'
        f'  <link name="{BASE}">\n'
        f"    <inertial>\n"
        f'      <origin xyz="{numbers(f.centre)}" rpy="0 0 0"/>\n'
        f'      <mass value="{number(f.mass)}"/>\n'
        f"      <inertia {elements}/>\n"
        f"    </inertial>\n"
        f"  </link>\n"
        f"{rotors}</robot>\n"
    )
    return {"model.urdf": text.encode()}


def _sentences(f: Facts) -> list[str]:
    pulls = ", ".join(f"{full:.4g}" for full in f.full) if f.commanded else "what they are asked for, in"
    return [
        f"URDF has no forces: at full command the rotors pull {pulls} N along z of their frames, with a lag of {f.lag:g} s",
        f"drag, none here: {f.drag:g} N s/m linear, {f.rotor_drag:g} N^0.5 s/m of the rotors, {f.drag_area:g} m^2 of area, "
        f"{f.angular_drag:g} N m s of turning",
        f"which way rotors turn, none here (1 counter-clockwise about z): {', '.join(f'{s:g}' for s in f.spins)}",
    ]
