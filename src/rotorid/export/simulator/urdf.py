"""Export to URDF: the body with its inertia, and a frame for each rotor with z along its thrust.

URDF has no forces: thrust, drag and motors are given in its comment.
"""

from __future__ import annotations

from rotorid.export.annotated_values import annotated_values
from rotorid.export.file_header import as_xml_comment, file_header
from rotorid.export.limitations import limitation
from rotorid.export.uncertainty import standard_deviations
from rotorid.export.vehicle_values import vehicle_values
from rotorid.export.xml import euler_angles_of_axis, number, numbers, xml_name
from rotorid.findings import Finding
from rotorid.models.airframe.airframe import Airframe
from rotorid.models.multirotor.properties import VehicleProperties, vehicle_properties

BASE = "base_link"

_ELEMENTS = (("ixx", 0, 0), ("iyy", 1, 1), ("izz", 2, 2), ("ixy", 0, 1), ("ixz", 0, 2), ("iyz", 1, 2))


def urdf_files(airframe: Airframe) -> dict[str, bytes]:
    """model.urdf."""
    vehicle = vehicle_properties(airframe, needs_torque_ratio=False, needs_thrust_curve=False)
    body, frames = vehicle.body, vehicle.rotors
    values, stds = vehicle_values(airframe), standard_deviations(vehicle_values, airframe)
    paragraphs = file_header(airframe, "URDF", urdf_limitations(vehicle))
    paragraphs.append("Units: SI. Body: x forward, y left, z up.")
    paragraphs += ["", *annotated_values(values, stds)]
    elements = " ".join(f'{n}="{number(body.inertia[i, k])}"' for n, i, k in _ELEMENTS)
    rotors = "".join(
        f'  <link name="rotor_{k}"/>\n'
        f'  <joint name="rotor_{k}_joint" type="fixed">\n'
        f'    <parent link="{BASE}"/>\n'
        f'    <child link="rotor_{k}"/>\n'
        f'    <origin xyz="{numbers(frames.positions[k] + body.centre_of_mass)}" '
        f'rpy="{numbers(euler_angles_of_axis(frames.axes[k]))}"/>\n'
        f"  </joint>\n"
        for k in range(frames.count)
    )
    text = (
        f'<?xml version="1.0"?>\n<robot name="{xml_name(airframe.name)}">\n{as_xml_comment(paragraphs, "  ")}'
        f'  <link name="{BASE}">\n'
        f"    <inertial>\n"
        f'      <origin xyz="{numbers(body.centre_of_mass)}" rpy="0 0 0"/>\n'
        f'      <mass value="{number(body.mass)}"/>\n'
        f"      <inertia {elements}/>\n"
        f"    </inertial>\n"
        f"  </link>\n"
        f"{rotors}</robot>\n"
    )
    return {"model.urdf": text.encode()}


def urdf_limitations(vehicle: VehicleProperties) -> list[Finding]:
    """What URDF cannot represent."""
    rotors, drag = vehicle.rotors, vehicle.drag
    thrusts = tuple(rotors.full_thrusts.tolist()) if rotors.has_thrust_curve else ()
    return [
        limitation("no_forces", thrusts=thrusts, lag=rotors.lag),
        limitation(
            "no_drag",
            linear=drag.mean_linear,
            rotor=drag.rotor,
            inflow=drag.inflow,
            lift=drag.lift,
            area=drag.mean_area,
            angular=drag.mean_angular,
        ),
        limitation("no_rotor_directions", directions=tuple(float(spin) for spin in rotors.spins)),
    ]
