"""Gain-scheduled state feedback of an LPV model over a box of its parameters, with a certificate.

    u = K(rho) x,    K(rho) = sum_v alpha_v(rho) K_v,    alpha: convex coordinates of rho among the vertices v

One quadratic Lyapunov function x' P x, and one bound of the cost for all rho(t) in the box, however fast they change:

    d/dt (x' P x) + x' Q x + u' R u <= -2 beta x' P x     hence     integral of (x' Q x + u' R u) <= x(0)' P x(0)

The closed loop is the sum of alpha_i alpha_j (A_i + B_i K_j), so the inequality holds in the box where it holds for every i
and, averaged over (i, j) and (j, i), for every pair of vertices; where B does not vary, the pairs follow from the vertices.

method "local": K_v is the LQR at vertex v, so that at each rho the vehicle answers nearly as under the LQR designed there;
a semidefinite program looks for P. method "cost": gains and P come from one program that minimises the bound, in
X = inv(P), Y_v = K_v X (sufficient, often wider feasible); with a constant B its best gain is the same for all rho,
-inv(R) B' P, a robust LQR. Limits of the poles at each vertex (`damping`, `fastest`) are possible there.

States that do not act on each other are solved apart: a model falls into blocks, P into theirs, and what one block does to
a later one costs only a scale between their parts of P. The certificate is checked by numpy's eigenvalues afterwards, on the
whole model, at every pair, whatever the solver said.

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

from rotorid.control import semidefinite_programs as lpv_programs
from rotorid.errors import SettingError
from rotorid.models.lpv.bounds import Box, without_constants
from rotorid.models.lpv.model import Lpv

Method = Literal["local", "cost"]

MAX_PARAMETERS: Final = 7
"""Parameters that one block may have: 2^7 vertices."""

_SCALES: Final = tuple(10.0**-k for k in range(13))

_SLACK: Final = 1e-6
"""Largest `Certificate.slack` of a solution that the solver calls inaccurate."""

_POLES: Final = 1e-3
"""By how much its poles may pass `damping`, and `fastest` over its size."""


@dataclasses.dataclass(frozen=True)
class Certificate:
    """What was verified of P and the gains, by eigenvalues, at every vertex and pair of vertices of the whole model.

    is_stable: margin < 0. margin: largest eigenvalue of the closed loops' A' P + P A, with P of largest eigenvalue 1.
    decay: rate in 1/s at which sqrt(x' P x) surely shrinks. slack: largest eigenvalue of A' P + P A + Q + K' R K over
    that of Q (0 or less where the cost is bounded by x' P x). pairs: how many matrices were looked at.
    """

    P: Float[np.ndarray, "n n"]
    margin: float
    decay: float
    slack: float
    pairs: int

    @property
    def is_stable(self) -> bool:
        return self.margin < 0.0


@dataclasses.dataclass(frozen=True)
class Block:
    """Gains of one block of the model: those of its `states` to its `inputs` (indices), at the vertices of its `box`."""

    states: tuple[int, ...]
    inputs: tuple[int, ...]
    parameters: tuple[int, ...]
    box: Box
    gains: Float[np.ndarray, "vertices inputs states"]


@dataclasses.dataclass(frozen=True)
class GainSchedule:
    """A gain-scheduled controller, u = K(rho) x; `gain_schedule` makes it.

    model, box: what it is for. cost: mean of the bounded cost over that of the LQR at the middle of the box, for initial states
    in which the latter's are equal; 1 would be as good as that LQR.
    """

    model: Lpv
    box: Box
    method: Method
    blocks: tuple[Block, ...]
    certificate: Certificate
    cost: float

    def gain(self, rho: Float[np.ndarray, "*batch k"]) -> Float[np.ndarray, "*batch m n"]:
        """K at rho; what is outside of the box is taken at its edge."""
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

    Raises SettingError where no feedback stabilises the model.
    """
    try:
        P = scipy.linalg.solve_continuous_are(A, B, Q, R)
    except (np.linalg.LinAlgError, ValueError):
        raise SettingError(
            "no feedback stabilises the model here: an unstable state is out of reach of the inputs"
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
    fastest: float | None = None,
) -> GainSchedule:
    """Design a gain-scheduled controller of an LPV model for all rho in a box, with its certificate.

    Args:
        model, box: LPV model with n states and m inputs, and bounds of its parameters rho.
        Q, R: weights (n, n) of the states and (m, m) of the inputs, symmetric positive definite; entries
            between blocks of the model must be 0.
        method, decay: "cost" or "local" (see the module), and least decay rate beta, 1/s.
        damping, fastest: least damping ratio and largest rate (1/s) of the poles, only for "cost".
    Returns:
        The gains at the vertices of each block, the certificate and the cost relative to the LQR.
    Raises:
        SettingError: an invalid setting, no such controller exists, or the solution fails its check.
    Source: Geromel, Peres and Bernussou (1991) and Chilali and Gahinet (1996), see the module.
    """
    if method not in ("local", "cost"):
        raise SettingError(f"no method {method!r}; there are local, cost")
    if method == "local" and (damping is not None or fastest is not None):
        raise SettingError(
            "damping and fastest are limits of method='cost'; leave them out, or take that method"
        )
    _check_weights(model, Q, R)
    if not (decay >= 0 and (damping is None or 0 < damping < 1) and (fastest is None or fastest > decay)):
        raise SettingError("decay must be 0 or more, damping between 0 and 1, and fastest more than decay")
    options = lpv_programs.PoleLimits(decay, damping, fastest)
    blocks, parts, costs = [], [], []
    for states, inputs in split_into_blocks(model):
        part = model.part([model.states[i] for i in states], [model.inputs[j] for j in inputs])
        small, corner = without_constants(part, box)
        name = f"{len(states)} states from {part.states[0]!r} to {part.states[-1]!r}"
        if len(corner.names) > MAX_PARAMETERS:
            raise SettingError(
                f"the {name} vary with {len(corner.names)} parameters, {', '.join(corner.names)}; fix some or reduce to "
                f"{MAX_PARAMETERS}"
            )
        q, r = Q[np.ix_(states, states)], R[np.ix_(inputs, inputs)]
        gains, P, cost = _design(small, corner, q, r, method, options, name)
        blocks.append(Block(states, inputs, tuple(model.names.index(n) for n in corner.names), corner, gains))
        parts.append(P)
        costs.append(cost * len(states))
    certificate = _certify(model, box, tuple(blocks), parts, Q, R)
    if not certificate.is_stable or certificate.decay < decay * (1.0 - 1e-3):
        raise SettingError(
            f"what the solver found does not pass the check (margin {certificate.margin:.2g}, decay "
            f"{certificate.decay:.3g} 1/s): narrow the ranges or ask for a smaller decay"
        )
    return GainSchedule(model, box, method, tuple(blocks), certificate, float(sum(costs) / len(model.states)))


def _check_weights(model: Lpv, Q: Float[np.ndarray, "n n"], R: Float[np.ndarray, "m m"]) -> None:
    for name, W, size in (("Q", Q, len(model.states)), ("R", R, len(model.inputs))):
        if W.shape != (size, size):
            raise SettingError(f"{name} is {W.shape[0]} x {W.shape[1]} where the model needs {size} x {size}")
        if not (np.allclose(W, W.T) and np.linalg.eigvalsh(W)[0] > 0):
            raise SettingError(f"{name} must be symmetric and positive definite")


def weights(names: tuple[str, ...], largest: Mapping[str, float]) -> Float[np.ndarray, "n n"]:
    """A diagonal weight 1 / largest^2 for each name: Bryson's rule. Raises SettingError for a name without a number."""
    for name in names:
        if not largest.get(name, 0.0) > 0:
            raise SettingError(f"weights: give the largest {name!r} that is acceptable, more than 0")
    return np.diag([largest[name] ** -2.0 for name in names])


def split_into_blocks(model: Lpv) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """The blocks of a model: states that act on each other, with the inputs that act on them, each block before those that it
    acts on. States without any input belong to the block that acts on them."""
    acts = (model.A0 != 0) | (model.A != 0).any(axis=0)
    pushes = (model.B0 != 0) | (model.B != 0).any(axis=0)
    shared = (pushes.astype(int) @ pushes.T.astype(int)) > 0
    count, label = connected_components(acts | shared, directed=True, connection="strong")
    groups = [[i for i in range(len(label)) if label[i] == g] for g in range(count)]
    driven = [g for g in groups if pushes[g].any()]
    reach = np.linalg.matrix_power(acts.astype(float) + np.eye(len(acts)), len(acts)) > 0
    homes = [list(d) for d in driven]
    for group in (g for g in groups if not pushes[g].any()):
        near = [k for k, d in enumerate(driven) if reach[np.ix_(group, d)].any()]
        if not near:
            raise SettingError(f"no input acts on {model.states[group[0]]!r}; the model cannot be controlled")
        # of several blocks in a row that act on it, the last
        last = next(
            k for k in near if not any(reach[np.ix_(driven[o], driven[k])].any() for o in near if o != k)
        )
        homes[last] += group
    found = [(tuple(sorted(g)), tuple(np.flatnonzero(pushes[g].any(axis=0)).tolist())) for g in homes]
    ordered: list[tuple[tuple[int, ...], tuple[int, ...]]] = []
    while found:
        first = next(
            (b for b in found if not any(acts[np.ix_(b[0], o[0])].any() for o in found if o is not b)), None
        )
        if first is None:
            raise SettingError(
                "the model's blocks act on each other in a circle; their weights cannot be solved apart"
            )
        ordered.append(first)
        found.remove(first)
    return ordered


def _design(
    model: Lpv,
    box: Box,
    Q: Float[np.ndarray, "n n"],
    R: Float[np.ndarray, "m m"],
    method: Method,
    options: lpv_programs.PoleLimits,
    name: str,
) -> tuple[Float[np.ndarray, "vertices m n"], Float[np.ndarray, "n n"], float]:
    """Gains at the vertices, P, and the cost over that of the LQR at the middle, of one block."""
    vertices = box.vertices()
    A, B = (np.array(M) for M in zip(*(model.at(v)[:2] for v in vertices), strict=True))
    middle = model.at(box.centre)
    try:
        _, nominal = lqr(middle[0], middle[1], Q, R)
        local = np.array(
            [lqr(a + options.decay * np.eye(len(a)), b, Q, R)[0] for a, b in zip(A, B, strict=True)]
        )
    except SettingError:
        raise SettingError(
            f"the {name} cannot be stabilised at a corner of the ranges of {', '.join(box.names)}: narrow them"
        ) from None
    found = (
        lpv_programs.certify(A, B, local, Q, R, nominal, options)
        if method == "local"
        else lpv_programs.synthesise(A, B, Q, R, nominal, options)
    )
    if found is None or not (found.is_accurate or _passes(found, A, B, Q, R, options)):
        way = "narrow them, or try method='cost'" if method == "local" else "narrow them, or ask for less"
        raise SettingError(
            f"no quadratic Lyapunov function for the {name} over the ranges of {', '.join(box.names) or 'nothing'}: {way}"
        )
    return found.gains, found.P, found.cost


def _passes(
    found: lpv_programs.Solution,
    A: Float[np.ndarray, "v n n"],
    B: Float[np.ndarray, "v n m"],
    Q: Float[np.ndarray, "n n"],
    R: Float[np.ndarray, "m m"],
    options: lpv_programs.PoleLimits,
) -> bool:
    """Whether a solution satisfies the inequalities of its program, by eigenvalues: the bound of the cost with the decay rate
    at every vertex or pair, and the limits of the poles at every vertex."""
    shifted = A + options.decay * np.eye(len(Q))
    checked = verify(shifted, B, found.gains, found.P, Q, R)
    poles = np.linalg.eigvals(A + B @ found.gains)
    slow = options.fastest is None or bool((-poles.real <= options.fastest * (1.0 + _POLES)).all())
    damped = options.damping is None or bool(
        (-poles.real >= (options.damping - _POLES) * np.abs(poles)).all()
    )
    return checked.is_stable and checked.slack <= _SLACK and slow and damped


def _certify(
    model: Lpv,
    box: Box,
    blocks: tuple[Block, ...],
    parts: list[Float[np.ndarray, "_ _"]],
    Q: Float[np.ndarray, "n n"],
    R: Float[np.ndarray, "m m"],
) -> Certificate:
    """The check of the whole model; where blocks act on each other, with the scale between their parts of P that does best."""
    states = [b.states for b in blocks]
    acts = (model.A0 != 0) | (model.A != 0).any(axis=0)
    coupled = any(
        acts[np.ix_(a, b)].any() for i, a in enumerate(states) for j, b in enumerate(states) if i != j
    )
    best: Certificate | None = None
    for scale in _SCALES if coupled else (1.0,):
        P = np.zeros((len(model.states),) * 2)
        for k, (rows, part) in enumerate(zip(states, parts, strict=True)):
            P[np.ix_(rows, rows)] = scale**k * part
        found = _check(model, box, blocks, P, Q, R, coupled)
        if best is None or found.decay > best.decay:
            best = found
        if best.is_stable and found.decay < best.decay:
            break
    assert best is not None
    return best


def _check(
    model: Lpv,
    box: Box,
    blocks: tuple[Block, ...],
    P: Float[np.ndarray, "n n"],
    Q: Float[np.ndarray, "n n"],
    R: Float[np.ndarray, "m m"],
    coupled: bool,
) -> Certificate:
    groups = [tuple(range(len(blocks)))] if coupled else [(k,) for k in range(len(blocks))]
    most = float(np.linalg.eigvalsh(P)[-1])
    margin, decay, slack, pairs = -np.inf, np.inf, -np.inf, 0
    for group in groups:
        rows = [i for k in group for i in blocks[k].states]
        columns = [j for k in group for j in blocks[k].inputs]
        used = sorted({i for k in group for i in blocks[k].parameters})
        corners = np.tile(box.centre, (2 ** len(used), 1))
        corners[:, used] = Box(tuple(box.names[i] for i in used), box.lower[used], box.upper[used]).vertices()
        A, B = (np.array(M) for M in zip(*(model.at(v)[:2] for v in corners), strict=True))
        A, B = A[:, rows][:, :, rows], B[:, rows][:, :, columns]
        K = np.array([_gain_of([blocks[k] for k in group], v, rows, columns) for v in corners])
        seen = verify(A, B, K, P[np.ix_(rows, rows)], Q[np.ix_(rows, rows)], R[np.ix_(columns, columns)])
        margin, decay, slack = max(margin, seen.margin), min(decay, seen.decay), max(slack, seen.slack)
        pairs += seen.pairs
    return Certificate(P / most, margin / most, decay, slack, pairs)


def _gain_of(
    blocks: list[Block], rho: Float[np.ndarray, " k"], rows: list[int], columns: list[int]
) -> np.ndarray:
    K = np.zeros((len(columns), len(rows)))
    for block in blocks:
        alpha = block.box.coordinates(rho[list(block.parameters)])
        place = np.ix_([columns.index(j) for j in block.inputs], [rows.index(i) for i in block.states])
        K[place] = np.tensordot(alpha, block.gains, 1)
    return K


def verify(
    A: Float[np.ndarray, "v n n"],
    B: Float[np.ndarray, "v n m"],
    K: Float[np.ndarray, "v m n"],
    P: Float[np.ndarray, "n n"],
    Q: Float[np.ndarray, "n n"],
    R: Float[np.ndarray, "m m"],
) -> Certificate:
    """What P proves of the closed loops of these vertices: eigenvalues at every vertex, and at every pair where B varies.

    The margin is that of P as it is given; a P that is not positive definite proves nothing, and has none.
    """
    try:
        root = np.linalg.cholesky(P)
    except np.linalg.LinAlgError:
        return Certificate(P, math.inf, -math.inf, math.inf, 0)
    inverse = np.linalg.inv(root)
    weight = float(np.linalg.eigvalsh(Q)[-1])
    varying = bool(np.ptp(B, axis=0).any())
    margin, rate, slack, count = -np.inf, -np.inf, -np.inf, 0
    for i in range(len(A)):
        for j in range(i, len(A)) if varying else (i,):
            closed = 0.5 * (A[i] + B[i] @ K[j] + A[j] + B[j] @ K[i])
            L = closed.T @ P + P @ closed
            spent = Q + 0.5 * (K[i].T @ R @ K[i] + K[j].T @ R @ K[j])
            margin = max(margin, float(np.linalg.eigvalsh(L)[-1]))
            rate = max(rate, float(np.linalg.eigvalsh(inverse @ L @ inverse.T)[-1]))
            slack = max(slack, float(np.linalg.eigvalsh(L + spent)[-1]) / weight)
            count += 1
    return Certificate(P, margin, -0.5 * rate, slack, count)
