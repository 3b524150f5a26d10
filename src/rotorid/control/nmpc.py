"""Nonlinear model predictive control of any System, by real-time iterations on its manifold.

Over a horizon of N steps of dt seconds, from the present state x_0,

    minimise    sum_k  | x_k [-] xref_k |^2_W  +  | u_k - uref_k |^2_V       (the last state weighs more)
    subject to  x_{k+1} = step(x_k, u_k),    lower <= u_k <= upper,    and, where asked for, bounds on x_1 to x_N

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
from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Float64

from rotorid.control import multiple_shooting as shooting
from rotorid.errors import SettingError
from rotorid.geometry.spaces import Space
from rotorid.models.system import System

Weights = Mapping[str, float | tuple[float, ...]]
"""Weight of each block's tangent dimensions, per unit squared."""


@dataclasses.dataclass(frozen=True)
class Plan:
    """A solution, and the guess of the next one.

    states: x_0 to x_N. inputs: u_0 to u_{N-1}; u_0 is the control. solved: whether the program was solved;
    where it was not, the plan is the last one moved on in time. failures: how many calls in a row of guesses
    were not solved. seconds: time that the solution took.
    """

    states: Float64[np.ndarray, "knots size"]
    inputs: Float64[np.ndarray, "N inputs"]
    is_solved: bool = True
    failures: int = 0
    seconds: float = 0.0


class NMPC:
    """A controller of a System: a pure function of state, references and the last plan.

    horizon: number of steps N. dt: length of a step, s. state_weights, input_weights: by block name.
    input_bounds: by input block, lower and upper in its unit. state_bounds: by state block, which is no
    rotation; they are hard, and hold from x_1 on, so that a start a little outside is brought back at once, as
    far as the inputs can do that within one step. terminal: factor on the weights of the last state.
    parameters: values that differ from the System's priors; the controller knows no others. free: names of parameters that
    each call may set, as a vehicle's mass that is identified in flight; nothing is rebuilt for that.
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
        state_bounds: Mapping[str, tuple[float, float]] | None = None,
        terminal: float = 5.0,
        parameters: Mapping[str, float | tuple[float, ...]] | None = None,
        free: Sequence[str] = (),
    ) -> None:
        if horizon < 2 or dt <= 0:
            raise SettingError(
                f"a horizon of {horizon} steps of {dt:g} s: take 2 or more steps of positive length"
            )
        self.system, self.horizon, self.dt = system, horizon, dt
        W = _weights(system.states, state_weights, "state_weights")
        V = _weights(system.inputs, input_weights, "input_weights")
        bounds = np.full((system.inputs.size, 2), (-shooting.FREE, shooting.FREE))
        for name, limits in input_bounds.items():
            bounds[_slice(system.inputs, name, "input_bounds")] = limits
        self.lower, self.upper = bounds.T
        _check_state_bounds(system.states, state_bounds or {})
        self._move_on = shooting.shift_plan(system.states, system.inputs.size, horizon)
        known = {p.name: p.value for p in system.parameters} | dict(parameters or {})
        self._free = {system.parameter(name).name: known[name] for name in free}
        self._iterate = shooting.sqp_iteration(
            system,
            horizon,
            dt,
            W,
            V,
            terminal,
            bounds,
            dict(parameters or {}),
            dict(state_bounds or {}),
            free,
        )

    def guess(
        self,
        reference_states: Float64[np.ndarray, "knots size"],
        reference_inputs: Float64[np.ndarray, "N inputs"],
    ) -> Plan:
        """The plan to start from where there is none: the reference itself."""
        return Plan(np.array(reference_states), np.clip(reference_inputs, self.lower, self.upper))

    def solve(
        self,
        x: Float64[np.ndarray, " size"],
        reference_states: Float64[np.ndarray, "knots size"],
        reference_inputs: Float64[np.ndarray, "N inputs"],
        guess: Plan | None = None,
        *,
        elapsed: float = 0.0,
        iterations: int = 1,
        parameters: Mapping[str, float | tuple[float, ...]] | None = None,
    ) -> Plan:
        """The plan from state x. Row k of the references is wanted k dt from now.

        parameters: values of free ones from now on; those that are not given are as the controller was built.
        guess: the last plan, solved `elapsed` seconds ago. Without one, start from the reference; then more
        than one iteration is due. A program that cannot be solved gives the guess moved on in time, and
        counts in `failures`.
        """
        start = time.perf_counter()
        last = self.guess(reference_states, reference_inputs) if guess is None else guess
        moved = self._move_on(last.states.T, last.inputs.T, min(elapsed / self.dt, 1.0))
        states, inputs = (np.array(value) for value in moved)
        q = self._given(parameters or {})
        found = self._refine(x, states, inputs, (reference_states.T, reference_inputs.T, *q), iterations)
        states, inputs = found or (states, inputs)
        return Plan(
            states=states.T,
            inputs=np.clip(inputs.T, self.lower, self.upper),
            is_solved=found is not None,
            failures=0 if found else last.failures + 1,
            seconds=time.perf_counter() - start,
        )

    def _given(self, parameters: Mapping[str, float | tuple[float, ...]]) -> tuple[np.ndarray, ...]:
        """The free parameters' numbers, where there are any."""
        for name in parameters:
            if name not in self._free:
                raise SettingError(f"parameters: {name!r} is not free; name it in `free` of the controller")
        if not self._free:
            return ()
        return (
            np.concatenate([np.ravel(v) for v in (self._free | dict(parameters)).values()]).astype(float),
        )

    def _refine(
        self,
        x: Float64[np.ndarray, " size"],
        states: Float64[np.ndarray, "size knots"],
        inputs: Float64[np.ndarray, "inputs N"],
        given: tuple[np.ndarray, ...],
        iterations: int,
    ) -> tuple[np.ndarray, np.ndarray] | None:
        """States and inputs (as columns) after the iterations; None where one of them cannot be solved. given: references of
        states and inputs (as columns), and the free parameters where there are any."""
        if not all(np.isfinite(value).all() for value in (x, *given)):
            return None
        states = np.column_stack([x, states[:, 1:]])
        for _ in range(iterations):
            try:
                states, inputs, *_ = (np.array(value) for value in self._iterate(states, inputs, *given))
            except RuntimeError:  # CasADi's, of a program that is not one: numbers overflowed
                return None
            if not (np.isfinite(states).all() and np.isfinite(inputs).all()):
                return None
        return states, inputs


def _slice(space: Space, name: str, argument: str) -> slice:
    if name not in space:
        raise SettingError(f"{argument}: no block {name!r} (there are {', '.join(space)})")
    return space.tangent[name]


def _check_state_bounds(space: Space, bounds: Mapping[str, tuple[float, float]]) -> None:
    for name, (lower, upper) in bounds.items():
        _slice(space, name, "state_bounds")
        if space[name].rotation:
            raise SettingError(f"state_bounds: {name!r} is a rotation, which has none; bound another block")
        if not lower < upper:
            raise SettingError(
                f"state_bounds: {name!r} from {lower:g} to {upper:g}; give the lower one first"
            )


def _weights(space: Space, weights: Weights, argument: str) -> Float64[np.ndarray, " dim"]:
    values = np.zeros(space.dim)
    for name, weight in weights.items():
        values[_slice(space, name, argument)] = weight
    return values
