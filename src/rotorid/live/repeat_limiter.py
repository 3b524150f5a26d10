"""Limits repeated events: `LIMIT` of a code within `WINDOW` s; further ones are counted and reported once."""

from __future__ import annotations

import dataclasses
from collections import deque
from typing import Final

from rotorid.live.snapshot import Event

LIMIT: Final = 3
WINDOW: Final = 30.0
"""s."""


class RepeatLimiter:
    """Counts events by code."""

    def __init__(self) -> None:
        self._times: dict[str, deque[float]] = {}
        self._suppressed: dict[str, Event] = {}

    def accept(self, event: Event) -> bool:
        """Count an event. Returns False if it is suppressed."""
        times = self._times.setdefault(event.code, deque(maxlen=LIMIT))
        if len(times) == LIMIT and event.t < times[0] + WINDOW:
            first = self._suppressed.get(event.code)
            count, since = (1, event.t) if first is None else (first.count + 1, first.since)
            self._suppressed[event.code] = dataclasses.replace(event, count=count, since=since)
            return False
        times.append(event.t)
        return True

    def due(self, t: float) -> list[Event]:
        """Remove and return the latest suppressed event of each code, with the number of suppressed ones.

        Args:
            t: session time, s; only codes whose first suppressed event is `WINDOW` s old. inf: all.
        """
        codes = [
            code
            for code, event in self._suppressed.items()
            if event.since is not None and t >= event.since + WINDOW
        ]
        return [self._suppressed.pop(code) for code in codes]
