"""Gauss-Newton on the free parameters, with the windows' starts eliminated and the steps damped where they overshoot."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float

from rotorid.errors import SettingError
from rotorid.identification.coordinates import Coordinates, coordinates_of, mapped
from rotorid.identification.priors import Numbers, Prior
from rotorid.identification.segments import Segments
from rotorid.identification.shooting import (
    Around,
    ByOutput,
    Driven,
    Linear,
    Run,
    Shooting,
    by_output,
    linearised,
    run,
)
from rotorid.models.system import System

_HUBER = 3.0  # robust standard deviations that a window's residual may be above the usual: beyond them, it counts linearly
_LEAST_SPREAD = 0.02  # of the windows' residuals, over the usual one
_LEAST_STEP = 1e-10  # in prior standard deviations: below it is rounding
_DAMPING = 1e-3  # the first, where one is needed
_MOST_DAMPING = 1e9
_ROUNDING = 1e-9  # of the cost


@runtime_checkable
class Drive(Protocol):
    """Inputs that depend on what is fitted."""

    def driven(
        self, data: Segments, numbers: Float[np.ndarray, " free"], slopes: Float[np.ndarray, "free free"]
    ) -> Driven:
        """What acts on these windows. numbers: the free parameters, in their units. slopes: of them by z."""
        ...

    def u(self, data: Segments, numbers: Float[np.ndarray, " free"]) -> Float[np.ndarray, "w rows inputs"]:
        """The inputs alone."""
        ...


@dataclasses.dataclass(frozen=True)
class Problem:
    """What is fitted. base: all parameters' numbers. centre, scale: of the free ones' priors. drive: of the inputs, where the
    free parameters are not the System's alone. K: gain of the windows' predictor, None: they run free."""

    shooting: Shooting
    coordinates: Coordinates
    data: Segments
    base: Float[np.ndarray, " all"]
    centre: Float[np.ndarray, " free"]
    scale: Float[np.ndarray, " free"]
    drive: Drive | None = None
    K: Float[np.ndarray, "tangent compared"] | None = None

    @classmethod
    def of(
        cls,
        system: System,
        priors: tuple[Prior, ...],
        values: Mapping[str, Numbers],
        data: Segments,
        used: tuple[str, ...],
    ) -> Problem:
        """The problem of these priors; parameters that wander and are not free may push each window."""
        coordinates, centre, scale = coordinates_of(priors)
        free = tuple(p.name for p in coordinates.parameters)
        pushing = tuple(p.name for p in system.parameters if p.drift > 0 and p.name not in free)
        base = np.concatenate(
            [np.ravel(values.get(p.name, p.value)).astype(float) for p in system.parameters]
        )
        return cls(Shooting(system, used, free, pushing), coordinates, data, base, centre, scale)

    @property
    def start(self) -> int:
        """Dimension of a start."""
        return self.shooting.system.states.dim

    @property
    def free(self) -> int:
        return self.coordinates.size

    def prior_errors(self, z: Float[np.ndarray, " free"]) -> Float[np.ndarray, " free"]:
        """e."""
        return self._map(z)[0]

    def prior_slopes(self, z: Float[np.ndarray, " free"]) -> Float[np.ndarray, "free free"]:
        """de/dz."""
        return self._map(z)[1]

    def quantities(self, z: Float[np.ndarray, " free"]) -> Float[np.ndarray, " free"]:
        """The free parameters in their units."""
        return self._map(z)[2]

    def quantity_slopes(self, z: Float[np.ndarray, " free"]) -> Float[np.ndarray, "free free"]:
        """How the free parameters grow with z, in their units."""
        return self._map(z)[3]

    def _map(self, z: Float[np.ndarray, " free"]) -> tuple[np.ndarray, ...]:
        return tuple(np.asarray(v) for v in mapped(self.coordinates, z, self.centre, self.scale))

    def all(self, z: Float[np.ndarray, " free"]) -> Float[np.ndarray, " all"]:
        """All parameters' numbers."""
        found, numbers = self.base.copy(), self.quantities(z)
        for name in self.shooting.free:
            found[self.shooting.places[name]] = numbers[self.coordinates.places[name]]
        return found

    def run(
        self,
        x: Float[np.ndarray, "w states"],
        z: Float[np.ndarray, " free"],
        sigma: Float[np.ndarray, " compared"],
    ) -> Run:
        """All windows from the starts x with z."""
        data = self.data
        if self.drive is not None:
            data = dataclasses.replace(data, u=self.drive.u(data, self.quantities(z)))
        return run(self.shooting, data, x, self.all(z), sigma, self.K)

    def linearised(
        self, ran: Run, z: Float[np.ndarray, " free"], sigma: Float[np.ndarray, " compared"]
    ) -> Linear:
        """All windows to first order around where they ran with z."""
        return linearised(self.shooting, self.data, self._around(ran, z, sigma))

    def by_output(
        self,
        ran: Run,
        z: Float[np.ndarray, " free"],
        sigma: Float[np.ndarray, " compared"],
        weight: Float[np.ndarray, " w"],
        root: Float[np.ndarray, "free some"],
    ) -> ByOutput:
        """What each output says around where the windows ran with z. weight: of each window. root: see `by_output`."""
        return by_output(self.shooting, self.data, self._around(ran, z, sigma), weight, root)

    def _around(
        self, ran: Run, z: Float[np.ndarray, " free"], sigma: Float[np.ndarray, " compared"]
    ) -> Around:
        slopes = self.quantity_slopes(z)
        driven = None if self.drive is None else self.drive.driven(self.data, self.quantities(z), slopes)
        return Around(ran, self.all(z), slopes, sigma, driven, self.K)

    def moved(
        self, x: Float[np.ndarray, "w states"], delta: Float[np.ndarray, "w tangent"]
    ) -> Float[np.ndarray, "w states"]:
        """The starts, each moved by a tangent vector."""
        return self.shooting.engine.plus(x, delta)


@dataclasses.dataclass(frozen=True)
class Found:
    """Where a search ended. triangle: there, to first order. squares: of the residuals by window and output, in sigma.

    weight: of each window. steps: taken.
    """

    z: Float[np.ndarray, " free"]
    x: Float[np.ndarray, "w states"]
    triangle: Float[np.ndarray, "w rows columns"]
    squares: Float[np.ndarray, "w compared"]
    weight: Float[np.ndarray, " w"]
    steps: int
    converged: bool


def search(
    problem: Problem,
    z: Float[np.ndarray, " free"],
    x: Float[np.ndarray, "w states"],
    sigma: Float[np.ndarray, " compared"],
    loss: str = "squares",
    most: int = 50,
    settled: float = 0.01,
) -> Found:
    """The least of the cost from z and the starts x on.

    most: steps. settled: standard deviations below which a step is the last; likewise its square, of what the cost falls by,
    where steps are damped.
    """
    n, free = problem.start, problem.free
    least = problem.coordinates.least(problem.centre, problem.scale)
    measured = max(int(problem.data.mask[..., problem.shooting.rows.measured].sum()), 1)
    damping, steps, ran = 0.0, 0, problem.run(x, z, sigma)
    while True:
        linear, steps = problem.linearised(ran, z, sigma), steps + 1
        if not np.isfinite(linear.triangle).all():
            raise SettingError(
                "the model is not finite with these values of the parameters: give prior values near the vehicle's"
            )
        weight = _weights(problem, linear, loss)
        e, E = problem.prior_errors(z), problem.prior_slopes(z)
        rows = np.sqrt(weight)[:, None, None] * linear.triangle[:, n:, :]
        J = np.concatenate([rows[:, :, n : n + free].reshape(-1, free), E])
        r = np.concatenate([rows[:, :, -1].reshape(-1), e])
        R = np.asarray(np.linalg.qr(np.column_stack([J, r]), mode="r"))
        held = (z <= least) & (J.T @ r > 0)
        spread = np.linalg.norm(np.linalg.pinv(R[:free, :free], rcond=1e-15), axis=1)
        cost = float(weight @ linear.squares.sum(axis=1) + e @ e)
        usual = max(cost / measured, 1.0)
        while True:
            trial_z = np.maximum(z + _damped(R, held, damping), least)
            dz = trial_z - z
            trial_x = problem.moved(x, _starts(linear.triangle, n, dz))
            trial = problem.run(trial_x, trial_z, sigma)
            e = problem.prior_errors(trial_z)
            after = float(weight @ trial.squares.sum(axis=1) + e @ e)
            if np.isfinite(after) and after <= cost * (1.0 + _ROUNDING) + _ROUNDING:
                break
            damping = max(10.0 * damping, _DAMPING)
            if damping > _MOST_DAMPING:
                return Found(z, x, linear.triangle, linear.squares, weight, steps, False)
        small = bool(np.all(np.abs(dz) < np.maximum(settled * spread, _LEAST_STEP)))
        # where steps must be damped for less than rounding and kinks make of the cost, this is its least
        done = (small and damping == 0.0) or (damping > 0.0 and cost - after < settled**2 * usual)
        z, x, ran = trial_z, trial_x, trial
        if done or steps == most:
            return Found(z, x, _at(linear.triangle, n, dz), ran.squares, weight, steps, done)
        damping = 0.0 if damping <= _DAMPING else 0.1 * damping


def starts(
    problem: Problem,
    x: Float[np.ndarray, "w states"],
    z: Float[np.ndarray, " free"],
    sigma: Float[np.ndarray, " compared"],
) -> Float[np.ndarray, "w states"]:
    """The start of each window that fits it best with these parameters, to first order around x."""
    triangle = problem.linearised(problem.run(x, z, sigma), z, sigma).triangle
    return problem.moved(x, _starts(triangle, problem.start, np.zeros(problem.free)))


def _weights(problem: Problem, linear: Linear, loss: str) -> Float[np.ndarray, " w"]:
    if loss == "squares":
        return np.ones(len(linear.triangle))
    n = problem.start
    reduced = linear.squares.sum(axis=1) - np.sum(linear.triangle[:, :n, -1] ** 2, axis=1)
    q = np.maximum(reduced, 0.0) / np.maximum(problem.data.mask.sum(axis=(1, 2)), 1)
    size = np.sqrt(q)
    usual = np.median(size)
    spread = max(1.4826 * float(np.median(np.abs(size - usual))), _LEAST_SPREAD * float(usual), 1e-300)
    return np.minimum(1.0, _HUBER / np.maximum((size - usual) / spread, 1e-12))


def _damped(
    R: Float[np.ndarray, "rows columns"], held: np.ndarray, damping: float
) -> Float[np.ndarray, " free"]:
    """The step of Levenberg and Marquardt from the triangle of [J r]; what is held does not move."""
    free = len(held)
    J, r = R[:free, :free][:, ~held], R[:free, -1]
    size = np.linalg.norm(J, axis=0)
    found = np.zeros(free)
    stacked = np.concatenate([J / size, np.sqrt(damping) * np.eye(J.shape[1])])
    found[~held] = np.linalg.lstsq(stacked, -np.concatenate([r, np.zeros(J.shape[1])]), rcond=None)[0] / size
    return found


def _starts(
    triangle: Float[np.ndarray, "w rows columns"], n: int, dz: Float[np.ndarray, " free"]
) -> Float[np.ndarray, "w tangent"]:
    """How each start moves where the parameters move by dz."""
    wanted = triangle[:, :n, -1] + triangle[:, :n, n : n + len(dz)] @ dz
    return -np.linalg.solve(triangle[:, :n, :n], wanted[..., None])[..., 0]


def _at(
    triangle: Float[np.ndarray, "w rows columns"], n: int, dz: Float[np.ndarray, " free"]
) -> Float[np.ndarray, "w rows columns"]:
    """The triangle after a step of the parameters and of the starts with them, to first order."""
    found = triangle.copy()
    found[:, n:, -1] += triangle[:, n:, n : n + len(dz)] @ dz
    found[:, :n, -1] = 0.0
    return found
