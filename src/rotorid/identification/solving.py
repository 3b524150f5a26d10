"""Solving a problem of identification: windows few and then all, their noise weighed anew, and the covariance of what is found.

    cov = H^-1 (sum_b g_b g_b^T + P_0^-1) H^-1,    H = J^T J + P_0^-1

g_b are the scores of blocks of some seconds: residuals may be coloured within a block, and larger or smaller than the noise
that was assumed (H. White, Maximum likelihood estimation of misspecified models, Econometrica 50 (1982)). Where there are fewer
than two blocks a parameter, the standard deviations are those of a jackknife over them (see `jackknife`). By how much several
flights differ beyond their blocks is part of the standard deviations.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence

import jax
import numpy as np
import scipy.linalg
from jaxtyping import Bool, Float, Int
from threadpoolctl import ThreadpoolController

from rotorid.geometry.spaces import Space
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
_BLOCK = 2.0  # s of residuals that may hang together
_ENOUGH = 14  # blocks: of flights too short for as many, blocks are shorter


@dataclasses.dataclass(frozen=True)
class Solved:
    """A fit and how it was come by. sigma: noise as weighed. root: of the covariance of z, by the noise as weighed.
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
        which = np.unique(np.linspace(0, len(data.start) - 1, few).round().astype(int))
        coarse = dataclasses.replace(problem, data=data.take(which))
        first, sigma, spent = _weighed(coarse, z, sigma, given, loss, iterations, _ROUGHLY)
        z = first.z
    before = np.full((len(data.start), len(sigma)), np.nan)
    if not rough:
        at = np.zeros(problem.free)
        before = problem.run(starts(problem, data.x, at, sigma), at, sigma).squares
    found, sigma, more = _weighed(problem, z, sigma, given, loss, iterations, settled)
    return _solved(problem, priors, sigma, before, found, spent + more)


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
    """Searches until the noise is that of the residuals, roughly, and then once more where that noise or how it is to settle
    asks for it: what was found, the noise as weighed, and the steps taken."""
    x, floor, steps = problem.data.x, sigma, 0
    for _ in range(_ROUNDS):
        found = search(problem, z, x, sigma, loss, iterations, max(settled, _ROUGHLY))
        z, x, steps = found.z, found.x, steps + found.steps
        shown = np.maximum(_noise(problem, found.squares, found.weight) * sigma, floor)
        shown = np.where(given, sigma, shown)
        if np.all(np.abs(shown / sigma - 1.0) < _STEADY):
            if settled >= _ROUGHLY:
                return found, sigma, steps
            break
        sigma = shown
    found = search(problem, z, x, sigma, loss, iterations, settled)
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
    sigma: Float[np.ndarray, " compared"],
    before: Float[np.ndarray, "w compared"],
    found: Found,
    steps: int,
) -> Solved:
    n, free, system, used = problem.start, problem.free, problem.shooting.system, problem.shooting.used
    coordinates, z = problem.coordinates, found.z
    E = problem.prior_slopes(z)
    B, r = found.triangle[:, n:, n : n + free], found.triangle[:, n:, -1]
    J = np.concatenate([(np.sqrt(found.weight)[:, None, None] * B).reshape(-1, free), E])
    R = np.linalg.qr(J, mode="r")
    scores = _blocks(problem, found.weight[:, None] * np.einsum("wij,wi->wj", B, r))
    few = len(scores) < 2 * free
    if few:  # too few blocks for a covariance of their own: the residuals' size alone, or what a jackknife makes of it
        size = max(1.0, float(np.mean(_noise(problem, found.squares, found.weight))))
        meat = np.concatenate([size * J[:-free], E])
    else:
        meat = np.concatenate([np.sqrt(len(scores) / (len(scores) - free)) * scores, E])
    inverse = scipy.linalg.solve_triangular(R, np.eye(free))
    half = inverse @ (inverse.T @ meat.T)
    slopes = problem.quantity_slopes(z)
    root = slopes @ half
    if few and len(scores) >= LEAST:
        within = _blocks(problem, found.weight[:, None, None] * np.einsum("wij,wik->wjk", B, B))
        left = left_out(within, scores, np.asarray(R).T @ np.asarray(R))
        given = E @ inverse
        told_by = shrunk(left, inverse, np.eye(free) - given.T @ given) * widening(len(scores))
        root = slopes @ np.concatenate([told_by, inverse @ (inverse.T @ E.T)], axis=1)
    least = coordinates.least(problem.centre, problem.scale)
    moves = z > least  # what rests at its bound does not move from flight to flight either
    each = slopes[:, moves] @ np.linalg.solve((J.T @ J)[np.ix_(moves, moves)], scores[:, moves].T)
    flight = block_keys(problem)[0][:, 0].astype(int)
    root[:, : -len(E)] *= between_flights(each.T, flight)[:, None]
    names = tuple(q for p in coordinates.parameters for q in p.quantities)
    numbers, std = problem.quantities(z), np.sqrt(np.sum(root**2, axis=1))
    spread = tuple(s for p in priors for s in p.std)
    told = E @ inverse
    posterior = told @ told.T
    relative = np.where(coordinates.positive, problem.scale, 0.0)

    def by_name(numbers) -> dict[str, float]:
        return {name: float(v) for name, v in zip(names, numbers, strict=True)}

    rms, rms_before = (_rms(problem, used, sigma, s) for s in (found.squares, before))
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
        rms_before=rms_before,
        rms=rms,
        noise={name: tuple(float(v) for v in sigma[place]) for name, place in places(system, used).items()},
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


def _blocks(problem: Problem, g: Float[np.ndarray, "w ..."]) -> Float[np.ndarray, "blocks ..."]:
    """What windows add to a gradient or a Hessian, summed over blocks of consecutive ones."""
    keys, block = block_keys(problem)
    found = np.zeros((len(keys), *g.shape[1:]))
    np.add.at(found, block, g)
    return found


def block_keys(problem: Problem) -> tuple[Float[np.ndarray, "blocks 2"], Int[np.ndarray, " w"]]:
    """Flight and place in it of each block of consecutive windows, and the block of each window."""
    data = problem.data
    window = float(np.max(data.end - data.start))
    length = min(_BLOCK, max(window, len(data.start) * window / _ENOUGH))
    keys = np.stack([data.flight, np.floor(data.start / length)], axis=1)
    found, block = np.unique(keys, axis=0, return_inverse=True)
    return found, block.ravel()


def _rms(
    problem: Problem,
    used: Sequence[str],
    sigma: Float[np.ndarray, " compared"],
    squares: Float[np.ndarray, "w compared"],
) -> dict[str, float]:
    """Root mean square of the residuals of each output block, the length of a vector's, in its unit."""
    total = sigma**2 * squares.sum(axis=0) / np.maximum(_counts(problem).sum(axis=0), 1)
    where = places(problem.shooting.system, used)
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
