"""Solving a problem of identification: windows few and then all, their noise weighed anew, and the covariance of what is found.

    cov = A A^T + H^-1 P_0^-1 H^-1,    H = J^T J + P_0^-1

A A^T is what a jackknife over blocks of some seconds makes of the data's part (see `jackknife`): residuals may be coloured
within a block, and larger or smaller than the noise that was assumed. Before, each output is weighed by what it says (see
`colours`). Where there are hardly any blocks, the size of the residuals alone counts. By how much several flights differ beyond
their blocks is part of the standard deviations.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Sequence

import jax
import numpy as np
import scipy.linalg
from jaxtyping import Bool, Float
from threadpoolctl import ThreadpoolController

from rotorid.geometry.spaces import Space
from rotorid.identification.blocks import block_keys, block_sums, rows_of
from rotorid.identification.colours import colours_of
from rotorid.identification.contacts import disturbances, excesses, spans_of
from rotorid.identification.fit import Fit, Span, untold_directions
from rotorid.identification.jackknife import LEAST, between_flights, left_out, shrunk, widening
from rotorid.identification.priors import Prior
from rotorid.identification.search import Found, Problem, search, starts
from rotorid.identification.segments import segments
from rotorid.models.system import System
from rotorid.signals.samples import Samples

SETTLED = 0.01
"""Standard deviations by which the last step of a search may move a parameter."""

_COARSE = 64  # windows that the search begins with
_FEW = 32  # likewise, of a rough one
_ROUGHLY = 0.2  # standard deviations to which they settle it, and to which noise is weighed
_ROUNDS = 4  # of weighing
_STEADY = 0.1  # change of a noise below which it is not weighed anew


@dataclasses.dataclass(frozen=True)
class Solved:
    """A fit and how it was come by. sigma: noise by which outputs weigh, with their colour. root: of the covariance of z by it.
    x, triangle, weight: of the windows at the end of the search (see `Found`)."""

    fit: Fit
    problem: Problem
    z: Float[np.ndarray, " free"]
    sigma: Float[np.ndarray, " compared"]
    root: Float[np.ndarray, "free free"]
    x: Float[np.ndarray, "w states"]
    triangle: Float[np.ndarray, "w rows columns"]
    weight: Float[np.ndarray, " w"]

    def pushed(self, flights: Sequence[Samples], horizon: float) -> tuple[Span, ...]:
        """Suspicious parts of flights with these parameters, whether the fit had them or not."""
        shooting = self.problem.shooting
        with jax.enable_x64(True), threads().limit(limits=1, user_api="blas"):
            data = segments(shooting.system, flights, horizon, shooting.used)
            problem = dataclasses.replace(self.problem, data=data)
            x = starts(problem, data.x, self.z, self.sigma)
            triangle = problem.linearised(problem.run(x, self.z, self.sigma), self.z, self.sigma).triangle
            return _suspicious(problem, triangle, self.root)


def settle(
    problem: Problem,
    priors: tuple[Prior, ...],
    sigma: Float[np.ndarray, " compared"],
    given: Bool[np.ndarray, " compared"],
    loss: str,
    iterations: int,
    z: Float[np.ndarray, " free"] | None = None,
    settled: float = SETTLED,
) -> Solved:
    """The solution of a problem. sigma: noise of the outputs to begin with; given: those that stay. z: where to begin.
    settled: standard deviations by which the last step may still move a parameter; a solution that is settled but roughly, on
    the way to another one, comes of fewer windows first, and its `rms_before` is NaN."""
    data, spent, rough = problem.data, 0, settled >= _ROUGHLY
    z = np.zeros(problem.free) if z is None else z
    few = _FEW if rough else _COARSE
    if len(data.start) > 2 * few:
        coarse = dataclasses.replace(problem, data=data.some(few))
        first, sigma, spent = _weighed(coarse, z, sigma, given, loss, iterations, _ROUGHLY)
        z = first.z
    before = dict.fromkeys(places(problem.shooting.system, problem.shooting.used), math.nan)
    if not rough:
        at = np.zeros(problem.free)
        before = _rms(problem, sigma, problem.run(starts(problem, data.x, at, sigma), at, sigma).squares)
    found, sigma, more = _weighed(problem, z, sigma, given, loss, iterations, max(settled, _ROUGHLY))
    noise, spent = sigma, spent + more
    if not rough:
        given = given | bool(problem.shooting.pushing)  # what hangs together there is a push
        found, sigma, more = _coloured(problem, found, sigma, given, loss, iterations, settled)
        spent += more
    return _solved(problem, priors, noise, sigma, before, found, spent)


@functools.cache
def threads() -> ThreadpoolController:
    """Of the libraries of linear algebra."""
    return ThreadpoolController()


def _weighed(
    problem: Problem,
    z: Float[np.ndarray, " free"],
    sigma: Float[np.ndarray, " compared"],
    given: Bool[np.ndarray, " compared"],
    loss: str,
    iterations: int,
    settled: float,
) -> tuple[Found, Float[np.ndarray, " compared"], int]:
    """Searches until the noise is that of the residuals: what was found, the noise as weighed, and the steps taken."""
    x, floor, steps = problem.data.x, sigma, 0
    for _ in range(_ROUNDS):
        found = search(problem, z, x, sigma, loss, iterations, settled)
        z, x, steps = found.z, found.x, steps + found.steps
        shown = np.maximum(_noise(problem, found.squares, found.weight) * sigma, floor)
        shown = np.where(given, sigma, shown)
        if np.all(np.abs(shown / sigma - 1.0) < _STEADY):
            return found, sigma, steps
        sigma = shown
    found = search(problem, z, x, sigma, loss, iterations, settled)
    return found, sigma, steps + found.steps


def _coloured(
    problem: Problem,
    found: Found,
    sigma: Float[np.ndarray, " compared"],
    given: Bool[np.ndarray, " compared"],
    loss: str,
    iterations: int,
    settled: float,
) -> tuple[Found, Float[np.ndarray, " compared"], int]:
    """Searches in which each output weighs as much as it says, until that stays: what was found, the noise that weighs them so,
    and the steps taken."""
    vectors = tuple(places(problem.shooting.system, problem.shooting.used).values())
    noise, steps = sigma, 0
    for _ in range(0 if given.all() else _ROUNDS):
        size = _noise(problem, found.squares, found.weight)
        colours = colours_of(problem, found, sigma, vectors)
        # residuals smaller than the noise that was allowed for say no more than it lets them
        shown = np.where(given, sigma, np.sqrt(colours) * np.maximum(sigma, noise / np.maximum(size, 1e-300)))
        if np.all(np.abs(shown / sigma - 1.0) < _STEADY):
            break
        sigma = shown
        found = search(problem, found.z, found.x, sigma, loss, iterations, _ROUGHLY)
        steps += found.steps
    found = search(problem, found.z, found.x, sigma, loss, iterations, settled)
    return found, sigma, steps + found.steps


def _noise(
    problem: Problem, squares: Float[np.ndarray, "w compared"], weight: Float[np.ndarray, " w"]
) -> Float[np.ndarray, " compared"]:
    """Root mean square of the residuals of each output, in sigma, allowing for the starts that were fitted; 1 without any."""
    counts = _counts(problem)
    total = counts.sum()
    left = total / max(total - problem.start * len(counts), 0.1 * total)
    many = weight @ counts
    return np.where(many > 0, np.sqrt(left * (weight @ squares) / np.maximum(many, 1e-300)), 1.0)


def _solved(
    problem: Problem,
    priors: tuple[Prior, ...],
    noise: Float[np.ndarray, " compared"],
    sigma: Float[np.ndarray, " compared"],
    before: dict[str, float],
    found: Found,
    steps: int,
) -> Solved:
    free, system, used = problem.free, problem.shooting.system, problem.shooting.used
    coordinates, z = problem.coordinates, found.z
    E, J = problem.prior_slopes(z), rows_of(problem, z, found.triangle, found.weight)
    R = np.asarray(np.linalg.qr(J, mode="r"))
    within, scores = block_sums(problem, found.triangle, found.weight)
    inverse = scipy.linalg.solve_triangular(R, np.eye(free))
    told = E @ inverse
    if len(scores) < LEAST:
        size = max(1.0, float(np.mean(_noise(problem, found.squares, found.weight))))
        by_flights = size * inverse @ (inverse.T @ J[:-free].T)
    else:
        by_data = np.eye(free) - told.T @ told
        by_flights = shrunk(left_out(within, scores, R.T @ R), inverse, by_data)
        by_flights *= widening(len(scores), float(np.trace(by_data)) / len(sigma))
    slopes = problem.quantity_slopes(z)
    root = slopes @ np.concatenate([by_flights, inverse @ told.T], axis=1)
    least = coordinates.least(problem.centre, problem.scale)
    moves = z > least  # what rests at its bound does not move from flight to flight either
    each = slopes[:, moves] @ np.linalg.solve((J.T @ J)[np.ix_(moves, moves)], scores[:, moves].T)
    flight = block_keys(problem.data)[0][:, 0].astype(int)
    root[:, : -len(E)] *= between_flights(each.T, flight)[:, None]
    names = tuple(q for p in coordinates.parameters for q in p.quantities)
    numbers, std = problem.quantities(z), np.sqrt(np.sum(root**2, axis=1))
    spread = tuple(s for p in priors for s in p.std)
    posterior = told @ told.T
    relative = np.where(coordinates.positive, problem.scale, 0.0)

    def by_name(numbers) -> dict[str, float]:
        return {name: float(v) for name, v in zip(names, numbers, strict=True)}

    values: dict[str, float | tuple[float, ...]] = {}
    for prior in priors:
        part = tuple(float(v) for v in numbers[coordinates.places[prior.parameter.name]])
        values[prior.parameter.name] = part if isinstance(prior.parameter.value, tuple) else part[0]
    fit = Fit(
        names=names,
        values=by_name(numbers),
        std=by_name(std),
        unit={q: p.parameter.unit for p in priors for q in p.parameter.quantities},
        covariance=root @ root.T,
        prior=by_name(tuple(v for p in priors for v in p.value)),
        prior_std=by_name(spread),
        at_bound=tuple(name for name, at in zip(names, z <= least, strict=True) if at),
        told=by_name(1.0 - np.sqrt(np.minimum(np.diag(posterior), 1.0))),
        untold=untold_directions(names, posterior, relative),
        rms_before=before,
        rms=_rms(problem, sigma, found.squares),
        noise={name: tuple(float(v) for v in noise[place]) for name, place in places(system, used).items()},
        suspicious=_suspicious(problem, found.triangle, inverse),
        windows=len(problem.data.start),
        iterations=steps,
        converged=found.converged,
        parameters=values,
    )
    return Solved(fit, problem, z, sigma, inverse, found.x, found.triangle, found.weight)


def places(system: System, used: Sequence[str]) -> dict[str, slice]:
    """Where each output that is compared lies among them."""
    return Space(tuple((name, system.outputs[name]) for name in used)).tangent


def _counts(problem: Problem) -> Float[np.ndarray, "w compared"]:
    """Measurements of each output in each window."""
    return 1.0 * problem.data.mask[..., problem.shooting.rows.measured].sum(axis=1)


def _rms(
    problem: Problem, sigma: Float[np.ndarray, " compared"], squares: Float[np.ndarray, "w compared"]
) -> dict[str, float]:
    """Root mean square of the residuals of each output block, the length of a vector's, in its unit."""
    total = sigma**2 * squares.sum(axis=0) / np.maximum(_counts(problem).sum(axis=0), 1)
    where = places(problem.shooting.system, problem.shooting.used)
    return {name: float(np.sqrt(total[place].sum())) for name, place in where.items()}


def _suspicious(
    problem: Problem, triangle: Float[np.ndarray, "w rows columns"], root: Float[np.ndarray, "free free"]
) -> tuple[Span, ...]:
    shooting = problem.shooting
    if not shooting.pushing:
        return ()
    parameters = [shooting.system.parameter(name) for name in shooting.pushing]
    pushes = disturbances(triangle, problem.start, root)
    return spans_of(problem.data, pushes.w, excesses(problem.data, pushes, parameters), parameters)
