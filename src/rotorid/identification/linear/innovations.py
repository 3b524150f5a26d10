"""Innovations of a structure's model on data, and how they change with its parameters, exactly.

    x_{k+1} = A_d x_k + B_d u_k + K e_k,    e_k = y_k - C x_k - D u_k,    exp([A B; 0 0] dt) = [A_d B_d; 0 I]

Parameters enter by their coordinates: the logarithm above a lower bound, the logit between two (see `models.system.Parameter`).
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
    """Experiments as one table each, of the same length: y, u, and whether a row of y was measured."""

    y: Float[np.ndarray, "runs n l"]
    u: Float[np.ndarray, "runs n m"]
    is_measured: Bool[np.ndarray, "runs n"]


def experiment_table(runs: Sequence[Experiment]) -> ExperimentTable:
    """The experiments; a row with any output missing counts as not measured."""
    longest = max(len(run.y) for run in runs)
    y = np.zeros((len(runs), longest, runs[0].y.shape[1]))
    u = np.zeros((len(runs), longest, runs[0].u.shape[1]))
    measured = np.zeros((len(runs), longest), bool)
    for k, run in enumerate(runs):
        seen = np.all(np.isfinite(run.y), axis=1)
        y[k, : len(run.y)] = np.nan_to_num(run.y * np.where(seen, 1.0, np.nan)[:, None])
        u[k, : len(run.u)] = run.u
        measured[k, : len(run.y)] = seen
    return ExperimentTable(y, u, measured)


def structure_values(structure: Structure, z: Float[Array, " free"]) -> dict[str, Any]:
    """All parameters in their units from the coordinates of the free ones."""
    at = {p.name: k for k, p in enumerate(structure.free)}
    return {
        p.name: to_value(p, z[at[p.name]]) if p.name in at else jnp.asarray(float(p.values[0]))
        for p in structure.parameters
    }


class DiscreteMatrices(NamedTuple):
    """A, B, C, D, K at the samples, or their derivatives by parameters on a last axis."""

    A: Any
    B: Any
    C: Any
    D: Any
    K: Any


def discretise(
    matrices: Sequence[np.ndarray], slopes: Sequence[np.ndarray], dt: float, continuous: bool
) -> tuple[DiscreteMatrices, DiscreteMatrices]:
    """The matrices at samples dt (s) apart and their derivatives by parameters.

    exp([X dX; 0 X]) = [exp(X), its derivative along dX; 0, exp(X)].
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
    found = scipy.linalg.expm(X)
    here, moved = found[-1, :n, :k], np.moveaxis(found[:count, :n, k:], 0, 2)
    return M._replace(A=here[:, :n], B=here[:, n:]), by._replace(A=moved[:, :n], B=moved[:, n:])


def innovations(
    M: DiscreteMatrices, rows: ExperimentTable, x0: Float[np.ndarray, "runs s"]
) -> Float[np.ndarray, "runs n l"]:
    """e, zero where nothing was measured; not finite where the predictor diverges."""
    drive, direct = rows.u @ M.B.T, rows.u @ M.D.T
    e = np.zeros_like(rows.y)
    if not M.K.any():  # simulation
        for k in range(len(x0)):
            e[k] = rows.y[k] - simulate_states(M.A, drive[k], x0[k]) @ M.C.T - direct[k]
        e[~rows.is_measured] = 0.0
        return e
    closed, drive = M.A - M.K @ M.C, drive + (rows.y - direct) @ M.K.T
    for k in range(len(x0)):
        if rows.is_measured[k].all():
            e[k] = rows.y[k] - simulate_states(closed, drive[k], x0[k]) @ M.C.T - direct[k]
            continue
        x, open_drive = x0[k], rows.u[k] @ M.B.T
        for i, seen in enumerate(rows.is_measured[k]):
            if seen:
                e[k, i] = rows.y[k, i] - M.C @ x - direct[k, i]
                x = closed @ x + drive[k, i]
            else:
                x = M.A @ x + open_drive[i]
    return e


@jax.jit
def innovation_sensitivities(
    M: DiscreteMatrices,
    by: DiscreteMatrices,
    rows: ExperimentTable,
    x0: Float[Array, "runs s"],
    start: Float[Array, "s parameters"],
) -> tuple[Float[Array, "runs n l parameters"], Float[Array, "runs n l s"]]:
    """de/dtheta and de/dx0. by: derivatives of the matrices. start: of the state at the first row by the parameters."""
    count, n = by.A.shape[2], M.A.shape[0]

    def step(carry, row):
        x, X = carry  # X = dx / d(theta, x0)
        u, y, seen = row
        e = jnp.where(seen, y - M.C @ x - M.D @ u, 0.0)
        own = jnp.tensordot(by.C, x, (1, 0)) + jnp.tensordot(by.D, u, (1, 0))
        E = jnp.where(seen, -(M.C @ X + jnp.pad(own, ((0, 0), (0, n)))), 0.0)
        moved = (
            jnp.tensordot(by.A, x, (1, 0)) + jnp.tensordot(by.B, u, (1, 0)) + jnp.tensordot(by.K, e, (1, 0))
        )
        X = M.A @ X + jnp.pad(moved, ((0, 0), (0, n))) + M.K @ E
        return (M.A @ x + M.B @ u + M.K @ e, X), E

    def one(u, y, seen, x0):
        return jax.lax.scan(step, (x0, jnp.hstack([start, jnp.eye(n)])), (u, y, seen))[1]

    E = jax.vmap(one)(rows.u, rows.y, rows.is_measured, x0)
    return E[..., :count], E[..., count:]


def matrices_and_slopes(
    structure: Structure, z: Float[np.ndarray, " free"]
) -> tuple[tuple[np.ndarray, ...], tuple[np.ndarray, ...], np.ndarray, np.ndarray]:
    """A, B, C, D, K and the first state, their derivatives by z on a last axis, the free parameters, and theirs by z."""
    if structure.entries is None:
        M, by, values, slopes = _traced(structure, z)
        return (
            tuple(np.asarray(v) for v in M),
            tuple(np.asarray(v) for v in by),
            np.asarray(values),
            np.asarray(slopes),
        )
    fixed, places = structure.entries
    M, by, at = [], [], 0
    for name in "ABCDK":
        here, slope = fixed[name].copy(), np.zeros((*fixed[name].shape, len(z)))
        if name in places:
            i, j = places[name]
            k = at + np.arange(len(i))
            here[i, j], slope[i, j, k] = z[k], 1.0
            at += len(i)
        M.append(here)
        by.append(slope)
    n = len(M[0])
    return (*M, np.zeros(n)), (*by, np.zeros((n, len(z)))), z.copy(), np.ones(len(z))


@functools.partial(jax.jit, static_argnums=0)
def _traced(structure: Structure, z: Float[Array, " free"]) -> tuple[Matrices, Matrices, Any, Any]:
    def found(z):
        M = Matrices(*structure.matrices(structure_values(structure, z)))
        A, B, C, D = (jnp.asarray(v, dtype=float) for v in M[:4])
        K = jnp.zeros((A.shape[0], C.shape[0])) if M.K is None else jnp.asarray(M.K, dtype=float)
        return Matrices(
            A, B, C, D, K, jnp.zeros(A.shape[0]) if M.x0 is None else jnp.asarray(M.x0, dtype=float)
        )

    def numbers(z):
        return jnp.stack([to_value(p, z[k]) for k, p in enumerate(structure.free)])

    return found(z), jax.jacfwd(found)(z), numbers(z), jnp.diagonal(jax.jacfwd(numbers)(z))
