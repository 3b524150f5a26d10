"""Gain-scheduled state feedback of an LPV model over a box of its parameters, with a certificate.

    u = K(rho) x,    K(rho) = sum_v alpha_v(rho) K_v,    alpha: convex coordinates of rho among the vertices v

One quadratic Lyapunov function x' P x bounds the cost for all rho(t) in the box, at any rate of change:

    d/dt (x' P x) + x' Q x + u' R u <= -2 beta x' P x     hence     integral of (x' Q x + u' R u) <= x(0)' P x(0)

The closed loop is the sum of alpha_i alpha_j (A_i + B_i K_j). The inequality therefore holds in the box if it holds at
each vertex i and, averaged over (i, j) and (j, i), for each pair of vertices. If B is constant, the pairs follow from
the vertices.

method "local": K_v is the LQR at vertex v, so the closed loop at each rho is similar to that of the local LQR; P is
found by a semidefinite program. method "cost": gains and P are found by one program that minimises the bound, in X =
inv(P), Y_v = K_v X. This is often feasible for larger boxes. With a constant B the best gain is the same for all rho,
-inv(R) B' P, a robust LQR. Only this method supports limits of the poles at each vertex (`damping`, `max_rate`).

States without mutual coupling are solved separately: the model is split into blocks, each with its own part of P.
Coupling from one block to a later one only requires a scale between their parts of P. The certificate is verified
afterwards by the eigenvalues of the whole model at each vertex and pair of vertices, independently of the status of the
solver.

References: J. C. Geromel, P. L. D. Peres, J. Bernussou, On a convex parameter space method for linear control design of
uncertain systems, SIAM J. Control Optim. 29 (1991); M. Chilali, P. Gahinet, H-infinity design with pole placement
constraints: an LMI approach, IEEE Trans. Automatic Control 41 (1996); P. Apkarian, P. Gahinet, G. Becker, Self-scheduled
H-infinity control of linear parameter-varying systems, Automatica 31 (1995).
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Final, Literal

import numpy as np
import scipy.linalg
from jaxtyping import Float
from scipy.sparse.csgraph import connected_components

from rotorid.control import semidefinite_programs as programs
from rotorid.errors import SettingError
from rotorid.models.lpv.bounds import Box, without_constants
from rotorid.models.lpv.model import Lpv

Method = Literal["local", "cost"]

MAX_PARAMETERS: Final = 7
"""Largest number of parameters of a block: 2^7 vertices."""

_SCALES: Final = tuple(10.0**-k for k in range(13))
"""Scales between the parts of P of coupled blocks that are tried."""

_MAX_SLACK: Final = 1e-6
"""Largest `Certificate.slack` of an accepted solution whose status is inaccurate."""

_POLE_TOLERANCE: Final = 1e-3
"""Tolerance of its poles: absolute for `damping`, relative for `max_rate`."""


@dataclasses.dataclass(frozen=True)
class Certificate:
    """Properties of P and the gains, verified by eigenvalues at each vertex and pair of vertices of the whole model.

    margin: largest eigenvalue of A' P + P A of the closed loops, with P of largest eigenvalue 1. decay: certified decay
    rate of sqrt(x' P x), 1/s. slack: largest eigenvalue of A' P + P A + Q + K' R K over that of Q; if it is 0 or less,
    x' P x bounds the cost. pairs: number of verified vertices and pairs.
    """

    P: Float[np.ndarray, "n n"]
    margin: float
    decay: float
    slack: float
    pairs: int

    @property
    def is_stable(self) -> bool:
        """Whether the margin is negative."""
        return self.margin < 0.0


@dataclasses.dataclass(frozen=True)
class Block:
    """Gains of one block of the model.

    states, inputs, parameters: indices in the model. box: bounds of its parameters. gains: at the vertices of the box.
    """

    states: tuple[int, ...]
    inputs: tuple[int, ...]
    parameters: tuple[int, ...]
    box: Box
    gains: Float[np.ndarray, "vertices inputs states"]


@dataclasses.dataclass(frozen=True)
class GainSchedule:
    """A gain-scheduled controller, `u = K(rho) x`, designed by `gain_schedule`.

    model: LPV model of the design. box: bounds of its parameters rho. method: "cost" or "local", see `gain_schedule`. blocks:
    gains of the independent blocks of the model. certificate: properties of the closed loops, verified at the vertices of the
    box. cost: bound of the cost relative to that of the LQR at the centre of the box, as the mean over initial states of
    equal cost; 1 is as good as that LQR.
    """

    model: Lpv
    box: Box
    method: Method
    blocks: tuple[Block, ...]
    certificate: Certificate
    cost: float

    def gain(self, rho: Float[np.ndarray, "*batch k"]) -> Float[np.ndarray, "*batch m n"]:
        """K at rho; outside the box, the gain at its boundary."""
        rho = np.asarray(rho)
        K = np.zeros((*rho.shape[:-1], len(self.model.inputs), len(self.model.states)))
        for block in self.blocks:
            alpha = block.box.coordinates(rho[..., list(block.parameters)])
            rows, columns = np.ix_(block.inputs, block.states)
            K[..., rows, columns] = np.tensordot(alpha, block.gains, 1)
        return K

    def vertex_gains(self) -> Float[np.ndarray, "vertices m n"]:
        """K at every vertex of the box, in the order of `Box.vertices`."""
        return self.gain(self.box.vertices())


def lqr(
    A: Float[np.ndarray, "n n"],
    B: Float[np.ndarray, "n m"],
    Q: Float[np.ndarray, "n n"],
    R: Float[np.ndarray, "m m"],
) -> tuple[Float[np.ndarray, "m n"], Float[np.ndarray, "n n"]]:
    """K of u = K x that minimises the integral of x' Q x + u' R u, and P of its cost x' P x.

    Raises SettingError if no feedback stabilises the model.
    """
    try:
        P = scipy.linalg.solve_continuous_are(A, B, Q, R)
    except (np.linalg.LinAlgError, ValueError):
        raise SettingError(
            "no feedback stabilises the model: an unstable state is not controllable"
        ) from None
    return -np.linalg.solve(R, B.T @ P), P


def gain_schedule(
    model: Lpv,
    box: Box,
    Q: Float[np.ndarray, "n n"],
    R: Float[np.ndarray, "m m"],
    *,
    method: Method = "cost",
    decay: float = 0.0,
    damping: float | None = None,
    max_rate: float | None = None,
) -> GainSchedule:
    """Design a gain-scheduled controller of an LPV model for all rho in a box, with its certificate.

    Args:
        model: LPV model with n states and m inputs.
        box: bounds of the model's parameters rho.
        Q: weights (n, n) of the states, symmetric positive definite; entries between blocks of the model must be 0.
        R: weights (m, m) of the inputs, likewise.
        method: "cost": one program finds the gains that minimise the bound of the cost. "local": the gain at each vertex is
            that of its LQR, and only the bound is computed.
        decay: least decay rate, 1/s.
        damping: least damping ratio of the poles, only for "cost"; None: no limit.
        max_rate: largest decay rate of the poles, 1/s, only for "cost"; None: no limit.
    Returns:
        The gains at the vertices of each block, the certificate and the cost relative to the LQR.
    Raises:
        SettingError: an invalid setting, no such controller exists, or the solution fails the verification.
    Source: J. C. Geromel, P. L. D. Peres, J. Bernussou, SIAM J. Control Optim. 29 (1991); M. Chilali, P. Gahinet, IEEE Trans.
    Automatic Control 41 (1996).
    """
    if method not in ("local", "cost"):
        raise SettingError(f"no method {method!r}; choose from local, cost")
    if method == "local" and (damping is not None or max_rate is not None):
        raise SettingError("damping and max_rate need method='cost'; omit them, or use that method")
    _check_weights(model, Q, R)
    if not (decay >= 0 and (damping is None or 0 < damping < 1) and (max_rate is None or max_rate > decay)):
        raise SettingError("decay must be 0 or more, damping between 0 and 1, and max_rate more than decay")
    limits = programs.PoleLimits(decay, damping, max_rate)
    blocks, parts, costs = [], [], []
    for states, inputs in split_into_blocks(model):
        part = model.part([model.states[i] for i in states], [model.inputs[j] for j in inputs])
        part, part_box = without_constants(part, box)
        name = f"{len(states)} states from {part.states[0]!r} to {part.states[-1]!r}"
        if len(part_box.names) > MAX_PARAMETERS:
            raise SettingError(
                f"the {name} vary with {len(part_box.names)} parameters, {', '.join(part_box.names)}; the largest number is "
                f"{MAX_PARAMETERS}: make some of them constant"
            )
        part_Q, part_R = Q[np.ix_(states, states)], R[np.ix_(inputs, inputs)]
        gains, P, cost = _design(part, part_box, part_Q, part_R, method, limits, name)
        parameters = tuple(model.names.index(n) for n in part_box.names)
        blocks.append(Block(states, inputs, parameters, part_box, gains))
        parts.append(P)
        costs.append(cost * len(states))
    certificate = _certify(model, box, tuple(blocks), parts, Q, R)
    if not certificate.is_stable or certificate.decay < decay * (1.0 - 1e-3):
        raise SettingError(
            f"the solution failed the verification (margin {certificate.margin:.2g}, decay rate "
            f"{certificate.decay:.3g} 1/s); use narrower ranges, or a smaller decay rate"
        )
    return GainSchedule(model, box, method, tuple(blocks), certificate, float(sum(costs) / len(model.states)))


def _check_weights(model: Lpv, Q: Float[np.ndarray, "n n"], R: Float[np.ndarray, "m m"]) -> None:
    for name, W, size in (("Q", Q, len(model.states)), ("R", R, len(model.inputs))):
        if W.shape != (size, size):
            raise SettingError(f"{name} is {W.shape[0]} x {W.shape[1]}, but the model needs {size} x {size}")
        if not (np.allclose(W, W.T) and np.linalg.eigvalsh(W)[0] > 0):
            raise SettingError(f"{name} must be symmetric and positive definite")


def weights(names: tuple[str, ...], largest: Mapping[str, float]) -> Float[np.ndarray, "n n"]:
    """A diagonal weight 1 / largest^2 for each name: Bryson's rule. Raises SettingError for a name without a number."""
    for name in names:
        if not largest.get(name, 0.0) > 0:
            raise SettingError(f"weights: the largest acceptable {name!r} must be given, above 0")
    return np.diag([largest[name] ** -2.0 for name in names])


def split_into_blocks(model: Lpv) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Split a model into blocks of coupled states, with the inputs that act on them.

    A block precedes the blocks that it acts on. States without an input belong to the block that acts on them.

    Returns:
        Indices of states and inputs of each block.
    Raises:
        SettingError: no input acts on a state, or the blocks are coupled in a cycle.
    """
    state_acts = (model.A0 != 0) | (model.A != 0).any(axis=0)
    input_acts = (model.B0 != 0) | (model.B != 0).any(axis=0)
    shares_input = (input_acts.astype(int) @ input_acts.T.astype(int)) > 0
    count, label = connected_components(state_acts | shares_input, directed=True, connection="strong")
    groups = [[i for i in range(len(label)) if label[i] == g] for g in range(count)]
    with_input = [g for g in groups if input_acts[g].any()]
    reaches = np.linalg.matrix_power(state_acts.astype(float) + np.eye(len(state_acts)), len(state_acts)) > 0
    members = [list(group) for group in with_input]
    for group in (g for g in groups if not input_acts[g].any()):
        sources = [k for k, other in enumerate(with_input) if reaches[np.ix_(group, other)].any()]
        if not sources:
            raise SettingError(f"no input acts on {model.states[group[0]]!r}; the model cannot be controlled")
        # if several blocks act on it one after the other, it belongs to the last of them
        last = next(
            k
            for k in sources
            if not any(reaches[np.ix_(with_input[o], with_input[k])].any() for o in sources if o != k)
        )
        members[last] += group
    remaining = [
        (tuple(sorted(g)), tuple(np.flatnonzero(input_acts[g].any(axis=0)).tolist())) for g in members
    ]
    ordered: list[tuple[tuple[int, ...], tuple[int, ...]]] = []
    while remaining:
        first = next(
            (
                b
                for b in remaining
                if not any(state_acts[np.ix_(b[0], o[0])].any() for o in remaining if o is not b)
            ),
            None,
        )
        if first is None:
            raise SettingError(
                "the blocks of the model are coupled in a cycle; their weights cannot be solved separately"
            )
        ordered.append(first)
        remaining.remove(first)
    return ordered


def _design(
    model: Lpv,
    box: Box,
    Q: Float[np.ndarray, "n n"],
    R: Float[np.ndarray, "m m"],
    method: Method,
    limits: programs.PoleLimits,
    name: str,
) -> tuple[Float[np.ndarray, "vertices m n"], Float[np.ndarray, "n n"], float]:
    """Gains at the vertices, P, and the cost relative to the LQR at the centre, of one block."""
    vertices = box.vertices()
    A, B = (np.array(M) for M in zip(*(model.at(v)[:2] for v in vertices), strict=True))
    A_centre, B_centre, _ = model.at(box.centre)
    try:
        _, nominal = lqr(A_centre, B_centre, Q, R)
        local_gains = np.array(
            [lqr(a + limits.decay * np.eye(len(a)), b, Q, R)[0] for a, b in zip(A, B, strict=True)]
        )
    except SettingError:
        raise SettingError(
            f"the {name} cannot be stabilised at a vertex of the ranges of {', '.join(box.names)}; use narrower ranges"
        ) from None
    solution = (
        programs.certify(A, B, local_gains, Q, R, nominal, limits)
        if method == "local"
        else programs.synthesise(A, B, Q, R, nominal, limits)
    )
    if solution is None or not (solution.is_accurate or _satisfies(solution, A, B, Q, R, limits)):
        remedy = "try method='cost'" if method == "local" else "relax the limits of the poles"
        raise SettingError(
            f"no quadratic Lyapunov function for the {name} over the ranges of {', '.join(box.names) or 'no parameters'}; use "
            f"narrower ranges, or {remedy}"
        )
    return solution.gains, solution.P, solution.cost


def _satisfies(
    solution: programs.Solution,
    A: Float[np.ndarray, "v n n"],
    B: Float[np.ndarray, "v n m"],
    Q: Float[np.ndarray, "n n"],
    R: Float[np.ndarray, "m m"],
    limits: programs.PoleLimits,
) -> bool:
    """Whether a solution satisfies the inequalities of its program: the bound of the cost with the decay rate at each
    vertex and pair of vertices, and the limits of the poles at each vertex."""
    shifted = A + limits.decay * np.eye(len(Q))
    certificate = verify(shifted, B, solution.gains, solution.P, Q, R)
    poles = np.linalg.eigvals(A + B @ solution.gains)
    is_slow = limits.max_rate is None or bool(
        (-poles.real <= limits.max_rate * (1.0 + _POLE_TOLERANCE)).all()
    )
    is_damped = limits.damping is None or bool(
        (-poles.real >= (limits.damping - _POLE_TOLERANCE) * np.abs(poles)).all()
    )
    return certificate.is_stable and certificate.slack <= _MAX_SLACK and is_slow and is_damped


def _certify(
    model: Lpv,
    box: Box,
    blocks: tuple[Block, ...],
    parts: list[Float[np.ndarray, "_ _"]],
    Q: Float[np.ndarray, "n n"],
    R: Float[np.ndarray, "m m"],
) -> Certificate:
    """The certificate of the whole model. For coupled blocks: with the scale between their parts of P that gives the
    largest decay rate."""
    states = [b.states for b in blocks]
    state_acts = (model.A0 != 0) | (model.A != 0).any(axis=0)
    is_coupled = any(
        state_acts[np.ix_(a, b)].any() for i, a in enumerate(states) for j, b in enumerate(states) if i != j
    )
    best: Certificate | None = None
    for scale in _SCALES if is_coupled else (1.0,):
        P = np.zeros((len(model.states),) * 2)
        for k, (rows, part) in enumerate(zip(states, parts, strict=True)):
            P[np.ix_(rows, rows)] = scale**k * part
        certificate = _verify_model(model, box, blocks, P, Q, R, is_coupled)
        if best is None or certificate.decay > best.decay:
            best = certificate
        if best.is_stable and certificate.decay < best.decay:
            break
    assert best is not None
    return best


def _verify_model(
    model: Lpv,
    box: Box,
    blocks: tuple[Block, ...],
    P: Float[np.ndarray, "n n"],
    Q: Float[np.ndarray, "n n"],
    R: Float[np.ndarray, "m m"],
    is_coupled: bool,
) -> Certificate:
    """The certificate of the whole model for a given P; blocks that are not coupled are verified one by one."""
    groups = [tuple(range(len(blocks)))] if is_coupled else [(k,) for k in range(len(blocks))]
    largest_eigenvalue = float(np.linalg.eigvalsh(P)[-1])
    margin, decay, slack, pairs = -np.inf, np.inf, -np.inf, 0
    for group in groups:
        rows = [i for k in group for i in blocks[k].states]
        columns = [j for k in group for j in blocks[k].inputs]
        varying = sorted({i for k in group for i in blocks[k].parameters})
        vertices = np.tile(box.centre, (2 ** len(varying), 1))
        varying_box = Box(tuple(box.names[i] for i in varying), box.lower[varying], box.upper[varying])
        vertices[:, varying] = varying_box.vertices()
        A, B = (np.array(M) for M in zip(*(model.at(v)[:2] for v in vertices), strict=True))
        A, B = A[:, rows][:, :, rows], B[:, rows][:, :, columns]
        K = np.array([_gain_at([blocks[k] for k in group], v, rows, columns) for v in vertices])
        part = verify(A, B, K, P[np.ix_(rows, rows)], Q[np.ix_(rows, rows)], R[np.ix_(columns, columns)])
        margin, decay, slack = max(margin, part.margin), min(decay, part.decay), max(slack, part.slack)
        pairs += part.pairs
    return Certificate(P / largest_eigenvalue, margin / largest_eigenvalue, decay, slack, pairs)


def _gain_at(
    blocks: list[Block], rho: Float[np.ndarray, " k"], rows: list[int], columns: list[int]
) -> np.ndarray:
    """K of some blocks at rho. rows, columns: indices of their states and inputs, in the order of the result."""
    K = np.zeros((len(columns), len(rows)))
    for block in blocks:
        alpha = block.box.coordinates(rho[list(block.parameters)])
        entries = np.ix_([columns.index(j) for j in block.inputs], [rows.index(i) for i in block.states])
        K[entries] = np.tensordot(alpha, block.gains, 1)
    return K


def verify(
    A: Float[np.ndarray, "v n n"],
    B: Float[np.ndarray, "v n m"],
    K: Float[np.ndarray, "v m n"],
    P: Float[np.ndarray, "n n"],
    Q: Float[np.ndarray, "n n"],
    R: Float[np.ndarray, "m m"],
) -> Certificate:
    """Verify the closed loops of a set of vertices by eigenvalues: at each vertex and, if B varies, at each pair of
    vertices.

    The margin is that of the given P, without normalisation. For a P that is not positive definite it is infinite.
    """
    try:
        root = np.linalg.cholesky(P)
    except np.linalg.LinAlgError:
        return Certificate(P, math.inf, -math.inf, math.inf, 0)
    inverse = np.linalg.inv(root)
    weight = float(np.linalg.eigvalsh(Q)[-1])
    is_B_varying = bool(np.ptp(B, axis=0).any())
    margin, rate, slack, count = -np.inf, -np.inf, -np.inf, 0
    for i in range(len(A)):
        for j in range(i, len(A)) if is_B_varying else (i,):
            closed = 0.5 * (A[i] + B[i] @ K[j] + A[j] + B[j] @ K[i])
            L = closed.T @ P + P @ closed
            cost = Q + 0.5 * (K[i].T @ R @ K[i] + K[j].T @ R @ K[j])
            margin = max(margin, float(np.linalg.eigvalsh(L)[-1]))
            rate = max(rate, float(np.linalg.eigvalsh(inverse @ L @ inverse.T)[-1]))
            slack = max(slack, float(np.linalg.eigvalsh(L + cost)[-1]) / weight)
            count += 1
    return Certificate(P, margin, -0.5 * rate, slack, count)
