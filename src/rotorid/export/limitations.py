"""Sentences on properties that several targets cannot represent."""

from __future__ import annotations

import numpy as np

from rotorid.models.multirotor.hover import hover_trim
from rotorid.models.multirotor.properties import VehicleProperties

DRAG_QUANTITIES = ("drag", "rotor_drag", "drag_area")
"""Quantities of an airframe that slow a vehicle down."""

NO_DRAG_AREA = "disabled, the airframe has no drag area"
"""Comment on a ballistic coefficient of 0."""


def rotor_drag_limitation(vehicle: VehicleProperties) -> list[str]:
    """The torque and damping of rotor drag that acts at the rotors; in the airframe it acts at the centre of mass."""
    if not vehicle.drag.rotor:
        return []
    each = vehicle.drag.rotor * np.sqrt(hover_trim(vehicle).thrust)
    positions = vehicle.rotors.positions
    return [
        "rotor drag acts at the rotors here, and at the centre of mass in the airframe: in hover it adds a torque of "
        f"{abs(each @ positions[:, 2]):.2g} N m per m/s and a yaw damping of "
        f"{each @ (positions[:, :2] ** 2).sum(axis=1):.2g} N m s"
    ]


def no_thrust_curve(vehicle: VehicleProperties) -> str:
    """On a model whose inputs are thrusts."""
    return (
        f"the airframe has no [thrust_curve]: inputs are thrusts in N, and the motor lag of {vehicle.rotors.lag:g} s is not "
        "modelled"
    )
