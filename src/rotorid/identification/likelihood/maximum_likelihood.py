"""Maximum likelihood of the unknown parameters of a dynamic linear model (Torren 2014, section 3.3.1, eqs. 3.5-3.7).

    psi^ = argmax l(psi)         Cov psi^ = H^-1,      H = -d2l/dpsi2 at psi^

The likelihood can have several local maxima: the search starts at several points, and all maxima are returned. If H is
singular, the data do not identify some combination of the parameters: its direction is returned, and the standard
deviations of these parameters are infinite. R's dlmMLE returns neither.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import jax.numpy as jnp
import numpy as np
import scipy.linalg
from jaxtyping import Array, Float

from rotorid.errors import ExcitationError, SettingError
from rotorid.estimators.dlm.likelihood import dlm_log_likelihood
from rotorid.identification.likelihood.search import LikelihoodMaximum, LikelihoodSearch, component_names
from rotorid.models.dlm.model import Dlm, Numbers
from rotorid.models.system import Parameter
from rotorid.progress import Progress, Stage, no_progress

Build = Callable[[dict[str, Array]], Dlm]
"""A function from the parameters by name to a model, as the build function of R's dlm."""

SIGMAS: Final = 1.959963984540054
"""Half-width of a 95 % interval, in standard deviations."""

_SAME: Final = (1e-4, 1e-2)
"""Largest differences of the log-likelihoods and of the coordinates of equal maxima."""

_FLAT: Final = (1e-6, 1e-9)
"""Curvature of l below which a direction is not identifiable: per squared size, and relative to the largest curvature."""

_SMALLEST_COMPONENT: Final = 0.003  # of a direction, relative to its largest component


@dataclasses.dataclass(frozen=True)
class FlatDirection:
    """A direction in which the likelihood is flat.

    names: of the parameters that take part. steps: their changes, in their units, for a change of the first by 1 % of its size.
    """

    names: tuple[str, ...]
    steps: tuple[float, ...]


@dataclasses.dataclass(frozen=True)
class Optimum:
    """A local maximum. starts: number of searches that ended there."""

    values: Mapping[str, float]
    log_likelihood: float
    converged: bool
    starts: int


@dataclasses.dataclass(frozen=True)
class ParameterEstimate:
    """The estimate of one parameter, in `unit`.

    std: NaN at a bound, infinite if unidentifiable. interval: 95 %, from the estimation coordinates, so that it is within the
    bounds. is_at_bound: whether the likelihood is largest at a bound of the parameter.
    """

    value: float
    std: float
    interval: tuple[float, float]
    unit: str
    is_at_bound: bool


@dataclasses.dataclass(frozen=True)
class DlmFit:
    """Maximum-likelihood estimates of the parameters of a DLM.

    estimates: estimates of the free parameters, by name. covariance: inverse of the Hessian, in the units of the parameters;
    NaN in rows of parameters at a bound and of unidentifiable ones. model: the DLM with these estimates. log_likelihood: at
    the estimates. measurement_count: number of measured numbers in y. unidentifiable_directions: combinations of parameters
    that the data cannot identify. converged: whether the search ended at a maximum. optima: all local maxima, the best first.
    """

    estimates: Mapping[str, ParameterEstimate]
    covariance: Float[np.ndarray, "k k"]
    model: Dlm
    log_likelihood: float
    measurement_count: int
    unidentifiable_directions: tuple[FlatDirection, ...]
    converged: bool
    optima: tuple[Optimum, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the free parameters, in order."""
        return tuple(self.estimates)

    @property
    def values(self) -> dict[str, float]:
        """Values by name."""
        return {name: estimate.value for name, estimate in self.estimates.items()}

    @property
    def std(self) -> dict[str, float]:
        """Standard deviations by name."""
        return {name: estimate.std for name, estimate in self.estimates.items()}

    @property
    def at_bound(self) -> tuple[str, ...]:
        """Parameters at a bound."""
        return tuple(name for name, estimate in self.estimates.items() if estimate.is_at_bound)

    @property
    def aic(self) -> float:
        """Akaike's information criterion, 2 k - 2 l; the model with the smallest value is preferred."""
        return 2.0 * len(self.names) - 2.0 * self.log_likelihood

    @property
    def bic(self) -> float:
        """Bayesian information criterion, k log n - 2 l."""
        return math.log(self.measurement_count) * len(self.names) - 2.0 * self.log_likelihood


def fit_dlm(
    y: Numbers,
    build: Build,
    start: Sequence[Parameter] | Mapping[str, float],
    *,
    starts: int = 8,
    seed: int = 0,
    iterations: int = 200,
    progress: Progress = no_progress,
) -> DlmFit:
    """Estimate the parameters of a DLM by maximum likelihood, as R's dlmMLE. No prior is used.

    Args:
        y: measurements, n rows of m numbers, or n numbers; NaN where missing.
        build: function in JAX from the parameters by name to a Dlm.
        start: Parameters: the value is the start of the search, the bounds limit it, and the std is the scale at which the
            other starts are drawn (0: the parameter is known). Or start values by name, of parameters without bounds.
        starts: number of searches.
        seed: seed of the random starts.
        iterations: greatest number of iterations of each search.
        progress: called with the progress of the searches.
    Returns:
        The estimates with standard deviations, covariance and 95 % intervals, the directions that cannot be identified, and
        all local maxima found.
    Raises:
        SettingError: invalid arguments, two parameters of one name, or no free parameter.
        ExcitationError: y has no measurement, or the likelihood is not finite at any start.
    Source: Torren 2014, section 3.3.1, eqs. 3.5-3.7.
    """
    parameters = _parameters(start)
    if starts < 1 or iterations < 1:
        raise SettingError(f"starts and iterations must be 1 or more, not {starts} and {iterations}")
    rows = np.asarray(y, float)
    measurement_count = int(np.isfinite(rows).sum())
    if not measurement_count:
        raise ExcitationError("y has no measurement: every cell is missing")
    search = LikelihoodSearch(_likelihood_of(build), parameters, jnp.asarray(rows))
    stage, ends = Stage(progress, "Maximising the likelihood", starts), []
    for z in search.starts(starts, seed):
        ends.append(search.maximise(z, iterations))
        stage.advance()
    maxima = sorted((f for f in ends if f is not None), key=lambda f: (-f.log_likelihood, not f.converged))
    if not maxima:
        raise ExcitationError("the likelihood is not finite at any start: give other start values")
    best = maxima[0]
    cov, flat, is_maximum = _covariance(best)
    std = np.sqrt(np.diag(cov))
    is_identified = np.isfinite(std)
    return DlmFit(
        estimates=_estimates(search, best, std),
        covariance=np.where(is_identified[:, None] & is_identified, cov, np.nan),
        model=build(_parameters_by_name(parameters, best.psi)),
        log_likelihood=best.log_likelihood,
        measurement_count=measurement_count,
        unidentifiable_directions=tuple(_flat_direction(search, best, v) for v in flat),
        converged=best.converged and is_maximum,
        optima=_distinct_optima(search, maxima, bool(flat)),
    )


_LIKELIHOODS: dict[Build, Callable] = {}


def _likelihood_of(build: Build) -> Callable[[dict[str, Array], Array], Array]:
    """The log-likelihood of a build function; the same object for the same function, so that it is compiled once."""
    if build not in _LIKELIHOODS:
        if len(_LIKELIHOODS) > 32:
            _LIKELIHOODS.clear()
        _LIKELIHOODS[build] = lambda named, y: dlm_log_likelihood(build(named), y)
    return _LIKELIHOODS[build]


def _parameters(start: Sequence[Parameter] | Mapping[str, float]) -> tuple[Parameter, ...]:
    if isinstance(start, Mapping):
        start = [Parameter(n, float(v), std=max(abs(float(v)), 1.0)) for n, v in start.items()]
    names = [n for p in start for n in component_names(p)]
    if len(set(names)) < len(names):
        raise SettingError(f"two parameters have the name {next(n for n in names if names.count(n) > 1)!r}")
    if not any(p.tracked for p in start):
        raise SettingError("no parameter is free: give at least one parameter a std above 0")
    return tuple(start)


def _parameters_by_name(parameters: Sequence[Parameter], psi: Float[np.ndarray, " k"]) -> dict[str, Array]:
    named, start = {}, 0
    for p in parameters:
        part = psi[start : start + len(p.values)] if p.tracked else np.array(p.values)
        start += len(p.values) if p.tracked else 0
        named[p.name] = jnp.asarray(part if isinstance(p.value, tuple) else part[0])
    return named


def _covariance(
    best: LikelihoodMaximum,
) -> tuple[Float[np.ndarray, "k k"], list[Float[np.ndarray, " k"]], bool]:
    """The covariance of the estimates.

    Returns:
        The covariance, infinite for unidentifiable parameters and NaN for those at a bound; the flat directions; whether l
        decreases in all other directions. Directions are in psi / sizes, so that they include parameters near a bound.
    """
    k, free = len(best.z), np.flatnonzero(~best.is_at_bound)
    cov, sizes = np.full((k, k), np.nan), best.sizes[free]
    if not len(free):
        return cov, [], True
    values, vectors = np.linalg.eigh(sizes[:, None] * best.hessian[np.ix_(free, free)] * sizes)
    limit = max(_FLAT[0], _FLAT[1] * float(values.max()))
    is_flat = np.abs(values) < limit
    inside = sizes[:, None] * vectors[:, ~is_flat]
    cov[np.ix_(free, free)] = (inside / values[~is_flat]) @ inside.T
    directions = []
    for column in _reduced_basis(vectors[:, is_flat]).T:
        involved = np.abs(column) > _SMALLEST_COMPONENT * np.abs(column).max()
        whole = np.zeros(k)
        whole[free[involved]] = (sizes * column)[involved]
        cov[free[involved], free[involved]] = np.inf
        directions.append(whole)
    is_maximum = bool(values.min() > -limit)
    return cov if is_maximum else np.full((k, k), np.nan), directions, is_maximum


def _reduced_basis(basis: Float[np.ndarray, "k r"]) -> Float[np.ndarray, "k r"]:
    """A basis of the same space in which each vector has an entry that is 0 in the others."""
    if not basis.shape[1]:
        return basis
    factors = list(scipy.linalg.qr(basis.T, pivoting=True))
    order = np.asarray(factors[-1], int)
    return basis @ np.linalg.inv(basis[order[: basis.shape[1]]])


def _flat_direction(
    search: LikelihoodSearch, best: LikelihoodMaximum, direction: Float[np.ndarray, " k"]
) -> FlatDirection:
    involved = np.flatnonzero(direction)
    first = involved[0]
    steps = direction * (0.01 * max(abs(best.psi[first]), best.sizes[first]) / direction[first])
    return FlatDirection(tuple(search.names[i] for i in involved), tuple(float(steps[i]) for i in involved))


def _estimates(
    search: LikelihoodSearch, best: LikelihoodMaximum, std: Float[np.ndarray, " k"]
) -> dict[str, ParameterEstimate]:
    """The estimates by name. The interval of an unidentifiable parameter is that of its bounds."""
    is_inner = np.isfinite(std) & (best.slopes > 0)
    half_width = SIGMAS * np.where(is_inner, std, 0.0) / np.where(is_inner, best.slopes, 1.0)
    low, high = search.values(best.z - half_width), search.values(best.z + half_width)
    estimates = {}
    for i, (name, parameter) in enumerate(zip(search.names, search.owners, strict=True)):
        value, is_at_bound = float(best.psi[i]), bool(best.is_at_bound[i])
        interval = parameter.bounds
        if is_at_bound:
            interval = (value, value)
        elif is_inner[i]:
            interval = (float(low[i]), float(high[i]))
        estimates[name] = ParameterEstimate(value, float(std[i]), interval, parameter.unit, is_at_bound)
    return estimates


def _distinct_optima(
    search: LikelihoodSearch, maxima: list[LikelihoodMaximum], has_flat_direction: bool
) -> tuple[Optimum, ...]:
    """The distinct maxima, the best first. With a flat direction, maxima of equal likelihood count as one."""
    groups: list[list[LikelihoodMaximum]] = []
    for one in maxima:
        for group in groups:
            other = group[0]
            distance = np.abs(one.z - other.z) * ~(one.is_at_bound & other.is_at_bound)
            is_near = has_flat_direction or float(np.max(distance)) < _SAME[1]
            if abs(one.log_likelihood - other.log_likelihood) < _SAME[0] and is_near:
                group.append(one)
                break
        else:
            groups.append([one])
    return tuple(
        Optimum(
            dict(zip(search.names, map(float, g[0].psi), strict=True)),
            g[0].log_likelihood,
            g[0].converged,
            len(g),
        )
        for g in groups
    )
