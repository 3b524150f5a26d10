"""What a System that stands around another one takes over from it as it is."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from jaxtyping import Array, Bool

from rotorid.geometry.spaces import Space
from rotorid.models.system import System, Values


@dataclasses.dataclass(frozen=True)
class AroundSystem(System):
    """A System around `system`, whose states, outputs and range it has. Inputs, parameters and dynamics are its own."""

    system: System

    @property
    def states(self) -> Space:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.system.states

    @property
    def outputs(self) -> Space:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.system.outputs

    def observe(self, x: Values, u: Values, p: Values) -> Values:
        return self.system.observe(x, u, p)

    def holds(self, u: Values) -> Bool[Array, ""] | bool:
        return self.system.holds(u)

    def process_noise(self, x: Values, u: Values, p: Values) -> Values:
        return self.system.process_noise(x, u, p)

    def measurement_noise(self, x: Values, u: Values, p: Values) -> Values:
        return self.system.measurement_noise(x, u, p)

    def derive(self, x: Values, p: Values) -> Values:
        return self.system.derive(x, p)

    @property
    def derived_units(self) -> Mapping[str, str]:
        return self.system.derived_units
