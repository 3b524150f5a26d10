"""Collective thrust of rotor commands."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from rotorid.errors import AirframeError
from rotorid.live.estimation.sampler import SampleRow
from rotorid.models.airframe.airframe import Airframe
from rotorid.models.multirotor.thrust import ThrustCurve
from rotorid.models.system import GRAVITY


class ThrustModel:
    """Thrust of one vehicle's rotors. voltage: of its battery, V, the latest measurement; nan before the first.

    Raises AirframeError if the airframe has no thrust curve.
    """

    def __init__(self, airframe: Airframe) -> None:
        if airframe.thrust_curve is None:
            raise AirframeError(
                f"{airframe.source}: no [thrust_curve]; add one (thrust in N over command), since the vehicle sends rotor "
                "commands"
            )
        self._curve = airframe.thrust_curve
        self._weight = airframe.mass.number * GRAVITY
        self.voltage = math.nan

    def thrust(self, commands: Sequence[float]) -> float:
        """Collective thrust of rotor commands (0 to 1) at the latest voltage, N."""
        return collective_thrust(self._curve, commands, self.voltage)

    def thrust_ratios(self, row: SampleRow, inputs: Mapping[str, slice]) -> tuple[float, ...]:
        """Commanded thrust of each rotor, or of all together, over the nominal weight. inputs: slices of the row's u by
        input."""
        u = row.u
        if "thrust" in inputs:
            return (u[inputs["thrust"].start] / self._weight,)
        commands = u[inputs["rotor_command"]]
        return tuple(collective_thrust(self._curve, [c], self.voltage) / self._weight for c in commands)


def collective_thrust(curve: ThrustCurve, commands: Sequence[float], voltage: float) -> float:
    """`ThrustCurve.collective` without array overhead, for each message of a live link.

    Args:
        curve: thrust of one rotor over its command.
        commands: of all rotors, 0 to 1.
        voltage: of the battery, V; nan if unknown.
    Returns:
        Collective thrust, N.
    """
    total = 0.0
    for command in commands:
        c = min(max((command - curve.zero) / (curve.full - curve.zero), 0.0), 1.0)
        thrust = 0.0
        for coefficient in reversed(curve.coefficients):
            thrust = thrust * c + coefficient
        total += thrust
    if curve.voltage_exponent and voltage > 0.0:
        total *= (voltage / curve.voltage) ** curve.voltage_exponent
    return total
