"""Any System with a learned residual (a knowledge-based neural ODE's right-hand side, Alharbat 2025, eq. 16).

x' = f(x, u, p) + phi(x, u)
"""

from __future__ import annotations

import dataclasses

from rotorid.geometry.spaces import Space
from rotorid.models.multirotor.rigid import RigidMultirotor
from rotorid.models.residual import Head, Residual, rates, residual_parameters, weights_in
from rotorid.models.system import Parameter, System, Values
from rotorid.models.wrapped_system import WrappedSystem


@dataclasses.dataclass(frozen=True)
class Hybrid(WrappedSystem):
    """A System whose rates have a learned residual; `with_residual` makes it. weights: the parameters that it adds."""

    heads: tuple[Head, ...]
    weights: tuple[Parameter, ...]

    @property
    def inputs(self) -> Space:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.system.inputs

    @property
    def parameters(self) -> tuple[Parameter, ...]:  # pyright: ignore[reportIncompatibleVariableOverride]
        return (*self.system.parameters, *self.weights)

    def dynamics(self, x: Values, u: Values, p: Values) -> Values:
        physics = dict(self.system.dynamics(x, u, p))
        phi = rates(self.heads, weights_in(self.heads, p), self.system.regressors(x, u, p))
        return physics | {name: physics[name] + phi[name] for name in phi}


def with_residual(system: System, residual: Residual) -> System:
    """Add a learned residual to the physics of a System.

    Args:
        system: any System.
        residual: the learned residual; its weights become parameters of the System.
    Returns:
        The System with `x' = f(x, u, p) + phi(x, u)`, where phi is the residual. A `RigidMultirotor` stays one, since its
        observers need that type.
    Source: Alharbat 2025, eq. 16.
    """
    weights = tuple(residual_parameters(residual).values())
    if isinstance(system, RigidMultirotor):
        return dataclasses.replace(system, parameters=(*system.parameters, *weights), heads=residual.heads)
    return Hybrid(system, residual.heads, weights)
