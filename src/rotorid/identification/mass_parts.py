"""In which parts of flights the mass is constant: the cheapest way to cut what the windows say of it.

    m_w = m - (b_w . r_w) / (b_w . b_w)                        each window's own opinion, to first order, others held
    min over cuts of  sum_parts sum_w (m_w - mean)^2 / s_w^2 + beta (cuts)

by dynamic programming over all ways to cut (optimal partitioning). s_w is the spread that neighbours show, not what the noise
explains alone, and beta lets a cut in a flight without a change happen less than once in a hundred flights.

Reference: B. Jackson et al., An algorithm for optimal partitioning of data on an interval, IEEE Signal Processing Letters 12
(2005).
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from rotorid.identification.drive import Parts
from rotorid.identification.segments import Segments
from rotorid.identification.solving import Solved

_SHORTEST = 3  # windows of a part
_PENALTY = 6.0  # of a cut, times the logarithm of how many windows there are
_LEAST_STEP = 0.01  # of the mass: less is not worth a part


def mass_parts(solved: Solved, data: Segments, parts: Parts) -> Parts:
    """The parts of constant mass, from a fit that had the mass free in other parts."""
    problem = solved.problem
    start, place = problem.start, problem.coordinates.places["mass"]
    triangle = solved.triangle
    columns = triangle[:, start:, start + place.start : start + place.stop]
    r = triangle[:, start:, -1]
    b = columns.sum(axis=2)
    size = np.maximum(np.sum(b**2, axis=1), 1e-300)
    part = parts.of(data.flight, data.start)
    scale = problem.scale[place.start]
    log_mass = problem.centre[place.start] + scale * (solved.z[place][part] - np.sum(b * r, axis=1) / size)
    flights, starts = [], []
    for f in np.unique(data.flight):
        mine = np.flatnonzero(data.flight == f)
        cuts = cut(log_mass[mine], size[mine] / scale**2)
        flights += [f] * (len(cuts) + 1)
        starts += [0.0, *(0.5 * (data.start[mine[k]] + data.end[mine[k - 1]]) for k in cuts)]
    return Parts(np.array(flights), np.array(starts))


def cut(value: Float[np.ndarray, " n"], weight: Float[np.ndarray, " n"]) -> list[int]:
    """Where to cut a series into constant parts: the first index of each part but the first.

    weight: one over the variance of each value, up to a common factor that the series itself tells.
    """
    n = len(value)
    if n < 2 * _SHORTEST:
        return []
    pulls = np.diff(value) / np.sqrt(1.0 / weight[1:] + 1.0 / weight[:-1])
    spread = max(1.4826 * float(np.median(np.abs(pulls))), 1e-12)
    w = np.minimum(weight / spread**2, 4.0 / _LEAST_STEP**2)
    sums = [np.concatenate([[0.0], np.cumsum(w * value**k)]) for k in range(3)]
    penalty = _PENALTY * np.log(n)
    best, before = np.full(n + 1, np.inf), np.zeros(n + 1, dtype=int)
    best[0] = -penalty
    for end in range(_SHORTEST, n + 1):
        begin = np.arange(0, end - _SHORTEST + 1)
        s0, s1, s2 = (s[end] - s[begin] for s in sums)
        cost = best[begin] + s2 - s1**2 / s0 + penalty
        before[end] = int(np.argmin(cost))
        best[end] = cost[before[end]]
    cuts, k = [], n
    while before[k] > 0:
        k = before[k]
        cuts.append(int(k))
    return cuts[::-1]
