"""An estimator as C: traced once, compiled, and run over flights or sample by sample without JAX.

The step is traced to straight-line scalar code (`rotorid.codegen`), a long one with loops, compiled for this machine and kept
by content in the user's cache. The results equal those of JAX to rounding (1e-10 relative in the tests). One flight runs in one
lane, several run in `LANES` lanes on every core; the numbers are the same to the last bit.
"""

from __future__ import annotations

import ctypes
import itertools
import math
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any

import equinox as eqx
import jax
import numpy as np
from jax.core import Tracer
from jaxtyping import UInt8

from rotorid.codegen.casadi import UnsupportedPrimitiveError
from rotorid.codegen.native import (
    BuildError,
    Engine,
    build,
    c_file,
    check_engine,
    compiler,
    no_c_form,
    pointer,
    warn_not_compiled,
)
from rotorid.codegen.program import c_program
from rotorid.estimators.base import AbstractEstimator, Estimate
from rotorid.estimators.compiled.trace import NotCompiledError, TracedEstimator, is_array
from rotorid.numerics.flat import Layout, Record
from rotorid.signals.samples import Samples

LANES = 8
_KINDS = {"f": 0, "i": 1, "b": 2}


class _Leaf(ctypes.Structure):
    """A leaf as in runner.c: numbers of every flight and step, strides in elements."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        *((n, ctypes.c_int64) for n in ("count", "flight", "step", "kind")),
    ]


class CompiledEstimator:
    """The C form of an estimator's structure; its numbers (tunings, and constants of the System) are arguments."""

    def __init__(self, estimator: AbstractEstimator, sample: Samples) -> None:
        """sample: one row. Raises NotCompiledError."""
        self._traced = TracedEstimator(estimator, sample)
        form = self._traced.form
        self.estimate_shapes, self.constants, self._key = form.estimate, form.constants, form.key
        trees = (self._traced.arrays, self._traced.sample, form.state, form.estimate)
        self.arrays, self.sample, self.state, self.estimate = (_layout(tree) for tree in trees)
        self.sample_offset = self.constants.size + self.arrays.size
        self.state_offset = self.sample_offset + self.sample.size
        self.x_size = self.state_offset + self.state.size
        self._libraries: dict[int, ctypes.CDLL] = {}
        self._lock = threading.Lock()

    def library(self, lanes: int, on_written: Callable[[], None] = lambda: None) -> ctypes.CDLL:
        """The compiled code for this number of flights in parallel. on_written: called before the C compiler. Raises
        NotCompiledError and BuildError."""

        def units() -> list[str]:
            written = self._units()
            on_written()
            return written

        with self._lock:
            if lanes not in self._libraries:
                self._libraries[lanes] = build(self._key, units, {"LANES": lanes, "QUICK": 1})
            return self._libraries[lanes]

    def _units(self) -> list[str]:
        try:
            programs = [
                c_program(closed, name, constants=self._traced.constants)
                for name, closed in self._traced.programs.items()
            ]
        except UnsupportedPrimitiveError as error:
            raise NotCompiledError(str(error)) from error
        sizes = {
            "X_SIZE": self.x_size,
            "Y_SIZE": self.state.size + self.estimate.size,
            "STATE_SIZE": self.state.size,
            "M_SIZE": max(program.memory for program in programs),
        }
        defines = "".join(f"#define {name} {size}\n" for name, size in sizes.items())
        runner = f"{defines}{c_file('runner.c')}"
        return [runner, *(unit for program in programs for unit in program.units)]

    def run(self, estimator: AbstractEstimator, samples: Samples, *, tunings: bool, workers: int) -> Estimate:
        """Estimates of flights stacked along a first axis, as numpy arrays. tunings: the estimator's leaves have it too."""
        flights, steps = samples.t.shape
        arrays = _contiguous(eqx.filter(estimator, is_array))
        rows = _contiguous(samples)
        estimate = _empty_arrays(self.estimate_shapes, (flights, steps))
        leaves = jax.tree.leaves(estimate)
        library = self.library(1 if flights == 1 else LANES)

        def part(first: int, last: int) -> None:
            done = library.run_flights(
                *map(ctypes.c_int64, (last - first, steps)),
                *_table(arrays, first if tunings else None, 1 if tunings else 0, [self.constants]),
                *_table(rows, first, 2),
                *_table(leaves, first, 2),
            )
            if not done:
                raise MemoryError

        size = LANES * -(-flights // (LANES * workers))
        spans = [(first, min(first + size, flights)) for first in range(0, flights, size)]
        if len(spans) == 1:
            part(*spans[0])
            return estimate
        with ThreadPoolExecutor(len(spans)) as pool:
            for done in [pool.submit(part, *span) for span in spans]:
                done.result()
        return estimate


_ALIGNMENT = 64
"""Bytes. JAX takes over an array that starts at a multiple of it, and copies others."""

_ONE_BLOCK = 32 << 20
"""Bytes up to which arrays are allocated as one block. glibc reuses freed blocks up to this size. Others go back to the system,
and new pages take up to a quarter of the time of a run."""


def _empty_arrays(shapes: Any, leading: tuple[int, ...]) -> Any:
    """New arrays that JAX can take over, of these shapes behind leading axes."""
    leaves, form = jax.tree.flatten(shapes)
    sizes = [math.prod((*leading, *leaf.shape)) * leaf.dtype.itemsize for leaf in leaves]
    padded = [size + -size % _ALIGNMENT for size in sizes]
    if sum(padded) <= _ONE_BLOCK:
        block = _aligned_bytes(sum(padded))
        parts = [block[end - pad :] for pad, end in zip(padded, itertools.accumulate(padded), strict=True)]
    else:
        parts = [_aligned_bytes(size) for size in sizes]
    arrays = [
        part[:size].view(leaf.dtype).reshape(*leading, *leaf.shape)
        for part, size, leaf in zip(parts, sizes, leaves, strict=True)
    ]
    return jax.tree.unflatten(form, arrays)


def _aligned_bytes(size: int) -> UInt8[np.ndarray, " size"]:
    content = np.empty(size + _ALIGNMENT, np.uint8)
    start = -content.ctypes.data % _ALIGNMENT
    return content[start : start + size]


def _table(
    leaves: Sequence[np.ndarray], first: int | None, leading: int, common: Sequence[np.ndarray] = ()
) -> tuple[ctypes.c_int64, Any]:
    """Leaves for C, from flight `first` on. leading: axes in front of each leaf's numbers (flights, then steps). common:
    leaves before them that are the same in all flights and steps."""
    table = (_Leaf * (len(common) + len(leaves)))()
    for entry, leaf in zip(table, common, strict=False):
        entry.data, entry.count, entry.kind = leaf.ctypes.data, leaf.size, _KINDS[leaf.dtype.kind]
    for entry, leaf in zip(table[len(common) :], leaves, strict=True):
        count = math.prod(leaf.shape[leading:])
        strides = [math.prod(leaf.shape[k + 1 :]) for k in range(leading)]
        flight, step_ = (*strides, 0, 0)[:2]
        start = leaf.ctypes.data + (first or 0) * flight * leaf.itemsize
        entry.data, entry.count, entry.flight, entry.step = start, count, flight, step_
        entry.kind = _KINDS[leaf.dtype.kind]
    return ctypes.c_int64(len(table)), table


class CompiledStream:
    """A `CompiledEstimator` fed sample by sample. C reads and writes arrays at fixed addresses; an estimate is a copy."""

    def __init__(self, compiled: CompiledEstimator, estimator: AbstractEstimator) -> None:
        self._compiled = compiled
        self._library = compiled.library(1)
        self._x = np.zeros(compiled.x_size)
        self._x[: compiled.constants.size] = compiled.constants
        sample = self._x[compiled.sample_offset : compiled.state_offset]
        self._parts = compiled.sample.parts_of(sample)
        self.take_numbers_of(estimator)
        self._memory = np.zeros(ctypes.c_long.in_dll(self._library, "memory_size").value)
        self._record = Record(compiled.estimate_shapes)
        self._x_pointer, self._memory_pointer = map(pointer, (self._x, self._memory))
        self._table = _table(self._record.leaves, None, 0)
        self._advance = self._library.advance
        self._advance.restype = None

    def take_numbers_of(self, estimator: AbstractEstimator) -> None:
        """Use the numbers of another estimator of the same form from the next sample on."""
        arrays = self._x[self._compiled.constants.size : self._compiled.sample_offset]
        leaves = jax.tree.leaves(eqx.filter(estimator, is_array))
        for part, leaf in zip(self._compiled.arrays.parts_of(arrays), leaves, strict=True):
            part[...] = leaf

    def start(self, sample: Samples) -> None:
        """The state before a first sample."""
        self._fill(sample)
        self._library.start(self._x_pointer, self._memory_pointer)

    def checkpoint(self) -> Any:
        return self._x.copy()

    def return_to(self, checkpoint: Any) -> None:
        self._x[...] = checkpoint

    def state(self) -> Any:
        return self._compiled.state.unpack(self._x[self._compiled.state_offset :].copy())

    def step(self, sample: Samples) -> Estimate:
        self._fill(sample)
        self._advance(self._x_pointer, self._memory_pointer, *self._table)
        return self._record.read()

    def _fill(self, sample: Samples) -> None:
        t, dt, u, y, mask = self._parts
        t[...], dt[...], u[...], y[...], mask[...] = sample.t, sample.dt, sample.u, sample.y, sample.mask


_forms: dict[Any, CompiledEstimator | str] = {}
_locks: dict[Any, threading.Lock] = {}

_in_python = threading.Lock()
"""Held where Python traces and writes C, which takes one core anyway. The C compiler of one estimator runs in the turn of the
next."""


def compiled_form(
    estimator: AbstractEstimator, sample: Samples, lanes: int, engine: Engine
) -> CompiledEstimator | None:
    """The C form of an estimator for samples of this shape, None if JAX computes.

    lanes: number of flights in parallel. Raises SettingError if engine is "c" and there is no C form.
    """
    check_engine(engine)
    if engine == "jax":
        return None
    form = _form(estimator, sample, lanes)
    if isinstance(form, CompiledEstimator):
        return form
    if engine == "c":
        raise no_c_form("estimator", form)
    return None


def _form(estimator: AbstractEstimator, sample: Samples, lanes: int) -> CompiledEstimator | str:
    """The C form, or the reason why there is none."""
    if any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves((estimator, sample))):
        return "JAX is tracing it"
    if jax.default_backend() != "cpu":
        return f"JAX runs on {jax.default_backend()}"
    if compiler() is None:
        return "no C compiler was found ($CC, cc, gcc, clang)"
    arrays, static = eqx.partition(estimator, is_array)
    shapes = tuple((leaf.shape, leaf.dtype) for leaf in jax.tree.leaves((arrays, sample)))
    key = jax.tree.structure(arrays), jax.tree.structure(static), tuple(jax.tree.leaves(static)), shapes
    with _locks.setdefault(key, threading.Lock()), ExitStack() as turn:
        turn.enter_context(_in_python)
        try:
            if key not in _forms:
                _forms[key] = CompiledEstimator(estimator, sample)
            form = _forms[key]
            if isinstance(form, CompiledEstimator):
                form.library(lanes, turn.close)
        except NotCompiledError as reason:
            form = _forms[key] = str(reason)
        except BuildError as error:
            warn_not_compiled(error, stacklevel=4)
            form = _forms[key] = str(error)
    return form


def _layout(tree: Any) -> Layout:
    layout = Layout(tree, np.float64, integers=True)
    if layout.excluded:
        raise NotCompiledError("its state is not made of numbers")
    return layout


def _contiguous(tree: Any) -> list[np.ndarray]:
    return [np.ascontiguousarray(leaf) for leaf in jax.tree.leaves(tree)]
