"""Choice of the engine of a particle filter: C if it is possible and faster, else JAX."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, Literal, TypeVar

import equinox as eqx
import jax
import jax.custom_batching
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from rotorid.codegen.native import BuildError, Engine, check_engine, compiler, no_c_form, warn_not_compiled
from rotorid.estimators.base import AbstractEstimator
from rotorid.estimators.compiled.trace import NotCompiledError
from rotorid.estimators.particle.cloud import JAX, AbstractCloud
from rotorid.estimators.particle.cloud_in_c import CompiledCloud

Place = Literal["jax", "c"]
"""Engine of the operations on particles."""

MIN_PARTICLES_FOR_C = 2000
"""Least number of particles for which C is worth its compilation, where a particle is a point (see `work`)."""

PLACES: dict[Place, AbstractCloud] = {"jax": JAX, "c": CompiledCloud()}

_T = TypeVar("_T")


class AbstractParticleFilter(AbstractEstimator):
    """Base of the particle filters. count: number of particles. place: engine of the operations on them."""

    count: eqx.AbstractVar[int]
    place: eqx.AbstractVar[Place]

    @property
    def work(self) -> int:
        """Work of a step, in particles that are points."""
        return self.count

    @property
    def cloud(self) -> AbstractCloud:
        return PLACES[self.place]


def run_on_engine(
    function: Callable[[AbstractParticleFilter], _T],
    filter_: AbstractParticleFilter,
    engine: Engine,
    data: Any,
) -> _T:
    """Apply a function to a filter on an engine. data: the data of the run.

    "auto" is C if it is possible and faster, "c" always C. Raises SettingError if "c" is requested and not available.
    """
    check_engine(engine)
    reason = None if engine == "jax" else _jax_reason(filter_, data, engine == "c")
    if engine == "jax" or reason is not None:
        if engine == "c":
            raise no_c_form("estimator", reason)
        return function(filter_ if engine == "auto" else dataclasses.replace(filter_, place="jax"))
    try:
        return function(dataclasses.replace(filter_, place="c"))
    except (NotCompiledError, BuildError) as error:
        if engine == "c":
            raise no_c_form("estimator", error) from error
        if isinstance(error, BuildError):
            warn_not_compiled(error, stacklevel=3)
        _jax_only[jax.tree.structure(filter_)] = str(error)
        return function(filter_)


def one_at_a_time(function: Callable[..., _T], filter_: AbstractEstimator, *data: Any) -> _T:
    """Apply a function to an estimator and data. Under `vmap`, filters in C run one after the other, so that the particles of
    each stay in the processor's cache; other estimators run all at once."""
    if not (isinstance(filter_, AbstractParticleFilter) and filter_.place == "c"):
        return function(filter_, *data)
    arrays, static = eqx.partition((filter_, *data), eqx.is_array)
    return jax.custom_batching.sequential_vmap(lambda a: function(*eqx.combine(a, static)))(arrays)


_jax_only: dict[Any, str] = {}


def _jax_reason(filter_: AbstractParticleFilter, data: Any, is_requested: bool) -> str | None:
    """The reason why a filter runs in JAX, None if C can run it."""
    if jax.default_backend() != "cpu":
        return f"JAX runs on {jax.default_backend()}"
    leaves = jax.tree.leaves((filter_, data))
    if any(
        jnp.issubdtype(x.dtype, jnp.floating) and x.dtype != np.float64 for x in leaves if hasattr(x, "dtype")
    ):
        return "it is not in float64"
    if compiler() is None:
        return "no C compiler was found ($CC, cc, gcc, clang)"
    if is_requested:
        return None
    if any(isinstance(leaf, Tracer) for leaf in leaves):
        return "JAX is tracing it"
    if filter_.work < MIN_PARTICLES_FOR_C:
        return f"it computes less than {MIN_PARTICLES_FOR_C} particles do"
    return _jax_only.get(jax.tree.structure(filter_))
