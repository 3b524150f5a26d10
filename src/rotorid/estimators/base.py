"""The interface of every estimator: pure functions on pytrees.

The same object runs in a loop, under `jit`, `scan`, `vmap` and `grad`, on a log or on a stream, with equal results.
Missing measurements are masked, never NaN. Failure is data: see `Health`.
"""

from __future__ import annotations

import enum
from abc import abstractmethod
from typing import Any, ClassVar, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from rotorid.errors import SettingError
from rotorid.geometry.spaces import Space
from rotorid.models.joint import Joint
from rotorid.signals.samples import Samples

State = Any
"""The pytree that an estimator carries from sample to sample, of fixed shapes; its content is internal."""


LONGEST_STEP = 86_400.0
"""Longest step of an estimator, s: a longer one is a damaged time."""


class Health(enum.IntEnum):
    """Health of an estimate. The worst state that applies is reported; `ROTOR_FAULT` only where the others would be `OK`.

    The property `meaning` has the text of each state:

    - `OK` (0): informed and consistent.
    - `NO_INFORMATION` (1): the data carry little information about the first tracked parameter, or do not yet decide whether
    it changed.
    - `OUTLIER` (2): a measurement was rejected.
    - `OUT_OF_RANGE` (3): the model does not hold here (rotors at their limit, or outside of a network's training).
    - `INCONSISTENT` (4): innovations are larger than the model expects.
    - `RECOVERING` (5): restarted after a gap, or covariance reset after repeated large innovations.
    - `DIVERGED` (6): numbers became invalid; restarted from the prior.
    - `ROTOR_FAULT` (7): a rotor lost thrust; the estimate is corrected for it, with a wider band.
    """

    OK = 0
    NO_INFORMATION = 1
    OUTLIER = 2
    OUT_OF_RANGE = 3
    INCONSISTENT = 4
    RECOVERING = 5
    DIVERGED = 6
    ROTOR_FAULT = 7

    @property
    def meaning(self) -> str:
        return {
            Health.OK: "informed and consistent",
            Health.NO_INFORMATION: "the data carry little information about the first tracked parameter, or do not yet decide "
            "whether it changed",
            Health.OUTLIER: "a measurement was rejected",
            Health.OUT_OF_RANGE: "the model does not hold here (rotors at their limit, or outside of a network's training)",
            Health.INCONSISTENT: "innovations are larger than the model expects",
            Health.RECOVERING: "restarted after a gap, or covariance reset after repeated large innovations",
            Health.DIVERGED: "numbers became invalid; restarted from the prior",
            Health.ROTOR_FAULT: "a rotor lost thrust: the estimate is corrected for it, with a wider band",
        }[self]


class Estimate(eqx.Module):
    """The estimate after a sample. Tangent vectors have three numbers for a rotation, where the state has four.

    state: the System's states, packed as its `states`. state_std: standard deviation per tangent dimension of the states.
    value: the tracked parameters, in their units. std: standard deviations of the tracked parameters, in their units.
    covariance: covariance of the tracked parameters, in their units. innovation: measured minus predicted, per tangent
    dimension of the outputs; 0 where not measured. innovation_std: predicted standard deviation of the innovation. nis:
    normalised innovation squared of the accepted output blocks. nis_dof: number of dimensions that `nis` sums over. informed:
    whether the data carried information about each tracked parameter. health: a value of `Health`.
    """

    state: Float[Array, "*n states"]
    state_std: Float[Array, "*n tangent"]
    value: Float[Array, "*n parameters"]
    std: Float[Array, "*n parameters"]
    covariance: Float[Array, "*n parameters parameters"]
    innovation: Float[Array, "*n measured"]
    innovation_std: Float[Array, "*n measured"]
    nis: Float[Array, "*n"]
    nis_dof: Int[Array, "*n"]
    informed: Bool[Array, "*n parameters"]
    health: Int[Array, "*n"]


EstimateT = TypeVar("EstimateT", bound=Estimate)


class AbstractEstimator(eqx.Module):
    """Base of all estimators.

    joint: model of the states and the tracked parameters. takes_varying_noise: whether it uses the System's `process_noise`
    and `measurement_noise`. If not, a System with varying noise raises SettingError.
    """

    joint: eqx.AbstractVar[Joint]
    takes_varying_noise: ClassVar[bool] = False

    def __check_init__(self) -> None:
        if not self.takes_varying_noise and self.joint.varying_noise:
            raise SettingError(
                f"{type(self).__name__} needs constant noise, but the noise of {', '.join(self.joint.varying_noise)} varies "
                "with states or parameters; use a particle filter"
            )

    @abstractmethod
    def init(self, sample: Samples, key: PRNGKeyArray) -> State:
        """State before the first sample is used."""

    @abstractmethod
    def predict(self, state: State, u: Float[Array, " inputs"], dt: Float[Array, ""]) -> State:
        """State dt seconds later; u are the inputs that acted meanwhile."""

    @abstractmethod
    def update(self, state: State, sample: Samples) -> State:
        """State after the measurements of a sample."""

    @abstractmethod
    def estimate(self, state: State) -> Estimate:
        """The estimate of a state."""


def prior(estimator: AbstractEstimator) -> Estimate:
    """The estimate before any sample."""
    system = estimator.joint.system
    zero, u, y = jnp.zeros(()), jnp.zeros(system.inputs.size), jnp.zeros(system.outputs.size)
    sample = Samples(zero, zero, u, y, jnp.zeros(system.outputs.dim, bool))
    return estimator.estimate(estimator.init(sample, jax.random.key(0)))


def step(estimator: AbstractEstimator, state: State, sample: Samples) -> tuple[State, Estimate]:
    """One sample: predict over its dt, update with its measurements, estimate."""
    state = estimator.predict(state, sample.u, sample.dt)
    state = estimator.update(state, sample)
    return state, honest(estimator.estimate(state))


def honest(estimate: EstimateT) -> EstimateT:
    """The estimate with the health DIVERGED where a number in it is not finite."""
    numbers = [leaf for leaf in jax.tree.leaves(estimate) if jnp.issubdtype(leaf.dtype, jnp.floating)]
    health = jnp.where(all_finite(numbers), estimate.health, int(Health.DIVERGED))
    return eqx.tree_at(lambda e: e.health, estimate, health)


def all_finite(tree: Any) -> Bool[Array, ""]:
    """Whether all numbers of a pytree are finite."""
    return jnp.all(jnp.stack([jnp.all(jnp.isfinite(leaf)) for leaf in jax.tree.leaves(tree)]))


def plausible_sample(outputs: Space, sample: Samples) -> Samples:
    """A sample with a plausible step, whose blocks with a number that is not finite count as not measured."""
    is_finite = jnp.isfinite(sample.y)
    is_whole = [
        jnp.full(block.dim, jnp.all(is_finite[outputs.stored[name]])) for name, block in outputs.blocks
    ]
    y = jnp.where(is_finite, sample.y, jnp.asarray(outputs.initial(), sample.y.dtype))
    mask = sample.mask & jnp.concatenate(is_whole)
    return eqx.tree_at(lambda s: (s.y, s.mask, s.dt), sample, (y, mask, plausible_step(sample.dt)))


def plausible_step(dt: Float[Array, ""]) -> Float[Array, ""]:
    """A step from 0 to `LONGEST_STEP`, s; 0 where it is not a number."""
    return jnp.minimum(jnp.maximum(jnp.where(jnp.isnan(dt), 0.0, dt), 0.0), LONGEST_STEP)
