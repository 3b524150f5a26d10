"""What tracing an estimator finds, and its copy in the cache: tracing takes as long as minutes of flight.

An estimator of which the cache has the form is not traced, unless its C code is to be written.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.extend
import numpy as np
from jaxtyping import Float

from rotorid.codegen.constants import Constants
from rotorid.codegen.fingerprint import fingerprint
from rotorid.codegen.program import straight_operations
from rotorid.documents import parse_json
from rotorid.estimators.base import AbstractEstimator, step
from rotorid.estimators.compiled.cached_files import cached_file, read_cached, write_cached
from rotorid.estimators.compiled.shapes import NotPlainError, from_json, to_json
from rotorid.numerics.compact import compact
from rotorid.signals.samples import Samples

WRITTEN_OUT = 200_000
"""A step of more scalar operations is written with loops and calls (see `numerics.compact`): it compiles much faster."""

MOST_OPERATIONS = 600_000
"""A step of more scalar operations runs in JAX: it would take minutes to compile."""


class NotCompiledError(Exception):
    """An estimator has no C form on this machine. The message gives the reason."""


@dataclasses.dataclass(frozen=True)
class StepForm:
    """What a run needs to know of a traced estimator.

    state, estimate: their shapes, as pytrees of ShapeDtypeStruct. constants: numbers of the System that are arguments of the
    C code. key: fingerprint of the programs.
    """

    state: Any
    estimate: Any
    constants: Float[np.ndarray, " n"]
    key: str


class TracedEstimator:
    """An estimator for samples of one shape, traced when its form is not in the cache or its programs are needed.

    Raises NotCompiledError where it has no C form.
    """

    def __init__(self, estimator: AbstractEstimator, sample: Samples) -> None:
        """sample: one row."""
        arrays, self._static = eqx.partition(estimator, is_array)
        self.arrays, self.sample = jax.tree.map(np.asarray, (arrays, sample))
        leaves = jax.tree.leaves((self.arrays, self.sample))
        if any(leaf.dtype not in (np.float64, np.int64, np.bool_) for leaf in leaves):
            raise NotCompiledError("it is not in float64")

    @cached_property
    def form(self) -> StepForm:
        path = self._path()
        form = None if path is None else _read(path)
        if form is None:
            form = self._new_form()
            if path is not None:
                _write(path, form)
        return form

    @cached_property
    def constants(self) -> Constants:
        """The numbers of the programs that are arguments."""
        return Constants([*self.programs.values()])

    @property
    def programs(self) -> Mapping[str, jax.extend.core.ClosedJaxpr]:
        """The state before a first sample, "init", and a step, "step", as jaxprs."""
        return self._trace[0]

    @cached_property
    def _trace(self) -> tuple[dict[str, jax.extend.core.ClosedJaxpr], Any, Any]:
        with jax.enable_x64(True):
            programs, state, estimate = self._traced()
            if _operations(programs) > WRITTEN_OUT:
                with compact():
                    programs, state, estimate = self._traced()
        if uses(programs["init"], programs["init"].jaxpr.invars[-1:]):
            raise NotCompiledError("it draws random numbers")
        if _operations(programs) > MOST_OPERATIONS:
            raise NotCompiledError("its step is too large")
        return programs, state, estimate

    def _traced(self) -> tuple[dict[str, jax.extend.core.ClosedJaxpr], Any, Any]:
        """The programs, and the shapes of state and estimate."""

        def init(arrays, sample, key):
            return eqx.combine(arrays, self._static).init(sample, key)

        def advance(arrays, sample, state):
            return step(eqx.combine(arrays, self._static), state, sample)

        arguments = self.arrays, self.sample
        before, state = jax.make_jaxpr(init, return_shape=True)(*arguments, jax.random.key(0))
        after, (_, estimate) = jax.make_jaxpr(advance, return_shape=True)(*arguments, state)
        return {"init": before, "step": after}, state, estimate

    def _new_form(self) -> StepForm:
        _, *shapes = self._trace
        state, estimate = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype), shapes)
        key = "".join(fingerprint(program, self.constants) for program in self.programs.values())
        return StepForm(state, estimate, self.constants.values, key)

    def _path(self) -> Path | None:
        """The file of the form in the cache; None where there is no cache, or no digest."""
        return cached_file(self._static, (self.arrays, self.sample), (WRITTEN_OUT, MOST_OPERATIONS), "form")


def is_array(leaf: Any) -> bool:
    """Whether a leaf of an estimator is an argument of its programs."""
    return isinstance(leaf, jax.Array | np.ndarray)


def _operations(programs: Mapping[str, jax.extend.core.ClosedJaxpr]) -> int:
    """Number of scalar operations of the longer one."""
    return max(straight_operations(program.jaxpr) for program in programs.values())


def uses(closed: jax.extend.core.ClosedJaxpr, variables: Sequence[Any]) -> bool:
    """Whether a program uses some of these variables."""
    used = [v for equation in closed.jaxpr.eqns for v in equation.invars] + list(closed.jaxpr.outvars)
    return any(v is variable for v in used for variable in variables)


def _read(path: Path) -> StepForm | None:
    """The form in a file that this user wrote; None where it is missing or damaged."""
    content = read_cached(path)
    if content is None:
        return None
    try:
        document = parse_json(content)
        state, estimate = (from_json(document[name]) for name in ("state", "estimate"))
        constants = np.array([float.fromhex(number) for number in document["constants"]], dtype=float)
        return StepForm(state, estimate, constants, str(document["key"]))
    except (ValueError, KeyError, TypeError, AttributeError, ImportError):
        return None


def _write(path: Path, form: StepForm) -> None:
    """Keep a form; one that has no JSON form is not kept."""
    try:
        document = {
            "state": to_json(form.state),
            "estimate": to_json(form.estimate),
            "constants": [float(number).hex() for number in form.constants],
            "key": form.key,
        }
    except NotPlainError:
        return
    write_cached(path, json.dumps(document).encode())
