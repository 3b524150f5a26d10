"""Run an estimator: over a log, over many logs, or sample by sample. All three give the same numbers.

With a C compiler, the estimator's step is compiled to C (see `rotorid.estimators.compiled`). JAX computes in all other cases:
under its own transformations (`jit`, `grad`, `vmap`), on other devices, in float32, and for estimators that have no C form. In
a particle filter of 2,000 particles or more, the operations on particles run in C inside of JAX's program (see
`rotorid.estimators.particle.engine`). `engine` selects one of the two.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Key, PRNGKeyArray

from rotorid.codegen.native import Engine
from rotorid.cores import available_cores
from rotorid.errors import SettingError
from rotorid.estimators.base import AbstractEstimator, Estimate, State, step
from rotorid.estimators.compiled.estimator import LANES, CompiledStream, compiled_form
from rotorid.estimators.particle.engine import AbstractParticleFilter, one_at_a_time, run_on_engine
from rotorid.numerics.flat import Layout
from rotorid.numerics.products import full_products
from rotorid.signals.samples import Samples


def run(
    estimator: AbstractEstimator,
    samples: Samples,
    key: PRNGKeyArray | None = None,
    *,
    engine: Engine = "auto",
) -> Estimate:
    """Run an estimator over one flight.

    Args:
        estimator: an estimator of any kind.
        samples: measurements on one grid, n rows (see `Samples`).
        key: random key for estimators that draw random numbers; by default `jax.random.key(0)`.
        engine: "c" computes in C, "jax" in JAX, and "auto" in C if the estimator has a C form, else in JAX.
    Returns:
        Estimates after every sample, stacked along the first axis (n rows).
    Raises:
        SettingError: the engine is unknown, or is "c" and cannot be used for this estimator or here.
    """
    draws = isinstance(estimator, AbstractParticleFilter)
    compiled = None if draws else compiled_form(estimator, _row(samples, 0), 1, engine)
    if compiled is None:
        key = jax.random.key(0) if key is None else key
        if isinstance(estimator, AbstractParticleFilter):
            return run_on_engine(lambda e: _run(e, samples, key), estimator, engine, (samples, key))
        return _run(estimator, samples, key)
    batch = jax.tree.map(lambda leaf: np.asarray(leaf)[None], samples)
    estimate = compiled.run(estimator, batch, tunings=False, workers=1)
    return jax.tree.map(lambda leaf: jax.device_put(leaf[0]), estimate)


def run_many(
    estimator: AbstractEstimator,
    samples: Samples,
    keys: Key[Array, " flights"] | None = None,
    *,
    tunings: bool = False,
    workers: int | None = None,
    engine: Engine = "auto",
) -> Estimate:
    """Run an estimator over many flights at once: `run_many(ekf, stack([a, b, c]))`.

    Args:
        estimator: an estimator of any kind; if `tunings` is set, one of `stack_tunings`.
        samples: measurements of all flights, flights x n rows (see `stack`).
        keys: a random key for each flight, for estimators that draw random numbers; by default `jax.random.key(0)`, split.
        tunings: whether the estimator's arrays have the same first axis as the samples: one tuning for each flight.
        workers: number of threads that share the flights; by default as many as the CPU has cores, each with at least 8
            flights. Under `jit` and `grad` there is one.
        engine: as in `run`.
    Returns:
        Estimates after every sample, stacked along the flights and the rows (flights x n).
    Raises:
        SettingError: as in `run`.
    """
    count = samples.t.shape[0]
    is_traced = any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves((estimator, samples, keys)))
    if workers is None:
        workers = min(available_cores(), count // LANES) if jax.default_backend() == "cpu" else 1
    workers = 1 if is_traced else max(workers, 1)
    if isinstance(estimator, AbstractParticleFilter):
        keys = _keys(keys, count)
        return run_on_engine(
            lambda e: _in_threads(e, samples, keys, tunings, workers), estimator, engine, (samples, keys)
        )
    example = _row(estimator, 0) if tunings else estimator
    compiled = compiled_form(example, _row(_row(samples, 0), 0), 1 if count == 1 else LANES, engine)
    if compiled is not None:
        return jax.device_put(compiled.run(estimator, samples, tunings=tunings, workers=workers))
    return _in_threads(estimator, samples, _keys(keys, count), tunings, workers)


def _keys(keys: Key[Array, " flights"] | None, count: int) -> Key[Array, " flights"]:
    """A random key for each flight."""
    return jax.random.split(jax.random.key(0), count) if keys is None else keys


def _in_threads(
    estimator: AbstractEstimator, samples: Samples, keys: Key[Array, " flights"], tunings: bool, workers: int
) -> Estimate:
    """`_run_many` in this number of threads."""
    if workers == 1:
        return _run_many(estimator, samples, keys, tunings)
    count = samples.t.shape[0]
    size = -(-count // workers)
    has_64_bits = (
        jax.dtypes.canonicalize_dtype(float) == np.float64
    )  # how JAX is set is a matter of each thread

    def part(first: int) -> Estimate:
        def part_of(tree):
            return jax.tree.map(lambda leaf: leaf[first : first + size] if eqx.is_array(leaf) else leaf, tree)

        with jax.enable_x64(bool(has_64_bits)):
            share = part_of(estimator) if tunings else estimator
            return jax.block_until_ready(_run_many(share, part_of(samples), part_of(keys), tunings))

    firsts = [min(k, count - size) for k in range(0, count, size)]  # equal parts share one compiled program
    with ThreadPoolExecutor(len(firsts)) as pool:
        parts = list(pool.map(part, firsts))
    overlap = len(firsts) * size - count
    parts[-1] = jax.tree.map(lambda leaf: leaf[overlap:], parts[-1])
    return jax.tree.map(lambda *leaves: jnp.concatenate(leaves), *parts)


def _row(tree, k: int):
    """A row of every array, as a numpy array of a type that JAX has."""

    def row(leaf):
        if not isinstance(leaf, jax.Array | np.ndarray):
            return leaf
        if isinstance(leaf, Tracer):
            return leaf[k]
        return np.asarray(np.asarray(leaf)[k], jax.dtypes.canonicalize_dtype(leaf.dtype))

    return jax.tree.map(row, tree)


@eqx.filter_jit
def _run(estimator: AbstractEstimator, samples: Samples, key: PRNGKeyArray) -> Estimate:
    return _scan(estimator, samples, key)


@eqx.filter_jit
def _run_many(
    estimator: AbstractEstimator, samples: Samples, keys: Key[Array, " flights"], tunings: bool
) -> Estimate:
    axes = eqx.if_array(0) if tunings else None
    return eqx.filter_vmap(_scan, in_axes=(axes, eqx.if_array(0), 0))(estimator, samples, keys)


def _scan(estimator: AbstractEstimator, samples: Samples, key: PRNGKeyArray) -> Estimate:
    with full_products():
        return one_at_a_time(_scan_one, estimator, samples, key)


def _scan_one(estimator: AbstractEstimator, samples: Samples, key: PRNGKeyArray) -> Estimate:
    first = jax.tree.map(lambda leaf: leaf[0], samples)
    state = estimator.init(first, key)
    _, estimates = jax.lax.scan(lambda s, sample: step(estimator, s, sample), state, samples)
    return estimates


def stack(flights: Sequence[Samples]) -> Samples:
    """Stack flights of any lengths along a new first axis, for `run_many`.

    Shorter flights are padded with copies of their last row with dt 0 and nothing measured, which leave the
    estimate unchanged.

    Args:
        flights: one or more, with the same inputs and outputs, n rows each (n may differ).
    Returns:
        Samples of flights x rows, with as many rows as the longest flight has.
    Raises:
        SettingError: there are no flights.
    """
    if not flights:
        raise SettingError("no flights to stack")
    longest = max(f.t.shape[0] for f in flights)

    def padded(flight: Samples) -> Samples:
        padding = longest - flight.t.shape[0]
        rows = jax.tree.map(lambda leaf: _repeat_last(np.asarray(leaf), padding), flight)
        is_padding = np.arange(longest) >= flight.t.shape[0]
        return eqx.tree_at(
            lambda s: (s.dt, s.mask),
            rows,
            (np.where(is_padding, 0.0, rows.dt), rows.mask & ~is_padding[:, None]),
        )

    return jax.tree.map(lambda *leaves: jax.device_put(np.stack(leaves)), *map(padded, flights))


def _repeat_last(rows: np.ndarray, count: int) -> np.ndarray:
    return np.concatenate([rows, np.repeat(rows[-1:], count, axis=0)])


def stack_tunings(estimators: Sequence[AbstractEstimator]) -> AbstractEstimator:
    """Stack estimators that differ only in their tunings, for `run_many(..., tunings=True)`.

    Args:
        estimators: estimators of one kind over one System, with different tunings.
    Returns:
        One estimator whose arrays have a new first axis, one tuning a row.
    Raises:
        SettingError: the estimators differ in more than their tunings.
    """
    if len({jax.tree.structure(e) for e in estimators}) != 1:
        raise SettingError(
            "these estimators differ in more than their tunings; give them one System and other priors"
        )
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *estimators)


class Stream:
    """An estimator fed sample by sample, as a vehicle's computer feeds it: `estimate = stream.step(sample)`.

    It gives the numbers that `run` gives on the same samples, as numpy arrays. The step is compiled once, at the first
    sample. Samples may be numpy arrays or numbers, which is fastest.

    estimator: an estimator of any kind. key: random key for estimators that draw random numbers; by default
    `jax.random.key(0)`. engine: "c", "jax" or "auto", as in `run`.
    """

    def __init__(
        self, estimator: AbstractEstimator, key: PRNGKeyArray | None = None, *, engine: Engine = "auto"
    ) -> None:
        self.estimator = estimator
        self._key = jax.random.key(0) if key is None else key
        self._requested_engine: Engine = engine
        self._program: CompiledStream | _JaxStream | None = None
        self._started = False

    @property
    def engine(self) -> Engine:
        """The engine in use, "c" or "jax"; before the first sample, the requested one."""
        if self._program is None:
            return self._requested_engine
        return "c" if isinstance(self._program, CompiledStream) else self._program.place

    @property
    def state(self) -> State:
        """The estimator's present state, None before the first sample."""
        return self._program.state() if self._program is not None and self._started else None

    def restart(self) -> None:
        """Forget all samples, for a new flight; the compiled step is kept."""
        self._started = False

    def checkpoint(self) -> Any:
        """The present state in an opaque form, for `return_to`. At least one sample must have been fed."""
        assert self._program is not None
        return self._program.checkpoint()

    def return_to(self, checkpoint: Any) -> None:
        """Restore the state of a checkpoint of this stream; later samples are forgotten."""
        assert self._program is not None
        self._program.return_to(checkpoint)

    def step(self, sample: Samples) -> Estimate:
        """Estimate after one more sample. sample: one row, without the leading axis."""
        if self._program is None:
            self._program = self._compile(sample)
        if not self._started:
            self._program.start(sample)
            self._started = True
        return self._program.step(sample)

    def go_on_with(self, estimator: AbstractEstimator) -> None:
        """Use another estimator from the next sample on; the state is kept. It may differ in its numbers only, such as the
        noise.
        """
        self.estimator = estimator
        if self._program is not None:
            self._program.take_numbers_of(estimator)

    def _compile(self, sample: Samples) -> CompiledStream | _JaxStream:
        if isinstance(self.estimator, AbstractParticleFilter):
            return run_on_engine(
                lambda e: _JaxStream(e, sample, self._key),
                self.estimator,
                self._requested_engine,
                (sample, self._key),
            )
        compiled = compiled_form(self.estimator, jax.tree.map(np.asarray, sample), 1, self._requested_engine)
        if compiled is None:
            return _JaxStream(self.estimator, sample, self._key)
        return CompiledStream(compiled, self.estimator)


class _JaxStream:
    """The step compiled by JAX, from flat vector to flat vector.

    The carry is the state followed by the last estimate, as one vector, so that a step takes two arrays and
    gives one.
    """

    def __init__(self, estimator: AbstractEstimator, sample: Samples, key: PRNGKeyArray) -> None:
        self.place: Engine = estimator.place if isinstance(estimator, AbstractParticleFilter) else "jax"
        sample = jax.tree.map(jnp.asarray, sample)

        @eqx.filter_jit
        def init(first: Samples) -> State:
            with full_products():
                return estimator.init(first, key)

        self._init = init
        state = eqx.filter_eval_shape(self._init, sample)
        _, estimate = eqx.filter_eval_shape(step, estimator, state, sample)
        floats = [
            x.dtype
            for x in jax.tree.leaves((state, sample, estimate))
            if jnp.issubdtype(x.dtype, jnp.floating)
        ]
        dtype = jnp.result_type(*floats)
        self._state = Layout(state, dtype, integers=dtype == np.float64)
        self._estimate = Layout(estimate, dtype, integers=True)
        self._sample = Layout(sample, dtype, integers=True)
        self._flat = np.zeros(self._sample.size, dtype)
        self._parts = self._sample.parts_of(self._flat)

        self._numbers, form = eqx.partition(estimator, eqx.is_array)

        def advance(estimator_numbers, carry, flat):
            numbers, excluded = carry
            with full_products():
                state, estimate = step(
                    eqx.combine(estimator_numbers, form),
                    self._state.unpack(numbers[: self._state.size], excluded),
                    self._sample.unpack(flat),
                )
            next_numbers, excluded = self._state.pack(state)
            return jnp.concatenate([next_numbers, self._estimate.pack(estimate)[0]]), excluded

        self._advance = jax.jit(advance)

    def take_numbers_of(self, estimator: AbstractEstimator) -> None:
        self._numbers = eqx.filter(estimator, eqx.is_array)

    def start(self, sample: Samples) -> None:
        numbers, excluded = self._state.pack(self._init(jax.tree.map(jnp.asarray, sample)))
        self._carry = jnp.concatenate([numbers, jnp.zeros(self._estimate.size, numbers.dtype)]), excluded

    def checkpoint(self) -> Any:
        return self._carry

    def return_to(self, checkpoint: Any) -> None:
        self._carry = checkpoint

    def state(self) -> State:
        flat, excluded = self._carry
        return self._state.unpack(np.asarray(flat)[: self._state.size], excluded)

    def step(self, sample: Samples) -> Estimate:
        for part, leaf in zip(
            self._parts, (sample.t, sample.dt, sample.u, sample.y, sample.mask), strict=True
        ):
            part[...] = leaf
        self._carry = self._advance(self._numbers, self._carry, self._flat)
        # Waiting for the numbers here also makes it safe to fill self._flat again.
        return self._estimate.unpack(np.asarray(self._carry[0])[self._state.size :])
