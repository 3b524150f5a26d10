"""Any System with a learned residual (a knowledge-based neural ODE's right-hand side, seed 001, eq. 16).

x' = f(x, u, p) + phi(x, u)
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from jaxtyping import Array, Bool

from rotorid.geometry.spaces import Space
from rotorid.models.residual import Residual
from rotorid.models.rigid_multirotor import RigidMultirotor
from rotorid.models.system import Parameter, System, Values


@dataclasses.dataclass(frozen=True)
class Hybrid(System):
    """A System whose rates have a learned residual; `with_residual` makes it."""

    system: System
    residual: Residual

    @property
    def states(self) -> Space:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.system.states

    @property
    def inputs(self) -> Space:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.system.inputs

    @property
    def outputs(self) -> Space:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.system.outputs

    @property
    def parameters(self) -> tuple[Parameter, ...]:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.system.parameters

    def dynamics(self, x: Values, u: Values, p: Values) -> Values:
        rates = dict(self.system.dynamics(x, u, p))
        for name, phi in self.residual.rates(self.system.regressors(x, u, p)).items():
            rates[name] = rates[name] + phi
        return rates

    def observe(self, x: Values, u: Values, p: Values) -> Values:
        return self.system.observe(x, u, p)

    def holds(self, u: Values) -> Bool[Array, ""] | bool:
        return self.system.holds(u)

    def derive(self, x: Values, p: Values) -> Values:
        return self.system.derive(x, p)

    @property
    def derived_units(self) -> Mapping[str, str]:
        return self.system.derived_units


def with_residual(system: System, residual: Residual) -> System:
    """The System with the residual beside its physics: a RigidMultirotor stays one, as its observers need it."""
    if isinstance(system, RigidMultirotor):
        return dataclasses.replace(system, residual=residual)
    return Hybrid(system, residual)
