"""Particle filters, and where they are computed: in C where that can be and pays, in JAX elsewhere."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Callable
from typing import Any, Literal, TypeVar

import equinox as eqx
import jax
import jax.custom_batching
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from rotorid.codegen.native import BuildError, compiler
from rotorid.errors import SettingError
from rotorid.estimators.base import AbstractEstimator
from rotorid.estimators.compiled import Engine, NotCompiledError
from rotorid.estimators.particle.cloud import JAX, AbstractCloud
from rotorid.estimators.particle.cloud_in_c import CompiledCloud

Place = Literal["jax", "c"]
"""Where what is done to particles is computed."""

FEWEST_PARTICLES = 2000
"""Particles from which on C pays for its compilation."""

PLACES: dict[Place, AbstractCloud] = {"jax": JAX, "c": CompiledCloud()}

_T = TypeVar("_T")


class AbstractParticleFilter(AbstractEstimator):
    """count: particles. place: where what is done to them is computed."""

    count: eqx.AbstractVar[int]
    place: eqx.AbstractVar[Place]

    @property
    def cloud(self) -> AbstractCloud:
        return PLACES[self.place]


def run_on_engine(
    function: Callable[[AbstractParticleFilter], _T],
    filter_: AbstractParticleFilter,
    engine: Engine,
    data: Any,
) -> _T:
    """What a function makes of a filter, which is put where `engine` says. data: what it runs on.

    "auto" is C where that can be and pays, "c" C in any case. Raises SettingError where "c" was asked for and cannot be had.
    """
    if engine not in ("auto", "c", "jax"):
        raise SettingError(f"no engine {engine!r}; there are auto, c, jax")
    reason = None if engine == "jax" else _why_not(filter_, data, engine == "c")
    if engine == "jax" or reason is not None:
        if engine == "c":
            raise SettingError(f"this estimator has no C form here: {reason}; use engine='auto'")
        return function(filter_ if engine == "auto" else dataclasses.replace(filter_, place="jax"))
    try:
        return function(dataclasses.replace(filter_, place="c"))
    except (NotCompiledError, BuildError) as error:
        if engine == "c":
            raise SettingError(f"this estimator has no C form here: {error}; use engine='auto'") from error
        if isinstance(error, BuildError):
            warnings.warn(
                f"C is compiled no more, JAX computes instead: {error}", RuntimeWarning, stacklevel=3
            )
        _left_to_jax[jax.tree.structure(filter_)] = str(error)
        return function(filter_)


def one_at_a_time(function: Callable[..., _T], filter_: AbstractEstimator, *data: Any) -> _T:
    """What a function makes of an estimator and data. Under `vmap`, those in C go one after the other, each as long as its
    particles are in the processor's cache; the others go all at once."""
    if not (isinstance(filter_, AbstractParticleFilter) and filter_.place == "c"):
        return function(filter_, *data)
    arrays, static = eqx.partition((filter_, *data), eqx.is_array)
    return jax.custom_batching.sequential_vmap(lambda a: function(*eqx.combine(a, static)))(arrays)


_left_to_jax: dict[Any, str] = {}


def _why_not(filter_: AbstractParticleFilter, data: Any, asked: bool) -> str | None:
    """Why a filter is left to JAX, None where C can take it."""
    if jax.default_backend() != "cpu":
        return f"JAX runs on {jax.default_backend()}"
    leaves = jax.tree.leaves((filter_, data))
    if any(
        jnp.issubdtype(x.dtype, jnp.floating) and x.dtype != np.float64 for x in leaves if hasattr(x, "dtype")
    ):
        return "it is not in float64"
    if compiler() is None:
        return "no C compiler was found ($CC, cc, gcc, clang)"
    if asked:
        return None
    if any(isinstance(leaf, Tracer) for leaf in leaves):
        return "JAX is tracing it"
    if filter_.count < FEWEST_PARTICLES:
        return f"it has fewer than {FEWEST_PARTICLES} particles"
    return _left_to_jax.get(jax.tree.structure(filter_))
