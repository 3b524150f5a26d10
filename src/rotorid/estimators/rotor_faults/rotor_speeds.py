"""Measured rotor speeds beside the commands: whether a rotor that loses thrust turns slower, or has a damaged propeller.

    r_i = log omega_i(t) - 1/2 log T_i(t - L)    omega_i: measured speed, T_i: thrust by the command, after the motor lag
    d_i = change of r_i - median of that of the other rotors
    u_i = 2 d_i / log(1 - share)           share: of the thrust that the rotor lost

A motor or ESC that gives less than commanded has u = 1, a propeller that pulls less at its speed u = 0, or below since its
motor has less load. The scale of each sensor cancels, and so do battery voltage and air density, which all rotors share.

Telemetry can be late, coarse, stuck or dead. Its delay L is that with which r_i varies least before the change. The noise of
the mean is that of the values before, with their correlation, and at least 1 %. Medians pass over spikes. A speed that does not
vary while others do, and one of zero of a rotor that still pulls, are not used.
"""

from __future__ import annotations

import math
from collections import deque
from typing import Final, Literal, NamedTuple

import numpy as np
from jaxtyping import Float

Cause = Literal["", "motor", "propeller"]
"""What is at fault: motor or ESC, the propeller, or "" where that is not known."""

_DELAYS: Final = np.linspace(0.0, 0.8, 17)  # s, candidates of L
_STEP: Final = 0.05  # s, over which values are averaged
_VALUES: Final = 240  # that are kept
_BEFORE: Final = 6.0  # s before a change that it is compared with
_LEAST_BEFORE, _LEAST_AFTER = 10, 3  # values
_UNCERTAIN: Final = 0.3  # s beside an onset
_LATE: Final = 1.5  # s after an onset and L, before which no cause is named
_RECENT: Final = 0.5  # s of a change that is looked for
_STUCK: Final = 0.95  # of values that equal the one before
_LEAST_STD: Final = 0.01  # of d
_CURVE_STD: Final = 0.15  # of u, by the exponent of the thrust curve between the two commands
_STILL: Final = 0.05  # of the median speed, below which a rotor stands
_SIGMAS: Final = 2.0  # of a cause
_SUSPECTED_SIGMAS, _SUSPECTED_SHARE = 5.0, 0.08
_OTHERS: Final = 0.5  # of the largest change, that another rotor may have
_MOST_CORRELATED: Final = 0.9


class _Changes(NamedTuple):
    """d of each rotor, its standard deviation (infinite where the sensor is stuck), and the mean speed after it, rad/s."""

    d: Float[np.ndarray, " rotors"]
    std: Float[np.ndarray, " rotors"]
    speed: Float[np.ndarray, " rotors"]


class RotorSpeeds:
    """Measured speeds of the rotors of one vehicle.

    Args:
        rotors: their number.
        lag: of the thrust behind the command, s.
    """

    def __init__(self, rotors: int, lag: float) -> None:
        self._rotors, self._lag = rotors, lag
        self._thrust: np.ndarray | None = None
        self._thrusts: deque[tuple[float, np.ndarray]] = deque()  # time and log T / 2
        self._waiting: deque[tuple[float, np.ndarray]] = deque()
        self._values: deque[tuple[float, np.ndarray, np.ndarray]] = deque(maxlen=_VALUES)
        self._sum: list[tuple[np.ndarray, np.ndarray]] = []
        self._start = -math.inf

    def restart(self) -> None:
        """Forget all values, after a gap."""
        self._thrust = None
        self._thrusts.clear()
        self._waiting.clear()
        self._values.clear()
        self._sum.clear()

    def add(self, t: float, speed: Float[np.ndarray, " rotors"]) -> None:
        """Add measured speeds. t: s. speed: rad/s, in the order of the rotors. They are used when the commands reach t."""
        if len(speed) == self._rotors:
            self._waiting.append((t, np.abs(speed)))

    def step(self, t: float, dt: float, thrust: Float[np.ndarray, " rotors"]) -> bool:
        """Use commands. t: s. dt: since those before, s. thrust: by the commands, N, without lag. Returns whether there is
        a new value."""
        if self._thrust is None or self._lag <= 0.0:
            self._thrust = np.array(thrust, float)
        else:
            self._thrust = thrust + (self._thrust - thrust) * math.exp(-dt / self._lag)
        self._thrusts.append((t, 0.5 * np.log(np.maximum(self._thrust, 1e-6))))
        while self._thrusts[0][0] < t - _DELAYS[-1]:
            self._thrusts.popleft()
        is_new = False
        while self._waiting and self._waiting[0][0] <= t:
            is_new |= self._use(*self._waiting.popleft())
        return is_new

    def _use(self, t: float, speed: Float[np.ndarray, " rotors"]) -> bool:
        median = float(np.median(speed))
        if not np.isfinite(speed).all() or median <= 0.0:
            return False
        if t - self._start > 2.0 * _STEP:
            self._sum.clear()
        if not self._sum:
            self._start = t
        times = [at for at, _ in self._thrusts]
        last = np.maximum(np.searchsorted(times, t - _DELAYS, side="right") - 1, 0)
        expected = np.array([self._thrusts[k][1] for k in last])
        self._sum.append((speed, np.log(np.maximum(speed, _STILL * median)) - expected))
        if t - self._start < _STEP - 1e-6 and len(self._sum) > 1:
            return False
        speeds, values = (np.mean(v, axis=0) for v in zip(*self._sum, strict=True))
        self._values.append((t, speeds, values))
        self._sum.clear()
        return True

    def _changes(self, start: float, end: float, late: float = 0.0) -> _Changes | None:
        """The changes between the time before `start` and that from `end` (s) plus L on; None for too few values, or if the
        last one is not `late` s after that."""
        if len(self._values) < _LEAST_BEFORE + _LEAST_AFTER:
            return None
        t = np.array([v[0] for v in self._values])
        is_before = (t < start) & (t > start - _BEFORE)
        n = int(is_before.sum())
        if n < _LEAST_BEFORE:
            return None
        speed, r = (np.array([v[k] for v in self._values]) for k in (1, 2))
        scatter = r[is_before] - np.median(r[is_before], axis=2, keepdims=True)
        delay = int(np.argmin(np.median(scatter.var(axis=0), axis=1)))
        is_after = t >= end + _DELAYS[delay]
        m = int(is_after.sum())
        if m < _LEAST_AFTER or t[-1] < end + _DELAYS[delay] + late:
            return None
        before, after = r[is_before, delay], r[is_after, delay]
        d, std = np.empty(self._rotors), np.empty(self._rotors)
        change = np.median(after, axis=0) - np.median(before, axis=0)
        stands = speed[is_after].mean(axis=0) < _STILL * np.median(speed[is_after])
        is_stuck = _is_stuck(speed[is_before]) | (_is_stuck(speed[is_after]) & ~stands)
        for i in range(self._rotors):
            others = ~is_stuck & (np.arange(self._rotors) != i)
            if is_stuck[i] or others.sum() < 2:
                d[i], std[i] = 0.0, math.inf
                continue
            d[i] = change[i] - np.median(change[others])
            x = before[:, i] - np.median(before[:, others], axis=1)
            x = x - x.mean()
            power = float(x @ x)
            rho = float(np.clip(x[1:] @ x[:-1] / max(power, 1e-12), 0.0, _MOST_CORRELATED))
            noise = power / n * (1.0 + rho) / (1.0 - rho) * (1.0 / n + 1.0 / m)
            std[i] = math.hypot(math.sqrt(noise), _LEAST_STD)
        return _Changes(d, std, speed[is_after].mean(axis=0))

    def suspected(self) -> int | None:
        """The rotor that alone turns slower by its command since the last moments; None without one."""
        if not self._values:
            return None
        end = self._values[-1][0] - _RECENT
        changes = self._changes(end - _UNCERTAIN, end)
        if changes is None:
            return None
        d, std = changes.d, changes.std
        i = int(np.argmin(d))
        others = np.abs(np.delete(d, i)).max()
        is_slow = d[i] < 0.5 * math.log(1.0 - _SUSPECTED_SHARE) and d[i] < -_SUSPECTED_SIGMAS * std[i]
        return i if is_slow and others < _OTHERS * -d[i] else None

    def cause(self, rotor: int, onset: float, share: float, share_std: float) -> Cause:
        """What is at fault in a rotor that lost thrust.

        Args:
            rotor: counted from 0.
            onset: of the loss, s.
            share: of its thrust that was lost, and its standard deviation.
        """
        changes = self._changes(onset - _UNCERTAIN, onset + _UNCERTAIN, _LATE - _UNCERTAIN)
        if changes is None:
            return ""
        d, std, speed = (float(v[rotor]) for v in changes)
        if speed < _STILL * float(np.median(changes.speed)):
            return "motor" if share > 0.5 and math.isfinite(std) else ""
        whole = -0.5 * math.log(max(1.0 - share, 1e-2))
        u = -d / whole
        std = math.hypot(std / whole, _CURVE_STD, u * share_std / share)
        if u - 0.5 > _SIGMAS * std:
            return "motor"
        return "propeller" if 0.5 - u > _SIGMAS * std else ""


def _is_stuck(speed: Float[np.ndarray, "n rotors"]) -> np.ndarray:
    """Whether the values of each rotor are equal, while those of another vary."""
    equal = np.mean(np.isclose(speed[1:], speed[:-1], rtol=1e-9, atol=0.0), axis=0)
    return (equal > _STUCK) & (equal.min() <= _STUCK)
