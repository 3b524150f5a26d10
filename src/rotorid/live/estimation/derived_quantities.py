"""Quantities that a System derives from its states and tracked parameters, with standard deviations, for each row.

    std^2 = J P J^T,      J = d derived / d tracked

`workflows.track` computes the same for a whole flight.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from rotorid.estimators.base import Estimate
from rotorid.live.snapshot import Reading
from rotorid.models.joint import Joint


class DerivedQuantities:
    """Derived quantities of one System. values: prior means of all its parameters."""

    def __init__(self, joint: Joint, values: Float[Array, " all"]) -> None:
        system = joint.system
        self._units = dict(system.derived_units)

        def derive(
            value: Float[Array, " parameters"], state: Float[Array, " states"]
        ) -> Float[Array, " derived"]:
            derived = system.derive(system.states.unpack(state), joint.with_tracked(value, values))
            return jnp.stack([derived[name] for name in self._units])

        def with_std(
            value: Float[Array, " parameters"],
            state: Float[Array, " states"],
            covariance: Float[Array, "parameters parameters"],
        ) -> Float[Array, "2 derived"]:
            J = jax.jacfwd(derive)(value, state)
            return jnp.stack([derive(value, state), jnp.sqrt(jnp.diag(J @ covariance @ J.T))])

        self._with_std = jax.jit(with_std)

    def readings(self, estimate: Estimate) -> dict[str, Reading]:
        """Derived quantities of an estimate."""
        if not self._units:
            return {}
        values, stds = np.asarray(
            self._with_std(estimate.value, estimate.state, estimate.covariance)
        ).tolist()
        return {
            name: Reading(value, std, unit)
            for (name, unit), value, std in zip(self._units.items(), values, stds, strict=True)
        }
