"""Limitations: properties of an airframe that a target cannot represent, as findings. Each exporter lists its own.

Their sentences are in `text.py`. Values are in SI units; shares are from 0 to 1.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final

import numpy as np

from rotorid.findings import Finding, Severity
from rotorid.models.multirotor.properties import (
    ThrustFraction,
    VehicleProperties,
    expo_fraction,
    hover_trim,
    largest_difference,
)

DRAG_QUANTITIES: Final = ("drag", "rotor_drag", "rotor_inflow", "drag_area")
"""Quantities of an airframe that slow a vehicle down."""

_SMALLEST_ERROR: Final = 1e-9


def limitation(code: str, **values: Any) -> Finding:
    """A limitation."""
    return Finding(code, Severity.NOTE, values)


def missing_parameters(names: Collection[str]) -> list[Finding]:
    """Parameters that are not written, since the airframe has no value for them."""
    return [limitation("parameters_not_written", parameters=tuple(sorted(names)))] if names else []


def out_of_range(
    program: str, values: Mapping[str, float], limits: Mapping[str, tuple[float, float]]
) -> list[Finding]:
    """Values outside the range of their parameters. limits: by parameter."""
    return [
        limitation(
            "parameter_out_of_range", program=program, parameter=name, value=values[name], low=low, high=high
        )
        for name, (low, high) in limits.items()
        if name in values and not low <= values[name] <= high
    ]


def thrust_curve_error(parameter: str, expo: float, fraction: ThrustFraction) -> list[Finding]:
    """The largest error of an autopilot's thrust model, see `rotorid.models.multirotor.properties`.

    Args:
        parameter: name of the parameter of the thrust model.
        expo: its value.
        fraction: thrust over full thrust as a function of the command.
    """
    worst = largest_difference(fraction, lambda s: np.asarray(expo_fraction(expo, s)))
    return (
        []
        if worst < _SMALLEST_ERROR
        else [limitation("thrust_curve_fitted", parameter=parameter, share=worst)]
    )


def command_delay(vehicle: VehicleProperties, remedy: str | None = None) -> list[Finding]:
    """The delay of commands. remedy: "delay_inputs" or "pade", what a user of the target can do."""
    delay = vehicle.rotors.command_delay
    return [limitation("command_delay", delay=delay, remedy=remedy)] if delay else []


def falling_lag(vehicle: VehicleProperties, parameter: str) -> list[Finding]:
    """One motor lag for rising and falling thrust. parameter: of the lag."""
    rotors = vehicle.rotors
    if rotors.lag == rotors.lag_down:
        return []
    return [limitation("single_lag", parameter=parameter, lag=rotors.lag, lag_down=rotors.lag_down)]


def battery_voltage(vehicle: VehicleProperties) -> list[Finding]:
    """The effect of the battery voltage on the thrust."""
    curve = vehicle.rotors.thrust_curve
    if not curve.voltage_exponent:
        return []
    share = curve.voltage_exponent / curve.voltage
    return [limitation("battery_voltage", voltage=curve.voltage, share_per_volt=share)]


def drag_by_axis(vehicle: VehicleProperties) -> list[Finding]:
    """One drag for all axes, where the airframe has one for each."""
    found = []
    for name, unit, values in (
        ("drag", "N s/m", vehicle.drag.linear),
        ("drag area", "m^2", vehicle.drag.area),
    ):
        if np.ptp(values):
            mean = float(values.mean())
            found.append(
                limitation("drag_mean", drag=name, values=tuple(values.tolist()), mean=mean, unit=unit)
            )
    return found


def angular_drag_by_axis(vehicle: VehicleProperties) -> list[Finding]:
    """One angular drag for all axes, where the airframe has one for each."""
    values = vehicle.drag.angular
    if not np.ptp(values):
        return []
    return [limitation("angular_drag_mean", values=tuple(values.tolist()), mean=vehicle.drag.mean_angular)]


def no_drag(vehicle: VehicleProperties) -> list[Finding]:
    """Drag of the body and of the rotors, where a target has none."""
    drag = vehicle.drag
    sizes = {
        "linear": drag.mean_linear,
        "rotor": drag.rotor,
        "area": drag.mean_area,
        "angular": drag.mean_angular,
    }
    return [limitation("no_drag", **sizes)] if any(sizes.values()) else []


def rotor_aerodynamics(vehicle: VehicleProperties) -> list[Finding]:
    """Inflow and translational lift: the change of the hover thrust of all rotors at 1 m/s."""
    thrust = hover_trim(vehicle).thrust
    loss = vehicle.drag.inflow * float(np.sqrt(thrust).sum())
    found = [limitation("no_inflow", loss=loss, share=loss / float(thrust.sum()))] if loss else []
    return [*found, *translational_lift(vehicle)]


def translational_lift(vehicle: VehicleProperties) -> list[Finding]:
    """Translational lift: the gain of the hover thrust of all rotors at 1 m/s."""
    gain = vehicle.drag.lift * vehicle.rotors.count
    return [limitation("no_translational_lift", gain=gain, share=gain / vehicle.body.weight)] if gain else []


def rotor_moments(vehicle: VehicleProperties) -> list[Finding]:
    """Flapping moment: that of all rotors in hover at 1 m/s. Momentum of the rotors: the time by which their yaw torque with it
    leads that of their drag."""
    roots = np.sqrt(hover_trim(vehicle).thrust)
    moment = vehicle.drag.flapping * float(roots.sum())
    found = [limitation("no_flapping_moment", moment=moment)] if moment else []
    if vehicle.rotors.momentum and vehicle.rotors.has_torque_ratio:
        lead = vehicle.rotors.momentum / (2.0 * vehicle.rotors.torque_ratio * float(roots.mean()))
        found.append(limitation("no_rotor_momentum", lead=lead))
    return found


def no_thrust_curve(vehicle: VehicleProperties) -> list[Finding]:
    """Thrusts as inputs, where the airframe has no thrust curve."""
    rotors = vehicle.rotors
    return [] if rotors.has_thrust_curve else [limitation("no_thrust_curve", lag=rotors.lag)]
