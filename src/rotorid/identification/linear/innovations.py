"""Innovations of a structure's model on data, and their exact derivatives by its parameters.

    x_{k+1} = A_d x_k + B_d u_k + K e_k,    e_k = y_k - C x_k - D u_k,    exp([A B; 0 0] dt) = [A_d B_d; 0 I]

Derivatives are by the estimation coordinates of the parameters: the logarithm of a parameter with a lower bound, the logit of
one with two bounds (see `rotorid.models.system.Parameter`).
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import scipy.linalg
from jaxtyping import Array, Bool, Float

from rotorid.identification.linear.model import Experiment, simulate_states
from rotorid.identification.linear.structures import Matrices, Structure
from rotorid.models.joint import to_value


class ExperimentTable(NamedTuple):
    """Experiments padded to the same length: y, u, and whether a row of y was measured."""

    y: Float[np.ndarray, "runs n l"]
    u: Float[np.ndarray, "runs n m"]
    is_measured: Bool[np.ndarray, "runs n"]


def experiment_table(runs: Sequence[Experiment]) -> ExperimentTable:
    """The table of experiments. A row with a missing output counts as not measured."""
    longest = max(len(run.y) for run in runs)
    y = np.zeros((len(runs), longest, runs[0].y.shape[1]))
    u = np.zeros((len(runs), longest, runs[0].u.shape[1]))
    is_measured = np.zeros((len(runs), longest), bool)
    for k, run in enumerate(runs):
        complete = np.all(np.isfinite(run.y), axis=1)
        y[k, : len(run.y)] = np.nan_to_num(run.y * np.where(complete, 1.0, np.nan)[:, None])
        u[k, : len(run.u)] = run.u
        is_measured[k, : len(run.y)] = complete
    return ExperimentTable(y, u, is_measured)


def structure_values(structure: Structure, z: Float[Array, " free"]) -> dict[str, Any]:
    """All parameters in their units. z: coordinates of the free ones."""
    index = {p.name: k for k, p in enumerate(structure.free)}
    return {
        p.name: to_value(p, z[index[p.name]]) if p.name in index else jnp.asarray(float(p.values[0]))
        for p in structure.parameters
    }


class DiscreteMatrices(NamedTuple):
    """A, B, C, D, K of the discrete model, or their derivatives by the parameters (last axis)."""

    A: Any
    B: Any
    C: Any
    D: Any
    K: Any


def discretise(
    matrices: Sequence[np.ndarray], slopes: Sequence[np.ndarray], dt: float, continuous: bool
) -> tuple[DiscreteMatrices, DiscreteMatrices]:
    """The matrices of the discrete model and their derivatives by the parameters, from

        exp([X dX; 0 X]) = [exp(X) dexp(X)[dX]; 0 exp(X)]

    Args:
        matrices: A, B, C, D, K of the model.
        slopes: their derivatives by the parameters, on a last axis.
        dt: sampling interval, s.
        continuous: whether the matrices are those of a model in continuous time.
    """
    M, by = DiscreteMatrices(*matrices), DiscreteMatrices(*slopes)
    if not continuous:
        return M, by
    (n, m), count = M.B.shape, by.A.shape[2]
    k = n + m
    X = np.zeros((count + 1, 2 * k, 2 * k))
    X[:, :n, :n] = X[:, k : k + n, k : k + n] = dt * M.A
    X[:, :n, n:k] = X[:, k : k + n, k + n :] = dt * M.B
    X[:count, :n, k : k + n] = dt * np.moveaxis(by.A, 2, 0)
    X[:count, :n, k + n :] = dt * np.moveaxis(by.B, 2, 0)
    exponential = scipy.linalg.expm(X)
    value, slope = exponential[-1, :n, :k], np.moveaxis(exponential[:count, :n, k:], 0, 2)
    return M._replace(A=value[:, :n], B=value[:, n:]), by._replace(A=slope[:, :n], B=slope[:, n:])


def innovations(
    M: DiscreteMatrices, rows: ExperimentTable, x0: Float[np.ndarray, "runs s"]
) -> Float[np.ndarray, "runs n l"]:
    """The innovations e, 0 in rows that were not measured; not finite if the predictor diverges. x0: state at the first row."""
    input_term, feedthrough = rows.u @ M.B.T, rows.u @ M.D.T
    e = np.zeros_like(rows.y)
    if not M.K.any():  # simulation
        for k in range(len(x0)):
            e[k] = rows.y[k] - simulate_states(M.A, input_term[k], x0[k]) @ M.C.T - feedthrough[k]
        e[~rows.is_measured] = 0.0
        return e
    A_predictor, predictor_input = M.A - M.K @ M.C, input_term + (rows.y - feedthrough) @ M.K.T
    for k in range(len(x0)):
        if rows.is_measured[k].all():
            e[k] = (
                rows.y[k] - simulate_states(A_predictor, predictor_input[k], x0[k]) @ M.C.T - feedthrough[k]
            )
            continue
        x, run_input = x0[k], rows.u[k] @ M.B.T
        for i, is_measured in enumerate(rows.is_measured[k]):
            if is_measured:
                e[k, i] = rows.y[k, i] - M.C @ x - feedthrough[k, i]
                x = A_predictor @ x + predictor_input[k, i]
            else:
                x = M.A @ x + run_input[i]
    return e


@jax.jit
def innovation_sensitivities(
    M: DiscreteMatrices,
    by: DiscreteMatrices,
    rows: ExperimentTable,
    x0: Float[Array, "runs s"],
    start: Float[Array, "s parameters"],
) -> tuple[Float[Array, "runs n l parameters"], Float[Array, "runs n l s"]]:
    """de/dtheta and de/dx0.

    Args:
        M, by: matrices of the discrete model and their derivatives by the parameters.
        rows: the experiments.
        x0: state at the first row of each experiment.
        start: its derivative by the parameters.
    """
    count, n = by.A.shape[2], M.A.shape[0]

    def step(carry, row):
        x, X = carry  # X = dx / d(theta, x0)
        u, y, is_measured = row
        e = jnp.where(is_measured, y - M.C @ x - M.D @ u, 0.0)
        own = jnp.tensordot(by.C, x, (1, 0)) + jnp.tensordot(by.D, u, (1, 0))
        E = jnp.where(is_measured, -(M.C @ X + jnp.pad(own, ((0, 0), (0, n)))), 0.0)
        direct = (
            jnp.tensordot(by.A, x, (1, 0)) + jnp.tensordot(by.B, u, (1, 0)) + jnp.tensordot(by.K, e, (1, 0))
        )
        X = M.A @ X + jnp.pad(direct, ((0, 0), (0, n))) + M.K @ E
        return (M.A @ x + M.B @ u + M.K @ e, X), E

    def along_run(u, y, is_measured, x0):
        return jax.lax.scan(step, (x0, jnp.hstack([start, jnp.eye(n)])), (u, y, is_measured))[1]

    E = jax.vmap(along_run)(rows.u, rows.y, rows.is_measured, x0)
    return E[..., :count], E[..., count:]


def matrices_and_slopes(
    structure: Structure, z: Float[np.ndarray, " free"]
) -> tuple[tuple[np.ndarray, ...], tuple[np.ndarray, ...], np.ndarray, np.ndarray]:
    """Matrices of a structure at the coordinates z.

    Returns:
        A, B, C, D, K and the first state; their derivatives by z, on a last axis; the values of the free parameters; their
        derivatives by z.
    """
    if structure.entries is None:
        M, by, values, slopes = _traced(structure, z)
        return (
            tuple(np.asarray(v) for v in M),
            tuple(np.asarray(v) for v in by),
            np.asarray(values),
            np.asarray(slopes),
        )
    fixed, places = structure.entries
    M, by, start = [], [], 0
    for name in "ABCDK":
        matrix, slope = fixed[name].copy(), np.zeros((*fixed[name].shape, len(z)))
        if name in places:
            i, j = places[name]
            k = start + np.arange(len(i))
            matrix[i, j], slope[i, j, k] = z[k], 1.0
            start += len(i)
        M.append(matrix)
        by.append(slope)
    n = len(M[0])
    return (*M, np.zeros(n)), (*by, np.zeros((n, len(z)))), z.copy(), np.ones(len(z))


@functools.partial(jax.jit, static_argnums=0)
def _traced(structure: Structure, z: Float[Array, " free"]) -> tuple[Matrices, Matrices, Any, Any]:
    def matrices(z):
        M = Matrices(*structure.matrices(structure_values(structure, z)))
        A, B, C, D = (jnp.asarray(v, dtype=float) for v in M[:4])
        K = jnp.zeros((A.shape[0], C.shape[0])) if M.K is None else jnp.asarray(M.K, dtype=float)
        return Matrices(
            A, B, C, D, K, jnp.zeros(A.shape[0]) if M.x0 is None else jnp.asarray(M.x0, dtype=float)
        )

    def values(z):
        return jnp.stack([to_value(p, z[k]) for k, p in enumerate(structure.free)])

    return matrices(z), jax.jacfwd(matrices)(z), values(z), jnp.diagonal(jax.jacfwd(values)(z))
