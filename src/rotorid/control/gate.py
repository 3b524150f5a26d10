"""A gate between an estimate and its user: a parameter of a controller or of an autopilot.

    WAITING     the fallback value is used; the estimate has not been good for `hold` s yet, or the gate has lost trust in it
    FOLLOWING   the value moves to the estimate, by at most `rate` per second
    HOLDING     no good reading for less than `patience` s: the value is held
    RETURNING   trust is lost: the value moves to the fallback, by at most `rate` per second

A reading is good if it is finite, in the range, informed, precise enough and healthy, and if it agrees with the
independent check, where there is one: an independent and simpler estimate of the same quantity. Trust is lost

- at once if the estimate is outside the range, not finite or diverged;
- after `grace` s of disagreement with the independent check;
- after `patience` s without a good reading for any other reason, also if no readings arrive.

Trust is gained by `hold` s of good readings without interruption.

The following holds for any sequence of readings, if a decision is made every `MAX_STEP` s or more often:

- the value stays in the range, and changes by at most `rate` per second;
- without good readings the value is at the fallback after `patience` (or `grace`) + distance / `rate` seconds;
- without any good reading the value never leaves the nominal value.

The gate itself has no memory: a state and a reading give the next state and the decision with its reason.
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
"""Largest time that counts for one decision, s. It limits the change of the value after a gap."""

GOOD_HEALTH: tuple[Health, ...] = (Health.OK, Health.OUTLIER)
"""Health of a good reading. A rejected measurement does not make the estimate worse."""


class Mode(enum.IntEnum):
    """Mode of the gate, see the module."""

    WAITING = 0
    FOLLOWING = 1
    HOLDING = 2
    RETURNING = 3


class Reading(NamedTuple):
    """An estimate of the quantity.

    value, std: in the unit of the gate. is_informed: whether the data contain information on the quantity.
    independent_value, independent_std: independent estimate of the same quantity; None if there is none.
    """

    value: float
    std: float
    health: int = Health.OK
    is_informed: bool = True
    independent_value: float | None = None
    independent_std: float = 0.0


class GateState(NamedTuple):
    """State between decisions.

    value: in use. trusted: the last value that was followed by `hold` s of good readings. pending: the candidate for
    the next trusted value, pending_age: its age, s. good_time: time of good readings without interruption, s.
    fault_time: time since the last good reading, s.
    """

    value: float
    trusted: float
    pending: float
    mode: Mode = Mode.WAITING
    good_time: float = 0.0
    fault_time: float = 0.0
    pending_age: float = 0.0


class Decision(NamedTuple):
    """value: to use from now on. is_changed: whether it differs from the previous value. reason: one line of text."""

    value: float
    mode: Mode
    is_changed: bool
    reason: str


class GatedFlight(NamedTuple):
    """The decisions over a flight, one for each row."""

    value: Float[np.ndarray, " n"]
    mode: Integer[np.ndarray, " n"]
    reasons: tuple[str, ...]


def _check_positive(settings: object, *names: str) -> None:
    for name in names:
        if not 0.0 < getattr(settings, name) < math.inf:
            raise SettingError(f"gate: {name} must be above 0")


def _check_not_negative(settings: object, *names: str) -> None:
    for name in names:
        if not 0.0 <= getattr(settings, name) < math.inf:
            raise SettingError(f"gate: {name} must be 0 or more")


@dataclasses.dataclass(frozen=True)
class GatedQuantity:
    """The quantity that passes the gate.

    nominal: value without an estimate. lower, upper: range of permitted values. rate: largest change per second. name,
    unit: for texts.
    """

    nominal: float
    lower: float
    upper: float
    rate: float
    name: str = "mass"
    unit: str = "kg"

    def __post_init__(self) -> None:
        if not -math.inf < self.lower <= self.nominal <= self.upper < math.inf:
            raise SettingError(
                f"gate: the range {self.lower:g} to {self.text(self.upper)} must contain the nominal {self.name}, "
                f"{self.text(self.nominal)}"
            )
        _check_positive(self, "rate")

    def text(self, value: float, format_spec: str = "g") -> str:
        """A value with the unit: "1.2 kg"."""
        return f"{value:{format_spec}} {self.unit}".rstrip()


@dataclasses.dataclass(frozen=True)
class TrustCriteria:
    """Which readings are good, and when trust is gained and lost.

    max_relative_std: largest standard deviation of a good reading, relative to its value. hold: time of good readings
    after which the estimate is used, s. patience: time without a good reading after which trust is lost, s. health: of
    a good reading.
    """

    max_relative_std: float = 0.05
    hold: float = 1.0
    patience: float = 0.5
    health: tuple[Health, ...] = GOOD_HEALTH

    def __post_init__(self) -> None:
        _check_positive(self, "max_relative_std")
        _check_not_negative(self, "hold", "patience")


@dataclasses.dataclass(frozen=True)
class IndependentCheck:
    """Limits of the difference between an estimate and the independent check.

    deviations: in standard deviations of the difference. tolerance: added to them, relative to the nominal value.
    grace: time of disagreement after which trust is lost, s.
    """

    deviations: float = 3.0
    tolerance: float = 0.05
    grace: float = 0.3

    def __post_init__(self) -> None:
        _check_not_negative(self, "deviations", "tolerance", "grace")


@dataclasses.dataclass(frozen=True)
class Gate:
    """A gate for one quantity. fallback: the value after a loss of trust, "nominal" or the last "trusted" one."""

    quantity: GatedQuantity
    trust: TrustCriteria = TrustCriteria()
    check: IndependentCheck = IndependentCheck()
    fallback: Literal["nominal", "trusted"] = "nominal"

    def __post_init__(self) -> None:
        if self.fallback not in ("nominal", "trusted"):
            raise SettingError(f"gate: no fallback {self.fallback!r}; choose 'nominal' or 'trusted'")

    def start(self) -> GateState:
        """The state before the first reading: waiting, with the nominal value."""
        nominal = self.quantity.nominal
        return GateState(nominal, nominal, nominal)

    def decide(self, state: GateState, reading: Reading | None, dt: float) -> tuple[GateState, Decision]:
        """Decide which value to use from now on.

        Args:
            state: after the previous decision.
            reading: the current one, None if there is none.
            dt: time since the previous decision, s. The change of the value and the time of good readings count at
                most `MAX_STEP` of it, the time without good readings all of it.
        Returns:
            The next state, and the decision.
        """
        dt = max(float(dt), 0.0) if math.isfinite(dt) else 0.0
        fault, permitted_time = self.fault(reading)
        good_time = state.good_time + min(dt, MAX_STEP) if fault is None else 0.0
        fault_time = 0.0 if fault is None else state.fault_time + dt
        if state.mode in (Mode.FOLLOWING, Mode.HOLDING):
            is_trusted = fault is None or fault_time < permitted_time
        else:
            is_trusted = fault is None and good_time >= self.trust.hold
        if not is_trusted:
            target = state.trusted if self.fallback == "trusted" else self.quantity.nominal
            mode = Mode.WAITING if state.value == target else Mode.RETURNING
        elif reading is not None and fault is None:
            mode, target = Mode.FOLLOWING, reading.value
        else:
            mode, target = Mode.HOLDING, state.value
        value = self._limit_rate(state.value, target, dt)
        trusted, pending = self._trusted_and_pending(state, value, mode)
        pending_age = self._pending_age(state, mode, dt)
        next_state = GateState(value, trusted, pending, mode, good_time, fault_time, pending_age)
        reason = self._reason(mode, value, target, good_time, fault)
        return next_state, Decision(value, mode, value != state.value, reason)

    def fault(self, reading: Reading | None) -> tuple[str | None, float]:
        """What is wrong with a reading, None if it is good; and the time in s for which the gate tolerates that."""
        if reading is None:
            return "no estimate arrives", self.trust.patience
        quantity, value, std = self.quantity, reading.value, reading.std
        if not (math.isfinite(value) and math.isfinite(std) and std >= 0.0):
            return "the estimate is not a number", 0.0
        if not quantity.lower <= value <= quantity.upper:
            return (
                f"the estimate of {self._estimate_text(value, std)} is outside {quantity.lower:g} to "
                f"{quantity.text(quantity.upper)}",
                0.0,
            )
        if reading.health == Health.DIVERGED:
            return f"health: {Health.DIVERGED.meaning}", 0.0
        return self._tolerated_fault(reading)

    def _tolerated_fault(self, reading: Reading) -> tuple[str | None, float]:
        """`fault` for faults that do not end the trust at once."""
        patience = self.trust.patience
        if not reading.is_informed:
            return f"the data contain little information on the {self.quantity.name}", patience
        if reading.health not in self.trust.health:
            is_named = reading.health in Health.__members__.values()
            return f"health: {Health(reading.health).meaning if is_named else reading.health}", patience
        if reading.std > self.trust.max_relative_std * abs(reading.value):
            text = self._estimate_text(reading.value, reading.std)
            return f"the standard deviation is too large: {text}", patience
        if reading.independent_value is not None:
            return self._disagreement(reading, reading.independent_value), self.check.grace
        return None, patience

    def _disagreement(self, reading: Reading, independent_value: float) -> str | None:
        """The disagreement of a reading with the independent check, None if they agree."""
        difference_std = math.hypot(reading.std, reading.independent_std)
        limit = self.check.deviations * difference_std + self.check.tolerance * abs(self.quantity.nominal)
        if abs(reading.value - independent_value) <= limit:  # False for an independent value that is NaN
            return None
        return (
            f"the independent check gives {self._estimate_text(independent_value, reading.independent_std)}, the estimate "
            f"is {self._estimate_text(reading.value, reading.std)}"
        )

    def _estimate_text(self, value: float, std: float) -> str:
        return f"{value:.3g} ± {self.quantity.text(std, '.2g')}"

    def _limit_rate(self, value: float, target: float, dt: float) -> float:
        """The next value on the way to the target."""
        max_change = self.quantity.rate * min(dt, MAX_STEP)
        if abs(target - value) <= max_change:
            return target
        changed = value + math.copysign(max_change, target - value)
        return min(max(changed, self.quantity.lower), self.quantity.upper)

    def _pending_age(self, state: GateState, mode: Mode, dt: float) -> float:
        if mode != Mode.FOLLOWING or state.mode != Mode.FOLLOWING or state.pending_age >= self.trust.hold:
            return 0.0
        return state.pending_age + min(dt, MAX_STEP)

    def _trusted_and_pending(self, state: GateState, value: float, mode: Mode) -> tuple[float, float]:
        """The pending value becomes the trusted one after `hold` s of following."""
        if mode != Mode.FOLLOWING:
            return state.trusted, state.pending
        if state.mode != Mode.FOLLOWING:
            return state.trusted, value
        if state.pending_age >= self.trust.hold:
            return state.pending, value
        return state.trusted, state.pending

    def _reason(self, mode: Mode, value: float, target: float, good_time: float, fault: str | None) -> str:
        value_text, target_text = (self.quantity.text(v, ".3g") for v in (value, target))
        if mode == Mode.FOLLOWING:
            if value == target:
                return f"follows the estimate: {value_text}"
            return f"moves to {target_text}: {value_text}"
        cause = fault or f"good for {good_time:.2g} of {self.trust.hold:g} s"
        if mode == Mode.HOLDING:
            return f"holds {value_text}: {cause}"
        if mode == Mode.WAITING:
            return f"stays at {value_text}: {cause}"
        return f"returns to {target_text}: {cause}"


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
    """Apply a gate to the estimates of a flight, row by row, with the same decisions as live.

    Args:
        gate: the gate.
        t: times, s.
        value, std: estimates in the unit of the gate; NaN in rows without an estimate.
        health: of the estimator.
        is_informed: whether the data contain information on the quantity; None: in all rows.
        independent_value, independent_std: of the independent check, in the unit of the gate; None: no check.
    Returns:
        The decision for each row.
    """
    informed = np.ones(len(t), bool) if is_informed is None else is_informed
    check_std = np.zeros(len(t)) if independent_std is None else independent_std
    state, values, modes, reasons = gate.start(), np.empty(len(t)), np.empty(len(t), int), []
    for k in range(len(t)):
        reading = None
        if not math.isnan(value[k]):
            reading = Reading(
                float(value[k]),
                float(std[k]),
                int(health[k]),
                bool(informed[k]),
                None if independent_value is None else float(independent_value[k]),
                float(check_std[k]),
            )
        state, decision = gate.decide(state, reading, float(t[k] - t[k - 1]) if k else 0.0)
        values[k], modes[k] = decision.value, decision.mode
        reasons.append(decision.reason)
    return GatedFlight(values, modes, tuple(reasons))
