"""In which parts of flights mass and wind are constant: the cheapest way to cut what the windows say of them.

    m_w = m - (B_w^T B_w)^-1 B_w^T r_w                         each window's own opinion, to first order, others held
    min over cuts of  sum_parts sum_w (m_w - mean)^2 / s_w^2 + beta (cuts)

by dynamic programming over all ways to cut (optimal partitioning). s_w is the spread that neighbours show, not what the noise
explains alone, and beta lets a cut in a flight without a change happen less than once in a hundred flights.

Reference: B. Jackson et al., An algorithm for optimal partitioning of data on an interval, IEEE Signal Processing Letters 12
(2005).
"""

from __future__ import annotations

import dataclasses

import numpy as np
from jaxtyping import Float

from rotorid.identification.drive import Parts
from rotorid.identification.segments import Segments
from rotorid.identification.solving import Solved
from rotorid.models.flown_body import local_width

_PENALTY = 6.0  # of a cut of one number, times the logarithm of how many windows there are


@dataclasses.dataclass(frozen=True)
class Rule:
    """shortest: windows of a part. least: step that is worth one."""

    shortest: int
    least: float


MASS = Rule(3, 0.01)
"""Of its logarithm."""

WIND = Rule(6, 0.5)
"""m/s. What is wrong with a model of drag looks like wind for some seconds."""


def mass_parts(solved: Solved, data: Segments, parts: Parts) -> Parts:
    """The parts of constant mass, from a fit that had the mass free in other parts."""
    return _parted(data, *_opinions(solved, data, parts, "mass"), MASS)


def wind_parts(solved: Solved, data: Segments, parts: Parts) -> Parts:
    """The parts of constant wind, likewise."""
    return _parted(data, *_opinions(solved, data, parts, "wind"), WIND)


def _opinions(
    solved: Solved, data: Segments, parts: Parts, name: str
) -> tuple[Float[np.ndarray, "w k"], Float[np.ndarray, "w k"]]:
    """Each window's own opinion of a local input, of a mass of its logarithm, and one over the variance of that."""
    problem = solved.problem
    start, place = problem.start, problem.coordinates.places[name]
    triangle, k = solved.triangle, local_width(name)
    columns = triangle[:, start:, start + place.start : start + place.stop]
    B = columns.reshape(*columns.shape[:2], -1, k).sum(axis=2)
    r = triangle[:, start:, -1]
    told = np.einsum("wri,wrj->wij", B, B)
    told += (1e-12 * np.trace(told, axis1=1, axis2=2)[:, None, None] + 1e-300) * np.eye(k)
    inverse = np.linalg.inv(told)
    part = parts.of(data.flight, data.start)
    z = solved.z[place].reshape(-1, k)[part] - np.einsum("wij,wrj,wr->wi", inverse, B, r)
    centre, scale = (v[place][:k] for v in (problem.centre, problem.scale))
    return centre + scale * z, 1.0 / (scale**2 * np.diagonal(inverse, axis1=1, axis2=2))


def _parted(
    data: Segments, value: Float[np.ndarray, "w k"], weight: Float[np.ndarray, "w k"], rule: Rule
) -> Parts:
    flights, starts = [], []
    for f in np.unique(data.flight):
        mine = np.flatnonzero(data.flight == f)
        cuts = cut(value[mine], weight[mine], rule)
        flights += [f] * (len(cuts) + 1)
        starts += [0.0, *(0.5 * (data.start[mine[k]] + data.end[mine[k - 1]]) for k in cuts)]
    return Parts(np.array(flights), np.array(starts))


def cut(value: Float[np.ndarray, "n k"], weight: Float[np.ndarray, "n k"], rule: Rule) -> list[int]:
    """Where to cut a series into constant parts: the first index of each part but the first.

    weight: one over the variance of each value, up to a factor for each column that the series itself tells.
    """
    n, k = value.shape
    if n < 2 * rule.shortest:
        return []
    pulls = np.diff(value, axis=0) / np.sqrt(1.0 / weight[1:] + 1.0 / weight[:-1])
    spread = np.maximum(1.4826 * np.median(np.abs(pulls), axis=0), 1e-12)
    w = np.minimum(weight / spread**2, 4.0 / rule.least**2)
    sums = [np.concatenate([np.zeros((1, k)), np.cumsum(w * value**power, axis=0)]) for power in range(3)]
    penalty = _PENALTY * np.log(n) * 0.5 * (1 + k)
    best, before = np.full(n + 1, np.inf), np.zeros(n + 1, dtype=int)
    best[0] = -penalty
    for end in range(rule.shortest, n + 1):
        begin = np.arange(0, end - rule.shortest + 1)
        s0, s1, s2 = (s[end] - s[begin] for s in sums)
        cost = best[begin] + np.sum(s2 - s1**2 / s0, axis=1) + penalty
        before[end] = int(np.argmin(cost))
        best[end] = cost[before[end]]
    cuts, end = [], n
    while before[end] > 0:
        end = before[end]
        cuts.insert(0, int(end))
    return _worth(cuts, value, weight, rule)


def _worth(
    cuts: list[int], value: Float[np.ndarray, "n k"], weight: Float[np.ndarray, "n k"], rule: Rule
) -> list[int]:
    """The cuts whose parts differ enough, the least different joined first."""
    while cuts:
        begin = [0, *cuts]
        mean = np.add.reduceat(weight * value, begin) / np.add.reduceat(weight, begin)
        step = np.abs(np.diff(mean, axis=0)).max(axis=1)
        if step.min() >= rule.least:
            break
        cuts = [c for i, c in enumerate(cuts) if i != int(np.argmin(step))]
    return cuts
