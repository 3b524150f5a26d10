"""Liu and West's particle filter: static parameters beside the states, and parameters that change (seed 002, eqs. 3.16-3.43).

The particles' parameters are redrawn at each sample from kernels that keep their mean and variance; see
`rotorid.estimators.guided` for the steps, `rotorid.estimators.changepoints` for changes, and
`rotorid.estimators.particle_states` for a Kalman filter in each particle, which is exact where the states are linear given
the parameters.
"""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from rotorid.errors import SettingError
from rotorid.estimators.changepoints import Changes, check_names
from rotorid.estimators.guided import AbstractGuidedFilter, parameter_families
from rotorid.estimators.particle_engine import Place
from rotorid.estimators.particle_states import KNOWLEDGE, Conditioned, Knowledge, Sampled
from rotorid.estimators.particles import Start, particle_tuning
from rotorid.estimators.tuning import Tuning
from rotorid.models.joint import Joint
from rotorid.models.system import System
from rotorid.numerics.families import Family
from rotorid.numerics.integrators import Method
from rotorid.numerics.resampling import Scheme


class LiuWest(AbstractGuidedFilter):
    """Liu and West's filter, or `liu_west(system)`. shrinkage: a. states: whether each particle's are a point or a Kalman
    filter."""

    joint: Joint = eqx.field(static=True)
    count: int = eqx.field(static=True)
    scheme: Scheme = eqx.field(static=True)
    start: Start = eqx.field(static=True)
    gated: bool = eqx.field(static=True)
    place: Place = eqx.field(static=True)
    kernels: tuple[Family, ...] = eqx.field(static=True)
    priors: tuple[Family, ...] = eqx.field(static=True)
    states: Knowledge = eqx.field(static=True)
    tuning: Tuning
    shrinkage: Float[Array, ""]
    changes: Changes | None

    @property
    def _shrinkage(self) -> Float[Array, ""]:
        return self.shrinkage

    @property
    def _changes(self) -> Changes | None:
        return self.changes

    @property
    def _knowledge(self) -> Sampled | Conditioned:
        return KNOWLEDGE[self.states](self.joint, self.tuning, self.cloud)


def liu_west(
    system: System,
    count: int = 5000,
    *,
    shrinkage: float = 0.98,
    changes: Changes | None = None,
    states: Knowledge = "sampled",
    kernels: dict[str, Family] | None = None,
    priors_as: dict[str, Family] | None = None,
    scheme: Scheme = "systematic",
    start: Start = "prior",
    method: Method = "midpoint",
    **tuning: Any,
) -> LiuWest:
    """Liu and West's filter over a System: its tracked parameters are static, or change as `changes(...)` says.

    count: particles. shrinkage: a, 0.974 to 0.995 as a rule. states: "kalman" gives each particle an extended Kalman filter
    (Rao-Blackwell). kernels, priors_as: family of distributions by parameter, by default normal, log-normal or beta as its
    bounds are; a prior has the parameter's value for mean and its std. Other keywords as in `bootstrap_filter`. Raises
    SettingError where a prior is improper, a family does not fit the bounds, or a parameter is not tracked.
    """
    joint = Joint(system, method)
    if not joint.tracked:
        raise SettingError(
            f"{type(system).__name__} has no tracked parameter to learn; give one a std above 0"
        )
    if not 0.0 < shrinkage < 1.0:
        raise SettingError(
            f"a shrinkage of {shrinkage} cannot be; give one between 0 and 1, as a rule 0.974 to 0.995"
        )
    if changes is not None:
        check_names(joint, changes.names)
    made = particle_tuning(joint, count, **tuning)
    gated = bool(jnp.isfinite(made.gate))
    chosen, first = (
        parameter_families(joint, made, kernels),
        parameter_families(joint, made, priors_as, prior=True),
    )
    return LiuWest(
        joint=joint, count=count, scheme=scheme, start=start, gated=gated, place="jax", kernels=chosen,
        priors=first, states=states, tuning=made, shrinkage=jnp.asarray(shrinkage), changes=changes,
    )  # fmt: skip
