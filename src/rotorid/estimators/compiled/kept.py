"""Functions that JAX compiles and the cache keeps as executables: a process that finds one there does not trace it.

JAX's own cache keeps executables by the traced program, so that every process traces and lowers it first, which takes several
times as long as to run it on a flight. Here the name of the file contains the structure of the arguments and rotorid's source.
"""

from __future__ import annotations

import os
import threading
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import numpy as np
from jax.experimental.serialize_executable import deserialize_and_load, serialize

from rotorid.cache import compiling_anew, keeps_compiled
from rotorid.codegen.native import machine
from rotorid.estimators.compiled.cached_files import cached_file, read_cached, write_cached
from rotorid.estimators.compiled.trace import is_array

Program = Callable[[list[np.ndarray], list[np.ndarray]], Sequence[jax.Array]]

_programs: dict[Path, Program] = {}
_locks: defaultdict[Path, threading.Lock] = defaultdict(threading.Lock)


class KeptFunction:
    """A function at the top level of a module of rotorid, of some fixed arguments and some arrays, that returns arrays.

    The results are those of `equinox.filter_jit`, which also runs it where compiled code is not kept.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function, self._jitted = function, eqx.filter_jit(function)

    def of(self, *fixed: Any) -> Callable[..., list[np.ndarray]]:
        """The function of its arrays. fixed: its first arguments, pytrees."""
        numbers, static = eqx.partition(fixed, is_array)
        leaves, structure = jax.tree.flatten(numbers)
        leaves = [np.asarray(leaf) for leaf in leaves]
        programs: dict[tuple[Any, ...], Program] = {}

        def flat(leaves: list[Any], arrays: list[Any]) -> list[Any]:
            arguments = eqx.combine(jax.tree.unflatten(structure, leaves), static)
            return jax.tree.leaves(self._function(*arguments, *arrays))

        def jitted(_: list[np.ndarray], arrays: list[np.ndarray]) -> list[jax.Array]:
            return jax.tree.leaves(self._jitted(*fixed, *arrays))

        def call(*arrays: np.ndarray) -> list[np.ndarray]:
            shapes = tuple((array.shape, array.dtype) for array in arrays)
            if shapes not in programs:
                path = self._path(static, (numbers, arrays))
                programs[shapes] = jitted if path is None else _program(path, flat, leaves, [*arrays])
            return [np.asarray(part) for part in programs[shapes](leaves, [*arrays])]

        return call

    def _path(self, static: Any, arrays: Any) -> Path | None:
        in_float64 = jax.dtypes.canonicalize_dtype(np.float64) == np.float64
        if not keeps_compiled() or not in_float64 or jax.default_backend() != "cpu":
            return None
        name = f"{self._function.__module__}.{self._function.__qualname__}"
        return cached_file(static, arrays, (name, machine(), os.environ.get("XLA_FLAGS")), "executable")


def _program(
    path: Path, function: Callable[..., Any], leaves: list[np.ndarray], arrays: list[np.ndarray]
) -> Program:
    """The executable in a file, or a new one, which is kept there."""
    with _locks[path]:
        if path not in _programs:
            _programs[path] = _load(path, leaves, arrays) or _compile(path, function, leaves, arrays)
        return _programs[path]


def _compile(
    path: Path, function: Callable[..., Any], leaves: list[np.ndarray], arrays: list[np.ndarray]
) -> Program:
    with compiling_anew():  # what JAX's cache returns cannot be serialised
        program = jax.jit(function).lower(leaves, arrays).compile()
    content, _, results = serialize(program)
    write_cached(path, f"{results.num_leaves}\n".encode() + content)
    return program


def _load(path: Path, leaves: list[np.ndarray], arrays: list[np.ndarray]) -> Program | None:
    stored = read_cached(path)
    if stored is None:
        return None
    count, _, content = stored.partition(b"\n")
    arguments = jax.tree.structure(((leaves, arrays), {}))
    results = jax.tree.structure([0] * int(count))
    return deserialize_and_load(content, arguments, results)
