"""Maximisation of a log-likelihood by Newton steps within a trust region, from several starts.

    z -> psi(z) = to_value(c + s z)      l(z) = l(psi(z))      dl/dz = l' psi'      d2l/dz2 = psi' l'' psi' + diag(l' psi'')

The coordinates are those of estimation (`rotorid.models.joint`): the logarithm of a positive parameter, the logit of a
parameter with two bounds, and a parameter without bounds in units of its std. l' and l'' are exact, by JAX. If the
likelihood increases up to a bound (such as a variance of 0), the parameter is held at the bound, and the others are
estimated.
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

from rotorid.models.joint import slope, to_coordinate, to_value
from rotorid.models.system import Parameter

LogLikelihood = Callable[[dict[str, Array], Any], Array]
"""A log-likelihood of the parameters by name, and of data."""

_GRADIENT: Final = (1e-3, 1e-6)
"""Gradient of l per coordinate at which bounds are tested, and at which a search ends."""

_REMAINING: Final = 1e-5
"""Largest increase of l by a further Newton step for which a search has converged."""

_SPREAD: Final = (0.3, 2.0)
"""Limits of the standard deviation of random starts, in coordinates with bounds."""

_AT_BOUND: Final = (1e-6, 1e-3)
"""Criteria for a maximum at a bound: largest decrease of l from the end of the search to the bound, and smallest
decrease, by the slope at the bound, from there to the start of the search."""

_FORWARD: Final = 4
"""Number of parameters up to which derivatives are taken in forward mode, which compiles in half the time."""

_LARGEST_STEP: Final = 5.0  # in coordinates


@dataclasses.dataclass(frozen=True)
class LikelihoodMaximum:
    """The end of a search.

    z: coordinates. psi: parameters. is_at_bound: whether l is largest at a bound of the parameter. gradient, hessian: of l and
    of -l by psi. sizes: of significant changes of psi. slopes: d psi / d z.
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
    """l, its gradient g and Hessian H by psi; psi, and its first and second derivatives by z."""

    value: np.ndarray
    g: np.ndarray
    H: np.ndarray
    psi: np.ndarray
    slopes: np.ndarray
    curvatures: np.ndarray

    def in_z(self) -> tuple[np.ndarray, np.ndarray]:
        """Gradient and Hessian of l by z."""
        curvature = np.diag(self.g * self.curvatures)
        return self.g * self.slopes, self.slopes[:, None] * self.H * self.slopes + curvature


class LikelihoodSearch:
    """The search over the free parameters (std above 0) of a log-likelihood.

    log_likelihood: compiled once for the same function object and parameters. data: its second argument.
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
        self._slopes = self._scale * np.array([slope(p, v, np) for p, v in each])
        std = np.array([p.std for p, _ in each]) / self._slopes
        self._spread = np.where([_bounded(p) for p, _ in each], np.clip(std, *_SPREAD), std)
        self._latest: dict[tuple[bytes, ...], _Derivatives] = {}
        """The last point, and the derivatives there."""

    def starts(self, count: int, seed: int) -> Float[np.ndarray, "count k"]:
        """Coordinates of the start values, and random coordinates around them."""
        coordinates = np.random.default_rng(seed).normal(size=(count, len(self.start))) * self._spread
        coordinates[0] = 0.0
        return coordinates

    def values(self, z: Float[np.ndarray, " k"]) -> Float[np.ndarray, " k"]:
        """Parameters in their units at the coordinates z."""
        return np.asarray(_values(self._parameters, self._centre + self._scale * z))

    def maximise(self, z: Float[np.ndarray, " k"], iterations: int) -> LikelihoodMaximum | None:
        """Search from the coordinates z; None if the likelihood is not finite there."""
        held = np.zeros(len(z), bool)
        held_values = np.zeros(len(z))
        maximum = self._climb(z, held, held_values, iterations, _GRADIENT[0])
        is_final = False
        while maximum is not None and not is_final:
            bounds = self._find_bounds(maximum, held, held_values)
            for i, bound in bounds:
                held[i], held_values[i] = True, bound
            is_final = not bounds
            maximum = self._climb(maximum.z, held, held_values, iterations, _GRADIENT[is_final]) or maximum
        return maximum

    def _evaluate(self, z: np.ndarray, held: np.ndarray, held_values: np.ndarray) -> _Derivatives:
        key = (z.tobytes(), held.tobytes(), held_values.tobytes())
        if key not in self._latest:
            point = self._centre + self._scale * z, self._scale, held, held_values
            found = _derivatives(self._function, self._parameters, *point, self._data)
            self._latest = {key: _Derivatives(*map(np.asarray, found))}
        return self._latest[key]

    def _climb(
        self, z: np.ndarray, held: np.ndarray, held_values: np.ndarray, iterations: int, tolerance: float
    ) -> LikelihoodMaximum | None:
        """Maximise over the parameters that are not held, down to a gradient of `tolerance`; None if l is not finite at z."""
        free, held = np.flatnonzero(~held), held.copy()

        def at(part: np.ndarray) -> tuple[np.ndarray, float, np.ndarray, np.ndarray]:
            whole = z.copy()
            whole[free] = part
            at_z = self._evaluate(whole, held, held_values)
            gradient, hessian = at_z.in_z()
            is_finite = all(np.all(np.isfinite(x)) for x in (at_z.value, gradient, hessian))
            return whole, float(at_z.value) if is_finite else -math.inf, gradient, hessian

        if not math.isfinite(at(z[free])[1]):
            return None
        if len(free):
            end = minimize(
                lambda part: -at(part)[1],
                z[free],
                jac=lambda part: -at(part)[2][free],
                hess=lambda part: -at(part)[3][np.ix_(free, free)],
                method="trust-exact",
                options={"gtol": tolerance, "maxiter": iterations, "max_trust_radius": _LARGEST_STEP},
            )
            z = at(np.asarray(end.x))[0]
        at_z = self._evaluate(z, held, held_values)
        gradient, hessian = at_z.in_z()
        converged = _is_converged(-hessian[np.ix_(free, free)], gradient[free])
        is_at_bound = held & (np.abs(at_z.g * (self.start - held_values)) >= _AT_BOUND[1])
        sizes = np.maximum(at_z.slopes, 0.1 * self._slopes)
        return LikelihoodMaximum(
            z, at_z.psi, is_at_bound, float(at_z.value), at_z.g, -at_z.H, sizes, at_z.slopes, converged
        )

    def _find_bounds(
        self, maximum: LikelihoodMaximum, held: np.ndarray, held_values: np.ndarray
    ) -> list[tuple[int, float]]:
        """Index and bound of each free parameter for which l is largest at the bound."""
        at_bound = []
        for i in np.flatnonzero(~held):
            slope, bounds = maximum.gradient[i], self.owners[i].bounds
            bound = bounds[1] if slope > 0 else bounds[0]
            if not math.isfinite(bound) or abs(slope * (self.start[i] - bound)) < _AT_BOUND[1]:
                continue
            also_held, values = held.copy(), held_values.copy()
            also_held[i], values[i] = True, bound
            likelihood = float(self._evaluate(maximum.z, also_held, values).value)
            if likelihood >= maximum.log_likelihood - _AT_BOUND[0]:
                at_bound.append((int(i), bound))
        return at_bound


def component_names(p: Parameter) -> tuple[str, ...]:
    """Names of the components of a parameter: "drag", or "drag_1", "drag_2", ..."""
    if not isinstance(p.value, tuple):
        return (p.name,)
    return tuple(f"{p.name}_{k + 1}" for k in range(len(p.value)))


def _bounded(p: Parameter) -> bool:
    return any(map(math.isfinite, p.bounds))


def _is_converged(hessian: Float[np.ndarray, "k k"], gradient: Float[np.ndarray, " k"]) -> bool:
    """Whether a Newton step would not increase l significantly, and l increases in no direction."""
    if not len(gradient):
        return True
    values, vectors = np.linalg.eigh(hessian)
    largest = max(float(np.abs(values).max()), 1.0)
    is_curved = values > 1e-9 * largest
    projected = vectors.T @ gradient
    return bool(
        values.min() > -1e-6 * largest
        and np.sum(projected[is_curved] ** 2 / values[is_curved]) < _REMAINING
        and np.all(np.abs(projected[~is_curved]) < 1e-3)
    )


@partial(jax.jit, static_argnums=0)
def _values(parameters: tuple[Parameter, ...], coordinates: Float[Array, " k"]) -> Float[Array, " k"]:
    """The free parameters in their units."""
    parts, start = [], 0
    for p in parameters:
        if p.tracked:
            parts.append(to_value(p, coordinates[start : start + len(p.values)]))
            start += len(p.values)
    return jnp.concatenate(parts)


@partial(jax.jit, static_argnums=(0, 1))
def _derivatives(
    function: LogLikelihood,
    parameters: tuple[Parameter, ...],
    coordinates: Float[Array, " k"],
    scale: Float[Array, " k"],
    held: Bool[Array, " k"],
    held_values: Float[Array, " k"],
    data: Any,
) -> tuple[Array, ...]:
    """The fields of `_Derivatives`."""

    def values(c):
        return jnp.where(held, held_values, _values(parameters, c))

    def first(c):
        return jax.jvp(values, (c,), (scale,))[1]

    def likelihood(psi):
        named, start = {}, 0
        for p in parameters:
            if p.tracked:
                part = psi[start : start + len(p.values)]
                start += len(p.values)
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
    curvatures = jax.jvp(first, (coordinates,), (scale,))[1]
    H, (value, g) = jax.jacfwd(gradient, has_aux=True)(psi)
    return value, g, H, psi, slopes, curvatures
