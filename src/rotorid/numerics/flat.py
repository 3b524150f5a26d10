"""A pytree of arrays in one flat vector: one argument to hand over instead of many.

Handing an array to a compiled program costs about as much as a small filter's arithmetic. Floats and truth values go
by value, and integers too where asked; what is left (random keys) is for the caller to hand over by itself.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

PyTree = Any


class Layout:
    """Where each leaf of a pytree lies in a flat vector.

    example: a pytree of arrays, or of their shapes and dtypes. dtype: of the vector. integers: whether integers go into
    it (exact up to 2^53 in float64, 2^24 in float32). size: of the vector. others: how many leaves do not go into it.
    """

    def __init__(self, example: PyTree, dtype: Any, *, integers: bool) -> None:
        leaves, self._structure = jax.tree.flatten(example)
        kinds = "fbiu" if integers else "fb"
        self.dtype = np.dtype(dtype)
        self._is_included = [
            jnp.issubdtype(leaf.dtype, np.generic) and leaf.dtype.kind in kinds for leaf in leaves
        ]
        self.size = 0
        self._parts: list[tuple[slice, tuple[int, ...], np.dtype]] = []
        for leaf, is_included in zip(leaves, self._is_included, strict=True):
            if is_included:
                part = slice(self.size, self.size + math.prod(leaf.shape))
                self._parts.append((part, leaf.shape, np.dtype(leaf.dtype)))
                self.size = part.stop
        self.excluded = len(leaves) - len(self._parts)

    def pack(self, tree: PyTree) -> tuple[Float[Array, " size"], list[Any]]:
        """The vector, and the leaves that did not go into it. For use while tracing."""
        leaves = jax.tree.leaves(tree)
        included = [
            jnp.ravel(x).astype(self.dtype) for x, i in zip(leaves, self._is_included, strict=True) if i
        ]
        excluded = [x for x, i in zip(leaves, self._is_included, strict=True) if not i]
        return jnp.concatenate([jnp.zeros(0, self.dtype), *included]), excluded

    def unpack(self, flat: Any, excluded: Sequence[Any] = ()) -> PyTree:
        """The pytree of a vector. Leaves of a numpy vector are views where the dtypes agree."""
        remaining = iter(excluded)
        leaves, parts = [], iter(self._parts)
        for is_included in self._is_included:
            if is_included:
                part, shape, dtype = next(parts)
                leaf = flat[part].reshape(shape)
                leaves.append(leaf if dtype == self.dtype else leaf.astype(dtype))
            else:
                leaves.append(next(remaining))
        return jax.tree.unflatten(self._structure, leaves)

    def parts_of(self, flat: np.ndarray) -> list[np.ndarray]:
        """A numpy vector's parts as views to be filled, one a leaf."""
        return [flat[part].reshape(shape) for part, shape, _ in self._parts]


class Record:
    """A pytree of numpy arrays in one piece of memory, which others write, and copies of it.

    example: a pytree of arrays, or of their shapes and dtypes. leaves: the arrays, to be written.
    """

    def __init__(self, example: PyTree) -> None:
        leaves, self._structure = jax.tree.flatten(example)
        fields = [(str(i), leaf.dtype, leaf.shape) for i, leaf in enumerate(leaves)]
        self._dtype = np.dtype(fields, align=True)
        self._memory = np.zeros(max(self._dtype.itemsize, 1), np.uint8)
        self.leaves = self._views(self._memory)
        # a Module of nothing but arrays is made without JAX, which would take as long as a small filter's step
        flat = isinstance(example, eqx.Module) and [*vars(example).values()] == leaves
        self._module = type(example) if flat else None
        self._names = tuple(zip(vars(example), map(str, range(len(leaves))), strict=True)) if flat else ()

    def read(self) -> PyTree:
        """A copy of what is written there now."""
        memory = self._memory.copy()
        if self._module is None:
            return jax.tree.unflatten(self._structure, self._views(memory))
        record: Any = np.ndarray((), self._dtype, memory)
        module = object.__new__(self._module)
        object.__setattr__(module, "__dict__", {name: record[field] for name, field in self._names})
        return module

    def _views(self, memory: np.ndarray) -> list[np.ndarray]:
        record: Any = np.ndarray((), self._dtype, memory)
        return [record[name] for name in self._dtype.names or ()]
