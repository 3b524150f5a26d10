"""A pytree of arrays in one flat vector: one argument to hand over instead of many.

Handing an array to a compiled program costs about as much as a small filter's arithmetic. Floats and truth values go
by value, and integers too where asked; what is left (random keys) is for the caller to hand over by itself.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

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
        self._inside = [
            jnp.issubdtype(leaf.dtype, np.generic) and leaf.dtype.kind in kinds for leaf in leaves
        ]
        self.size = 0
        self._parts: list[tuple[slice, tuple[int, ...], np.dtype]] = []
        for leaf, inside in zip(leaves, self._inside, strict=True):
            if inside:
                part = slice(self.size, self.size + math.prod(leaf.shape))
                self._parts.append((part, leaf.shape, np.dtype(leaf.dtype)))
                self.size = part.stop
        self.others = len(leaves) - len(self._parts)

    def pack(self, tree: PyTree) -> tuple[Float[Array, " size"], list[Any]]:
        """The vector, and the leaves that did not go into it. For use while tracing."""
        leaves = jax.tree.leaves(tree)
        inside = [jnp.ravel(x).astype(self.dtype) for x, i in zip(leaves, self._inside, strict=True) if i]
        others = [x for x, i in zip(leaves, self._inside, strict=True) if not i]
        return jnp.concatenate([jnp.zeros(0, self.dtype), *inside]), others

    def unpack(self, flat: Any, others: Sequence[Any] = ()) -> PyTree:
        """The pytree again. Of a numpy vector it is made of views wherever the dtypes agree."""
        rest = iter(others)
        leaves, parts = [], iter(self._parts)
        for inside in self._inside:
            if inside:
                part, shape, dtype = next(parts)
                leaf = flat[part].reshape(shape)
                leaves.append(leaf if dtype == self.dtype else leaf.astype(dtype))
            else:
                leaves.append(next(rest))
        return jax.tree.unflatten(self._structure, leaves)

    def parts_of(self, flat: np.ndarray) -> list[np.ndarray]:
        """A numpy vector's parts as views to be filled, one a leaf."""
        return [flat[part].reshape(shape) for part, shape, _ in self._parts]
