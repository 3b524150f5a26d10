"""What physics leaves unexplained, as a learned acceleration (Alharbat 2025, eqs. 11, 16 and 29).

    phi(z) = s (W_2 sigma(W_1 z + b_1) + b_2 + L z),     z = (inputs - mean) / scale

for the rate of one block of the states; a residual has one such head a block. Vectors in the world frame may be turned into
the body frame on the way in, and the rate back on the way out: what pushes a vehicle depends on how it moves through the air
and on its rotors, not on where it points. L, where a head has one, is all that an error of thrust, geometry, mass or linear
drag leaves, and goes on where there were no data; the hidden layer has what bends.

A head knows where it was trained: the distance d = |V z| / edge from the training inputs, in their own principal axes, over
that of their edge. Its standard deviation grows with d where its errors do, and beyond the edge (d > 1) by the size of what it
learned. There, a head that fades goes back to the physics:

    phi -> phi (1 - 3 b^2 + 2 b^3),    b = min(d - 1, 1)        for d > 1
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from rotorid.geometry import rotations
from rotorid.models.system import Parameter, Values
from rotorid.numerics.compact import routine

Weights = Mapping[str, Float[Array, " ..."]]
"""Of a head, by name: W_1, b_1, W_2, b_2, L (linear heads), mean, scale, unit (s), V, edge, error, growth, typical."""

LEARNED = ("W_1", "b_1", "W_2", "b_2", "L")
"""The weights that training changes."""


@dataclasses.dataclass(frozen=True)
class Head:
    """A network with one hidden layer, which gives the rate phi of one block of the states.

    `phi(z) = s (W_2 sigma(W_1 z + b_1) + b_2 + L z)` with the normalised inputs z.

    output: name of the state block. inputs: names of the states and inputs that it depends on. turned: names of inputs and
    outputs that are world vectors; the network has them in the body frame. attitude: name of the rotation from body to world.
    hidden: number of nodes. activation: the function sigma. linear: whether there is a linear part L. fades: whether phi goes
    to 0 outside of the training inputs.
    """

    output: str
    inputs: tuple[str, ...]
    turned: tuple[str, ...] = ()
    attitude: str = "attitude"
    hidden: int = 64
    activation: Literal["relu", "tanh"] = "relu"
    linear: bool = False
    fades: bool = False


def inputs_of(head: Head, values: Values) -> Float[Array, " inputs"]:
    """The inputs of a head, one after the other, before they are scaled."""
    parts = [jnp.atleast_1d(values[name]) for name in head.inputs]
    if head.turned:
        to_body = rotations.inverse(values[head.attitude])
        parts = [
            rotations.rotate(to_body, part) if name in head.turned else part
            for name, part in zip(head.inputs, parts, strict=True)
        ]
    return jnp.concatenate(parts)


def rate(head: Head, weights: Weights, values: Values) -> Float[Array, " output"]:
    """phi of a head in its block's unit per second."""
    z = network_inputs(head, weights, values)
    h = times(weights["W_1"], z) + weights["b_1"]
    h = jnp.tanh(h) if head.activation == "tanh" else jnp.maximum(h, 0.0)
    output = times(weights["W_2"], h) + weights["b_2"]
    if head.linear:
        output = output + times(weights["L"], z)
    return rate_of_output(head, weights, values, z, output)


def network_inputs(head: Head, weights: Weights, values: Values) -> Float[Array, " inputs"]:
    """z"""
    return (inputs_of(head, values) - weights["mean"]) / weights["scale"]


def rate_of_output(
    head: Head,
    weights: Weights,
    values: Values,
    z: Float[Array, " inputs"],
    output: Float[Array, " output"],
) -> Float[Array, " output"]:
    """phi of a head, of the network's output (phi / s in the head's frame, before it fades) at z."""
    output = weights["unit"] * output
    if head.fades:
        b = jnp.clip(_distance(weights, z) - 1.0, 0.0, 1.0)
        output = (1.0 - b * b * (3.0 - 2.0 * b)) * output
    return rotations.rotate(values[head.attitude], output) if head.output in head.turned else output


def beyond(head: Head, weights: Weights, values: Values) -> Float[Array, ""]:
    """How far outside its training inputs a head is asked: 0 inside, 1 at twice the distance of their edge."""
    return jnp.maximum(_distance(weights, network_inputs(head, weights, values)) - 1.0, 0.0)


def _distance(weights: Weights, z: Float[Array, " inputs"]) -> Float[Array, ""]:
    """d"""
    v = times(weights["V"], z)
    return jnp.sqrt(jnp.sum(v * v) + 1e-12) / weights["edge"]


def rates(
    heads: Sequence[Head], weights: Sequence[Weights], values: Values
) -> dict[str, Float[Array, " ..."]]:
    """phi of each block, in its unit per second. values: states and inputs by name."""
    return {head.output: rate(head, w, values) for head, w in zip(heads, weights, strict=True)}


def spread(
    heads: Sequence[Head], weights: Sequence[Weights], values: Values
) -> tuple[dict[str, Float[Array, " ..."]], Float[Array, ""]]:
    """Standard deviation of phi of each block, and the extrapolation of the residual (see `beyond`).

    The deviations are in the block's unit per second and in the frame in which the head works (body for a turned output): the
    error on flights held out, and beyond the training's edge as much as was learned:

        std^2 = error^2 + (growth d)^2 + (typical max(d - 1, 0))^2
    """
    std, distances = {}, []
    for head, w in zip(heads, weights, strict=True):
        d = _distance(w, network_inputs(head, w, values))
        distances.append(jnp.maximum(d - 1.0, 0.0))
        std[head.output] = jnp.sqrt(_variance(w, d, distances[-1]))
    return std, jnp.max(jnp.stack(distances))


def distance_at(
    weights: Mapping[str, np.ndarray], inputs: Float[np.ndarray, "n inputs"]
) -> Float[np.ndarray, " n"]:
    """d of each row of the inputs of a head: 1 at the edge of its training inputs."""
    v = (inputs - weights["mean"]) / weights["scale"] @ weights["V"].T
    return np.linalg.norm(v, axis=1) / weights["edge"]


def spread_at(
    weights: Mapping[str, np.ndarray], distance: Float[np.ndarray, " n"]
) -> Float[np.ndarray, "n outputs"]:
    """Standard deviation of phi of a head (see `spread`) at these distances d."""
    d, b = distance[:, None], np.maximum(distance - 1.0, 0.0)[:, None]
    return np.sqrt(_variance(weights, d, b))


def _variance(weights: Mapping[str, Any], d: Any, b: Any) -> Any:
    """Variance of phi of a head at the distance d, b = max(d - 1, 0)."""
    return weights["error"] ** 2 + (d * weights["growth"]) ** 2 + (b * weights["typical"]) ** 2


@dataclasses.dataclass(frozen=True, eq=False)
class Residual:
    """A learned residual. Two residuals are equal if their heads and all their weights are.

    heads: one network for each state block. weights: weights of each head, by name.
    """

    heads: tuple[Head, ...]
    weights: tuple[Mapping[str, np.ndarray], ...]

    @property
    def arrays(self) -> list[dict[str, Float[Array, " ..."]]]:
        """The weights as JAX arrays."""
        return [{name: jnp.asarray(value) for name, value in w.items()} for w in self.weights]

    @cached_property
    def digest(self) -> str:
        """Hash of all weights."""
        hash_ = hashlib.sha256(repr(self.heads).encode())
        for weights in self.weights:
            for name in sorted(weights):
                value = np.ascontiguousarray(weights[name])
                hash_.update(f"{name}{value.dtype}{value.shape}".encode())
                hash_.update(value.tobytes())
        return hash_.hexdigest()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Residual) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)


def residual_parameters(residual: Residual) -> dict[str, Parameter]:
    """The weights of a residual as parameters of a System, by name: with other values, the same System has another residual."""
    return {
        name: Parameter(name, tuple(float(v) for v in np.ravel(value)))
        for head, weights in zip(residual.heads, residual.weights, strict=True)
        for name, value in ((_name(head, key), w) for key, w in weights.items())
    }


def weights_in(heads: Sequence[Head], p: Values) -> list[dict[str, Float[Array, " ..."]]]:
    """The weights of heads among the parameters of a System."""
    weights = []
    for head in heads:
        names = [name for name in _SHAPES if name != "L" or head.linear]
        w = {name: p[_name(head, name)] for name in names}
        inputs = w["mean"].shape[-1]
        sizes = {"hidden": head.hidden, "inputs": inputs, "outputs": w["b_2"].shape[-1]}
        weights.append({n: w[n].reshape([sizes[s] for s in _SHAPES[n]]) for n in names})
    return weights


_SHAPES: Mapping[str, tuple[str, ...]] = {
    "W_1": ("hidden", "inputs"), "b_1": ("hidden",), "W_2": ("outputs", "hidden"), "b_2": ("outputs",),
    "L": ("outputs", "inputs"), "mean": ("inputs",), "scale": ("inputs",), "unit": ("outputs",),
    "V": ("inputs", "inputs"), "edge": (), "error": ("outputs",), "growth": ("outputs",), "typical": ("outputs",),
}  # fmt: skip


def _name(head: Head, weight: str) -> str:
    return f"residual.{head.output}.{weight}"


def initial_weights(head: Head, inputs: int, outputs: int, key: jax.Array) -> dict[str, Float[Array, " ..."]]:
    """The learned weights before training: He's for the hidden layer, and 0 after it, so that phi is 0."""
    weights = {
        "W_1": jnp.sqrt(2.0 / inputs) * jax.random.normal(key, (head.hidden, inputs)),
        "b_1": jnp.zeros(head.hidden),
        "W_2": jnp.zeros((outputs, head.hidden)),
        "b_2": jnp.zeros(outputs),
    }
    return weights | ({"L": jnp.zeros((outputs, inputs))} if head.linear else {})


def scaled_to(
    inputs: Float[np.ndarray, "n inputs"], size: Sequence[float] | Float[np.ndarray, " outputs"]
) -> dict[str, np.ndarray]:
    """What a head keeps of its training inputs: their mean and scale, principal axes and edge.

    size: what phi is expected to be like, in the unit of the output per second.
    """
    mean, scale = inputs.mean(axis=0), inputs.std(axis=0)
    scale = np.where(scale > 1e-9 * (1.0 + np.abs(mean)), scale, 1.0)
    z = (inputs - mean) / scale
    spread, axes = np.linalg.eigh(np.cov(z.T).reshape(len(mean), len(mean)))
    V = axes.T / np.sqrt(np.maximum(spread, _LEAST_SPREAD * spread.max()))[:, None]
    distance = np.linalg.norm(z @ V.T, axis=1)
    edge = np.quantile(distance, _EDGE)
    zero = np.zeros(len(size))
    return {
        "mean": mean, "scale": scale, "unit": np.asarray(size, dtype=float),
        "V": V, "edge": np.asarray(edge), "error": zero, "growth": zero, "typical": zero,
    }  # fmt: skip


_EDGE = 0.999  # share of the training inputs that lie inside the edge
_LEAST_SPREAD = 1e-4  # of an axis over the widest one's: below it, inputs that never moved would shout at the least of noise


@routine
def times(matrix: Float[Array, "rows columns"], vector: Float[Array, " columns"]) -> Float[Array, " rows"]:
    """matrix vector"""
    return matrix @ vector
