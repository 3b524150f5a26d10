"""Nonlinear model predictive control of any System, by real-time iterations on its manifold.

Over a horizon of N steps of dt seconds, from the present state x_0,

    minimise    sum_k  | x_k [-] xref_k |^2_W  +  | u_k - uref_k |^2_V       (the last state weighs more)
    subject to  x_{k+1} = step(x_k, u_k),    lower <= u_k <= upper

by multiple shooting. Each iteration is a Gauss-Newton step of sequential quadratic programming in the tangent
spaces, x_k <- x_k [+] dx_k, so that a rotation takes three unknowns and stays a rotation. The quadratic
program goes to HPIPM in the order that it solves stage by stage (u_0, x_1, u_1, ..., x_N; x_0 is known). One
iteration per call is enough where the last plan, moved on in time, is the next guess.

Reference: M. Diehl, H. G. Bock, J. P. Schlöder, A real-time iteration scheme for nonlinear optimization in
optimal feedback control, SIAM J. Control Optim. 43 (2005) 1714-1736; G. Frison, M. Diehl, HPIPM,
IFAC-PapersOnLine 53 (2020).
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Mapping
from typing import Any

import casadi as ca
import numpy as np
from jaxtyping import Float64

from rotorid.errors import SettingError
from rotorid.export.casadi import to_casadi
from rotorid.geometry.spaces import Space
from rotorid.models.system import System, parameter_values
from rotorid.numerics import integrators

_FREE = 1e4
"""Bound on an unbounded unknown: HPIPM through CasADi takes a finite one on each."""
_TINY = 1e-30
"""A start at zero that CasADi does not drop: its HPIPM interface needs every input (and every output) to
exist."""

Weights = Mapping[str, float | tuple[float, ...]]
"""Weight of each block's tangent dimensions, per unit squared."""


@dataclasses.dataclass(frozen=True)
class Plan:
    """A solution, and the guess of the next one.

    states: x_0 to x_N. inputs: u_0 to u_{N-1}; u_0 is the control. solved: whether the program was solved;
    where it was not, the plan is the last one moved on in time. failures: how many calls in a row of guesses
    were not solved. seconds: time that the solution took.
    """

    states: Float64[np.ndarray, "N+1 size"]
    inputs: Float64[np.ndarray, "N inputs"]
    solved: bool = True
    failures: int = 0
    seconds: float = 0.0


class NMPC:
    """A controller of a System: a pure function of state, references and the last plan.

    horizon: number of steps N. dt: length of a step, s. state_weights, input_weights: by block name.
    input_bounds: by input block, lower and upper in its unit. terminal: factor on the weights of the last
    state. parameters: values that differ from the System's priors; the controller knows no others.
    """

    def __init__(
        self,
        system: System,
        *,
        horizon: int = 20,
        dt: float = 0.05,
        state_weights: Weights,
        input_weights: Weights,
        input_bounds: Mapping[str, tuple[float, float]],
        terminal: float = 5.0,
        parameters: Mapping[str, float | tuple[float, ...]] | None = None,
    ) -> None:
        if horizon < 2 or dt <= 0:
            raise SettingError(
                f"a horizon of {horizon} steps of {dt:g} s: take 2 or more steps of positive length"
            )
        self.system, self.horizon, self.dt = system, horizon, dt
        W = _weights(system.states, state_weights, "state_weights")
        V = _weights(system.inputs, input_weights, "input_weights")
        bounds = np.full((system.inputs.size, 2), (-_FREE, _FREE))
        for name, limits in input_bounds.items():
            bounds[_slice(system.inputs, name, "input_bounds")] = limits
        self.lower, self.upper = bounds.T
        self._iterate = _program(system, horizon, dt, W, V, terminal, bounds, dict(parameters or {}))

    def guess(
        self,
        reference_states: Float64[np.ndarray, "N+1 size"],
        reference_inputs: Float64[np.ndarray, "N inputs"],
    ) -> Plan:
        """The plan to start from where there is none: the reference itself."""
        return Plan(np.array(reference_states), np.clip(reference_inputs, self.lower, self.upper))

    def solve(
        self,
        x: Float64[np.ndarray, " size"],
        reference_states: Float64[np.ndarray, "N+1 size"],
        reference_inputs: Float64[np.ndarray, "N inputs"],
        guess: Plan | None = None,
        *,
        elapsed: float = 0.0,
        iterations: int = 1,
    ) -> Plan:
        """The plan from state x. Row k of the references is wanted k dt from now.

        guess: the last plan, solved `elapsed` seconds ago. Without one, start from the reference; then more
        than one iteration is due. A program that cannot be solved gives the guess moved on in time, and
        counts in `failures`.
        """
        start = time.perf_counter()
        last = self.guess(reference_states, reference_inputs) if guess is None else guess
        moved = min(elapsed / self.dt, 1.0)
        states, inputs = last.states.T, last.inputs.T
        solved = True
        for i in range(iterations):
            states, inputs, kept_states, kept_inputs, *_ = self._iterate(
                x, states, inputs, moved if i == 0 else 0.0, reference_states.T, reference_inputs.T
            )
            solved = bool(np.isfinite(np.asarray(inputs)).all() and np.isfinite(np.asarray(states)).all())
            if not solved:
                states, inputs = kept_states, kept_inputs
                break
        return Plan(
            states=np.array(states).T,
            inputs=np.clip(np.array(inputs).T, self.lower, self.upper),
            solved=solved,
            failures=0 if solved else last.failures + 1,
            seconds=time.perf_counter() - start,
        )


def _slice(space: Space, name: str, argument: str) -> slice:
    if name not in space:
        raise SettingError(f"{argument}: no block {name!r} (there are {', '.join(space)})")
    return space.tangent[name]


def _weights(space: Space, weights: Weights, argument: str) -> Float64[np.ndarray, " dim"]:
    values = np.zeros(space.dim)
    for name, weight in weights.items():
        values[_slice(space, name, argument)] = weight
    return values


@dataclasses.dataclass(frozen=True)
class _Stage:
    """One stage, linearised at (x, u, following) with references, as columns of the quadratic program.

    columns: of the constraint matrix, [-I 0; A B], where dx_{k+1} = A dx + B du + gap. hessian, gradient: of
    the cost in (dx, du), J^T W J with J the Jacobian of (x [+] dx) [-] xref (Gauss-Newton).
    """

    symbols: list[ca.SX]
    columns: ca.SX
    gap: ca.SX
    hessian: ca.SX
    gradient: ca.SX


def _stage(system: System, dt: float, W: np.ndarray, V: np.ndarray, parameters: Mapping[str, Any]) -> _Stage:
    space, inputs = system.states, system.inputs
    n, m = space.dim, inputs.size

    def step(x, u):
        p = parameter_values(system, **parameters)
        rate = lambda x: space.pack_tangent(system.dynamics(space.unpack(x), inputs.unpack(u), p))  # noqa: E731
        return integrators.step(space, rate, x, dt)

    def gap_of(x, u, following, dx, du):
        return space.minus(step(space.plus(x, dx), u + du), following)

    def error_of(x, reference, dx):
        return space.minus(space.plus(x, dx), reference)

    point, tangent, control = np.array(space.initial()), np.zeros(n), np.zeros(m)
    x, following, xref = (ca.SX.sym(name, space.size) for name in ("x", "following", "xref"))
    u, uref, du, dx = ca.SX.sym("u", m), ca.SX.sym("uref", m), ca.SX.sym("du", m), ca.SX.sym("dx", n)
    gap = to_casadi(gap_of, point, control, point, tangent, control)(x, u, following, dx, du)
    error = to_casadi(error_of, point, point, tangent)(x, xref, dx)
    expressions = [ca.jacobian(gap, dx), ca.jacobian(gap, du), ca.jacobian(error, dx), gap, error]
    A, B, J, gap, error = ca.substitute(expressions, [dx, du], [ca.SX.zeros(n), ca.SX.zeros(m)])
    A, B, J = (ca.sparsify(matrix) for matrix in (A, B, J))
    return _Stage(
        symbols=[x, u, following, xref, uref],
        columns=ca.blockcat([[-ca.SX.eye(n), ca.SX(n, m)], [A, B]]),
        gap=gap,
        hessian=ca.diagcat(J.T @ ca.diag(ca.SX(W)) @ J, ca.diag(ca.SX(V))),
        gradient=ca.vertcat(J.T @ (ca.SX(W) * error), ca.SX(V) * (u - uref)),
    )


def _program(
    system: System,
    N: int,
    dt: float,
    W: np.ndarray,
    V: np.ndarray,
    terminal: float,
    bounds: np.ndarray,
    parameters: Mapping[str, Any],
) -> ca.Function:
    """One iteration: (x, states, inputs, moved, references) -> (states, inputs, and both only moved on in
    time).

    `moved` is the part of a step by which the guess is older than x. All stages are evaluated by one
    function, and their nonzeros, laid one after the other, are those of the program's matrices in CasADi's
    order (by columns).
    """
    space, n, m = system.states, system.states.dim, system.inputs.size
    stage = _stage(system, dt, W, V, parameters)
    outputs = [_nonzeros(stage.columns), stage.gap, _nonzeros(stage.hessian), stage.gradient]
    evaluate = ca.Function("stage", stage.symbols, outputs, {"cse": True}).map(N)
    plus, shift = _plus(space).map(N), _shift(space).map(N)

    x = ca.MX.sym("x", space.size)
    states, inputs = ca.MX.sym("states", space.size, N + 1), ca.MX.sym("inputs", m, N)
    state_reference, input_reference = ca.MX.sym("xref", space.size, N + 1), ca.MX.sym("uref", m, N)
    moved = ca.MX.sym("moved")

    ahead = shift(states[:, :-1], states[:, 1:], moved)
    kept_states = ca.horzcat(x, ahead[:, 1:], states[:, -1])
    kept_inputs = inputs + moved * (ca.horzcat(inputs[:, 1:], inputs[:, -1]) - inputs)

    columns, gap, hessian, gradient = evaluate(
        kept_states[:, :-1], kept_inputs, kept_states[:, 1:], state_reference[:, :-1], input_reference
    )
    cost = ca.Function(
        "terminal", [stage.symbols[0], stage.symbols[3]], [stage.hessian[:n, :n], stage.gradient[:n]]
    )
    last_hessian, last_gradient = cost(kept_states[:, -1], state_reference[:, -1])

    A, H = _patterns(stage, N, n, m)
    skip_columns, skip_hessian = (stage.columns[:, :n].nnz(), stage.hessian[:n, :n].nnz())
    a = ca.vertcat(ca.vec(columns)[skip_columns:], -ca.MX.ones(n))
    h = ca.vertcat(ca.vec(hessian)[skip_hessian:], terminal * _nonzeros(last_hessian))
    g = ca.vertcat(ca.vec(gradient)[n:], terminal * last_gradient)
    lower, upper = (ca.vec(limit - kept_inputs) for limit in (ca.DM(bounds[:, 0]), ca.DM(bounds[:, 1])))
    free = ca.DM.ones(n, N) * _FREE
    solution = _solver(A, H, N, n, m)(
        h=ca.sparsity_cast(h, H),
        g=g,
        a=ca.sparsity_cast(a, A),
        lba=-ca.vec(gap),
        uba=-ca.vec(gap),
        lbx=ca.vec(ca.vertcat(ca.reshape(lower, m, N), -free)),
        ubx=ca.vec(ca.vertcat(ca.reshape(upper, m, N), free)),
        x0=ca.DM(np.full(N * (n + m), _TINY)),
        lam_x0=ca.DM(np.full(N * (n + m), _TINY)),
        lam_a0=ca.DM(np.full(N * n, _TINY)),
    )
    step = ca.reshape(solution["x"], m + n, N)
    new_states = ca.horzcat(x, plus(kept_states[:, 1:], step[m:, :]))
    return ca.Function(
        "iterate",
        [x, states, inputs, moved, state_reference, input_reference],
        [
            new_states,
            kept_inputs + step[:m, :],
            kept_states,
            kept_inputs,
            solution["lam_x"],
            solution["lam_a"],
        ],
    )


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


def _plus(space: Space) -> ca.Function:
    return to_casadi(space.plus, np.array(space.initial()), np.zeros(space.dim), name="plus")


def _shift(space: Space) -> ca.Function:
    """The point that is a part of the way from one to the next."""

    def between(a, b, part):
        return space.plus(a, part * space.minus(b, a))

    point = np.array(space.initial())
    return to_casadi(between, point, point, 0.0, name="shift")


def _nonzeros(matrix: ca.SX | ca.MX) -> Any:
    return matrix.nz[:]
