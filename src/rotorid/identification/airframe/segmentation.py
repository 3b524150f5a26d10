"""Segments of flights with constant mass or wind: optimal partitioning of the estimates of single windows.

    m_w = m - (B_w^T B_w)^-1 B_w^T r_w            estimate of window w, to first order, all other parameters held
    min over changepoints of  sum_segments sum_w (m_w - mean)^2 / s_w^2 + beta (changepoints)

by dynamic programming. s_w is the spread of neighbouring windows, not the standard deviation from noise alone; with beta a
changepoint in a flight without a change has a probability below 1 %.

Reference: B. Jackson et al., An algorithm for optimal partitioning of data on an interval, IEEE Signal Processing Letters 12
(2005).
"""

from __future__ import annotations

import dataclasses

import numpy as np
from jaxtyping import Float

from rotorid.identification.airframe.window_inputs import Segmentation
from rotorid.identification.fitting.estimation import Estimation
from rotorid.identification.fitting.windows import WindowData
from rotorid.models.multirotor.logged_body import local_width

_PENALTY = 6.0  # of a cut of one number, times the logarithm of how many windows there are


@dataclasses.dataclass(frozen=True)
class SegmentationRule:
    """Attributes:
    min_windows: least number of windows of a segment.
    min_step: least change between segments.
    """

    min_windows: int
    min_step: float


MASS = SegmentationRule(3, 0.01)
"""Changes of the mass's logarithm."""

WIND = SegmentationRule(6, 0.5)
"""Changes of the wind, m/s. Errors of a drag model look like wind for some seconds."""


def segment_mass(solved: Estimation, data: WindowData, parts: Segmentation) -> Segmentation:
    """Segments of constant mass.

    Args:
        solved: a fit with the mass free in other segments.
        data: its windows.
        parts: its segments.
    """
    return _segment(data, *_window_estimates(solved, data, parts, "mass"), MASS)


def segment_wind(solved: Estimation, data: WindowData, parts: Segmentation) -> Segmentation:
    """Segments of constant wind; arguments as of `segment_mass`."""
    return _segment(data, *_window_estimates(solved, data, parts, "wind"), WIND)


def _window_estimates(
    solved: Estimation, data: WindowData, parts: Segmentation, name: str
) -> tuple[Float[np.ndarray, "w k"], Float[np.ndarray, "w k"]]:
    """Estimate of each window of a flight-dependent input (the logarithm of a mass), and the inverse of its variance."""
    problem = solved.problem
    start, place = problem.start_size, problem.coordinates.slices[name]
    triangle, k = solved.triangle, local_width(name)
    columns = triangle[:, start:, start + place.start : start + place.stop]
    B = columns.reshape(*columns.shape[:2], -1, k).sum(axis=2)
    r = triangle[:, start:, -1]
    information = np.einsum("wri,wrj->wij", B, B)
    information += (1e-12 * np.trace(information, axis1=1, axis2=2)[:, None, None] + 1e-300) * np.eye(k)
    inverse = np.linalg.inv(information)
    part = parts.segment_at(data.flight, data.start)
    z = solved.z[place].reshape(-1, k)[part] - np.einsum("wij,wrj,wr->wi", inverse, B, r)
    centre, scale = (v[place][:k] for v in (problem.centre, problem.scale))
    return centre + scale * z, 1.0 / (scale**2 * np.diagonal(inverse, axis1=1, axis2=2))


def _segment(
    data: WindowData,
    value: Float[np.ndarray, "w k"],
    weight: Float[np.ndarray, "w k"],
    rule: SegmentationRule,
) -> Segmentation:
    flights, starts = [], []
    for f in np.unique(data.flight):
        mine = np.flatnonzero(data.flight == f)
        cuts = find_changepoints(value[mine], weight[mine], rule)
        flights += [f] * (len(cuts) + 1)
        starts += [0.0, *(0.5 * (data.start[mine[k]] + data.end[mine[k - 1]]) for k in cuts)]
    return Segmentation(np.array(flights), np.array(starts))


def find_changepoints(
    value: Float[np.ndarray, "n k"], weight: Float[np.ndarray, "n k"], rule: SegmentationRule
) -> list[int]:
    """Changepoints of a series: the first index of each segment but the first.

    Args:
        value: the series, a quantity a column.
        weight: inverse of the variance of each value, up to a factor for each column, which is estimated from the series.
        rule: least length and step.
    """
    n, k = value.shape
    if n < 2 * rule.min_windows:
        return []
    pulls = np.diff(value, axis=0) / np.sqrt(1.0 / weight[1:] + 1.0 / weight[:-1])
    spread = np.maximum(1.4826 * np.median(np.abs(pulls), axis=0), 1e-12)
    w = np.minimum(weight / spread**2, 4.0 / rule.min_step**2)
    sums = [np.concatenate([np.zeros((1, k)), np.cumsum(w * value**power, axis=0)]) for power in range(3)]
    penalty = _PENALTY * np.log(n) * 0.5 * (1 + k)
    best, before = np.full(n + 1, np.inf), np.zeros(n + 1, dtype=int)
    best[0] = -penalty
    for end in range(rule.min_windows, n + 1):
        begin = np.arange(0, end - rule.min_windows + 1)
        s0, s1, s2 = (s[end] - s[begin] for s in sums)
        cost = best[begin] + np.sum(s2 - s1**2 / s0, axis=1) + penalty
        before[end] = int(np.argmin(cost))
        best[end] = cost[before[end]]
    cuts, end = [], n
    while before[end] > 0:
        end = before[end]
        cuts.insert(0, int(end))
    return _significant_changepoints(cuts, value, weight, rule)


def _significant_changepoints(
    cuts: list[int], value: Float[np.ndarray, "n k"], weight: Float[np.ndarray, "n k"], rule: SegmentationRule
) -> list[int]:
    """The changepoints with sufficient steps; segments with the smallest step are joined first."""
    while cuts:
        begin = [0, *cuts]
        mean = np.add.reduceat(weight * value, begin) / np.add.reduceat(weight, begin)
        step = np.abs(np.diff(mean, axis=0)).max(axis=1)
        if step.min() >= rule.min_step:
            break
        cuts = [c for i, c in enumerate(cuts) if i != int(np.argmin(step))]
    return cuts
