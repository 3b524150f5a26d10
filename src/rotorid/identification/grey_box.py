"""Grey-box identification: the parameters of a System that explain whole flights best, with their prior (MAP).

    min over theta, x_i(0) of   sum_i w_i sum_k |h(x_i(t_k)) [-] y_i(t_k)|^2_R + |e(theta)|^2,   x_i' = f(x_i, u, theta)

Multiple-shooting output error: each window i starts from a state of its own, which is estimated with the parameters and
eliminated window by window, so that the noise of a measured start biases nothing. Gauss-Newton steps with exact derivatives,
damped by Levenberg and Marquardt where they overshoot. Noise that is not given is that of the residuals, but not less than the
white noise of the measurements; it is weighed anew once the parameters fit.

Covariance: with H = J^T J + P_0^-1 and the scores g_b of blocks of some seconds, H^-1 (sum_b g_b g_b^T + P_0^-1) H^-1:
residuals may be coloured within a block, and larger or smaller than the noise that was assumed. Where the flights say
nothing it is the prior's.

Inputs are taken as exact. White noise of theirs (0.3 % of rotor speeds, say) does no harm where they move the vehicle well;
where it hardly turns, the inertia looks larger by the share that noise has in what turns it within a window, which no standard
deviation here shows. Longer windows lessen that.

References: R. V. Jategaonkar, Flight vehicle system identification, 2nd ed. (2015), ch. 4-5; P. J. Huber, Robust statistics
(1981); H. White, Maximum likelihood estimation of misspecified models, Econometrica 50 (1982).
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping, Sequence

import jax
import numpy as np
import scipy.linalg
from jaxtyping import Bool, Float
from threadpoolctl import ThreadpoolController

from rotorid.errors import SettingError
from rotorid.geometry.spaces import Space
from rotorid.identification.contacts import disturbances, excesses, spans_of
from rotorid.identification.fit import Fit, Span, untold_directions
from rotorid.identification.priors import Numbers, Prior, priors_of
from rotorid.identification.search import Found, Problem, search, starts
from rotorid.identification.segments import segments, used_outputs, white_noise_of
from rotorid.models.system import System
from rotorid.signals.samples import Samples

_COARSE = 64  # windows that the search begins with
_ROUGHLY = 0.2  # standard deviations to which they settle it
_ROUNDS = 4  # of weighing
_STEADY = 0.1  # change of a noise below which it is not weighed anew
_BLOCK = 2.0  # s of residuals that may hang together


def fit_grey_box(
    system: System,
    flights: Sequence[Samples],
    free: Sequence[str] | Mapping[str, Numbers | None],
    *,
    values: Mapping[str, Numbers] | None = None,
    horizon: float = 0.5,
    noise: Mapping[str, Numbers] | None = None,
    outputs: Sequence[str] | None = None,
    loss: str = "squares",
    iterations: int = 50,
) -> Fit:
    """The free parameters of a System whose outputs measure every state, from flights.

    free: their names, or standard deviations of their priors by name, in their units (None: the System's, else the usual one,
    see `priors`). Where the products of inertia are not 0, they are free with the inertia. values: prior means that replace the
    System's; parameters that are not free keep theirs. horizon: of a window, s. noise: standard deviation of outputs, by
    name; those not given are estimated. outputs: to compare with beside those that measure a state ("specific_force").
    loss: "huber" for flights with contact or outliers: windows that fit badly beside the others count less. iterations: at
    most, each time that the noise is weighed.

    Raises SettingError, SignalError where a state is not measured or numbers are not finite, ExcitationError where no window is
    long enough.
    """
    return solve(
        system,
        flights,
        free,
        values=values,
        horizon=horizon,
        noise=noise,
        outputs=outputs,
        loss=loss,
        iterations=iterations,
    ).fit


@dataclasses.dataclass(frozen=True)
class Solved:
    """A fit and how it was come by. sigma: noise as weighed. root: of the covariance of z, by the noise as weighed."""

    fit: Fit
    problem: Problem
    z: Float[np.ndarray, " free"]
    sigma: Float[np.ndarray, " compared"]
    root: Float[np.ndarray, "free free"]

    def pushed(self, flights: Sequence[Samples], horizon: float) -> tuple[Span, ...]:
        """Suspicious parts of flights with these parameters, whether the fit had them or not."""
        shooting = self.problem.shooting
        with jax.enable_x64(True), threads().limit(limits=1, user_api="blas"):
            data = segments(shooting.system, flights, horizon, shooting.used)
            problem = dataclasses.replace(self.problem, data=data)
            x = starts(problem, data.x, self.z, self.sigma)
            triangle = problem.linearised(x, self.z, self.sigma).triangle
            return _suspicious(problem, triangle, self.root)


def solve(
    system: System,
    flights: Sequence[Samples],
    free: Sequence[str] | Mapping[str, Numbers | None],
    *,
    values: Mapping[str, Numbers] | None,
    horizon: float,
    noise: Mapping[str, Numbers] | None,
    outputs: Sequence[str] | None,
    loss: str,
    iterations: int,
) -> Solved:
    """What `fit_grey_box` does, and what it worked with."""
    if loss not in ("squares", "huber"):
        raise SettingError(f'loss {loss!r}: take "squares" or "huber"')
    if iterations < 1:
        raise SettingError(f"{iterations} iterations: take 1 or more")
    # the matrices are too thin to be shared between threads
    with jax.enable_x64(True), threads().limit(limits=1, user_api="blas"):
        priors = priors_of(system, free, values or {})
        used = used_outputs(system, outputs)
        data = segments(system, flights, horizon, used)
        problem = Problem.of(system, priors, values or {}, data, used)
        sigma, given = _given_noise(system, noise or {}, used, white_noise_of(system, flights, used))
        z, spent = np.zeros(problem.free), 0
        if len(data.start) > 2 * _COARSE:
            which = np.unique(np.linspace(0, len(data.start) - 1, _COARSE).round().astype(int))
            coarse = dataclasses.replace(problem, data=data.take(which))
            first, sigma, spent = _weighed(coarse, z, sigma, given, loss, iterations, _ROUGHLY)
            z = first.z
        at = np.zeros(problem.free)
        before = problem.squares(starts(problem, data.x, at, sigma), at, sigma)
        found, sigma, more = _weighed(problem, z, sigma, given, loss, iterations)
        return _solved(problem, priors, sigma, before, found, spent + more)


@functools.cache
def threads() -> ThreadpoolController:
    """Of the libraries of linear algebra."""
    return ThreadpoolController()


def _given_noise(
    system: System,
    noise: Mapping[str, Numbers],
    used: Sequence[str],
    shown: Float[np.ndarray, " compared"],
) -> tuple[Float[np.ndarray, " compared"], Bool[np.ndarray, " compared"]]:
    """Noise of every output, and of which it was given."""
    sigma, given, places = shown.copy(), np.zeros(len(shown), bool), _places(system, used)
    for name, std in noise.items():
        if name not in used:
            raise SettingError(f"noise of {name!r}, which the fit does not use (it uses {', '.join(used)})")
        if not (np.isfinite(std).all() and np.min(std) > 0):
            raise SettingError(f"noise of {name!r} is {std!r}; it must be above 0")
        sigma[places[name]] = std
        given[places[name]] = True
    return sigma, given


def _weighed(
    problem: Problem,
    z: Float[np.ndarray, " free"],
    sigma: Float[np.ndarray, " compared"],
    given: Bool[np.ndarray, " compared"],
    loss: str,
    iterations: int,
    settled: float = 0.01,
) -> tuple[Found, Float[np.ndarray, " compared"], int]:
    """Searches until the noise is that of the residuals: what was found, the noise as weighed, and the steps taken."""
    x, floor, steps = problem.data.x, sigma, 0
    left = _ROUNDS
    while True:
        found = search(problem, z, x, sigma, loss, iterations, settled)
        z, x, steps, left = found.z, found.x, steps + found.steps, left - 1
        shown = np.maximum(_noise(problem, found.squares, found.weight) * sigma, floor)
        shown = np.where(given, sigma, shown)
        if not left or np.all(np.abs(shown / sigma - 1.0) < _STEADY):
            return found, sigma, steps
        sigma = shown


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
    scores = _scores(problem, found.weight[:, None] * np.einsum("wij,wi->wj", B, r))
    few = len(scores) < 2 * free
    if few:  # too few blocks for a covariance of their own: the residuals' size alone
        size = max(1.0, float(np.mean(_noise(problem, found.squares, found.weight))))
        meat = np.concatenate([size * J[:-free], E])
    else:
        meat = np.concatenate([np.sqrt(len(scores) / (len(scores) - free)) * scores, E])
    inverse = scipy.linalg.solve_triangular(R, np.eye(free))
    half = inverse @ (inverse.T @ meat.T)
    slopes = problem.quantity_slopes(z)
    root = slopes @ half
    names = tuple(q for p in coordinates.parameters for q in p.quantities)
    numbers, std = problem.quantities(z), np.sqrt(np.sum(root**2, axis=1))
    spread = tuple(s for p in priors for s in p.std)
    told = E @ inverse
    posterior = told @ told.T
    least = coordinates.least(problem.centre, problem.scale)
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
        unit={q: p.unit for p in system.parameters for q in p.quantities if q in names},
        covariance=root @ root.T,
        prior=by_name(tuple(v for p in priors for v in p.value)),
        prior_std=by_name(spread),
        at_bound=tuple(name for name, at in zip(names, z <= least, strict=True) if at),
        told=by_name(1.0 - np.sqrt(np.minimum(np.diag(posterior), 1.0))),
        untold=untold_directions(names, posterior, relative),
        rms_before=rms_before,
        rms=rms,
        noise={name: tuple(float(v) for v in sigma[place]) for name, place in _places(system, used).items()},
        suspicious=_suspicious(problem, found.triangle, inverse),
        windows=len(problem.data.start),
        iterations=steps,
        converged=found.converged,
        parameters=values,
    )
    return Solved(fit, problem, z, sigma, inverse)


def _places(system: System, used: Sequence[str]) -> dict[str, slice]:
    """Where each output that is compared lies among them."""
    return Space(tuple((name, system.outputs[name]) for name in used)).tangent


def _counts(problem: Problem) -> Float[np.ndarray, "w compared"]:
    """Measurements of each output in each window."""
    return 1.0 * problem.data.mask[..., problem.shooting.rows.measured].sum(axis=1)


def _scores(problem: Problem, g: Float[np.ndarray, "w free"]) -> Float[np.ndarray, "blocks free"]:
    """Scores of the windows, summed over blocks of consecutive ones."""
    data = problem.data
    keys = np.stack([data.flight, np.floor(data.start / _BLOCK)], axis=1)
    _, block = np.unique(keys, axis=0, return_inverse=True)
    found = np.zeros((block.max() + 1, g.shape[1]))
    np.add.at(found, block.ravel(), g)
    return found


def _rms(
    problem: Problem,
    used: Sequence[str],
    sigma: Float[np.ndarray, " compared"],
    squares: Float[np.ndarray, "w compared"],
) -> dict[str, float]:
    """Root mean square of the residuals of each output block, the length of a vector's, in its unit."""
    total = sigma**2 * squares.sum(axis=0) / np.maximum(_counts(problem).sum(axis=0), 1)
    places = _places(problem.shooting.system, used)
    return {name: float(np.sqrt(total[place].sum())) for name, place in places.items()}


def _suspicious(
    problem: Problem, triangle: Float[np.ndarray, "w columns columns"], root: Float[np.ndarray, "free free"]
) -> tuple[Span, ...]:
    shooting = problem.shooting
    if not shooting.pushing:
        return ()
    parameters = [shooting.system.parameter(name) for name in shooting.pushing]
    pushes = disturbances(triangle, problem.start, root)
    return spans_of(problem.data, pushes.w, excesses(problem.data, pushes, parameters), parameters)
