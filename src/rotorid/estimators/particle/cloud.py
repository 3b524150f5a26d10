"""Operations on all particles of a cloud, in JAX. Those in C (`estimators.particle.cloud_in_c`) are equal to rounding."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int32

from rotorid.numerics import draws, resampling
from rotorid.numerics.draws import Stream
from rotorid.numerics.resampling import Scheme


class Moments(NamedTuple):
    """Moments of numbers of the particles."""

    mean: Float[Array, " k"]
    covariance: Float[Array, "k k"]


class ResamplingStep(NamedTuple):
    """Index of the ancestor of each particle, and the particles' weights and their logarithms."""

    ancestors: Int32[Array, " n"]
    weights: Float[Array, " n"]
    log_weights: Float[Array, " n"]


class WeightUpdate(NamedTuple):
    """Weights of sum 1, their logarithms, the logarithm of their sum before normalisation, and 1 / sum W^2.

    has_weight: whether any weight is not 0; otherwise the weights are unchanged, and the logarithm of the sum is -inf.
    """

    weights: Float[Array, " n"]
    log_weights: Float[Array, " n"]
    log_likelihood_gain: Float[Array, ""]
    has_weight: Bool[Array, ""]
    effective_size: Float[Array, ""]


class AbstractCloud(ABC):
    """Operations on particles by one engine. An array has a particle a column."""

    @abstractmethod
    def normals(self, source: Stream, shape: tuple[int, ...]) -> Float[Array, " ..."]:
        """Independent standard normal numbers, the same with every engine."""

    @abstractmethod
    def resample(
        self,
        condition: Bool[Array, ""],
        scheme: Scheme,
        source: Stream,
        weights: Float[Array, " n"],
        log_weights: Float[Array, " n"],
    ) -> ResamplingStep:
        """Resample by weights of sum 1 if condition holds, with equal weights afterwards; else keep each particle."""

    @abstractmethod
    def map_particles(
        self,
        function: Callable[..., tuple[Array, ...]],
        *columns: Float[Array, " ..."],
        inherited: tuple[Float[Array, " ..."], ...] = (),
        ancestors: Int32[Array, " n"] | None = None,
        normal_draws: tuple[Stream, int] | None = None,
        condition: Bool[Array, ""] | bool = True,
    ) -> tuple[Array, ...]:
        """Results of `function([e,] *inherited, *columns)` for each particle.

        inherited: arrays of which each particle takes its ancestor's column. normal_draws: a stream, and the number of standard
        normal numbers e of each particle. condition: whether they are drawn, or 0.
        """

    @abstractmethod
    def weigh(
        self, weights: Float[Array, " n"], log_weights: Float[Array, " n"], density: Float[Array, " n"]
    ) -> WeightUpdate:
        """Multiply weights, and their logarithms, by densities given as logarithms."""

    @abstractmethod
    def moments(self, x: Float[Array, "k n"], weights: Float[Array, " n"]) -> Moments:
        """Mean and covariance with weights of sum 1."""


class JaxCloud(AbstractCloud):
    """Operations on particles in JAX."""

    def normals(self, source: Stream, shape: tuple[int, ...]) -> Float[Array, " ..."]:
        return draws.normals(source, shape)

    def resample(
        self,
        condition: Bool[Array, ""],
        scheme: Scheme,
        source: Stream,
        weights: Float[Array, " n"],
        log_weights: Float[Array, " n"],
    ) -> ResamplingStep:
        n = weights.shape[0]
        ancestors = jax.lax.cond(
            condition,
            lambda: resampling.ancestors(scheme, source, weights, n),
            lambda: jnp.arange(n, dtype=jnp.int32),
        )
        log_weights = jnp.where(condition, -jnp.log(float(n)), log_weights)
        return ResamplingStep(ancestors, jnp.where(condition, 1.0 / n, weights), log_weights)

    def map_particles(
        self,
        function: Callable[..., tuple[Array, ...]],
        *columns: Float[Array, " ..."],
        inherited: tuple[Float[Array, " ..."], ...] = (),
        ancestors: Int32[Array, " n"] | None = None,
        normal_draws: tuple[Stream, int] | None = None,
        condition: Bool[Array, ""] | bool = True,
    ) -> tuple[Array, ...]:
        if ancestors is not None:
            inherited = tuple(value[..., ancestors] for value in inherited)
        arguments = (*inherited, *columns)
        if normal_draws is not None:
            source, count = normal_draws
            shape = (count, arguments[0].shape[-1])
            e = jax.lax.cond(condition, lambda: self.normals(source, shape), lambda: jnp.zeros(shape))
            arguments = (e, *arguments)
        return jax.vmap(function, in_axes=-1, out_axes=-1)(*arguments)

    def weigh(
        self, weights: Float[Array, " n"], log_weights: Float[Array, " n"], density: Float[Array, " n"]
    ) -> WeightUpdate:
        normalised, log_sum, has_weight = resampling.normalise(log_weights + density)
        weights = jnp.where(has_weight, normalised, weights)
        log_weights = jnp.where(has_weight, log_weights + density - log_sum, log_weights)
        return WeightUpdate(weights, log_weights, log_sum, has_weight, 1.0 / jnp.sum(weights * weights))

    def moments(self, x: Float[Array, "k n"], weights: Float[Array, " n"]) -> Moments:
        mean = x @ weights
        deviations = x - mean[:, None]
        return Moments(mean, (deviations * weights) @ deviations.T)


JAX = JaxCloud()
