"""A linear residual of the torque of a symmetric multirotor, trained on the multi-step metric.

    phi(z) = s (L z + b),        z = (inputs - mean) / scale

for the body rate. The inputs are those of the "body" heads of `rotorid.learning`: velocity in the body frame, body rate and
rotor thrusts. The vehicle is symmetric about its vertical planes through x and y, so phi of a mirrored motion is the mirrored
phi: L and b are averaged over the four images, which leaves 8 of 33 numbers. The drag, a constant torque and the thrust
coefficient are estimated with them; the latter is the thrust scale where the inputs are thrusts.

The loss is the metric of `prediction` on training windows, relative to its value if nothing changes, so that each flight and
each block has the same weight:

    1/F sum_f sum_b E_b^f / E0_b^f

Fast flights would else dominate. The sum of norms is minimised by iteratively reweighted least squares: |e| is at most
|e|^2 / (2 c) + c / 2, and equal to it at c = |e|, so Gauss-Newton steps with weights 1 / c of the step before reduce it; steps
that do not are damped. Derivatives run exactly through all steps. The start is the least-squares estimate of L from the errors
of the body rate over 0.25 s.

Reference: D. R. Hunter, K. Lange, A tutorial on MM algorithms, The American Statistician 58 (2004).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Final

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from rotorid.learning.architectures import multirotor_heads
from rotorid.learning.prediction import WindowBatch, rate_errors
from rotorid.learning.windows import training_windows
from rotorid.models.hybrid import with_residual
from rotorid.models.multirotor.rigid import RigidMultirotor
from rotorid.models.residual import Residual, scaled_to
from rotorid.models.system import System, Values, parameter_values
from rotorid.signals.samples import Samples
from rotorid.studies.benchmarks.prediction import HORIZON, unchanged_errors, window_errors, windows_of

_LOG_THRUST: Final = 0.1  # unit of the search: of the logarithm of the thrust
_DRAG: Final = 0.01  # N s/m, likewise
_TORQUE: Final = 1e-4  # N m, likewise
_RIDGE: Final = 1e-3  # weight of the penalty of the least-squares start, per row
_LEAST_WEIGHT: Final = 0.1  # of the median norm: smaller errors have the weight of this one
_TINY: Final = 1e-9
_DAMPING, _MOST_DAMPING = 1e-3, 1e6
_CONVERGED: Final = 1e-4  # relative decrease of the loss
_MIRRORS: Final = ((1.0, -1.0, 1.0), (-1.0, 1.0, 1.0), (-1.0, -1.0, 1.0))


def learn_symmetric_residual(
    system: RigidMultirotor,
    flights: Sequence[Samples],
    *,
    windows: int,
    iterations: int,
    step_done: Callable[[], None] = lambda: None,
) -> System:
    """The System with the residual.

    Args:
        system: the physics.
        flights: training rows, one a flight, all states measured.
        windows: number of windows of each flight, evenly spread.
        iterations: greatest number of Gauss-Newton steps.
        step_done: is called after each of them.
    """
    residual = _start(system, flights)
    hybrid, heads = with_residual(system, residual), residual.heads
    bases = [
        _symmetric_basis(system, h.output, w["L"].shape) for h, w in zip(heads, residual.weights, strict=True)
    ]
    base, edges = parameter_values(hybrid), np.cumsum([basis.shape[1] for basis in bases])
    thrust = "thrust_coefficient" if system.rotor_input == "rotor_speed" else "thrust_scale"

    def values(x: Float[Array, " n"]) -> Values:
        p = {**base, thrust: base[thrust] * jnp.exp(_LOG_THRUST * x[edges[-1]])}
        p["drag"] = base["drag"] + _DRAG * x[edges[-1] + 1]
        p["torque"] = base["torque"] + _TORQUE * x[edges[-1] + 2 :]
        for head, basis, part in zip(heads, bases, jnp.split(x[: edges[-1]], edges[:-1]), strict=True):
            entries = jnp.asarray(basis) @ part
            p |= {f"residual.{head.output}.L": entries[:-3], f"residual.{head.output}.b_2": entries[-3:]}
        return p

    batches = [windows_of(hybrid, samples, HORIZON, windows) for samples in flights]
    scales = [unchanged_errors(hybrid, [samples]).sum(axis=1) for samples in flights]
    start = [
        basis.T @ np.concatenate([w["L"].ravel(), w["b_2"]])
        for basis, w in zip(bases, residual.weights, strict=True)
    ]
    x = _minimise(
        hybrid,
        values,
        np.concatenate([*start, np.zeros(5)]),
        _same_length(batches),
        scales,
        iterations,
        step_done,
    )
    best = {name: np.asarray(v) for name, v in values(jnp.asarray(x)).items()}
    trained = tuple(
        {**w, "L": best[f"residual.{h.output}.L"].reshape(w["L"].shape), "b_2": best[f"residual.{h.output}.b_2"]}
        for h, w in zip(heads, residual.weights, strict=True)
    )  # fmt: skip
    fitted = tuple(
        dataclasses.replace(q, value=_number(best[q.name])) if q.name in (thrust, "drag", "torque") else q
        for q in system.parameters
    )
    return with_residual(dataclasses.replace(system, parameters=fitted), Residual(heads, trained))


def _number(value: Float[np.ndarray, " _"] | Float[np.ndarray, ""]) -> float | tuple[float, ...]:
    return float(value) if value.ndim == 0 else tuple(map(float, value))


def _minimise(
    system: System,
    values: Callable[[Array], Values],
    x: Float[np.ndarray, " n"],
    batches: Sequence[WindowBatch],
    scales: Sequence[Float[np.ndarray, " 4"]],
    iterations: int,
    step_done: Callable[[], None],
) -> Float[np.ndarray, " n"]:
    """The x with the least loss.

    Args:
        system: with the residual.
        values: parameters of the System by x.
        x: start.
        batches: windows of each flight.
        scales: of each flight, E0 of each block.
        iterations, step_done: as of `learn_symmetric_residual`.
    """
    errors = jax.jit(lambda x, batch: window_errors(system, values(x), batch))
    slopes = jax.jit(jax.jacfwd(errors))

    def loss(x: Float[np.ndarray, " n"]) -> float:
        sums = (np.linalg.norm(errors(jnp.asarray(x), b), axis=3).mean(axis=0).sum(axis=0) for b in batches)
        return float(np.mean([np.sum(e / scale) for e, scale in zip(sums, scales, strict=True)]))

    damping, cost = _DAMPING, loss(x)
    for _ in range(iterations):
        H, g = np.zeros((len(x), len(x))), np.zeros(len(x))
        for batch, scale in zip(batches, scales, strict=True):
            e, J = (np.asarray(f(jnp.asarray(x), batch)) for f in (errors, slopes))
            norm = np.linalg.norm(e, axis=3)
            least = _LEAST_WEIGHT * np.median(norm, axis=0)
            weight = 1.0 / (len(e) * scale * np.maximum(norm, least + _TINY * scale))
            rows, weighted = J.reshape(-1, len(x)), (weight[..., None, None] * J).reshape(-1, len(x))
            H, g = H + weighted.T @ rows, g + weighted.T @ e.ravel()
        step_done()
        while True:
            trial = x - np.linalg.solve(H + damping * np.diag(np.diag(H)), g)
            trial_cost = loss(trial)
            if trial_cost < cost:
                break
            damping *= 10.0
            if damping > _MOST_DAMPING:
                return x
        x, damping, decrease, cost = trial, 0.2 * damping, 1.0 - trial_cost / cost, trial_cost
        if decrease < _CONVERGED:
            break
    return x


def _same_length(batches: Sequence[WindowBatch]) -> list[WindowBatch]:
    """The batches with as many rows each, so that all flights share a compiled function."""
    rows = max(len(batch["dt"]) for batch in batches)
    return [
        {name: _padded(v, rows) if name in ("x", "u", "dt") else v for name, v in batch.items()}
        for batch in batches
    ]


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


def _symmetric_basis(
    system: RigidMultirotor, output: str, shape: tuple[int, int]
) -> Float[np.ndarray, "entries k"]:
    """Orthonormal basis of the entries of L and b that the mirrors leave as they are."""
    pairs = [_images(system, output, np.array(mirror)) for mirror in _MIRRORS]
    average = []
    for entry in np.eye(shape[0] * (shape[1] + 1)):
        linear, bias = entry[: shape[0] * shape[1]].reshape(shape), entry[shape[0] * shape[1] :]
        linears = [linear, *(of_output.T @ linear @ of_input for of_input, of_output in pairs)]
        biases = [bias, *(of_output.T @ bias for _, of_output in pairs)]
        average.append(np.concatenate([np.mean(linears, axis=0).ravel(), np.mean(biases, axis=0)]))
    values, vectors = np.linalg.eigh(np.array(average))
    return vectors[:, values > 0.5]


def _padded(rows: Float[Array, "n _"] | Float[Array, " n"], count: int) -> Array:
    return jnp.concatenate([rows, jnp.repeat(rows[-1:], count - len(rows), axis=0)])
