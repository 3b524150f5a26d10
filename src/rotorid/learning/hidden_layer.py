"""The random hidden layer of an extreme learning machine: SESAME D2.2, eqs. 24 and 26.

    H[j, i] = g(w_i . x_j + b_i),    x_j = (raw_j - mean) / scale

with random w_i and b_i that are not trained. H is computed in place in blocks of rows, together with the targets, so no
array of the size of the training data is allocated.

Reference: G.-B. Huang, Q.-Y. Zhu, C.-K. Siew, Extreme learning machine: theory and applications, Neurocomputing 70, 2006.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from jaxtyping import Float
from scipy.linalg import get_blas_funcs

Array = np.ndarray
Activation = str | Callable[[Array], Array]

_GEMM: Any = get_blas_funcs("gemm", dtype=np.float64)
"""From the BLAS of scipy, as in `least_squares`: numpy has its own, and the threads of two libraries slow each other
down."""

BLOCK = 1 << 18
"""Numbers in a block of H: 2 MiB."""


def _sigmoid(x: Array) -> None:
    np.negative(x, out=x)
    with np.errstate(over="ignore"):
        np.exp(x, out=x)
    x += 1.0
    np.reciprocal(x, out=x)


def _gaussian(x: Array) -> None:
    np.square(x, out=x)
    np.negative(x, out=x)
    np.exp(x, out=x)


ACTIVATIONS: dict[str, Callable[[Array], Any]] = {
    "sigmoid": _sigmoid,
    "tanh": lambda x: np.tanh(x, out=x),
    "sine": lambda x: np.sin(x, out=x),
    "gaussian": _gaussian,
    "relu": lambda x: np.maximum(x, 0.0, out=x),
}
"""Activation functions by name; each works in place."""


@dataclasses.dataclass(frozen=True)
class HiddenLayer:
    """A hidden layer. weights, bias: of the nodes. mean, scale: of the raw inputs."""

    weights: Float[Array, "inputs hidden"]
    bias: Float[Array, " hidden"]
    mean: Float[Array, " inputs"]
    scale: Float[Array, " inputs"]
    activation: Activation

    def blocks(
        self, X: Float[Array, "n inputs"], T: Float[Array, "n outputs"] | None = None
    ) -> Iterator[tuple[slice, Float[Array, "rows columns"]]]:
        """Slices of rows, and [H T] of these rows in Fortran order. All blocks share one buffer."""
        hidden = len(self.bias)
        columns = hidden + (0 if T is None else T.shape[1])
        size = min(len(X), max(1, BLOCK // columns))
        memory = np.empty(columns * size)
        weights = np.vstack([self.weights, self.bias]).T
        for start in range(0, len(X), size):
            rows = slice(start, min(start + size, len(X)))
            count = rows.stop - start
            block = memory[: columns * count].reshape(columns, count)
            x = np.ones((count, len(self.mean) + 1))
            np.subtract(X[rows], self.mean, out=x[:, :-1])
            x[:, :-1] /= self.scale
            H = block[:hidden].T
            _GEMM(1.0, x.T, weights, c=H, trans_a=True, trans_b=True, overwrite_c=True)
            self._activate(block[:hidden])
            if T is not None:
                block[hidden:] = T[rows].T
            yield rows, block.T

    def _activate(self, x: Float[Array, "hidden rows"]) -> None:
        if isinstance(self.activation, str):
            ACTIVATIONS[self.activation](x)
            return
        outputs = np.asarray(self.activation(x.T))
        if outputs.shape != x.T.shape:
            raise ValueError(
                f"activation returned shape {outputs.shape} for an array of shape {x.T.shape}; it must be elementwise"
            )
        x[...] = outputs.T


def random_layer(
    rng: np.random.RandomState,
    mean: Float[Array, " inputs"],
    scale: Float[Array, " inputs"],
    hidden: int,
    activation: Activation,
    weight_scale: float,
) -> HiddenLayer:
    """A random layer: w . x of standardised inputs, and b, are normal with standard deviation `weight_scale`."""
    inputs = len(mean)
    weights = rng.standard_normal((inputs, hidden)) * (weight_scale / np.sqrt(inputs))
    return HiddenLayer(weights, rng.standard_normal(hidden) * weight_scale, mean, scale, activation)


def standardisation(X: Float[Array, "n inputs"]) -> tuple[Float[Array, " inputs"], Float[Array, " inputs"]]:
    """Mean and scale of each input. The scale is the standard deviation, for a constant input its magnitude, for zeros
    1."""
    with np.errstate(over="ignore", invalid="ignore"):
        mean, scale = X.mean(axis=0), X.std(axis=0)
    if not (np.isfinite(mean).all() and np.isfinite(scale).all()):
        raise ValueError("X is too large for float64: its standard deviation overflows; use another unit")
    magnitude = np.abs(mean)
    is_constant = scale <= 10.0 * np.finfo(float).eps * np.sqrt(len(X)) * magnitude
    return mean, np.where(is_constant, np.where(magnitude > 0.0, magnitude, 1.0), scale)
