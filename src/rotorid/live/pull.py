"""What the rotors pull, as they are commanded."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from rotorid.errors import AirframeError
from rotorid.live.sampler import Row
from rotorid.live.settings import collective_thrust
from rotorid.models.airframe import Airframe
from rotorid.models.system import GRAVITY


class Pull:
    """Of one vehicle. voltage: of its battery, the latest, V; nan before it is told. Raises AirframeError where the airframe
    has no thrust curve."""

    def __init__(self, airframe: Airframe) -> None:
        if airframe.thrust_curve is None:
            raise AirframeError(
                f"{airframe.source}: no [thrust_curve], and a vehicle sends rotor commands; add one, in N over the command"
            )
        self._curve = airframe.thrust_curve
        self._weight = airframe.mass.number * GRAVITY
        self.voltage = math.nan

    def thrust(self, commands: Sequence[float]) -> float:
        """Collective thrust in N of rotor commands, at the latest voltage."""
        return collective_thrust(self._curve, commands, self.voltage)

    def over_weight(self, row: Row, inputs: Mapping[str, slice]) -> float:
        """Collective thrust that a row commands, over the nominal weight. inputs: where each stands in it."""
        u = row.u
        thrust = u[inputs["thrust"].start] if "thrust" in inputs else self.thrust(u[inputs["rotor_command"]])
        return thrust / self._weight
