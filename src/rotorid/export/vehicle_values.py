"""The values of an airframe that several targets list with their standard deviations, by name."""

from __future__ import annotations

import math
from collections.abc import Mapping

from rotorid.models.airframe.airframe import Airframe
from rotorid.models.multirotor.properties import hover_trim, vehicle_properties


def vehicle_values(airframe: Airframe) -> Mapping[str, float]:
    """Values for `annotated_values`; unknown ones are left out."""
    vehicle = vehicle_properties(airframe, needs_torque_ratio=False, needs_thrust_curve=False)
    values = {
        "mass": vehicle.body.mass,
        **{
            f"inertia {name}": vehicle.body.inertia[i, k]
            for name, i, k in (
                ("xx", 0, 0), ("yy", 1, 1), ("zz", 2, 2), ("xy", 0, 1), ("xz", 0, 2), ("yz", 1, 2),
            )
        },
        **{f"centre of mass {axis}": vehicle.body.centre_of_mass[k] for k, axis in enumerate("xyz")},
        "torque ratio": vehicle.rotors.torque_ratio,
        "lag": vehicle.rotors.lag,
        "drag": vehicle.drag.mean_linear,
        "rotor drag": vehicle.drag.rotor,
        "rotor inflow": vehicle.drag.inflow,
        "translational lift": vehicle.drag.lift,
        "flapping moment": vehicle.drag.flapping,
        "drag area": vehicle.drag.mean_area,
        **{f"angular drag {axis}": vehicle.drag.angular[k] for k, axis in enumerate("xyz")},
        "rotor momentum": vehicle.rotors.momentum,
        **{f"full thrust {k}": thrust for k, thrust in enumerate(vehicle.rotors.full_thrusts)},
        **{f"hover command {k}": command for k, command in enumerate(hover_trim(vehicle).command)},
    }  # fmt: skip
    return {name: value for name, value in values.items() if not math.isnan(value)}
