"""A gate between an estimate and whoever flies by it: a controller's parameter, or an autopilot's.

    WAITING     the fallback holds; the estimate has not been good for `hold` s yet, or lost its trust
    FOLLOWING   the value moves to the estimate, by at most `rate` a second
    KEEPING     no good reading for less than `patience` s: the value stays as it is
    RETURNING   trust is lost: the value moves to the fallback, by at most `rate` a second

A reading is good if it is finite, in the range, carries information, has a narrow band and a good health, and agrees with the
witness where there is one: an independent and simpler measurement of the same number. Trust is lost at once where the
estimate leaves the range, is not finite or has diverged; after `grace` s of contradiction by the witness, and after `patience`
s without a good reading otherwise, be it that the link is silent. It is won by `hold` s of good readings without a break.

Laws, whatever comes in, where a decision is made each `LONGEST` s or more often:
    the value stays in the range, and moves by at most `rate` a second;
    without good readings it is at the fallback after `patience` (or `grace`) + (its distance) / `rate` seconds;
    without any good reading at all it never leaves the nominal value.

It draws nothing and keeps nothing: a state and a reading give the next state and the decision, in words too.
"""

from __future__ import annotations

import dataclasses
import enum
import math
from typing import Literal, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Integer

from rotorid.errors import SettingError
from rotorid.estimators.base import Health

MAX_STEP = 0.1
"""Most seconds that one decision counts for: after a silence the value does not jump."""

GOOD: tuple[Health, ...] = (Health.OK, Health.OUTLIER)
"""A rejected measurement says nothing against the estimate."""


class Mode(enum.IntEnum):
    """What the gate does: see the module."""

    WAITING = 0
    FOLLOWING = 1
    KEEPING = 2
    RETURNING = 3


class Reading(NamedTuple):
    """An estimate of the number: value and std in the gate's unit. informed: whether the data said anything about it. witness,
    witness_std: an independent measurement of the same, None where there is none."""

    value: float
    std: float
    health: int = Health.OK
    is_informed: bool = True
    independent_value: float | None = None
    independent_std: float = 0.0


class GateState(NamedTuple):
    """value: in use. good: s of good readings without a break. unsure: s since the last good one. trusted: the last value that
    was followed by `hold` s of good readings; pending: the next such value, pending_age: its age in s."""

    value: float
    trusted: float
    pending: float
    mode: Mode = Mode.WAITING
    good: float = 0.0
    silence: float = 0.0
    pending_age: float = 0.0


class Decision(NamedTuple):
    """value: what to use from now on. changed: whether it differs from the one before. reason: why, in words."""

    value: float
    mode: Mode
    is_changed: bool
    reason: str


class GatedFlight(NamedTuple):
    """Decisions over a flight, one a row."""

    value: Float[np.ndarray, " n"]
    mode: Integer[np.ndarray, " n"]
    reasons: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class Gate:
    """A gate for one number. Numbers are in its unit, times in s.

    nominal: the value without any estimate. lower, upper: the range of values that may ever be used. rate: most change a
    second. band: largest std of a good reading, as a share of its value. hold: of good readings before the first is used.
    patience: without a good one before trust is lost. fallback: to "nominal", or to the last "trusted" value. health: what is
    good. disagreement: how far witness and estimate may be apart, in standard deviations of their difference, beyond
    `tolerance`, a share of the nominal value that they may differ by anyhow. grace: of such a contradiction before trust is
    lost.
    """

    nominal: float
    lower: float
    upper: float
    rate: float
    band: float = 0.05
    hold: float = 1.0
    patience: float = 0.5
    fallback: Literal["nominal", "trusted"] = "nominal"
    health: tuple[Health, ...] = GOOD
    disagreement: float = 3.0
    tolerance: float = 0.05
    grace: float = 0.3
    name: str = "mass"
    unit: str = "kg"

    def __post_init__(self) -> None:
        if not -math.inf < self.lower <= self.nominal <= self.upper < math.inf:
            raise SettingError(
                f"gate: the range {self.lower:g} to {self.upper:g}{self._unit} must hold the nominal {self.name}, "
                f"{self.nominal:g}{self._unit}"
            )
        for name in ("rate", "band"):
            if not 0.0 < getattr(self, name) < math.inf:
                raise SettingError(f"gate: {name} must be above 0")
        for name in ("hold", "patience", "disagreement", "tolerance", "grace"):
            if not 0.0 <= getattr(self, name) < math.inf:
                raise SettingError(f"gate: {name} must be 0 or more")
        if self.fallback not in ("nominal", "trusted"):
            raise SettingError(f"gate: no fallback {self.fallback!r}; it is 'nominal' or 'trusted'")

    @property
    def _unit(self) -> str:
        """As it follows a number."""
        return f" {self.unit}" if self.unit else ""

    def start(self) -> GateState:
        """The state before any reading: the nominal value, waiting."""
        return GateState(self.nominal, self.nominal, self.nominal)

    def decide(self, state: GateState, reading: Reading | None, dt: float) -> tuple[GateState, Decision]:
        """What to use from now on. reading: None where there is none now. dt: s since the decision before, which counts for
        `LONGEST` at most in what may move, and in full as silence."""
        dt = max(float(dt), 0.0) if math.isfinite(dt) else 0.0
        fault, allowed = self.fault(reading)
        good = state.good + min(dt, MAX_STEP) if fault is None else 0.0
        unsure = 0.0 if fault is None else state.silence + dt
        trusting = state.mode in (Mode.FOLLOWING, Mode.KEEPING)
        lost = fault is not None and unsure >= allowed if trusting else fault is not None or good < self.hold
        target = state.trusted if self.fallback == "trusted" else self.nominal
        if reading is not None and fault is None and not lost:
            mode, target = Mode.FOLLOWING, reading.value
        elif not lost:
            mode, target = Mode.KEEPING, state.value
        else:
            mode = Mode.WAITING if state.value == target else Mode.RETURNING
        value = self._moved(state.value, target, dt)
        after = GateState(value, *self._trusted(state, value, mode, dt), mode, good, unsure)
        after = after._replace(pending_age=self._age(state, mode, dt))
        return after, Decision(
            value, mode, value != state.value, self._reason(mode, value, target, good, fault)
        )

    def fault(self, reading: Reading | None) -> tuple[str | None, float]:
        """What speaks against a reading, in words, None if nothing does; and for how many seconds trust outlasts it."""
        if reading is None:
            return "no estimate comes in", self.patience
        value, std, unit = reading.value, reading.std, self._unit
        if not (math.isfinite(value) and math.isfinite(std) and std >= 0.0):
            return "the estimate is not a number", 0.0
        if not self.lower <= value <= self.upper:
            return (
                f"the estimate of {value:.3g} ± {std:.2g}{unit} is outside {self.lower:g} to {self.upper:g}{unit}",
                0.0,
            )
        if reading.health == Health.DIVERGED:
            return f"health: {Health.DIVERGED.meaning}", 0.0
        if not reading.is_informed:
            return f"the data have said little about the {self.name}", self.patience
        if reading.health not in self.health:
            known = reading.health in Health.__members__.values()
            return f"health: {Health(reading.health).meaning if known else reading.health}", self.patience
        if std > self.band * abs(value):
            return f"the band is wide: {value:.3g} ± {std:.2g}{unit}", self.patience
        if reading.independent_value is not None:
            return self._disagreement(reading, reading.independent_value), self.grace
        return None, self.patience

    def _disagreement(self, reading: Reading, witness: float) -> str | None:
        apart = math.hypot(reading.std, reading.independent_std)
        limit = self.disagreement * apart + self.tolerance * abs(self.nominal)
        if abs(reading.value - witness) <= limit:  # a witness that is not a number speaks against it
            return None
        return (
            f"the witness says {witness:.3g} ± {reading.independent_std:.2g}{self._unit}, the estimate "
            f"{reading.value:.3g} ± {reading.std:.2g}{self._unit}"
        )

    def _moved(self, value: float, target: float, dt: float) -> float:
        most = self.rate * min(dt, MAX_STEP)
        if abs(target - value) <= most:
            return target
        return min(max(value + math.copysign(most, target - value), self.lower), self.upper)

    def _age(self, state: GateState, mode: Mode, dt: float) -> float:
        """Of the pending value."""
        if mode != Mode.FOLLOWING or state.mode != Mode.FOLLOWING or state.pending_age >= self.hold:
            return 0.0
        return state.pending_age + min(dt, MAX_STEP)

    def _trusted(self, state: GateState, value: float, mode: Mode, dt: float) -> tuple[float, float]:
        """Trusted and pending value."""
        if mode != Mode.FOLLOWING:
            return state.trusted, state.pending
        if state.mode != Mode.FOLLOWING:
            return state.trusted, value
        if state.pending_age >= self.hold:
            return state.pending, value
        return state.trusted, state.pending

    def _reason(self, mode: Mode, value: float, target: float, good: float, fault: str | None) -> str:
        at = f"{value:.3g}{self._unit}"
        if mode == Mode.FOLLOWING:
            return (
                f"follows the estimate: {at}"
                if value == target
                else f"moves to {target:.3g}{self._unit}: {at}"
            )
        why = fault or f"good for {good:.2g} of {self.hold:g} s"
        if mode == Mode.KEEPING:
            return f"keeps {at}: {why}"
        return (
            f"stays at {at}: {why}" if mode == Mode.WAITING else f"returns to {target:.3g}{self._unit}: {why}"
        )


def gate_flight(
    gate: Gate,
    t: Float[np.ndarray, " n"],
    value: Float[np.ndarray, " n"],
    std: Float[np.ndarray, " n"],
    health: Integer[np.ndarray, " n"],
    is_informed: Bool[np.ndarray, " n"] | None = None,
    independent_value: Float[np.ndarray, " n"] | None = None,
    independent_std: Float[np.ndarray, " n"] | None = None,
) -> GatedFlight:
    """The gate over the estimates of a flight, row by row, as it decides live.

    t: s. value, std: in the gate's unit; a row whose value is NaN is one in which no estimate came in. informed: all rows,
    where it is None. witness, witness_std: in the gate's unit.
    """
    known = np.ones(len(t), bool) if is_informed is None else is_informed
    spread = np.zeros(len(t)) if independent_std is None else independent_std
    state, values, modes, reasons = gate.start(), np.empty(len(t)), np.empty(len(t), int), []
    for k in range(len(t)):
        seen = None if independent_value is None else float(independent_value[k])
        reading = None
        if not math.isnan(value[k]):
            own = float(value[k]), float(std[k]), int(health[k]), bool(known[k])
            reading = Reading(*own, seen, float(spread[k]))
        state, decision = gate.decide(state, reading, float(t[k] - t[k - 1]) if k else 0.0)
        values[k], modes[k] = decision.value, decision.mode
        reasons.append(decision.reason)
    return GatedFlight(values, modes, tuple(reasons))
