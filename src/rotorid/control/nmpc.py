"""Nonlinear model predictive control of any System, by real-time iterations on its manifold.

Over a horizon of N steps of dt seconds, from the current state x_0,

    minimise    sum_k  | x_k [-] xref_k |^2_W  +  | u_k - uref_k |^2_V       (with a larger weight of the last state)
    subject to  x_{k+1} = step(x_k, u_k),    lower <= u_k <= upper,    and optional bounds on x_1 to x_N

by multiple shooting. Each iteration is a Gauss-Newton step of sequential quadratic programming in the tangent
spaces, x_k <- x_k [+] dx_k, so a rotation has three unknowns and remains a rotation. The unknowns of the
quadratic program have the stage order of HPIPM (u_0, x_1, u_1, ..., x_N; x_0 is known). One iteration per call
is sufficient if the initial guess is the previous plan, shifted in time.

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
"""Weight of the tangent dimensions of each block, per unit squared."""


@dataclasses.dataclass(frozen=True)
class Plan:
    """A solution, and the initial guess for the next one.

    states: x_0 to x_N. inputs: u_0 to u_{N-1}; u_0 is the control. is_solved: whether the program was solved;
    otherwise the plan is the previous one, shifted in time. failures: number of consecutive calls without a
    solution. seconds: computation time.
    """

    states: Float64[np.ndarray, "knots size"]
    inputs: Float64[np.ndarray, "N inputs"]
    is_solved: bool = True
    failures: int = 0
    seconds: float = 0.0


class NMPC:
    """A controller of a System: a pure function of state, references and the previous plan.

    horizon: number of steps N. dt: length of a step, s. state_weights, input_weights: by block name.
    input_bounds: lower and upper bound by input block, in its unit. state_bounds: by state block, not for
    rotations. They are hard bounds on x_1 to x_N: from an initial state outside the bounds, x_1 must be inside,
    if the inputs permit that within one step. terminal: factor on the weights of the last state. parameters:
    values that differ from the priors of the System. free: names of parameters that can be set at each call, for
    example the tracked mass of a vehicle, without building the controller again. step: discrete model of the System, for
    one whose fastest time constant is below about half of dt; None: a Runge-Kutta step of its dynamics, in which the lags that
    the System solves may be of any length.
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
        step: shooting.Step | None = None,
    ) -> None:
        if horizon < 2 or dt <= 0:
            raise SettingError(
                f"a horizon of {horizon} steps of {dt:g} s: use 2 or more steps of positive length"
            )
        self.system, self.horizon, self.dt = system, horizon, dt
        W = _weights(system.states, state_weights, "state_weights")
        V = _weights(system.inputs, input_weights, "input_weights")
        bounds = np.full((system.inputs.size, 2), (-shooting.UNBOUNDED, shooting.UNBOUNDED))
        for name, limits in input_bounds.items():
            bounds[_slice(system.inputs, name, "input_bounds")] = limits
        self.lower, self.upper = bounds.T
        _check_state_bounds(system.states, state_bounds or {})
        self._shift = shooting.shift_plan(system.states, system.inputs.size, horizon)
        values = {p.name: p.value for p in system.parameters} | dict(parameters or {})
        self._free = {system.parameter(name).name: values[name] for name in free}
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
            step,
        )

    def guess(
        self,
        reference_states: Float64[np.ndarray, "knots size"],
        reference_inputs: Float64[np.ndarray, "N inputs"],
    ) -> Plan:
        """The initial guess without a previous plan: the reference."""
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
        """Compute the plan from state x.

        Args:
            x: current state, packed.
            reference_states, reference_inputs: row k: k dt from now.
            guess: the previous plan; None: the reference is the initial guess, and several iterations are
                needed.
            elapsed: time since the previous plan, s.
            iterations: number of Gauss-Newton steps.
            parameters: values of free parameters; the others have the values given to the controller.
        Returns:
            The plan. If the program cannot be solved: the guess, shifted in time, with `failures` increased.
        Raises:
            SettingError: a parameter is not free.
        """
        start = time.perf_counter()
        previous = self.guess(reference_states, reference_inputs) if guess is None else guess
        shifted = self._shift(previous.states.T, previous.inputs.T, min(elapsed / self.dt, 1.0))
        states, inputs = (np.array(value) for value in shifted)
        q = self._free_values(parameters or {})
        solution = self._refine(x, states, inputs, (reference_states.T, reference_inputs.T, *q), iterations)
        states, inputs = solution or (states, inputs)
        return Plan(
            states=states.T,
            inputs=np.clip(inputs.T, self.lower, self.upper),
            is_solved=solution is not None,
            failures=0 if solution else previous.failures + 1,
            seconds=time.perf_counter() - start,
        )

    def _free_values(self, parameters: Mapping[str, float | tuple[float, ...]]) -> tuple[np.ndarray, ...]:
        """The values of the free parameters as one vector, if there are any."""
        for name in parameters:
            if name not in self._free:
                raise SettingError(f"parameters: {name!r} is not free; add it to `free` of the controller")
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
        arguments: tuple[np.ndarray, ...],
        iterations: int,
    ) -> tuple[np.ndarray, np.ndarray] | None:
        """States and inputs (as columns) after the iterations; None if an iteration cannot be solved. arguments:
        references of states and inputs (as columns), and the free parameters, if there are any."""
        if not all(np.isfinite(value).all() for value in (x, *arguments)):
            return None
        states = np.column_stack([x, states[:, 1:]])
        for _ in range(iterations):
            try:
                states, inputs, *_ = (np.array(value) for value in self._iterate(states, inputs, *arguments))
            except RuntimeError:  # of CasADi: the matrices of the program are not valid after an overflow
                return None
            if not (np.isfinite(states).all() and np.isfinite(inputs).all()):
                return None
        return states, inputs


def _slice(space: Space, name: str, argument: str) -> slice:
    if name not in space:
        raise SettingError(f"{argument}: no block {name!r}; choose from {', '.join(space)}")
    return space.tangent[name]


def _check_state_bounds(space: Space, bounds: Mapping[str, tuple[float, float]]) -> None:
    for name, (lower, upper) in bounds.items():
        _slice(space, name, "state_bounds")
        if space[name].rotation:
            raise SettingError(f"state_bounds: {name!r} is a rotation, which cannot have bounds")
        if not lower < upper:
            raise SettingError(
                f"state_bounds: {name!r} from {lower:g} to {upper:g}; give the lower limit first"
            )


def _weights(space: Space, weights: Weights, argument: str) -> Float64[np.ndarray, " dim"]:
    values = np.zeros(space.dim)
    for name, weight in weights.items():
        values[_slice(space, name, argument)] = weight
    return values
