"""Thrusts of the rotors behind every motor lag of a grid, from commands as they arrive.

    T' = (T_c - T) / tau        or, where the speed of a rotor lags, the same of the root of T

psi, by which another thrust curve differs (`hover_shape`), lags like T; behind a lag of the speed, it is that of the lagged T.
delta = T - r^2, with T and r behind the lags of the thrust and of its root, is by how much the two differ: the thrust follows
the commands as T - kappa delta, with kappa = 0 where the thrust lags and 1 where the speed does.

Commands that follow each other within `HOLD` are all commands of the autopilot: each holds until the next one. Others are
samples of them, which are interpolated linearly. The thrusts are integrated on a fine grid, and their integral
J(t) is interpolated with its slope T, so that the impulse between any two time stamps, at any delay, is a difference of two
values of J.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

import numpy as np
from jaxtyping import Float64

STEP: Final = 0.004
"""Step of the fine grid, s."""

MAX_GAP: Final = 0.3
"""Time between two commands, s, from which the thrusts start again."""

HOLD: Final = 0.006
"""Longest time between two commands, s, for which the first one holds."""

_LENGTH: Final = 128  # steps that are kept


Shape = Callable[[Float64[np.ndarray, "*n rotors"]], Float64[np.ndarray, "*n rotors"]]
Inputs = Float64[np.ndarray, "inputs rotors"]
"""T, psi and the roots of T of the commands."""

Impulses = Float64[np.ndarray, "delays lags 3 rotors"]
"""Of T, psi and delta."""


class LaggedThrusts:
    """Impulses of the rotors at each lag.

    Args:
        lags: motor time constants, s.
        rotors: their number.
        shape: psi, from thrusts of the rotors in N to N.
        has_speed_lag: whether the speeds of the rotors lag, not their thrusts.

    latest: time up to which they are known, s.
    """

    def __init__(
        self, lags: Float64[np.ndarray, " lags"], rotors: int, shape: Shape, *, has_speed_lag: bool = False
    ) -> None:
        self._share = (1.0 - np.exp(-STEP / lags))[:, None, None]
        self._lags = lags[:, None, None]
        self._shape, self._is_speed = shape, has_speed_lag
        self._impulses = np.zeros((_LENGTH, len(lags), 3, rotors))
        self._thrusts = np.zeros((_LENGTH, len(lags), 3, rotors))
        self._state = np.zeros((len(lags), 3, rotors))
        self._sum = np.zeros((3, rotors))  # integral of the inputs since the latest grid point
        self._command: tuple[float, Inputs] | None = None
        self._count = 0  # of the grid points so far
        self._first = 0  # number of the grid point of the first one

    @property
    def latest(self) -> float:
        return (self._first + self._count - 1) * STEP if self._count else -math.inf

    @property
    def earliest(self) -> float:
        """Time from which impulses are available, s."""
        if not self._count:
            return math.inf
        return (self._first + max(self._count - _LENGTH, 0)) * STEP

    def add(self, t: float, thrusts: Float64[np.ndarray, " rotors"]) -> None:
        """Add commanded thrusts. t: s, later than the previous ones, or they are ignored. thrusts: N, one a rotor."""
        last = self._command
        if last is not None and t <= last[0]:
            return
        inputs = self._inputs(thrusts)
        self._command = t, inputs
        if last is None or t - last[0] > MAX_GAP:
            self._restart(t, inputs)
            return
        before, old = last
        slope = 0.0 * inputs if t - before <= HOLD else (inputs - old) / (t - before)
        start = max(before, self.latest)
        while (end := (self._first + self._count) * STEP) <= t:
            self._sum = self._sum + (end - start) * (old + slope * (0.5 * (start + end) - before))
            self._advance(self._sum / STEP)
            self._sum, start = 0.0 * inputs, end
        if t > start:
            self._sum = self._sum + (t - start) * (old + slope * (0.5 * (start + t) - before))

    def _inputs(self, thrusts: Float64[np.ndarray, " rotors"]) -> Inputs:
        return np.stack([thrusts, self._shape(thrusts), np.sqrt(np.maximum(thrusts, 0.0))])

    def _restart(self, t: float, inputs: Inputs) -> None:
        self._first, self._count = math.ceil(t / STEP), 1
        self._sum = 0.0 * inputs
        self._state[:] = inputs
        self._impulses[0] = 0.0
        self._set_thrusts(0)

    def _advance(self, inputs: Inputs) -> None:
        """One step with inputs, the means over it."""
        place, before = self._count % _LENGTH, (self._count - 1) % _LENGTH
        missing = inputs - self._state
        change = missing * self._share
        self._state = self._state + change
        self._set_thrusts(place)
        impulse = inputs * STEP - change * self._lags
        root, root_missing, lags, share = inputs[2], missing[:, 2], self._lags[:, 0], self._share[:, 0]
        # exact integral of the square of root - root_missing exp(-s / tau)
        square = (
            root * root * STEP
            - 2.0 * root * root_missing * lags * share
            + 0.5 * root_missing * root_missing * lags * share * (2.0 - share)
        )
        impulse[:, 2] = impulse[:, 0] - square
        if self._is_speed:
            impulse[:, 0] = square
            impulse[:, 1] = 0.5 * STEP * (self._thrusts[place, :, 1] + self._thrusts[before, :, 1])
        self._impulses[place] = self._impulses[before] + impulse
        self._count += 1

    def _set_thrusts(self, place: int) -> None:
        T, psi, square = self._state[:, 0], self._state[:, 1], self._state[:, 2] ** 2
        if self._is_speed:
            T, psi = square, self._shape(square)
        self._thrusts[place] = np.stack([T, psi, self._state[:, 0] - square], axis=1)

    def impulse(self, t: float, delays: Float64[np.ndarray, " delays"]) -> Impulses:
        """J of T, psi and delta at t - delay, N s; times before and after those that are known take the nearest."""
        x = np.clip((t - delays) / STEP - self._first, max(self._count - _LENGTH, 0), self._count - 1)
        i = np.minimum(x.astype(int), max(self._count - 2, 0))
        s = (x - i)[:, None, None, None]
        a, b = i % _LENGTH, np.minimum(i + 1, self._count - 1) % _LENGTH
        T = self._thrusts
        return self._impulses[a] + STEP * s * (T[a] + 0.5 * s * (T[b] - T[a]))
