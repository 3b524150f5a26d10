"""The numbers of an airframe that models share, by name, for their standard deviations."""

from __future__ import annotations

import math
from collections.abc import Mapping

from rotorid.export.vehicle.facts import facts_of
from rotorid.models.airframe import Airframe


def vehicle_numbers(airframe: Airframe) -> Mapping[str, float]:
    """Those of `told`. A torque ratio that is not known, and what commands would do, are left out."""
    f = facts_of(airframe, torque=False, commands=False)
    values = {
        "mass": f.mass,
        **{
            f"inertia {name}": f.inertia[i, k]
            for name, i, k in (
                ("xx", 0, 0), ("yy", 1, 1), ("zz", 2, 2), ("xy", 0, 1), ("xz", 0, 2), ("yz", 1, 2),
            )
        },
        **{f"centre of mass {axis}": f.centre[k] for k, axis in enumerate("xyz")},
        "torque ratio": f.torque_ratio,
        "lag": f.lag,
        "drag": f.drag,
        "rotor drag": f.rotor_drag,
        "drag area": f.drag_area,
        "angular drag": f.angular_drag,
        **{f"full thrust {k}": thrust for k, thrust in enumerate(f.full)},
        **{f"hover command {k}": command for k, command in enumerate(f.hover().command)},
    }  # fmt: skip
    return {name: value for name, value in values.items() if not math.isnan(value)}
