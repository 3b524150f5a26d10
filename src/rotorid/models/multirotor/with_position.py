"""The multirotor of real logs with its position: one model for a controller, a planner and a state estimator."""

from __future__ import annotations

import dataclasses
from functools import cached_property
from typing import Any

from rotorid.geometry.spaces import Space, Vector
from rotorid.models.airframe.airframe import Airframe
from rotorid.models.multirotor.with_drag import Multirotor, multirotor
from rotorid.models.system import Values


@dataclasses.dataclass(frozen=True)
class MultirotorWithPosition(Multirotor):
    """`Multirotor` with its position (m, world) as a state, r' = v, which is measured."""

    @cached_property
    def states(self) -> Space:  # pyright: ignore[reportIncompatibleVariableOverride]
        position = Vector(3, "m", frame="world", noise=0.003, std=10.0)
        return Space((*super().states.blocks, ("position", position)))

    @cached_property
    def outputs(self) -> Space:  # pyright: ignore[reportIncompatibleVariableOverride]
        return Space((*super().outputs.blocks, ("position", Vector(3, "m", frame="world", noise=0.02))))

    def dynamics(self, x: Values, u: Values, p: Values) -> Values:
        return {**super().dynamics(x, u, p), "position": x["velocity"]}

    def observe(self, x: Values, u: Values, p: Values) -> Values:
        return {**super().observe(x, u, p), "position": x["position"]}


def multirotor_with_position(airframe: Airframe, **settings: Any) -> MultirotorWithPosition:
    """Make the multirotor of an airframe, driven by the commanded thrust (N), with its position.

    Args:
        airframe: of the vehicle.
        settings: of `multirotor`.
    Raises:
        AirframeError, SettingError: as `multirotor`.
    """
    system = multirotor(airframe, "thrust", **settings)
    return MultirotorWithPosition(**{f.name: getattr(system, f.name) for f in dataclasses.fields(system)})
