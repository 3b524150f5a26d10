"""Numbers that a System derives from its states and tracked parameters, with their standard deviations, many times a
second.

    std^2 = J P J^T,      J = d derived / d tracked

as `results.track` has it for a whole flight.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from rotorid.estimators.base import Estimate
from rotorid.live.moment import Reading
from rotorid.models.joint import Joint


class Derived:
    """What one System derives. values: prior means of all its parameters."""

    def __init__(self, joint: Joint, values: Float[Array, " all"]) -> None:
        system = joint.system
        self._units = dict(system.derived_units)

        def derive(
            value: Float[Array, " parameters"], state: Float[Array, " states"]
        ) -> Float[Array, " derived"]:
            found = system.derive(system.states.unpack(state), joint.with_tracked(value, values))
            return jnp.stack([found[name] for name in self._units])

        def both(
            value: Float[Array, " parameters"],
            state: Float[Array, " states"],
            covariance: Float[Array, "parameters parameters"],
        ) -> Float[Array, "2 derived"]:
            J = jax.jacfwd(derive)(value, state)
            return jnp.stack([derive(value, state), jnp.sqrt(jnp.diag(J @ covariance @ J.T))])

        self._both = jax.jit(both)

    def readings(self, estimate: Estimate) -> dict[str, Reading]:
        """The derived numbers of an estimate."""
        if not self._units:
            return {}
        values, stds = np.asarray(self._both(estimate.value, estimate.state, estimate.covariance)).tolist()
        return {
            name: Reading(value, std, unit)
            for (name, unit), value, std in zip(self._units.items(), values, stds, strict=True)
        }
