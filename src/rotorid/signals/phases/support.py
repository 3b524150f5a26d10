"""The force of the ground on a vehicle, from its thrust and its specific force.

With T the thrust after the motor lag, f the specific force along the rotor axis and m the mass, a force N of the ground gives

    N / (m g) = f / g - T / (m g)

m is not known exactly, and changes in flight. Two tests that do not need it:

*Soft contact*. While f is that of gravity, the vehicle does not accelerate, its speed through the air is constant, and so is
the thrust that it needs in flight, whatever its mass and inflow are. If the thrust falls all the same, the ground takes over:
with s the fall of the mean of ln(T / f) over the last 0.1 s below that over 1 s to 0.5 s ago,

    s > max(`FALL`, `SIGMAS` rms(s)),        |f / g - 1| < `_STEADY` all the time, at a low horizontal speed

where rms(s) is that of the flight so far, by noise, gusts and vibration. A payload that is dropped changes m, but then f
departs from gravity until the thrust has followed.

*Impact*. With m averaged over the last seconds, N exceeds `IMPACT` of the weight, and its own noise, while a descent is
arrested. A payload that is dropped in hover does that too, but the vehicle climbs first. The impact begins when the descent is
fastest, at the earliest: in a fall with other thrusts than commanded, N is wrong before.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from typing import Final, NamedTuple

from rotorid.geometry.gravity import GRAVITY
from rotorid.signals.phases.phase import PhaseRow

FALL: Final = 0.08
"""Fall of ln(T / f), without noise, from which on a contact is certain."""

IMPACT: Final = 0.1
"""Force of the ground over the weight, without noise, from which on an impact is certain, while a descent is arrested."""

SIGMAS: Final = 4.5
"""Of the noise, from which on a fall or a support is certain."""

_LAG: Final = 0.05  # s, of the motors and of the specific force
_AVERAGE: Final = 0.1  # s
_REFERENCE: Final = 2.0  # s, over which the mass is averaged
_BEFORE: Final = (
    1.0,
    0.5,
)  # s ago: the thrust before a contact; the mass of these rows and earlier ones is averaged
_STEADY: Final = 0.045  # of gravity, without noise
_STEADY_SHARE: Final = 0.5  # of the fall from which on a contact is certain
_USUAL: Final = 0.3  # of gravity
_FASTEST_USUAL: Final = 5.0  # m/s, horizontally
_LARGEST_ERROR: Final = 0.3  # of ln m; a larger one does not count more
_NOISE_TIME: Final = 10.0  # s, over which the noise is averaged
_FIRST_FALL, _FIRST_SUPPORT = 0.018, 0.045  # noise at a take-off
_START_FALL: Final = 0.3  # of the threshold, from which on a contact has begun
_START_IMPACT: Final = 0.4  # of the threshold
_LEAST_DESCENT: Final = 0.1  # m/s, before an impact
_NO_CLIMB: Final = 2.5  # s before an impact
_CLIMBING: Final = 0.12  # m/s
_CLIMB_AVERAGE: Final = 0.2  # s
_SHORT: Final = 0.8  # s between a descent and its end
_FASTEST: Final = 1.0  # m/s, horizontally, at a soft contact
_TURNING: Final = 0.5  # rad/s, at a soft contact
_FASTEST_UP: Final = 0.2  # m/s after an impact
_FASTEST_DOWN: Final = (
    1.5  # m/s while f is that of gravity on the ground, by an estimate that has not followed yet
)
_LEAST_THRUST: Final = 0.02  # of the weight


class Support(NamedTuple):
    """Support by the ground as of a row. share: N / (m g); nan without a specific force. noise: its standard deviation in the
    flight so far. start: time, s, at which a contact began, None without one."""

    share: float
    noise: float
    start: float | None


def least_support(noise: float) -> float:
    """Least share of the weight that is no noise. noise: standard deviation of the share."""
    return max(IMPACT, SIGMAS * noise)


class _Past(NamedTuple):
    """A row. support: N / (m g). log_mass: ln(T / f). is_usual, is_steady: whether it is used for the mass, and for a fall.
    fall: s of the module, nan where it is not defined."""

    t: float
    support: float
    climb_rate: float
    log_mass: float
    is_usual: bool
    is_steady: bool
    fall: float


class SupportEstimator:
    """Estimates the support by the ground, row by row.

    thrust_share: T / (m g), with m averaged over the flight; before the first flight, m is the nominal mass.
    """

    def __init__(self) -> None:
        self.thrust_share = 0.0
        self._log_mass = 0.0  # ln of the mass over the nominal one
        self._fall_variance, self._support_variance = _FIRST_FALL**2, _FIRST_SUPPORT**2
        self.restart()
        self.begin_flight()

    def restart(self) -> None:
        """Forget the last rows, after an interruption. The mass is kept."""
        self._past: deque[_Past] = deque()
        self._t = math.nan
        self._thrust = self._force = self._average = self._climb_rate = math.nan
        self._last_climb = -math.inf

    def begin_flight(self) -> None:
        """Restart the average of the mass, after a take-off or a contact, and compare with later rows only."""
        self._duration = 0.0  # s that it is averaged over
        self._past.clear()

    def update(self, row: PhaseRow, is_flying: bool) -> Support:
        """The support at a row. is_flying: whether mass and noise can be averaged there."""
        dt = row.t - self._t
        if not dt < _BEFORE[0]:  # at the first row, too
            self.restart()
            dt = 0.0
        self._t = row.t
        self._thrust = filtered(self._thrust, sum(row.thrusts), dt, _LAG)
        if row.specific_force is not None:
            self._force = filtered(self._force, row.specific_force[2] / GRAVITY, dt, _LAG)
        thrust = max(self._thrust, _LEAST_THRUST)
        self.thrust_share = thrust * math.exp(-self._log_mass)
        if not self._force > 0.0:
            return Support(math.nan, 0.0, None)
        self._average = filtered(self._average, self._force - self.thrust_share, dt, _AVERAGE)
        self._climb_rate = filtered(self._climb_rate, row.climb_rate, dt, _CLIMB_AVERAGE)
        if self._climb_rate > _CLIMBING:
            self._last_climb = row.t
        log_mass = math.log(thrust / self._force)
        is_steady = (
            abs(self._force - 1.0) < max(_STEADY, _STEADY_SHARE * self._least_fall)
            and not row.speed > _FASTEST
            and not row.body_rate > _TURNING
        )
        is_usual = abs(self._force - 1.0) < _USUAL and not row.speed > _FASTEST_USUAL
        fall = self._fall(log_mass, is_steady)
        past = _Past(row.t, self._average, row.climb_rate, log_mass, is_usual, is_steady, fall)
        self._past.append(past)
        while self._past[0].t < row.t - _BEFORE[0]:
            self._past.popleft()
        if is_flying:
            self._average_mass(dt)
        noise = math.sqrt(self._support_variance)
        return Support(self._average, noise, self._contact_start() if is_flying else None)

    @property
    def _least_fall(self) -> float:
        return max(FALL, SIGMAS * math.sqrt(self._fall_variance))

    def _fall(self, log_mass: float, is_steady: bool) -> float:
        """Fall of ln(T / f); nan where a row of the last second is not steady."""
        if not is_steady or not self._past or self._past[0].t > self._t - 0.8 * _BEFORE[0]:
            return math.nan
        before, now = [], [log_mass]
        for past in self._past:
            if not past.is_steady:
                return math.nan
            if past.t <= self._t - _BEFORE[1]:
                before.append(past.log_mass)
            elif past.t > self._t - _AVERAGE:
                now.append(past.log_mass)
        return sum(before) / len(before) - sum(now) / len(now) if before else math.nan

    def _average_mass(self, dt: float) -> None:
        """Average ln m and the noise over the rows before a contact that may just begin, the first seconds of a flight
        equally."""
        before = next((p for p in reversed(self._past) if p.t <= self._t - _BEFORE[1]), None)
        if before is None or not dt > 0.0 or not before.is_usual:
            return
        self._duration = min(self._duration + dt, _REFERENCE)
        error = min(max(before.log_mass - self._log_mass, -_LARGEST_ERROR), _LARGEST_ERROR)
        self._log_mass += min(dt / self._duration, 1.0) * error
        share = dt / _NOISE_TIME
        self._support_variance += share * (before.support**2 - self._support_variance)
        if not math.isnan(self._past[0].fall):
            self._fall_variance += share * (self._past[0].fall ** 2 - self._fall_variance)

    def _contact_start(self) -> float | None:
        """When a contact began, s; None without one."""
        now = self._past[-1]
        least_fall = self._least_fall
        if now.fall > least_fall and not abs(now.climb_rate) > _FASTEST_DOWN:
            return self._first(lambda past: past.fall > _START_FALL * least_fall)
        least = least_support(math.sqrt(self._support_variance))
        if self._t > self._last_climb + _NO_CLIMB and now.support > least and now.climb_rate < _FASTEST_UP:
            lowest, fastest = min((p.climb_rate, p.t) for p in self._past if p.t >= now.t - _SHORT)
            if lowest < -_LEAST_DESCENT and now.climb_rate > 0.6 * lowest:
                return max(self._first(lambda past: past.support > _START_IMPACT * least), fastest)
        return None

    def _first(self, holds: Callable[[_Past], bool]) -> float:
        """Time from which on a condition has held, s."""
        start = self._t
        for past in reversed(self._past):
            if not holds(past):
                break
            start = past.t
        return start


def filtered(state: float, value: float, dt: float, tau: float) -> float:
    """The next state of a first-order lag. state: nan at the start. dt: time since it, s. tau: time constant, s."""
    if not dt > 0.0 or math.isnan(state) or math.isnan(value):
        return value
    return state + (1.0 - math.exp(-dt / tau)) * (value - state)
