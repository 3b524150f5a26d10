"""What is done to every particle of a cloud. In JAX here, in C in `estimators.particle.cloud_in_c`; equal to rounding."""

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
    """Of numbers that a particle has."""

    mean: Float[Array, " k"]
    covariance: Float[Array, "k k"]


class ResamplingStep(NamedTuple):
    """Where the ancestor of each particle is, and the particles' weights and their logarithms."""

    ancestors: Int32[Array, " n"]
    weights: Float[Array, " n"]
    log_weights: Float[Array, " n"]


class WeightUpdate(NamedTuple):
    """Weights of sum 1, their logarithms, the logarithm of their sum before (-inf where there was no weight, which `alive`
    tells: then they are as they were), and 1 / sum W^2."""

    weights: Float[Array, " n"]
    log_weights: Float[Array, " n"]
    gained: Float[Array, ""]
    alive: Bool[Array, ""]
    effective_size: Float[Array, ""]


class AbstractCloud(ABC):
    """Where and how what is done to particles is computed. An array has a particle a column."""

    @abstractmethod
    def normals(self, source: Stream, shape: tuple[int, ...]) -> Float[Array, " ..."]:
        """Independent standard normal numbers, the same ones everywhere."""

    @abstractmethod
    def resample(
        self,
        where: Bool[Array, ""],
        scheme: Scheme,
        source: Stream,
        weights: Float[Array, " n"],
        log_weights: Float[Array, " n"],
    ) -> ResamplingStep:
        """By weights of sum 1 where so, after which they are equal; else each particle stays."""

    @abstractmethod
    def each(
        self,
        function: Callable[..., tuple[Array, ...]],
        *columns: Float[Array, " ..."],
        copied: tuple[Float[Array, " ..."], ...] = (),
        ancestors: Int32[Array, " n"] | None = None,
        drawn: tuple[Stream, int] | None = None,
        where: Bool[Array, ""] | bool = True,
    ) -> tuple[Array, ...]:
        """Results of `function([e,] *copied, *columns)` for each particle.

        copied: of which each takes its ancestor's column. drawn: a stream, and how many standard normal numbers e each gets.
        where: whether they are drawn, or 0.
        """

    @abstractmethod
    def weigh(
        self, weights: Float[Array, " n"], log_weights: Float[Array, " n"], density: Float[Array, " n"]
    ) -> WeightUpdate:
        """Weights, and their logarithms, times densities of which the logarithm is given."""

    @abstractmethod
    def moments(self, x: Float[Array, "k n"], weights: Float[Array, " n"]) -> Moments:
        """Mean and covariance with weights of sum 1."""


class JaxCloud(AbstractCloud):
    """By JAX."""

    def normals(self, source: Stream, shape: tuple[int, ...]) -> Float[Array, " ..."]:
        return draws.normals(source, shape)

    def resample(
        self,
        where: Bool[Array, ""],
        scheme: Scheme,
        source: Stream,
        weights: Float[Array, " n"],
        log_weights: Float[Array, " n"],
    ) -> ResamplingStep:
        n = weights.shape[0]
        ancestors = jax.lax.cond(
            where,
            lambda: resampling.ancestors(scheme, source, weights, n),
            lambda: jnp.arange(n, dtype=jnp.int32),
        )
        log_weights = jnp.where(where, -jnp.log(float(n)), log_weights)
        return ResamplingStep(ancestors, jnp.where(where, 1.0 / n, weights), log_weights)

    def each(
        self,
        function: Callable[..., tuple[Array, ...]],
        *columns: Float[Array, " ..."],
        copied: tuple[Float[Array, " ..."], ...] = (),
        ancestors: Int32[Array, " n"] | None = None,
        drawn: tuple[Stream, int] | None = None,
        where: Bool[Array, ""] | bool = True,
    ) -> tuple[Array, ...]:
        if ancestors is not None:
            copied = tuple(value[..., ancestors] for value in copied)
        arguments = (*copied, *columns)
        if drawn is not None:
            source, count = drawn
            shape = (count, arguments[0].shape[-1])
            e = jax.lax.cond(where, lambda: self.normals(source, shape), lambda: jnp.zeros(shape))
            arguments = (e, *arguments)
        return jax.vmap(function, in_axes=-1, out_axes=-1)(*arguments)

    def weigh(
        self, weights: Float[Array, " n"], log_weights: Float[Array, " n"], density: Float[Array, " n"]
    ) -> WeightUpdate:
        new, gained, alive = resampling.normalise(log_weights + density)
        weights = jnp.where(alive, new, weights)
        log_weights = jnp.where(alive, log_weights + density - gained, log_weights)
        return WeightUpdate(weights, log_weights, gained, alive, 1.0 / jnp.sum(weights * weights))

    def moments(self, x: Float[Array, "k n"], weights: Float[Array, " n"]) -> Moments:
        mean = x @ weights
        away = x - mean[:, None]
        return Moments(mean, (away * weights) @ away.T)


JAX = JaxCloud()
