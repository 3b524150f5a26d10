"""Liu and West's particle filter: static parameters beside states, and parameters that change (Torren 2014, eqs. 3.16-3.43).

The particles' parameters are redrawn at each sample from kernels that keep their mean and variance; see
`rotorid.estimators.particle.guided` for the steps, `rotorid.estimators.particle.changepoints` for changes, and
`rotorid.estimators.particle.state_kernels` for a Kalman filter in each particle, which is exact where the states are
linear given the parameters.
"""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from rotorid.errors import SettingError
from rotorid.estimators.particle.base import Start, particle_tuning
from rotorid.estimators.particle.changepoints import Changes, check_names
from rotorid.estimators.particle.changepoints import changes as make_changes
from rotorid.estimators.particle.engine import Place
from rotorid.estimators.particle.guided import AbstractGuidedFilter
from rotorid.estimators.particle.parameter_kernels import parameter_families
from rotorid.estimators.particle.state_kernels import (
    STATE_REPRESENTATIONS,
    KalmanStates,
    SampledStates,
    StateRepresentation,
)
from rotorid.estimators.tuning import GATE, MAX_GAP, Tuning
from rotorid.models.joint import Joint
from rotorid.models.system import System
from rotorid.numerics.families import Family
from rotorid.numerics.integrators import Method
from rotorid.numerics.resampling import Scheme

HAZARD = 0.05
"""Changes per s over a flight."""

LEAST_DRIFT = 0.05
"""Of a parameter's prior standard deviation, per square root of s."""

COUNT = 1000
"""Particles over a flight."""

SPREAD = 0.3
"""Half-width of the distribution of a changed parameter, relative to its mean."""


class LiuWest(AbstractGuidedFilter):
    """Liu and West's particle filter. It is made by `liu_west(system)`.

    shrinkage: a of the kernels. states: "sampled" if each particle has a point, "kalman" if it has a Kalman filter.
    """

    joint: Joint = eqx.field(static=True)
    count: int = eqx.field(static=True)
    scheme: Scheme = eqx.field(static=True)
    start: Start = eqx.field(static=True)
    is_gated: bool = eqx.field(static=True)
    place: Place = eqx.field(static=True)
    kernels: tuple[Family, ...] = eqx.field(static=True)
    priors: tuple[Family, ...] = eqx.field(static=True)
    states: StateRepresentation = eqx.field(static=True)
    tuning: Tuning
    shrinkage: Float[Array, ""]
    changes: Changes | None

    @property
    def work(self) -> int:
        return self.count * (self.joint.states_dim if self.states == "kalman" else 1)

    @property
    def _shrinkage(self) -> Float[Array, ""]:
        return self.shrinkage

    @property
    def _changes(self) -> Changes | None:
        return self.changes

    @property
    def _state_representation(self) -> SampledStates | KalmanStates:
        return STATE_REPRESENTATIONS[self.states](self.joint, self.tuning, self.cloud)


def liu_west(
    system: System,
    count: int = 5000,
    *,
    shrinkage: float = 0.98,
    changes: Changes | None = None,
    states: StateRepresentation = "sampled",
    kernels: dict[str, Family] | None = None,
    priors_as: dict[str, Family] | None = None,
    scheme: Scheme = "systematic",
    start: Start = "prior",
    method: Method = "midpoint",
    **tuning: Any,
) -> LiuWest:
    """Make Liu and West's particle filter over a System, for static or changing parameters.

    Args:
        system: any System with a tracked parameter.
        count: number of particles.
        shrinkage: shrinkage a of the kernels, between 0 and 1; usually 0.974 to 0.995.
        changes: abrupt changes of parameters, made by `changes`; None: the tracked parameters are static.
        states: "sampled", or "kalman" for an extended Kalman filter in each particle (Rao-Blackwell).
        kernels: families of the kernels by name of the parameter; by default `normal`, `log-normal` or `beta`, depending on
            the bounds.
        priors_as: families of the prior distributions, likewise. A prior has the parameter's value as mean and its std as
            standard deviation.
        scheme: scheme of resampling: "systematic", "stratified", "multinomial" or "residual".
        start: "prior" to draw all states from the prior, or "measured" to take states that are outputs of the same name from
            the first sample.
        method: integrator of a step: "euler", "midpoint" or "rk4".
        tuning: keywords of `Tuning.of`; gate and max_gap are infinite by default, those of a bias and `drift_shares` are not
            used.
    Returns:
        The filter, for `run`, `run_many` or `Stream`.
    Raises:
        SettingError: the shrinkage is outside 0 to 1, a changing parameter is not tracked or none is, there are fewer than 2
            particles, a prior is improper, a family does not fit the bounds of its parameter, an output has no noise, or a
            keyword names a block or parameter that the System does not have.
    Source: Torren 2014, eqs. 3.16-3.43; J. Liu and M. West, in: Sequential Monte Carlo methods in practice, 2001, ch. 10.
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
    tuning_ = particle_tuning(joint, count, **tuning)
    is_gated = bool(jnp.isfinite(tuning_.thresholds.gate))
    families, priors = (
        parameter_families(joint, tuning_, kernels),
        parameter_families(joint, tuning_, priors_as, prior=True),
    )
    return LiuWest(
        joint=joint, count=count, scheme=scheme, start=start, is_gated=is_gated, place="jax", kernels=families,
        priors=priors, states=states, tuning=tuning_, shrinkage=jnp.asarray(shrinkage), changes=changes,
    )  # fmt: skip


def flight_filter(system: System, count: int = COUNT, **tuning: Any) -> LiuWest:
    """Make Liu and West's filter with changepoints as `rotorid track` runs it over a flight.

    The first tracked parameter jumps, at `HAZARD` to a uniform distribution of the half-width `SPREAD`. All wander by at least
    `LEAST_DRIFT`, since the particles of a constant one become equal. Each particle has a Kalman filter of the states.

    Args:
        system: any System with a tracked parameter.
        count: number of particles.
        tuning: keywords of `Tuning.of`; the gate is that of the Gaussian filters.
    Returns:
        The filter.
    Raises:
        SettingError: as of `liu_west`.
    Source: Torren 2014, eqs. 3.16-3.43 and figure 4.12.
    """
    tracked = [p for p in system.parameters if p.tracked]
    jumps = make_changes(*(p.name for p in tracked[:1]), hazard=HAZARD, distribution="uniform", spread=SPREAD)
    priors = {p.name: p.with_prior(drift=max(p.drift, LEAST_DRIFT * p.std)) for p in tracked}
    settings: dict[str, Any] = {"gate": GATE, "max_gap": MAX_GAP} | tuning
    settings["priors"] = priors | tuning.get("priors", {})
    return liu_west(system, count, changes=jumps, states="kalman", start="measured", **settings)
