"""Events of a session, with a limit on how often the same one is repeated."""

from __future__ import annotations

from collections.abc import Iterable

from rotorid.live.link.timeline import Timeline
from rotorid.live.repeat_limiter import RepeatLimiter
from rotorid.live.snapshot import Event


class EventLog:
    """Events since the previous snapshot, oldest first. timeline: provides the time of an event that happens now."""

    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline
        self._events: list[Event] = []
        self._limiter = RepeatLimiter()

    def __bool__(self) -> bool:
        return bool(self._events)

    def __iter__(self):
        return iter(self._events)

    def add(self, kind: str, text: str) -> None:
        """Add an event that happens now."""
        self._events.append(Event(self._timeline.event_time, kind, text))

    def add_limited(self, t: float, kind: str, text: str, key: str) -> None:
        """Add an event that may happen many times. t: session time, s. key: the same for all events that are counted."""
        limited = self._limiter.limit(t, key, text)
        if limited is not None:
            self._events.append(Event(t, kind, limited))

    def extend(self, events: Iterable[Event]) -> None:
        """Add events."""
        self._events.extend(events)

    def add_repeats(self, t: float) -> None:
        """Add how often suppressed events happened, where that is due at t, s."""
        self._events.extend(Event(t, "session", text) for text in self._limiter.due(t))

    def add_all_repeats(self) -> None:
        """Add how often suppressed events happened, at the end of a session."""
        for text in self._limiter.due(float("inf")):
            self.add("session", text)

    def take(self) -> tuple[Event, ...]:
        """Remove and return all events."""
        events, self._events = tuple(self._events), []
        return events
