"""Events of a session: their codes, and a limit on how often the same one is reported. Their text is made in `text`."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from rotorid.findings import Severity
from rotorid.live.link.timeline import Timeline
from rotorid.live.repeat_limiter import RepeatLimiter
from rotorid.live.snapshot import Event


class EventType(NamedTuple):
    """source: what the event is about: "link", "vehicle", "estimate", "parameter" or "session"."""

    source: str
    severity: Severity


EVENT_TYPES: Final = {
    "invalid_bytes": EventType("link", Severity.NOTE),
    "unsigned_messages": EventType("link", Severity.WARNING),
    "message_gap": EventType("link", Severity.WARNING),
    "messages_missing": EventType("link", Severity.WARNING),
    "connection_lost": EventType("link", Severity.WARNING),
    "connection_restored": EventType("link", Severity.NOTE),
    "messages_stopped": EventType("link", Severity.WARNING),
    "measurements_stopped": EventType("link", Severity.WARNING),
    "messages_resumed": EventType("link", Severity.NOTE),
    "messages_requested_again": EventType("link", Severity.NOTE),
    "vehicle_detected": EventType("vehicle", Severity.NOTE),
    "other_vehicle": EventType("link", Severity.WARNING),
    "vehicle_rebooted": EventType("vehicle", Severity.WARNING),
    "second_sender": EventType("vehicle", Severity.WARNING),
    "vehicle_moved": EventType("vehicle", Severity.NOTE),
    "estimator_fault": EventType("vehicle", Severity.WARNING),
    "estimator_fault_ended": EventType("vehicle", Severity.NOTE),
    "rotor_count_mismatch": EventType("vehicle", Severity.WARNING),
    "take_off": EventType("vehicle", Severity.NOTE),
    "free_flight": EventType("vehicle", Severity.NOTE),
    "near_ground": EventType("vehicle", Severity.NOTE),
    "contact": EventType("vehicle", Severity.NOTE),
    "landing": EventType("vehicle", Severity.NOTE),
    "crash": EventType("vehicle", Severity.ERROR),
    "rotor_lost_thrust": EventType("vehicle", Severity.WARNING),
    "motor_stopped": EventType("vehicle", Severity.ERROR),
    "rotor_fault_cause": EventType("vehicle", Severity.WARNING),
    "estimation_started": EventType("estimate", Severity.NOTE),
    "sources_changed": EventType("estimate", Severity.NOTE),
    "estimation_paused": EventType("estimate", Severity.WARNING),
    "restarted_after_gap": EventType("estimate", Severity.WARNING),
    "covariance_reset": EventType("estimate", Severity.WARNING),
    "diverged": EventType("estimate", Severity.ERROR),
    "unlogged_sag": EventType("estimate", Severity.WARNING),
    "airframe_identified": EventType("estimate", Severity.NOTE),
    "airframe_contradicted": EventType("estimate", Severity.ERROR),
    "airframe_not_identified": EventType("estimate", Severity.NOTE),
    "thrust_over_mass_differs": EventType("estimate", Severity.WARNING),
    "rotors_contradicted": EventType("estimate", Severity.ERROR),
    "rotor_directions_not_tested": EventType("estimate", Severity.NOTE),
    "identification_paused": EventType("estimate", Severity.WARNING),
    "identification_resumed": EventType("estimate", Severity.NOTE),
    "identification_restarted": EventType("estimate", Severity.NOTE),
    "wrench_not_observed": EventType("session", Severity.WARNING),
    "compilation_awaited": EventType("session", Severity.NOTE),
    "compilation_ended": EventType("session", Severity.NOTE),
    "messages_skipped": EventType("session", Severity.WARNING),
    "parameter_read": EventType("parameter", Severity.NOTE),
    "parameter_out_of_range": EventType("parameter", Severity.WARNING),
    "parameter_gate": EventType("parameter", Severity.NOTE),
    "parameter_set": EventType("parameter", Severity.NOTE),
    "parameter_no_reply": EventType("parameter", Severity.WARNING),
    "parameter_refused": EventType("parameter", Severity.WARNING),
    "parameter_not_written": EventType("parameter", Severity.WARNING),
    "parameter_left": EventType("parameter", Severity.WARNING),
    "parameter_changed": EventType("parameter", Severity.WARNING),
    "parameter_overwritten": EventType("parameter", Severity.WARNING),
    "parameter_summary": EventType("parameter", Severity.NOTE),
}
"""Types of events by code."""


class EventLog:
    """Events since the previous snapshot, oldest first. timeline: provides the time of an event that happens now."""

    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline
        self._events: list[Event] = []
        self._limiter = RepeatLimiter()

    def __bool__(self) -> bool:
        return bool(self._events)

    def __iter__(self) -> Iterator[Event]:
        return iter(self._events)

    def add(self, code: str, *, t: float | None = None, **values: Any) -> None:
        """Add an event. code: a key of `EVENT_TYPES`. t: session time, s; default: now. values: of the event."""
        self._events.append(self._make(code, t, values))

    def add_limited(self, code: str, *, t: float | None = None, **values: Any) -> None:
        """Add an event that may happen many times; see `RepeatLimiter`. Arguments as of `add`."""
        event = self._make(code, t, values)
        if self._limiter.accept(event):
            self._events.append(event)

    def _make(self, code: str, t: float | None, values: dict[str, Any]) -> Event:
        return Event(self._timeline.event_time if t is None else t, code, EVENT_TYPES[code].severity, values)

    def add_repeats(self, t: float) -> None:
        """Add the suppressed events that are due at t, s."""
        self._events += [dataclasses.replace(event, t=t) for event in self._limiter.due(t)]

    def add_all_repeats(self) -> None:
        """Add all suppressed events, at the end of a session."""
        now = self._timeline.event_time
        self._events += [dataclasses.replace(event, t=now) for event in self._limiter.due(math.inf)]

    def take(self) -> tuple[Event, ...]:
        """Remove and return all events."""
        events, self._events = tuple(self._events), []
        return events
