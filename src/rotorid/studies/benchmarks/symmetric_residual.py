"""A linear residual of the torque of a symmetric multirotor, trained on the multi-step metric.

    phi(z) = s (L z + b),        z = (inputs - mean) / scale

for the body rate. The inputs are those of the "body" heads of `rotorid.learning`: velocity in the body frame, body rate and
rotor thrusts. The vehicle is symmetric about its vertical planes through x and y, so phi of a mirrored motion is the mirrored
phi: L and b are averaged over the four images, which leaves 8 of 33 numbers. The drag and the thrust coefficient are
estimated with them.

The loss is the metric of `prediction` on training windows, each block relative to its value at the start, the least-squares
estimate of L from the errors of the body rate over 0.25 s. Each flight
has a torque of its own, with a prior of 0, for the trim of a battery that sits off the centre; it is not part of the model. The
loss is minimised by L-BFGS with exact derivatives through all steps.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Final

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy.optimize import minimize

from rotorid.learning.architectures import multirotor_heads
from rotorid.learning.prediction import rate_errors
from rotorid.learning.windows import training_windows
from rotorid.models.hybrid import with_residual
from rotorid.models.multirotor.rigid import RigidMultirotor
from rotorid.models.residual import Residual, scaled_to
from rotorid.models.system import System, parameter_values
from rotorid.signals.samples import Samples
from rotorid.studies.benchmarks.prediction import HORIZON, window_distances, windows_of

_PHYSICS: Final = ("drag", "thrust_coefficient")
_LOG_STD: Final = 0.3  # of their logarithm for a unit of the search
_RIDGE: Final = 1e-3  # weight of the penalty of the least-squares start, per row
_TRIM: Final = 1e-4  # N m, prior standard deviation of the torque of a flight
_TRIM_WEIGHT: Final = 1e-3
_MIRRORS: Final = ((1.0, -1.0, 1.0), (-1.0, 1.0, 1.0), (-1.0, -1.0, 1.0))


def learn_symmetric_residual(
    system: RigidMultirotor, flights: Sequence[Samples], *, windows: int, iterations: int
) -> System:
    """The System with the residual.

    Args:
        system: the physics.
        flights: training rows, one a flight, all states measured.
        windows: number of windows of each flight, evenly spread.
        iterations: of L-BFGS.
    """
    residual = _start(system, flights)
    hybrid = with_residual(system, residual)
    names = [f"residual.{head.output}.{w}" for head in residual.heads for w in ("L", "b_2")]
    start = [np.asarray(w[n]) for w in residual.weights for n in ("L", "b_2")]
    project = [_projector(system, head.output) for head in residual.heads]
    batches = [windows_of(hybrid, samples, HORIZON, windows) for samples in flights]
    longest = max(len(batch["dt"]) for batch in batches)
    stacked = {
        name: jnp.stack(
            [_padded(batch[name], longest) if name in ("x", "u", "dt") else batch[name] for batch in batches]
        )
        for name in batches[0]
    }
    base = parameter_values(hybrid)
    at_start = [window_distances(hybrid, base, batch).mean(axis=0).sum(axis=0) for batch in batches]
    scale = jnp.mean(jnp.stack(at_start), axis=0)
    sizes = np.cumsum([v.size for v in start])
    trims_at = sizes[-1] + len(_PHYSICS)

    def weights(x: Float[Array, " n"]) -> dict[str, Float[Array, " ..."]]:
        parts = [
            part.reshape(v.shape)
            for part, v in zip(jnp.split(x[: sizes[-1]], sizes[:-1]), start, strict=True)
        ]
        symmetric = []
        for k, average in enumerate(project):
            symmetric += average(parts[2 * k], parts[2 * k + 1])
        return {name: jnp.ravel(value) for name, value in zip(names, symmetric, strict=True)}

    def physics(x: Float[Array, " n"]) -> dict[str, Float[Array, " ..."]]:
        return {n: base[n] * jnp.exp(_LOG_STD * x[sizes[-1] + k]) for k, n in enumerate(_PHYSICS)}

    def loss(x: Float[Array, " n"]) -> Float[Array, ""]:
        trims = x[trims_at:].reshape(len(flights), 3)

        def flight_errors(trim, batch):
            distances = window_distances(
                hybrid, {**base, **physics(x), **weights(x), "torque": _TRIM * trim}, batch
            )
            return distances.mean(axis=0).sum(axis=0)

        errors = jnp.mean(jax.lax.map(lambda pair: flight_errors(*pair), (trims, stacked)), axis=0)
        return jnp.sum(errors / scale) + _TRIM_WEIGHT * jnp.mean(jnp.sum(trims**2, axis=1))

    gradient = jax.jit(jax.value_and_grad(loss))

    def objective(x: Float[np.ndarray, " n"]) -> tuple[float, Float[np.ndarray, " n"]]:
        value, slope = gradient(jnp.asarray(x))
        return float(value), np.asarray(slope)

    x = np.concatenate([*(np.ravel(v) for v in start), np.zeros(len(_PHYSICS) + 3 * len(flights))])
    best = minimize(objective, x, jac=True, method="L-BFGS-B", options={"maxiter": iterations}).x
    found = weights(jnp.asarray(best))
    trained = tuple(
        {**w, "L": np.asarray(found[f"residual.{head.output}.L"]).reshape(w["L"].shape),
         "b_2": np.asarray(found[f"residual.{head.output}.b_2"])}
        for head, w in zip(residual.heads, residual.weights, strict=True)
    )  # fmt: skip
    values = {n: float(v) for n, v in physics(jnp.asarray(best)).items()}
    fitted = tuple(
        dataclasses.replace(q, value=values[q.name]) if q.name in values else q for q in system.parameters
    )
    return with_residual(dataclasses.replace(system, parameters=fitted), Residual(residual.heads, trained))


def _start(system: RigidMultirotor, flights: Sequence[Samples]) -> Residual:
    """Scales from the training rows and their images, and L by least squares of the rate errors."""
    heads, p = multirotor_heads("body", hidden=1)[1:], parameter_values(system)
    data = training_windows(system, flights, 1)
    trained = []
    for head, (inputs, errors) in zip(
        heads, rate_errors(system, heads, None, p, data, held_out=False), strict=True
    ):
        images, image_errors = [inputs], [errors]
        for mirror in _MIRRORS:
            of_input, of_output = _images(system, head.output, np.array(mirror))
            images.append(inputs @ of_input.T)
            image_errors.append(errors @ of_output.T)
        z, e = np.vstack(images), np.vstack(image_errors)
        fixed = scaled_to(z, np.sqrt(np.mean(e**2, axis=0)))
        z = (z - fixed["mean"]) / fixed["scale"]
        ridge = _RIDGE * len(z) * np.eye(z.shape[1])
        linear = np.linalg.solve(z.T @ z + ridge, z.T @ (e / fixed["unit"])).T
        left = np.sqrt(np.mean((e - fixed["unit"] * (z @ linear.T)) ** 2, axis=0))
        nodes = {
            "W_1": np.zeros((1, z.shape[1])), "b_1": np.zeros(1), "W_2": np.zeros((len(left), 1)), "b_2": np.zeros(len(left)),
        }  # fmt: skip
        typical = np.sqrt(np.mean((fixed["unit"] * (z @ linear.T)) ** 2, axis=0))
        trained.append({**fixed, **nodes, "L": linear, "error": left, "typical": typical})
    return Residual(heads, tuple(trained))


def _images(
    system: RigidMultirotor, output: str, mirror: Float[np.ndarray, " 3"]
) -> tuple[Float[np.ndarray, "n n"], Float[np.ndarray, "3 3"]]:
    """The matrices that turn inputs and output of a head into those of the mirrored motion. mirror: diagonal of M."""
    positions = np.array([rotor.position for rotor in system.rotors])
    opposite = np.argmin(np.linalg.norm(positions[:, None] - mirror * positions, axis=2), axis=1)
    axial = np.prod(mirror) * mirror
    n = len(positions)
    of_input = np.zeros((6 + n, 6 + n))
    of_input[:6, :6] = np.diag(np.concatenate([mirror, axial]))
    of_input[6 + np.arange(n), 6 + opposite] = 1.0
    return of_input, np.diag(axial if output == "body_rate" else mirror)


def _projector(system: RigidMultirotor, output: str) -> Callable[[Array, Array], tuple[Array, Array]]:
    """A function that averages L and b over the images of the motion."""
    pairs = [_images(system, output, np.array(mirror)) for mirror in _MIRRORS]

    def average(
        linear: Float[Array, "3 n"], bias: Float[Array, " 3"]
    ) -> tuple[Float[Array, "3 n"], Float[Array, " 3"]]:
        linears = [linear, *(of_output.T @ linear @ of_input for of_input, of_output in pairs)]
        biases = [bias, *(of_output.T @ bias for _, of_output in pairs)]
        return jnp.mean(jnp.stack(linears), axis=0), jnp.mean(jnp.stack(biases), axis=0)

    return average


def _padded(rows: Float[Array, "n _"] | Float[Array, " n"], count: int) -> Array:
    return jnp.concatenate([rows, jnp.repeat(rows[-1:], count - len(rows), axis=0)])
