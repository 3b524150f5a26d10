"""Fit: the result of a batch identification, and in words what the flights could not tell."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Mapping

import numpy as np
import scipy.linalg
from jaxtyping import Float

from rotorid.models.quantity_names import by_vectors

UNTOLD = 0.5
"""Share of the prior's variance from which on a direction counts as not told."""

_TAKES_PART = 0.2  # of the largest component of a direction
_NEGLIGIBLE = 0.02  # of it: rounding, and what hardly matters
_MOST_CHOICES = 5000  # of a basis
_SINGULAR = 1e6


@dataclasses.dataclass(frozen=True)
class Span:
    """A part of a flight that is not free flight. flight: its number. start, end: s. force, torque, ...: by name, `push`.

    push: the disturbance there, in the disturbance's unit, mean over its windows. excess: how far out, in robust standard
    deviations.
    """

    flight: int
    start: float
    end: float
    push: Mapping[str, tuple[float, ...]]
    excess: float


@dataclasses.dataclass(frozen=True)
class Direction:
    """A combination of quantities that the flights do not tell. names: what moves. weights: how far each, in std of its prior.

    share: of the prior's variance that is left. together: whether all of them scale by one factor.
    """

    names: tuple[str, ...]
    weights: tuple[float, ...]
    share: float
    together: bool

    @property
    def words(self) -> str:
        """One sentence about it."""
        names = [name.replace("_", " ") for name in by_vectors(self.names)]
        if len(names) == 1:
            return f"the flights do not tell {names[0]}: its prior stands"
        listed = f"{', '.join(names[:-1])} and {names[-1]}"
        what = "ratios" if self.together else "relation"
        return f"{listed} move together: the flights tell only their {what}"


@dataclasses.dataclass(frozen=True)
class Fit:
    """Parameters found in flights, by quantity ("mass", "inertia_x", ...), in units.

    names: quantities in order. values, std, unit: of each. covariance: of them all, which allows for residuals that are not
    white. prior, prior_std: before the flights. at_bound: quantities that came to rest at their least value, 0. told: share of
    the prior's standard deviation that the flights removed, 0 to 1. untold: directions that they did not tell. rms_before,
    rms: of the residuals by output in its unit, with the prior's values and with the fitted ones, starts fitted in both. noise:
    of each output as it was weighed. suspicious: parts of flights where something pushed. windows: how many. iterations: taken.
    converged: whether they ended by themselves. parameters: the fitted values as the System takes them.
    """

    names: tuple[str, ...]
    values: Mapping[str, float]
    std: Mapping[str, float]
    unit: Mapping[str, str]
    covariance: Float[np.ndarray, "n n"]
    prior: Mapping[str, float]
    prior_std: Mapping[str, float]
    at_bound: tuple[str, ...]
    told: Mapping[str, float]
    untold: tuple[Direction, ...]
    rms_before: Mapping[str, float]
    rms: Mapping[str, float]
    noise: Mapping[str, tuple[float, ...]]
    suspicious: tuple[Span, ...]
    windows: int
    iterations: int
    converged: bool
    parameters: Mapping[str, float | tuple[float, ...]]

    @property
    def correlation(self) -> Float[np.ndarray, "n n"]:
        """Correlations of the quantities."""
        std = np.sqrt(np.diag(self.covariance))
        return self.covariance / np.outer(std, std)

    @property
    def messages(self) -> tuple[str, ...]:
        """What to know before the numbers are used, a sentence each."""
        found = [d.words for d in self.untold]
        for name in self.at_bound:
            words = name.replace("_", " ")
            if name.startswith("inertia"):
                found.append(
                    f"{words} is as large as the other two moments allow: look at what holds it there"
                )
            else:
                found.append(f"{words} came to rest at {self.values[name]:g}, the least that it can be")
        if not self.converged:
            found.append(f"the fit did not settle in {self.iterations} iterations: the values may be off")
        found += [
            f"flight {s.flight} from {s.start:.2f} to {s.end:.2f} s is not free flight: something pushed"
            for s in self.suspicious
        ]
        return tuple(found)

    def ratio(self, over: str, under: str) -> tuple[float, float]:
        """The ratio of two quantities and its standard deviation, which is small where the flights tell no more than that."""
        i, j = self.names.index(over), self.names.index(under)
        a, b = self.values[over], self.values[under]
        gradient = np.array([1.0 / b, -a / (b * b)])
        P = self.covariance[np.ix_([i, j], [i, j])]
        return a / b, math.sqrt(max(float(gradient @ P @ gradient), 0.0))


def untold_directions(
    names: tuple[str, ...],
    posterior: Float[np.ndarray, "n n"],
    relative: Float[np.ndarray, " n"],
) -> tuple[Direction, ...]:
    """Directions in which the posterior is nearly as wide as the prior.

    posterior: covariance of the prior's errors e, which had covariance I before. relative: standard deviation of the logarithm
    of each quantity that is positive, 0 for others. Of a subspace of several dimensions, the basis is the one of those that row
    reduction gives whose directions name the fewest quantities, and most often such that scale together.
    """
    share, vectors = np.linalg.eigh(posterior)
    U = vectors[:, share > UNTOLD]
    k = U.shape[1]
    if not k:
        return ()
    pivoting: tuple = scipy.linalg.qr(U.T, mode="economic", pivoting=True)
    choices = [tuple(pivoting[-1][:k])]
    if math.comb(len(names), k) <= _MOST_CHOICES:
        choices += itertools.combinations(range(len(names)), k)
    best, least = (), math.inf
    for rows in choices:
        if np.linalg.cond(U[list(rows)]) > _SINGULAR:
            continue
        basis = (U @ np.linalg.inv(U[list(rows)])).T
        found = tuple(_direction(names, v / np.linalg.norm(v), posterior, relative) for v in basis)
        clumsy = sum(len(d.names) + len(names) * (len(d.names) > 1 and not d.together) for d in found)
        if clumsy < least:
            best, least = found, clumsy
    return best


def _direction(
    names: tuple[str, ...],
    v: Float[np.ndarray, " n"],
    posterior: Float[np.ndarray, "n n"],
    relative: Float[np.ndarray, " n"],
) -> Direction:
    positive, scaled = relative > 0, v * relative  # change of the logarithms
    shown = np.abs(v) / np.abs(v).max()
    grown = np.abs(scaled) / max(np.abs(scaled).max(), 1e-300)
    part = np.where(positive & (shown > _NEGLIGIBLE), np.maximum(shown, grown), shown) > _TAKES_PART
    change = scaled[part]
    together = bool(np.all(positive[part]) and np.ptp(change) < _TAKES_PART * np.abs(change).max())
    which = np.flatnonzero(part)
    return Direction(
        tuple(names[i] for i in which), tuple(float(v[i]) for i in which), float(v @ posterior @ v), together
    )
