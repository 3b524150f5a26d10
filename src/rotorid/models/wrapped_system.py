"""A System that wraps another one and adds to it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from jaxtyping import Array, Bool, Float

from rotorid.geometry.spaces import Space
from rotorid.models.system import System, Values
from rotorid.numerics.integrators import Solved


@dataclasses.dataclass(frozen=True)
class WrappedSystem(System):
    """Base class: states, outputs, noise and range of validity are those of `system`; a subclass defines inputs, parameters and
    dynamics."""

    system: System

    @property
    def states(self) -> Space:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.system.states

    @property
    def outputs(self) -> Space:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.system.outputs

    def observe(self, x: Values, u: Values, p: Values) -> Values:
        return self.system.observe(x, u, p)

    def solve_lags(self, x: Values, u: Values, p: Values, dt: Float[Array, ""] | float) -> Solved:
        return self.system.solve_lags(x, u, p, dt)

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
