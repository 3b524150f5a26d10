"""One Gauss-Newton iteration of multiple shooting on a manifold, as a CasADi function: the engine of `nmpc`.

The quadratic program in the tangents (du_0, dx_1, du_1, ..., dx_N) has the cost J^T W J of every stage, the gaps
dx_{k+1} = A_k dx_k + B_k du_k + d_k, and bounds on the inputs, and on state blocks where asked for. HPIPM solves it stage
by stage.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import casadi as ca
import jax.numpy as jnp
import numpy as np

from rotorid.codegen.casadi import to_casadi
from rotorid.codegen.native import compiled
from rotorid.geometry.spaces import Space
from rotorid.models.system import System, parameter_values
from rotorid.numerics import integrators

FREE = 1e4
"""Bound on an unbounded unknown: HPIPM through CasADi takes a finite one on each."""

_TINY = 1e-30
"""A start at zero that CasADi does not drop: its HPIPM interface needs every input and output to exist."""


@dataclasses.dataclass(frozen=True)
class _Stage:
    """One stage, linearised at (x, u, following) with references, as columns of the quadratic program; last of the symbols are
    the free parameters, where there are any.

    columns: of the constraint matrix, [-I 0; A B], where dx_{k+1} = A dx + B du + gap. hessian, gradient: of
    the cost in (dx, du), J^T W J with J the Jacobian of (x [+] dx) [-] xref (Gauss-Newton).
    """

    symbols: list[ca.SX]
    columns: ca.SX
    gap: ca.SX
    hessian: ca.SX
    gradient: ca.SX


def _stage(
    system: System,
    dt: float,
    W: np.ndarray,
    V: np.ndarray,
    parameters: Mapping[str, Any],
    free: Sequence[str],
) -> _Stage:
    space, inputs = system.states, system.inputs
    n, m = space.dim, inputs.size
    sizes = [len(system.parameter(name).values) for name in free]

    def step(x, u, q):
        p = parameter_values(system, **parameters)
        parts = jnp.split(q, np.cumsum(sizes)[:-1]) if free else []
        p |= {name: part.reshape(p[name].shape) for name, part in zip(free, parts, strict=True)}
        rate = lambda x: space.pack_tangent(system.dynamics(space.unpack(x), inputs.unpack(u), p))  # noqa: E731
        return integrators.step(space, rate, x, dt)

    def gap_of(x, u, following, dx, du, q):
        return space.minus(step(space.plus(x, dx), u + du, q), following)

    def error_of(x, reference, dx):
        return space.minus(space.plus(x, dx), reference)

    point, tangent, control = np.array(space.initial()), np.zeros(n), np.zeros(m)
    x, following, xref = (ca.SX.sym(name, space.size) for name in ("x", "following", "xref"))
    u, uref, du, dx = ca.SX.sym("u", m), ca.SX.sym("uref", m), ca.SX.sym("du", m), ca.SX.sym("dx", n)
    q = ca.SX.sym("q", sum(sizes))
    gap = to_casadi(gap_of, point, control, point, tangent, control, np.zeros(sum(sizes)))(
        x, u, following, dx, du, q
    )
    error = to_casadi(error_of, point, point, tangent)(x, xref, dx)
    expressions = [ca.jacobian(gap, dx), ca.jacobian(gap, du), ca.jacobian(error, dx), gap, error]
    A, B, J, gap, error = ca.substitute(expressions, [dx, du], [ca.SX.zeros(n), ca.SX.zeros(m)])
    A, B, J = (ca.sparsify(matrix) for matrix in (A, B, J))
    return _Stage(
        symbols=[x, u, following, xref, uref, *([q] if free else [])],
        columns=ca.blockcat([[-ca.SX.eye(n), ca.SX(n, m)], [A, B]]),
        gap=gap,
        hessian=ca.diagcat(J.T @ ca.diag(ca.SX(W)) @ J, ca.diag(ca.SX(V))),
        gradient=ca.vertcat(J.T @ (ca.SX(W) * error), ca.SX(V) * (u - uref)),
    )


def sqp_iteration(
    system: System,
    N: int,
    dt: float,
    W: np.ndarray,
    V: np.ndarray,
    terminal: float,
    bounds: np.ndarray,
    parameters: Mapping[str, Any],
    state_bounds: Mapping[str, tuple[float, float]],
    free: Sequence[str] = (),
) -> ca.Function:
    """One iteration: (states, inputs, reference states, reference inputs) -> (states, inputs, multipliers).

    free: names of parameters that are one more argument, a vector of their numbers in that order.

    W, V: weights of the states' and inputs' tangent dimensions. terminal: factor on W at the last state.
    bounds: lower and upper of each input. state_bounds: of the vector blocks named, in x_1 to x_N. All stages are
    evaluated by one function, and their nonzeros, laid one after the other, are those of the program's matrices
    in CasADi's order (by columns).
    """
    space, n, m = system.states, system.states.dim, system.inputs.size
    stage = _stage(system, dt, W, V, parameters, free)
    outputs = [_nonzeros(stage.columns), stage.gap, _nonzeros(stage.hessian), stage.gradient]
    evaluate = compiled(ca.Function("stage", stage.symbols, outputs, {"cse": True})).map(N)
    plus = to_casadi(space.plus, np.array(space.initial()), np.zeros(n), name="plus").map(N)

    states, inputs = ca.MX.sym("states", space.size, N + 1), ca.MX.sym("inputs", m, N)
    state_reference, input_reference = ca.MX.sym("xref", space.size, N + 1), ca.MX.sym("uref", m, N)
    given = [ca.MX.sym("q", symbol.numel()) for symbol in stage.symbols[5:]]
    columns, gap, hessian, gradient = evaluate(
        states[:, :-1], inputs, states[:, 1:], state_reference[:, :-1], input_reference,
        *(ca.repmat(q, 1, N) for q in given),
    )  # fmt: skip
    cost = ca.Function(
        "terminal", [stage.symbols[0], stage.symbols[3]], [stage.hessian[:n, :n], stage.gradient[:n]]
    )
    last_hessian, last_gradient = cost(states[:, -1], state_reference[:, -1])

    A, H = _patterns(stage, N, n, m)
    skip_columns, skip_hessian = (stage.columns[:, :n].nnz(), stage.hessian[:n, :n].nnz())
    a = ca.vertcat(ca.vec(columns)[skip_columns:], -ca.MX.ones(n))
    h = ca.vertcat(ca.vec(hessian)[skip_hessian:], terminal * _nonzeros(last_hessian))
    g = ca.vertcat(ca.vec(gradient)[n:], terminal * last_gradient)
    lower, upper = (ca.vec(limit - inputs) for limit in (ca.DM(bounds[:, 0]), ca.DM(bounds[:, 1])))
    unbounded = ca.DM.ones(n, N) * FREE
    lowest, highest = _limits(space, state_bounds, states[:, 1:], -unbounded, unbounded)
    solution = _solver(A, H, N, n, m)(
        h=ca.sparsity_cast(h, H),
        g=g,
        a=ca.sparsity_cast(a, A),
        lba=-ca.vec(gap),
        uba=-ca.vec(gap),
        lbx=ca.vec(ca.vertcat(ca.reshape(lower, m, N), lowest)),
        ubx=ca.vec(ca.vertcat(ca.reshape(upper, m, N), highest)),
        x0=ca.DM(np.full(N * (n + m), _TINY)),
        lam_x0=ca.DM(np.full(N * (n + m), _TINY)),
        lam_a0=ca.DM(np.full(N * n, _TINY)),
    )
    step = ca.reshape(solution["x"], m + n, N)
    new_states = ca.horzcat(states[:, 0], plus(states[:, 1:], step[m:, :]))
    return ca.Function(
        "iterate",
        [states, inputs, state_reference, input_reference, *given],
        [
            new_states,
            inputs + step[:m, :],
            solution["lam_x"],
            solution["lam_a"],
        ],
    )


def _limits(
    space: Space,
    state_bounds: Mapping[str, tuple[float, float]],
    states: ca.MX,
    lowest: ca.DM,
    highest: ca.DM,
) -> tuple[Any, Any]:
    """Bounds of the states' steps, one column a stage: what is left to the bound of a block, else `lowest` and `highest`."""
    if not state_bounds:
        return lowest, highest
    down, up = ca.MX(lowest), ca.MX(highest)
    for name, (lower, upper) in state_bounds.items():
        down[space.tangent[name], :] = lower - states[space.stored[name], :]
        up[space.tangent[name], :] = upper - states[space.stored[name], :]
    return down, up


def _patterns(stage: _Stage, N: int, n: int, m: int) -> tuple[ca.Sparsity, ca.Sparsity]:
    """Sparsity of the constraint matrix and of the Hessian over (u_0, x_1, u_1, ..., x_N)."""
    A = ca.DM(N * n, N * (n + m) + n)  # with x_0, cut off below
    columns, hessian = ca.DM(stage.columns.sparsity(), 1.0), ca.DM(stage.hessian.sparsity(), 1.0)
    for k in range(N):
        rows, start = slice(k * n, (k + 1) * n), k * (n + m)
        A[rows, start : start + n + m] = columns[n:, :]
        A[rows, start + n + m : start + n + m + n] = columns[:n, :n]
    H = ca.diagcat(*[hessian] * N, hessian[:n, :n])
    return A[:, n:].sparsity(), H[n:, n:].sparsity()


def _solver(A: ca.Sparsity, H: ca.Sparsity, N: int, n: int, m: int) -> ca.Function:
    options = {
        "N": N,
        "nx": [0] + [n] * N,
        "nu": [m] * N + [0],
        "ng": [0] * (N + 1),
        "hpipm": {"mode": "speed", "iter_max": 30} | {f"res_{kind}_max": 1e-7 for kind in "gbdm"},
        "error_on_fail": False,
        "print_time": False,
    }
    return ca.conic("program", "hpipm", {"h": H, "a": A}, options)


def shift_plan(space: Space, m: int, N: int) -> ca.Function:
    """(states, inputs, part) -> (states, inputs) seen from a part of a step later; the last ones stay."""

    def between(a, b, part):
        return space.plus(a, part * space.minus(b, a))

    point = np.array(space.initial())
    shift = to_casadi(between, point, point, 0.0, name="between").map(N)
    states, inputs, part = (
        ca.MX.sym("states", space.size, N + 1),
        ca.MX.sym("inputs", m, N),
        ca.MX.sym("part"),
    )
    later = ca.horzcat(inputs[:, 1:], inputs[:, -1])
    moved = ca.horzcat(shift(states[:, :-1], states[:, 1:], part), states[:, -1])
    return ca.Function("move_on", [states, inputs, part], [moved, inputs + part * (later - inputs)])


def _nonzeros(matrix: ca.SX | ca.MX) -> Any:
    return matrix.nz[:]
