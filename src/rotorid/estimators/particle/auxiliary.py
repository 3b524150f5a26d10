"""Auxiliary particle filter (M. Pitt, N. Shephard, JASA 94 (1999) 590-599; seed 002, eqs. 3.14-3.15).

    I ~ W_i p(y | x'_i in the mean),    x' from x_I,    W = p(y | x') / p(y | x'_I in the mean)

It is the guided filter of `rotorid.estimators.guided` without kernels: tracked parameters follow the random walk of their
drift.
"""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax.numpy as jnp

from rotorid.estimators.guided import AbstractGuidedFilter, parameter_families
from rotorid.estimators.particle_engine import Place
from rotorid.estimators.particle_states import Sampled
from rotorid.estimators.particles import Start, particle_tuning
from rotorid.estimators.tuning import Tuning
from rotorid.models.joint import Joint
from rotorid.models.system import System
from rotorid.numerics.families import Family
from rotorid.numerics.integrators import Method
from rotorid.numerics.resampling import Scheme


class AuxiliaryFilter(AbstractGuidedFilter):
    """The auxiliary filter of Pitt and Shephard, or `auxiliary_filter(system)`."""

    joint: Joint = eqx.field(static=True)
    count: int = eqx.field(static=True)
    scheme: Scheme = eqx.field(static=True)
    start: Start = eqx.field(static=True)
    gated: bool = eqx.field(static=True)
    place: Place = eqx.field(static=True)
    kernels: tuple[Family, ...] = eqx.field(static=True)
    priors: tuple[Family, ...] = eqx.field(static=True)
    tuning: Tuning

    @property
    def _shrinkage(self) -> float:
        return 1.0

    @property
    def _changes(self) -> None:
        return None

    @property
    def _knowledge(self) -> Sampled:
        return Sampled(self.joint, self.tuning, self.cloud)


def auxiliary_filter(
    system: System,
    count: int = 1000,
    *,
    scheme: Scheme = "systematic",
    start: Start = "prior",
    method: Method = "midpoint",
    priors_as: dict[str, Family] | None = None,
    **tuning: Any,
) -> AuxiliaryFilter:
    """Auxiliary particle filter over a System; keywords as in `bootstrap_filter` and `liu_west`."""
    joint = Joint(system, method)
    made = particle_tuning(joint, count, **tuning)
    gated = bool(jnp.isfinite(made.gate))
    kernels, first = (
        parameter_families(joint, made, None),
        parameter_families(joint, made, priors_as, prior=True),
    )
    return AuxiliaryFilter(
        joint=joint,
        count=count,
        scheme=scheme,
        start=start,
        gated=gated,
        place="jax",
        kernels=kernels,
        priors=first,
        tuning=made,
    )
