"""Inputs of the windows of a logged body: rotor thrusts, mass, wind and biases, from the estimated parameters.

Thrusts follow from the commands (`rotor_thrusts`). Mass, wind and biases are constant in segments of flights; a window has the
values of the segment in which it begins. Optimal partitioning of the estimates of single windows finds the segments of constant
mass or wind:

    m_w = m - (B_w^T B_w)^-1 B_w^T r_w            estimate of window w, to first order, all other parameters held
    min over changepoints of  sum_segments sum_w (m_w - mean)^2 / s_w^2 + beta (changepoints)

by dynamic programming. s_w is the spread of neighbouring windows, not the standard deviation from noise alone; with beta a
changepoint in a flight without a change has a probability below 1 %.

Reference: B. Jackson et al., An algorithm for optimal partitioning of data on an interval, IEEE Signal Processing Letters 12
(2005).
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping

import numpy as np
from jaxtyping import Float, Int

from rotorid.cores import map_in_threads
from rotorid.identification.airframe.rotor_thrusts import RotorChain, RotorCommands, step_thrusts
from rotorid.identification.fitting.estimation import Estimation
from rotorid.identification.fitting.free_parameters import Coordinates
from rotorid.identification.fitting.multiple_shooting import InputSensitivities
from rotorid.identification.fitting.windows import WindowData, Windows
from rotorid.models.multirotor.logged_body import LOCAL, LoggedBody, local_width

TIME_CONSTANT = "motor_time_constant"
TIME_CONSTANT_DOWN = "motor_time_constant_down"

_AT_ONCE = 64  # windows of a flight whose rotors are followed by one thread
_PENALTY = 6.0  # of a changepoint of one number, times the logarithm of the number of windows


@dataclasses.dataclass(frozen=True)
class Segmentation:
    """Segments of flights, in order.

    Attributes:
        flight: number of each segment's flight.
        start: s; the first segment of a flight includes all times before it.
    """

    flight: Int[np.ndarray, " parts"]
    start: Float[np.ndarray, " parts"]

    @classmethod
    def one_per_flight(cls, flights: int) -> Segmentation:
        """One segment a flight."""
        return cls(np.arange(flights), np.zeros(flights))

    def segment_at(self, flight: Int[np.ndarray, " w"], t: Float[np.ndarray, " w"]) -> Int[np.ndarray, " w"]:
        """Index of the segment at each of these times of flights."""
        indices = np.zeros(len(t), dtype=int)
        for f in np.unique(flight):
            segments, rows = np.flatnonzero(self.flight == f), flight == f
            indices[rows] = segments[
                np.clip(np.searchsorted(self.start[segments], t[rows], side="right") - 1, 0, None)
            ]
        return indices


@dataclasses.dataclass(frozen=True)
class AirframeInputs:
    """The input model of a `LoggedBody` (see `fitting.problem.InputModel`).

    Attributes:
        system: the body.
        chain: layout of the rotors' numbers.
        base: the rotors' numbers.
        commands: of each flight.
        fixed: values of flight-dependent inputs that are not free.
        segmentations: of each flight-dependent input.
        coordinates: of the free parameters.
        body: names of the System's free parameters, in the order of its step derivatives.
    """

    system: LoggedBody
    chain: RotorChain
    base: Float[np.ndarray, " numbers"]
    commands: tuple[RotorCommands, ...]
    fixed: Mapping[str, tuple[float, ...]]
    segmentations: Mapping[str, Segmentation]
    coordinates: Coordinates
    body: tuple[str, ...]

    @functools.cached_property
    def _free(self) -> dict[str, slice]:
        return self.coordinates.slices

    @functools.cached_property
    def _links(self) -> tuple[tuple[int, int], ...]:
        """Pairs (number of the chain, free number); the time constant of falling thrust follows that of rising thrust
        unless it is free."""
        links = []
        for name, place in self.chain.indices.items():
            source = TIME_CONSTANT if name == TIME_CONSTANT_DOWN and self.has_one_time_constant else name
            if source in self._free:
                start = self._free[source].start
                links += [(int(i), start + k) for k, i in enumerate(place)]
        return tuple(links)

    @property
    def has_one_time_constant(self) -> bool:
        """Whether rising and falling thrust have one time constant."""
        lag, down = (self.base[self.chain.indices[n][0]] for n in (TIME_CONSTANT, TIME_CONSTANT_DOWN))
        return TIME_CONSTANT_DOWN not in self._free and bool(lag == down)

    def _chain(self, numbers: Float[np.ndarray, " free"]) -> Float[np.ndarray, " numbers"]:
        chain_numbers = self.base.copy()
        for i, k in self._links:
            chain_numbers[i] = numbers[k]
        return chain_numbers

    def _locals(self, data: WindowData) -> dict[str, tuple[slice, Int[np.ndarray, "w k"] | None]]:
        """Slice of each flight-dependent input, and the free numbers that each window takes for it."""
        places, inputs = self.system.inputs.stored, {}
        for name in LOCAL:
            indices = None
            if name in self._free:
                width = local_width(name)
                part = self.segmentations[name].segment_at(data.flight, data.start)
                indices = self._free[name].start + width * part[:, None] + np.arange(width)
            inputs[name] = (places[name], indices)
        return inputs

    def _thrusts(
        self, data: WindowData, numbers: Float[np.ndarray, " free"], parameters: tuple[int, ...]
    ) -> tuple[Float[np.ndarray, "w rows k"], Float[np.ndarray, "w rows k by"]]:
        """Thrusts, and their derivatives by some numbers of the chain."""
        first = np.zeros((len(data.dt), 1))
        end = data.start[:, None] + np.cumsum(np.concatenate([first, data.dt[:, 1:]], axis=1), axis=1)
        rows, n = data.dt.shape[1], 2 * self.chain.rotors
        value, slope = np.zeros((len(end), rows, n)), np.zeros((len(end), rows, n, len(parameters)))
        chain = self._chain(numbers)

        def compute(mine: Int[np.ndarray, " w"]) -> None:
            commands = self.commands[data.flight[mine[0]]]
            v, s = step_thrusts(
                self.chain, chain, commands, end[mine].ravel(), data.dt[mine].ravel(), parameters
            )
            value[mine] = v.reshape(-1, rows, n)
            slope[mine] = s.reshape(len(v) // rows, rows, n, len(parameters))

        of_flights = [np.flatnonzero(data.flight == f) for f in np.unique(data.flight)]
        map_in_threads(compute, [m[k : k + _AT_ONCE] for m in of_flights for k in range(0, len(m), _AT_ONCE)])
        return value, slope

    def inputs(
        self, data: WindowData, numbers: Float[np.ndarray, " free"]
    ) -> Float[np.ndarray, "w rows inputs"]:
        return self._inputs(data, numbers, self._thrusts(data, numbers, ())[0])

    def _inputs(self, data: WindowData, numbers, thrust) -> Float[np.ndarray, "w rows inputs"]:
        u = data.u.copy()
        u[..., : thrust.shape[2]] = thrust
        for name, (place, indices) in self._locals(data).items():
            u[..., place] = self.fixed[name] if indices is None else numbers[indices][:, None, :]
        return u

    def input_sensitivities(
        self, data: WindowData, numbers: Float[np.ndarray, " free"], slopes: Float[np.ndarray, "free free"]
    ) -> InputSensitivities:
        thrust, slope = self._thrusts(data, numbers, tuple(i for i, _ in self._links))
        body = [i for name in self.body for i in range(self._free[name].start, self._free[name].stop)]
        shared = np.array([*body, *(k for _, k in self._links)], dtype=int)
        indices, direct = [np.tile(shared, (len(data.start), 1))], []
        for place, local_indices in self._locals(data).values():
            if local_indices is not None:
                indices.append(local_indices)
                direct += range(place.start, place.stop)
        spread = slopes[np.concatenate(indices, axis=1)]
        return InputSensitivities(self._inputs(data, numbers, thrust), slope, tuple(direct), spread)


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


def segment_mass(estimation: Estimation, windows: Windows, parts: Segmentation) -> Segmentation:
    """Segments of constant mass.

    Args:
        estimation: a fit with the mass free in other segments.
        windows: all windows, also those near the ends of segments, which the fit has left out: they count to the length of a
            segment.
        parts: its segments.
    """
    return _segment(estimation, windows, parts, "mass", MASS)


def segment_wind(estimation: Estimation, windows: Windows, parts: Segmentation) -> Segmentation:
    """Segments of constant wind; arguments as of `segment_mass`."""
    return _segment(estimation, windows, parts, "wind", WIND)


def _window_estimates(
    estimation: Estimation, parts: Segmentation, name: str
) -> tuple[Float[np.ndarray, "w k"], Float[np.ndarray, "w k"]]:
    """Estimate of each window of a flight-dependent input (the logarithm of a mass), and the inverse of its variance."""
    problem, windows = estimation.problem, estimation.problem.windows
    start, place = problem.start_size, problem.coordinates.slices[name]
    triangle, k = estimation.triangle, local_width(name)
    columns = triangle[:, start:, start + place.start : start + place.stop]
    B = columns.reshape(*columns.shape[:2], -1, k).sum(axis=2)
    r = triangle[:, start:, -1]
    information = np.einsum("wri,wrj->wij", B, B)
    information += (1e-12 * np.trace(information, axis1=1, axis2=2)[:, None, None] + 1e-300) * np.eye(k)
    inverse = np.linalg.inv(information)
    part = parts.segment_at(windows.flight, windows.start)
    z = estimation.z[place].reshape(-1, k)[part] - np.einsum("wij,wrj,wr->wi", inverse, B, r)
    centre, scale = (v[place][:k] for v in (problem.centre, problem.scale))
    return centre + scale * z, 1.0 / (scale**2 * np.diagonal(inverse, axis1=1, axis2=2))


def _segment(
    estimation: Estimation, windows: Windows, parts: Segmentation, name: str, rule: SegmentationRule
) -> Segmentation:
    fitted = estimation.problem.windows
    value, weight = _window_estimates(estimation, parts, name)
    flights, starts = [], []
    for f in np.unique(fitted.flight):
        mine = np.flatnonzero(fitted.flight == f)
        count = _represented(windows.start[windows.flight == f], fitted.start[mine])
        cuts = find_changepoints(value[mine], weight[mine], rule, count)
        flights += [f] * (len(cuts) + 1)
        starts += [0.0, *(0.5 * (fitted.start[mine[k]] + fitted.end[mine[k - 1]]) for k in cuts)]
    return Segmentation(np.array(flights), np.array(starts))


def _represented(every: Float[np.ndarray, " m"], kept: Float[np.ndarray, " n"]) -> Int[np.ndarray, " n"]:
    """How many windows each kept one stands for: itself, and those left out that are nearer to it than to the next. every,
    kept: starts, s."""
    place = np.searchsorted(every, kept - 1e-9)
    before = np.diff(place, prepend=-1) - 1
    first, last = before - before // 2, np.append(before[1:] // 2, len(every) - 1 - place[-1])
    first[0] = before[0]
    return 1 + first + last


def find_changepoints(
    value: Float[np.ndarray, "n k"],
    weight: Float[np.ndarray, "n k"],
    rule: SegmentationRule,
    count: Int[np.ndarray, " n"] | None = None,
) -> list[int]:
    """Changepoints of a series: the first index of each segment but the first.

    Args:
        value: the series, a quantity a column.
        weight: inverse of the variance of each value, up to a factor for each column, which is estimated from the series.
        rule: least length and step.
        count: number of windows that each value stands for; None: one.
    """
    n, k = value.shape
    length = np.concatenate([[0], np.cumsum(np.ones(n, int) if count is None else count)])
    if length[-1] < 2 * rule.min_windows or n < 2:
        return []
    steps = np.diff(value, axis=0) / np.sqrt(1.0 / weight[1:] + 1.0 / weight[:-1])
    spread = np.maximum(1.4826 * np.median(np.abs(steps), axis=0), 1e-12)
    w = np.minimum(weight / spread**2, 4.0 / rule.min_step**2)
    sums = [np.pad(np.cumsum((w * value**power).T, axis=1), ((0, 0), (1, 0))) for power in range(3)]
    penalty = _PENALTY * np.log(n) * 0.5 * (1 + k)
    costs, predecessors = np.full(n + 1, np.inf), np.zeros(n + 1, dtype=int)
    costs[0] = -penalty
    for end in range(int(np.searchsorted(length, rule.min_windows)), n + 1):
        starts = int(np.searchsorted(length, length[end] - rule.min_windows, side="right"))
        s0, s1, s2 = (s[:, end, None] - s[:, :starts] for s in sums)
        cost = costs[:starts] + np.sum(s2 - s1**2 / s0, axis=0) + penalty
        predecessors[end] = int(np.argmin(cost))
        costs[end] = cost[predecessors[end]]
    cuts, end = [], n
    while predecessors[end] > 0:
        end = predecessors[end]
        cuts.insert(0, int(end))
    return _significant_changepoints(cuts, value, weight, rule)


def _significant_changepoints(
    cuts: list[int], value: Float[np.ndarray, "n k"], weight: Float[np.ndarray, "n k"], rule: SegmentationRule
) -> list[int]:
    """The changepoints with sufficient steps; segments with the smallest step are joined first."""
    while cuts:
        starts = [0, *cuts]
        mean = np.add.reduceat(weight * value, starts) / np.add.reduceat(weight, starts)
        step = np.abs(np.diff(mean, axis=0)).max(axis=1)
        if step.min() >= rule.min_step:
            break
        cuts = [c for i, c in enumerate(cuts) if i != int(np.argmin(step))]
    return cuts
