"""One Gauss-Newton iteration of multiple shooting on a manifold, as a CasADi function, for `nmpc`.

The quadratic program in the tangents (du_0, dx_1, du_1, ..., dx_N) has the cost J^T W J of each stage, the constraints
dx_{k+1} = A_k dx_k + B_k du_k + d_k, bounds on the inputs, and optional bounds on state blocks. HPIPM solves it stage
by stage.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import casadi as ca
import jax.numpy as jnp
import numpy as np

from rotorid.codegen.casadi import to_casadi
from rotorid.codegen.native import compiled
from rotorid.geometry.spaces import Space
from rotorid.models.system import System, Values, parameter_values
from rotorid.numerics import integrators

Step = Callable[[Values, Values, Values, float], Values]
"""(x, u, p, dt) -> x after dt seconds, by block."""

UNBOUNDED = 1e4
"""Bound of an unknown without bounds: the HPIPM interface of CasADi needs a finite bound of each unknown."""

_TINY = 1e-30
"""Initial value instead of 0: CasADi removes zeros, but its HPIPM interface needs all entries."""


@dataclasses.dataclass(frozen=True)
class _Stage:
    """One stage, linearised at (x, u, next x).

    symbols: x, u, next x, their references, and the free parameters, if there are any. columns: of the constraint
    matrix, [-I 0; A B], where dx_{k+1} = A dx + B du + gap. hessian, gradient: of the cost in (dx, du), J^T W J
    with J the Jacobian of (x [+] dx) [-] xref (Gauss-Newton).
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
    step: Step | None,
) -> _Stage:
    space, inputs = system.states, system.inputs
    n, m = space.dim, inputs.size
    sizes = [len(system.parameter(name).values) for name in free]

    def next_state(x, u, q):
        p = parameter_values(system, **parameters)
        parts = jnp.split(q, np.cumsum(sizes)[:-1]) if free else []
        p |= {name: part.reshape(p[name].shape) for name, part in zip(free, parts, strict=True)}
        if step is not None:
            return space.pack(step(space.unpack(x), inputs.unpack(u), p, dt))
        rate = lambda x: space.pack_tangent(system.dynamics(space.unpack(x), inputs.unpack(u), p))  # noqa: E731
        solved = system.solve_lags(space.unpack(x), inputs.unpack(u), p, dt)
        return integrators.step_with_solved(space, rate, x, dt, solved)

    def gap_of(x, u, x_next, dx, du, q):
        return space.minus(next_state(space.plus(x, dx), u + du, q), x_next)

    def error_of(x, reference, dx):
        return space.minus(space.plus(x, dx), reference)

    point, tangent, control = np.array(space.initial()), np.zeros(n), np.zeros(m)
    x, x_next, xref = (ca.SX.sym(name, space.size) for name in ("x", "x_next", "xref"))
    u, uref, du, dx = ca.SX.sym("u", m), ca.SX.sym("uref", m), ca.SX.sym("du", m), ca.SX.sym("dx", n)
    q = ca.SX.sym("q", sum(sizes))
    gap = to_casadi(gap_of, point, control, point, tangent, control, np.zeros(sum(sizes)))(
        x, u, x_next, dx, du, q
    )
    error = to_casadi(error_of, point, point, tangent)(x, xref, dx)
    expressions = [ca.jacobian(gap, dx), ca.jacobian(gap, du), ca.jacobian(error, dx), gap, error]
    A, B, J, gap, error = ca.substitute(expressions, [dx, du], [ca.SX.zeros(n), ca.SX.zeros(m)])
    A, B, J = (ca.sparsify(matrix) for matrix in (A, B, J))
    return _Stage(
        symbols=[x, u, x_next, xref, uref, *([q] if free else [])],
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
    step: Step | None = None,
) -> ca.Function:
    """One iteration: (states, inputs, reference states, reference inputs) -> (states, inputs, multipliers).

    All stages are evaluated by one function. Their concatenated nonzeros are the nonzeros of the matrices of the program
    in the column order of CasADi.

    Args:
        system: the model.
        N, dt: number and length (s) of the steps.
        W, V: weights of the tangent dimensions of states and inputs.
        terminal: factor on W at the last state.
        bounds: lower and upper bound of each input.
        parameters: values that differ from the priors of the System.
        state_bounds: lower and upper bound by vector block, for x_1 to x_N.
        free: names of parameters; their values are one additional argument, a vector in that order.
        step: discrete model; None: a Runge-Kutta step of the dynamics, with lags in closed form.
    """
    space, n, m = system.states, system.states.dim, system.inputs.size
    stage = _stage(system, dt, W, V, parameters, free, step)
    outputs = [_nonzeros(stage.columns), stage.gap, _nonzeros(stage.hessian), stage.gradient]
    evaluate = compiled(ca.Function("stage", stage.symbols, outputs, {"cse": True})).map(N)
    plus = to_casadi(space.plus, np.array(space.initial()), np.zeros(n), name="plus").map(N)

    states, inputs = ca.MX.sym("states", space.size, N + 1), ca.MX.sym("inputs", m, N)
    state_reference, input_reference = ca.MX.sym("xref", space.size, N + 1), ca.MX.sym("uref", m, N)
    free_values = [ca.MX.sym("q", symbol.numel()) for symbol in stage.symbols[5:]]
    columns, gap, hessian, gradient = evaluate(
        states[:, :-1], inputs, states[:, 1:], state_reference[:, :-1], input_reference,
        *(ca.repmat(q, 1, N) for q in free_values),
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
    unbounded = ca.DM.ones(n, N) * UNBOUNDED
    state_lower, state_upper = _step_bounds(space, state_bounds, states[:, 1:], -unbounded, unbounded)
    solution = _solver(A, H, N, n, m)(
        h=ca.sparsity_cast(h, H),
        g=g,
        a=ca.sparsity_cast(a, A),
        lba=-ca.vec(gap),
        uba=-ca.vec(gap),
        lbx=ca.vec(ca.vertcat(ca.reshape(lower, m, N), state_lower)),
        ubx=ca.vec(ca.vertcat(ca.reshape(upper, m, N), state_upper)),
        x0=ca.DM(np.full(N * (n + m), _TINY)),
        lam_x0=ca.DM(np.full(N * (n + m), _TINY)),
        lam_a0=ca.DM(np.full(N * n, _TINY)),
    )
    unknowns = ca.reshape(solution["x"], m + n, N)
    new_states = ca.horzcat(states[:, 0], plus(states[:, 1:], unknowns[m:, :]))
    return ca.Function(
        "iterate",
        [states, inputs, state_reference, input_reference, *free_values],
        [
            new_states,
            inputs + unknowns[:m, :],
            solution["lam_x"],
            solution["lam_a"],
        ],
    )


def _step_bounds(
    space: Space,
    state_bounds: Mapping[str, tuple[float, float]],
    states: ca.MX,
    default_lower: ca.DM,
    default_upper: ca.DM,
) -> tuple[Any, Any]:
    """Bounds of the steps of the states, one column for each stage: bound minus state, or the default for other blocks."""
    if not state_bounds:
        return default_lower, default_upper
    step_lower, step_upper = ca.MX(default_lower), ca.MX(default_upper)
    for name, (lower, upper) in state_bounds.items():
        step_lower[space.tangent[name], :] = lower - states[space.stored[name], :]
        step_upper[space.tangent[name], :] = upper - states[space.stored[name], :]
    return step_lower, step_upper


def _patterns(stage: _Stage, N: int, n: int, m: int) -> tuple[ca.Sparsity, ca.Sparsity]:
    """Sparsity of the constraint matrix and of the Hessian over (u_0, x_1, u_1, ..., x_N)."""
    A = ca.DM(N * n, N * (n + m) + n)  # with the columns of x_0, which are removed below
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
        "inputs_check": False,  # it would print the whole program to stderr after an overflow
        "print_time": False,
    }
    return ca.conic("program", "hpipm", {"h": H, "a": A}, options)


def shift_plan(space: Space, m: int, N: int) -> ca.Function:
    """(states, inputs, part) -> (states, inputs), shifted in time by a part of a step; the last ones are repeated."""

    def interpolate(a, b, part):
        return space.plus(a, part * space.minus(b, a))

    point = np.array(space.initial())
    shift = to_casadi(interpolate, point, point, 0.0, name="interpolate").map(N)
    states, inputs, part = (
        ca.MX.sym("states", space.size, N + 1),
        ca.MX.sym("inputs", m, N),
        ca.MX.sym("part"),
    )
    later = ca.horzcat(inputs[:, 1:], inputs[:, -1])
    shifted = ca.horzcat(shift(states[:, :-1], states[:, 1:], part), states[:, -1])
    return ca.Function("shift_plan", [states, inputs, part], [shifted, inputs + part * (later - inputs)])


def _nonzeros(matrix: ca.SX | ca.MX) -> Any:
    return matrix.nz[:]
