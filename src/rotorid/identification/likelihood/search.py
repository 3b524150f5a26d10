"""The search for the maximum of a log-likelihood, from several starts, by Newton steps within a trust region.

    z -> psi(z) = to_value(c + s z)      l(z) = l(psi(z))      dl/dz = l' psi'      d2l/dz2 = psi' l'' psi' + diag(l' psi'')

The coordinates are those of estimation (`models.joint`): the logarithm of a positive parameter, the logit of one between two
bounds, the parameter itself, in units of its std, without bounds. l' and l'' are exact, by JAX. A likelihood that grows all the
way to a bound (a variance that is best 0) has its maximum there: the parameter is held at its bound, and the others are found.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float
from scipy.optimize import minimize

from rotorid.models.joint import to_coordinate, to_value
from rotorid.models.system import Parameter

LogLikelihood = Callable[[dict[str, Array], Any], Array]
"""A log-likelihood of the parameters by name, and of data."""

_GRADIENT: Final = (1e-3, 1e-6)
"""Of l per coordinate: at which it is asked whether a bound is better, and at which a search ends."""

_LEFT: Final = 1e-5
"""What the last Newton step would still gain, in l, where a search has converged."""

_SPREAD: Final = (0.3, 2.0)
"""Least and most that a start is drawn away, in standard deviations, in coordinates with bounds."""

_AT_BOUND: Final = (1e-6, 1e-3)
"""How much l may fall on the way to a bound that is best, and by how much at least it falls, at its slope there, from the bound
to where the search began."""

_FORWARD: Final = 4
"""Parameters up to which derivatives are taken forwards: that compiles in half the time."""

_WIDEST: Final = 5.0  # a step in coordinates


@dataclasses.dataclass(frozen=True)
class LikelihoodMaximum:
    """Where a search ended. z: coordinates. psi: parameters. held: those that are best at a bound, where l falls inwards.
    gradient, hessian: of l and of -l in psi. sizes: by how much each psi must move to matter. slopes: d psi / d z.
    """

    z: Float[np.ndarray, " k"]
    psi: Float[np.ndarray, " k"]
    is_at_bound: Bool[np.ndarray, " k"]
    log_likelihood: float
    gradient: Float[np.ndarray, " k"]
    hessian: Float[np.ndarray, "k k"]
    sizes: Float[np.ndarray, " k"]
    slopes: Float[np.ndarray, " k"]
    converged: bool


class _Derivatives(NamedTuple):
    """l, its derivatives in psi, psi, and its derivatives in z."""

    value: np.ndarray
    g: np.ndarray
    H: np.ndarray
    psi: np.ndarray
    slopes: np.ndarray
    curved: np.ndarray

    def in_z(self) -> tuple[np.ndarray, np.ndarray]:
        """Gradient and Hessian in z."""
        bent = np.diag(self.g * self.curved)
        return self.g * self.slopes, self.slopes[:, None] * self.H * self.slopes + bent


class LikelihoodSearch:
    """The search over the free parameters (std above 0) of a log-likelihood.

    log_likelihood: hashed by identity, compiled once for the same function and parameters. data: what it is given.
    """

    def __init__(self, log_likelihood: LogLikelihood, parameters: Sequence[Parameter], data: Any) -> None:
        self._function, self._parameters, self._data = log_likelihood, tuple(parameters), data
        self.free = tuple(p for p in parameters if p.tracked)
        self.names = tuple(n for p in self.free for n in component_names(p))
        each = [(p, v) for p in self.free for v in p.values]
        self.start = np.array([v for _, v in each])
        self.owners = tuple(p for p, _ in each)
        self._centre = np.array([to_coordinate(p, v) for p, v in each])
        self._scale = np.array([1.0 if _bounded(p) else p.std for p, _ in each])
        self._slopes = self._scale * np.array([_slope(p, v) for p, v in each])
        away = np.array([p.std for p, _ in each]) / self._slopes
        self._spread = np.where([_bounded(p) for p, _ in each], np.clip(away, *_SPREAD), away)

    def starts(self, count: int, seed: int) -> Float[np.ndarray, "count k"]:
        """The parameters' own values, and coordinates drawn about them."""
        drawn = np.random.default_rng(seed).normal(size=(count, len(self.start))) * self._spread
        drawn[0] = 0.0
        return drawn

    def values(self, z: Float[np.ndarray, " k"]) -> Float[np.ndarray, " k"]:
        """Parameters in their units."""
        coordinates = self._centre + self._scale * z
        return np.array(
            [float(to_value(p, jnp.asarray(c))) for p, c in zip(self.owners, coordinates, strict=True)]
        )

    def maximise(self, z: Float[np.ndarray, " k"], iterations: int) -> LikelihoodMaximum | None:
        """The maximum that a search from z finds; None where the likelihood is not finite at z."""
        held = np.zeros(len(z), bool)
        rest = np.zeros(len(z))
        found = self._climb(z, held, rest, iterations, _GRADIENT[0])
        final = False
        while found is not None and not final:
            bounds = self._find_bounds(found, held, rest)
            for i, bound in bounds:
                held[i], rest[i] = True, bound
            final = not bounds
            found = self._climb(found.z, held, rest, iterations, _GRADIENT[final]) or found
        return found

    def _evaluate(self, z: np.ndarray, held: np.ndarray, rest: np.ndarray) -> _Derivatives:
        point = self._centre + self._scale * z, self._scale, held, rest
        return _Derivatives(
            *map(np.asarray, _derivatives(self._function, self._parameters, *point, self._data))
        )

    def _climb(
        self, z: np.ndarray, held: np.ndarray, rest: np.ndarray, iterations: int, least: float
    ) -> LikelihoodMaximum | None:
        free, held = np.flatnonzero(~held), held.copy()
        seen: dict[bytes, tuple[np.ndarray, float, np.ndarray, np.ndarray]] = {}

        def at(part: np.ndarray) -> tuple[np.ndarray, float, np.ndarray, np.ndarray]:
            key = part.tobytes()
            if key not in seen:
                whole = z.copy()
                whole[free] = part
                at_z = self._evaluate(whole, held, rest)
                gradient, hessian = at_z.in_z()
                good = all(np.all(np.isfinite(x)) for x in (at_z.value, gradient, hessian))
                seen.clear()
                seen[key] = (whole, float(at_z.value) if good else -math.inf, gradient, hessian)
            return seen[key]

        if not math.isfinite(at(z[free])[1]):
            return None
        if len(free):
            end = minimize(
                lambda part: -at(part)[1],
                z[free],
                jac=lambda part: -at(part)[2][free],
                hess=lambda part: -at(part)[3][np.ix_(free, free)],
                method="trust-exact",
                options={"gtol": least, "maxiter": iterations, "max_trust_radius": _WIDEST},
            )
            z = at(np.asarray(end.x))[0]
        at_z = self._evaluate(z, held, rest)
        gradient, hessian = at_z.in_z()
        settled = _is_converged(-hessian[np.ix_(free, free)], gradient[free])
        best = held & (np.abs(at_z.g * (self.start - rest)) >= _AT_BOUND[1])
        sizes = np.maximum(at_z.slopes, 0.1 * self._slopes)
        return LikelihoodMaximum(
            z, at_z.psi, best, float(at_z.value), at_z.g, -at_z.H, sizes, at_z.slopes, settled
        )

    def _find_bounds(
        self, found: LikelihoodMaximum, held: np.ndarray, rest: np.ndarray
    ) -> list[tuple[int, float]]:
        """Numbers that are not held and are best at a bound, and which."""
        named = []
        for i in np.flatnonzero(~held):
            slope, bounds = found.gradient[i], self.owners[i].bounds
            bound = bounds[1] if slope > 0 else bounds[0]
            if not math.isfinite(bound) or abs(slope * (self.start[i] - bound)) < _AT_BOUND[1]:
                continue
            also, there = held.copy(), rest.copy()
            also[i], there[i] = True, bound
            if float(self._evaluate(found.z, also, there).value) >= found.log_likelihood - _AT_BOUND[0]:
                named.append((int(i), bound))
        return named


def component_names(p: Parameter) -> tuple[str, ...]:
    """Names of a parameter's numbers: "drag", or "drag_1", "drag_2", ..."""
    if not isinstance(p.value, tuple):
        return (p.name,)
    return tuple(f"{p.name}_{k + 1}" for k in range(len(p.value)))


def _bounded(p: Parameter) -> bool:
    return any(map(math.isfinite, p.bounds))


def _slope(p: Parameter, value: float) -> float:
    at = jnp.asarray(to_coordinate(p, value), float)
    return float(jax.grad(lambda c: to_value(p, c))(at))


def _is_converged(hessian: Float[np.ndarray, "k k"], gradient: Float[np.ndarray, " k"]) -> bool:
    """Whether a Newton step would gain next to nothing, and no direction leads up."""
    if not len(gradient):
        return True
    values, vectors = np.linalg.eigh(hessian)
    most = max(float(np.abs(values).max()), 1.0)
    curved = values > 1e-9 * most
    along = vectors.T @ gradient
    return bool(
        values.min() > -1e-6 * most
        and np.sum(along[curved] ** 2 / values[curved]) < _LEFT
        and np.all(np.abs(along[~curved]) < 1e-3)
    )


@partial(jax.jit, static_argnums=(0, 1))
def _derivatives(
    function: LogLikelihood,
    parameters: tuple[Parameter, ...],
    coordinates: Float[Array, " k"],
    scale: Float[Array, " k"],
    held: Bool[Array, " k"],
    rest: Float[Array, " k"],
    data: Any,
) -> tuple[Array, ...]:
    """What `_Told` holds."""

    def values(c):
        parts, at = [], 0
        for p in parameters:
            if p.tracked:
                parts.append(to_value(p, c[at : at + len(p.values)]))
                at += len(p.values)
        return jnp.where(held, rest, jnp.concatenate(parts))

    def first(c):
        return jax.jvp(values, (c,), (scale,))[1]

    def likelihood(psi):
        named, at = {}, 0
        for p in parameters:
            if p.tracked:
                part = psi[at : at + len(p.values)]
                at += len(p.values)
            else:
                part = jnp.asarray(p.values, psi.dtype)
            named[p.name] = part if isinstance(p.value, tuple) else part[0]
        return function(named, data)

    def gradient(psi):
        if psi.size <= _FORWARD:
            slope, value = jax.jacfwd(lambda at: (likelihood(at),) * 2, has_aux=True)(psi)
        else:
            value, slope = jax.value_and_grad(likelihood)(psi)
        return slope, (value, slope)

    psi, slopes = values(coordinates), first(coordinates)
    curved = jax.jvp(first, (coordinates,), (scale,))[1]
    H, (value, g) = jax.jacfwd(gradient, has_aux=True)(psi)
    return value, g, H, psi, slopes, curved
