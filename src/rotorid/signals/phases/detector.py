"""Detects the phases of a flight row by row, in the same way in flight and from a log.

    ground -> take-off -> flight -> landing -> contact -> ground
                 ^          |                    |
                 +----------+-- a bounce --------+            any of them -> crash

*Take-off*: the rotors produce thrust, the autopilot does not report the ground, and the vehicle climbs, by its climb rate or by
its height over the ground. *Flight*: it has left the ground effect. Where the level of the ground is not known, since there is
no height or the rows begin in flight, the vehicle flies once the autopilot reports it, or thrust has lasted for 1 s. *Landing*:
it descends within the ground effect of the surface it took off from, where its height is known. A low hover is flight again.
*Contact*: the ground takes over a part of the weight (see `support`). It ends as a bounce, if the rotors carry the vehicle
again, or on the *ground*, if they do not. *Crash*: the vehicle lies still, and not upright or with rotor thrusts out of
balance, while its rotors turn; or a shock ends a fall without thrust, or a fast descent: one beyond what the rotors produce.
It lasts until the vehicle stands upright with idle rotors, after a shock alone also until they carry it on.

Heights of autopilots drift by metres, so that contact and landing do not depend on them.

*Gaps*. After a gap of the rows in the air, the vehicle may stand on the ground, where the thrust falls short of the weight for
another reason than a contact that is seen to begin. It is known to fly once the rotors have carried it, or it has moved, for
1 s. If a landing is detected before that, it began when the rotors carried it no more; where they do not from the end of the
gap on, it began within the gap, and its middle is the best guess.
"""

from __future__ import annotations

import math
from typing import Final

from rotorid.geometry.gravity import GRAVITY
from rotorid.signals.phases.phase import Phase, PhaseChange, PhaseRow
from rotorid.signals.phases.support import Support, SupportEstimator, filtered, least_support

GROUND_EFFECT: Final = 0.5
"""Height of the ground effect where the rotors' places are not known, m; at most this."""

_LEAST_GROUND_EFFECT: Final = 0.1  # m

_POWERED: Final = 0.4  # of the weight
_TAKE_OFF: Final = 0.6  # of the weight
_IDLE_TIME: Final = 1.0  # s with little thrust, after which it has landed
_WEIGHTLESS: Final = 0.7  # of gravity
_CLIMBING: Final = 0.15  # m/s
_LIFTED: Final = 0.15  # m
_LEVEL_TIME: Final = 2.0  # s, over which the level of the ground is averaged
_CONFIRM: Final = 0.1  # s
_BLIND_TIME: Final = 1.0  # s in the air, where the height is not known
_CLEAR: Final = 1.4  # of the ground effect's height, that are left on the way up
_DESCENDING: Final = 0.1  # m/s
_LOW_HOVER: Final = 3.0  # s within the ground effect without a descent
_BOUNCE: Final = 0.3  # m/s
_CARRIED: Final = 0.85  # of the weight, by the rotors
_SUPPORTED: Final = 0.4  # of the weight, by the ground
_UNSUPPORTED: Final = 0.1  # of the weight
_RELEASE_TIME: Final = 0.4  # s without support after a contact
_LONGEST_CONTACT: Final = 4.0  # s in which the rotors carry most of the weight
_LANDED: Final = 0.6  # of the weight, by the rotors
_LANDED_TIME: Final = 0.3  # s
_UPRIGHT: Final = 0.7  # of the specific force along body z
_RESTING: Final = 0.1  # of gravity
_STILL: Final = 0.15  # rad/s
_BALANCED: Final = 0.5  # of the mean thrust
_LYING_TIME: Final = 0.5  # s
_FIGHTING: Final = (
    0.3  # of the weight: rotors with which an autopilot tries to turn a vehicle that the ground holds
)
_FALLING: Final = 0.4  # of gravity
_LEAST_FALL: Final = 0.3  # s
_SHOCK: Final = 2.0  # of gravity
_FAST_DESCENT: Final = 3.0  # m/s
_ARRESTED: Final = 0.3  # of the speed of the descent
_IMPACT_TIME: Final = 0.3  # s, from the descent to its end
_FLIES_AGAIN: Final = 2.0  # s
_TURNING: Final = 0.1  # of the weight: rotors that turn
_SMOOTH: Final = 0.2  # s
_GAP: Final = 0.2  # s between two rows, at least; and in steps
_GAP_STEPS: Final = 3.0
_CONFIRM_FLIGHT: Final = 1.0  # s, after a gap
_LONGEST_DOUBT: Final = 3.0  # s after a gap, in which a landing is detected
_MOVING: Final = 1.0  # m/s, horizontally
_SETTLING: Final = 0.2  # s after a gap, in which smoothed values are still those of before


class PhaseDetector:
    """A state machine over the rows of one vehicle.

    phase: as of the latest row. start: time at which it began, s. ground_effect: height up to which the ground has an effect on
    the rotors, m (see `ground_effect.height_of_ground_effect`). hold: s up to which values of a row may be older than it.
    """

    def __init__(self, ground_effect: float = GROUND_EFFECT, hold: float = 0.0) -> None:
        self.phase = Phase.GROUND
        self.start = -math.inf
        self._ground_effect = min(max(ground_effect, _LEAST_GROUND_EFFECT), GROUND_EFFECT)
        self._hold = hold
        self._support = SupportEstimator()
        self._usual_shares: list[float] | None = None
        self.restart()

    def restart(self) -> None:
        """Restart on the ground after a reboot of the vehicle, which resets its height."""
        self.phase, self.start = Phase.GROUND, -math.inf
        self._ground_level = math.nan
        self._forget()

    def _forget(self) -> None:
        self._since: dict[str, float] = {}  # start of each condition that holds, s
        self._force = [math.nan] * 3  # smoothed
        self._t = self._last_powered = math.nan
        self._contact_height = self._height = self._slope = math.nan
        self._fall_end = self._descent_end = self._shock = -math.inf
        self._descent = 0.0  # the latest fast climb rate, m/s
        self._is_struck = False  # whether the crash is a shock at the end of a fast descent
        self._step = 0.0  # s between the last two rows without a gap
        self._forget_gap()

    def _forget_gap(self) -> None:
        self._gap: tuple[float, float] | None = None  # last row before it and first row after it, s
        self._not_carried_since = math.nan  # s, after the gap
        self._most_support = math.nan  # of the weight, by the noise before the gap
        self._flown = 0.0  # s after the gap

    @property
    def is_in_doubt(self) -> bool:
        """Whether the vehicle may have landed in a gap of the rows, since the rotors do not carry it now."""
        return self._gap is not None and not math.isnan(self._not_carried_since)

    def update(self, row: PhaseRow) -> PhaseChange | None:
        """Take one row. Returns the change of the phase, None without one. Rows are in order of time."""
        dt = row.t - self._t
        self._follow_gap(row.t, dt)
        if not 0.0 < dt < _IDLE_TIME:
            dt = 0.0
        if math.isnan(row.climb_rate):
            row = row._replace(climb_rate=self._climb_rate(row.height, dt))
        support = self._support.update(row, self.phase in (Phase.FLIGHT, Phase.LANDING))
        self._smooth_force(row, dt)
        if self._support.thrust_share > _POWERED or math.isnan(self._last_powered):
            self._last_powered = row.t
        self._t = row.t
        if self._gap is not None:
            self._check_flight(row, support, dt)
        change = self._next(row, support, dt)
        if change is None:
            return None
        phase, start = change
        gap = None if phase in (Phase.TAKE_OFF, Phase.FLIGHT) else self._gap
        if gap is not None and phase in (Phase.CONTACT, Phase.GROUND, Phase.CRASH):
            not_carried = row.t if math.isnan(self._not_carried_since) else self._not_carried_since
            start = min(start, not_carried)
            start = 0.5 * (gap[0] + gap[1]) if start <= gap[1] + _SETTLING else start
            self._forget_gap()
        if phase is Phase.FLIGHT and self.phase is not Phase.LANDING:
            self._support.begin_flight()
        if phase is Phase.CONTACT:
            self._contact_height = row.height
        self.phase, self.start, self._since = phase, start, {}
        return PhaseChange(phase, start, row.t, gap)

    def _follow_gap(self, t: float, dt: float) -> None:
        """Note a gap in the air. dt: since the previous row, s."""
        if not dt > max(_GAP, _GAP_STEPS * self._step):
            self._step = max(dt, 0.0) if math.isfinite(dt) else 0.0
            return
        if self.phase.is_airborne or self.phase is Phase.CONTACT:
            start = self._t - self._hold if self._gap is None else self._gap[0]
            self._forget_gap()
            self._gap = start, t

    def _check_flight(self, row: PhaseRow, support: Support, dt: float) -> None:
        """Whether the vehicle flies after a gap: the rotors carry it, or it moves."""
        assert self._gap is not None
        if math.isnan(self._most_support):
            self._most_support = least_support(support.noise)
        is_carried = abs(support.share) < self._most_support
        if math.isnan(support.share):
            is_carried = self._support.thrust_share > _CARRIED
        if is_carried or _is_moving(row):
            self._not_carried_since = math.nan
            self._flown += dt
        else:
            self._flown = 0.0
            if math.isnan(self._not_carried_since):
                self._not_carried_since = row.t
        if self._flown > _CONFIRM_FLIGHT or row.t > self._gap[1] + _LONGEST_DOUBT:
            self._forget_gap()

    def _climb_rate(self, height: float, dt: float) -> float:
        """Climb rate from heights, m/s, where it is not measured; nan without them."""
        if dt > 0.0:
            self._slope = filtered(self._slope, (height - self._height) / dt, dt, _SMOOTH)
        self._height = height
        return self._slope

    def _next(self, row: PhaseRow, support: Support, dt: float) -> tuple[Phase, float] | None:
        """The next phase and its start, None without a change."""
        if self.phase.is_airborne and self._has_fallen(row):
            return Phase.CRASH, row.t
        if (self.phase.is_airborne or self.phase is Phase.CONTACT) and self._has_struck(row):
            self._is_struck = True
            return Phase.CRASH, self._shock
        lying = self._lasts("lying", row.t, self._is_lying(row))
        if lying > _LYING_TIME and self._has_flown and self.phase is not Phase.CRASH:
            self._is_struck = False
            return Phase.CRASH, row.t - lying
        match self.phase:
            case Phase.GROUND:
                return self._from_ground(row, dt)
            case Phase.TAKE_OFF:
                return self._landed(row, support) or self._from_take_off(row)
            case Phase.FLIGHT | Phase.LANDING:
                if support.start is not None:
                    return Phase.CONTACT, support.start
                return self._landed(row, support) or self._from_flight(row, dt)
            case Phase.CONTACT:
                return self._from_contact(row, support)
            case Phase.CRASH:
                return self._from_crash(row, support)

    @property
    def _has_flown(self) -> bool:
        return math.isfinite(self.start)

    def _lasts(self, name: str, t: float, holds: bool) -> float:
        """How long a condition has held, s; -1 where it does not."""
        if not holds:
            self._since.pop(name, None)
            return -1.0
        return t - self._since.setdefault(name, t)

    def _smooth_force(self, row: PhaseRow, dt: float) -> None:
        if row.specific_force is None:
            return
        self._force = [
            filtered(old, new, dt, _SMOOTH) for old, new in zip(self._force, row.specific_force, strict=True)
        ]

    def _from_ground(self, row: PhaseRow, dt: float) -> tuple[Phase, float] | None:
        is_lifting = self._support.thrust_share > _TAKE_OFF and row.airborne is not False
        since = self._lasts("lifting", row.t, is_lifting)
        if not is_lifting:
            self._follow_ground(row.height, dt)
            return None
        above = row.height - self._ground_level
        climbs = self._lasts("climbing", row.t, row.climb_rate > _CLIMBING or above > _LIFTED)
        if math.isnan(self._ground_level):  # no height, or the first rows are in flight
            is_flying = since > _BLIND_TIME or (row.airborne is True and since >= _CONFIRM)
            return (Phase.FLIGHT, row.t) if is_flying else None
        return (Phase.TAKE_OFF, row.t - climbs) if climbs >= _CONFIRM else None

    def _follow_ground(self, height: float, dt: float) -> None:
        if not math.isnan(height):
            self._ground_level = filtered(self._ground_level, height, dt, _LEVEL_TIME)

    def _from_take_off(self, row: PhaseRow) -> tuple[Phase, float] | None:
        above = row.height - self._ground_level
        if above > _CLEAR * self._ground_effect or (math.isnan(above) and row.t > self.start + _BLIND_TIME):
            return Phase.FLIGHT, row.t
        if row.t > self.start + _LOW_HOVER and abs(row.climb_rate) < _DESCENDING:
            return Phase.FLIGHT, row.t
        return None

    def _from_flight(self, row: PhaseRow, dt: float) -> tuple[Phase, float] | None:
        self._follow_shares(row, dt)
        above = row.height - self._ground_level
        if self.phase is Phase.FLIGHT:
            is_low = above < self._ground_effect and row.climb_rate < -_DESCENDING
            return (Phase.LANDING, row.t) if self._lasts("low", row.t, is_low) >= _CONFIRM else None
        if above > _CLEAR * self._ground_effect:
            return Phase.FLIGHT, row.t
        hover = self._lasts("hover", row.t, abs(row.climb_rate) < _DESCENDING)
        return (Phase.FLIGHT, row.t) if hover > _LOW_HOVER else None

    def _landed(self, row: PhaseRow, support: Support) -> tuple[Phase, float] | None:
        """On the ground without a detected contact: by the autopilot, or with rotors that produce little thrust.

        A vehicle that falls is not on the ground, whatever the autopilot reports.
        """
        if self._force[2] < _WEIGHTLESS * GRAVITY:
            return None
        reported = self._lasts("reported", row.t, row.airborne is False)
        if reported >= _CONFIRM:
            return Phase.GROUND, row.t - reported
        if row.t > self._last_powered + _IDLE_TIME and not support.share < _SUPPORTED:
            return Phase.GROUND, self._last_powered
        if (
            math.isnan(support.share)
            and row.height < self._ground_level + _LIFTED
            and self.phase is Phase.LANDING
        ):
            return Phase.GROUND, row.t
        return None

    def _from_contact(self, row: PhaseRow, support: Support) -> tuple[Phase, float] | None:
        """On the ground, a bounce, or no contact at all: a payload that was set down, or a gust."""
        thrust = self._support.thrust_share
        unsupported = max(_UNSUPPORTED, 2.0 * support.noise)
        is_down = thrust < _LANDED and support.share > unsupported
        if row.airborne is False or self._lasts("down", row.t, is_down) > _LANDED_TIME:
            return Phase.GROUND, row.t
        is_up = row.climb_rate > _BOUNCE or row.height > self._contact_height + self._ground_effect
        if self._lasts("up", row.t, is_up and thrust > _LANDED) > _CONFIRM:
            return Phase.TAKE_OFF, row.t
        is_carried = thrust > _CARRIED and abs(support.share) < unsupported
        carried = self._lasts("carried", row.t, is_carried)
        lifting = self._lasts("lifting", row.t, thrust > _LANDED)
        if carried > _RELEASE_TIME or lifting > _LONGEST_CONTACT:
            return Phase.FLIGHT, row.t
        return None

    def _from_crash(self, row: PhaseRow, support: Support) -> tuple[Phase, float] | None:
        """A crash lasts until the vehicle stands upright with idle rotors; or the shock was none, and the vehicle flies."""
        idle = self._support.thrust_share < _TURNING and self._force[2] > _UPRIGHT * GRAVITY
        if self._lasts("idle", row.t, idle) > _IDLE_TIME:
            return Phase.GROUND, row.t
        is_carried = abs(support.share) < least_support(support.noise)
        flies = self._lasts("flies", row.t, self._is_struck and is_carried and _is_moving(row))
        return (Phase.FLIGHT, row.t) if flies > _FLIES_AGAIN else None

    def _is_lying(self, row: PhaseRow) -> bool:
        """Whether the vehicle lies still with turning rotors, and not upright or with its thrusts out of balance."""
        magnitude = math.sqrt(sum(f * f for f in self._force))
        if not abs(magnitude / GRAVITY - 1.0) < _RESTING or not row.body_rate < _STILL:
            return False
        if not self._support.thrust_share > _TURNING:
            return False
        if self._force[2] < _UPRIGHT * magnitude:
            return True
        return self._support.thrust_share > _FIGHTING and self._is_unbalanced(row.thrusts)

    def _has_fallen(self, row: PhaseRow) -> bool:
        """Whether a shock ends a fall with little thrust."""
        if row.specific_force is None:
            return False
        if self._lasts("falling", row.t, max(self._force) < _FALLING * GRAVITY) > _LEAST_FALL:
            self._fall_end = row.t
        is_shock = math.sqrt(sum(f * f for f in row.specific_force)) > _SHOCK * GRAVITY
        return is_shock and row.t < self._fall_end + _LEAST_FALL and self._support.thrust_share < _POWERED

    def _has_struck(self, row: PhaseRow) -> bool:
        """Whether a shock beyond the thrust of the rotors ends a fast descent."""
        if row.specific_force is None:
            return False
        if row.climb_rate < -_FAST_DESCENT:
            self._descent_end, self._descent = row.t, row.climb_rate
        if math.hypot(*row.specific_force) > (_SHOCK + self._support.thrust_share) * GRAVITY:
            is_new = row.t > self._shock + _IMPACT_TIME
            self._shock = row.t if is_new else self._shock
        since = row.t - min(self._descent_end, self._shock)
        return since < _IMPACT_TIME and row.climb_rate > _ARRESTED * self._descent

    def _is_unbalanced(self, thrusts: tuple[float, ...]) -> bool:
        """Whether a rotor departs by more than `_BALANCED` from an equal share of the thrust, and from its usual one."""
        if len(thrusts) < 2 or self._usual_shares is None or not sum(thrusts) > 0.0:
            return False
        shares = (len(thrusts) * thrust / sum(thrusts) for thrust in thrusts)
        return any(
            min(abs(share - usual), abs(share - 1.0)) > _BALANCED
            for share, usual in zip(shares, self._usual_shares, strict=True)
        )

    def _follow_shares(self, row: PhaseRow, dt: float) -> None:
        total = sum(row.thrusts)
        if len(row.thrusts) < 2 or not total > 0.0:
            return
        shares = [len(row.thrusts) * thrust / total for thrust in row.thrusts]
        if self._usual_shares is None:
            self._usual_shares = shares
        share = min(dt / 5.0, 1.0)
        self._usual_shares = [
            old + share * (new - old) for old, new in zip(self._usual_shares, shares, strict=True)
        ]


def _is_moving(row: PhaseRow) -> bool:
    return row.speed > _MOVING or abs(row.climb_rate) > _BOUNCE
