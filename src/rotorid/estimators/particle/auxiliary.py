"""Auxiliary particle filter (M. Pitt, N. Shephard, JASA 94 (1999) 590-599; Torren 2014, eqs. 3.14-3.15).

    I ~ W_i p(y | x'_i in the mean),    x' from x_I,    W = p(y | x') / p(y | x'_I in the mean)

It is the guided filter of `rotorid.estimators.particle.guided` without kernels: tracked parameters follow the
random walk of their drift.
"""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax.numpy as jnp

from rotorid.estimators.particle.base import Start, particle_tuning
from rotorid.estimators.particle.engine import Place
from rotorid.estimators.particle.guided import AbstractGuidedFilter
from rotorid.estimators.particle.parameter_kernels import parameter_families
from rotorid.estimators.particle.state_kernels import SampledStates
from rotorid.estimators.tuning import Tuning
from rotorid.models.joint import Joint
from rotorid.models.system import System
from rotorid.numerics.families import Family
from rotorid.numerics.integrators import Method
from rotorid.numerics.resampling import Scheme


class AuxiliaryFilter(AbstractGuidedFilter):
    """The auxiliary particle filter of Pitt and Shephard. It is made by `auxiliary_filter(system)`."""

    joint: Joint = eqx.field(static=True)
    count: int = eqx.field(static=True)
    scheme: Scheme = eqx.field(static=True)
    start: Start = eqx.field(static=True)
    is_gated: bool = eqx.field(static=True)
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
    def _state_representation(self) -> SampledStates:
        return SampledStates(self.joint, self.tuning, self.cloud)


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
    """Make an auxiliary particle filter over a System, with its default tuning.

    Args:
        system: any System.
        count: number of particles.
        scheme: scheme of resampling: "systematic", "stratified", "multinomial" or "residual".
        start: "prior" to draw all states from the prior, or "measured" to take states that are outputs of the same name from
            the first sample.
        method: integrator of a step: "euler", "midpoint" or "rk4".
        priors_as: family of the prior distribution by parameter; by default `normal`, `log-normal` or `beta`, depending on
            the bounds.
        tuning: keywords of `Tuning.of`; gate and max_gap are infinite by default, those of a bias and `drift_shares` are not
            used.
    Returns:
        The filter, for `run`, `run_many` or `Stream`.
    Raises:
        SettingError: there are fewer than 2 particles, a prior is improper, an output has no noise, a family does not fit the
            bounds of its parameter, or a keyword names a block or parameter that the System does not have.
    Source: M. Pitt and N. Shephard, JASA 94 (1999) 590-599; Torren 2014, eqs. 3.14-3.15.
    """
    joint = Joint(system, method)
    tuning_ = particle_tuning(joint, count, **tuning)
    is_gated = bool(jnp.isfinite(tuning_.thresholds.gate))
    kernels, priors = (
        parameter_families(joint, tuning_, None),
        parameter_families(joint, tuning_, priors_as, prior=True),
    )
    return AuxiliaryFilter(
        joint=joint,
        count=count,
        scheme=scheme,
        start=start,
        is_gated=is_gated,
        place="jax",
        kernels=kernels,
        priors=priors,
        tuning=tuning_,
    )
