"""Limits repeated events: `LIMIT` of a kind within `WINDOW` s; further ones are counted and reported once."""

from __future__ import annotations

from collections import deque
from typing import Final

LIMIT: Final = 3
WINDOW: Final = 30.0
"""s."""


class RepeatLimiter:
    """Counts events by `key`."""

    def __init__(self) -> None:
        self._times: dict[str, deque[float]] = {}
        self._suppressed: dict[str, tuple[int, float, str]] = {}

    def limit(self, t: float, key: str, text: str) -> str | None:
        """Count an event at t, s. Returns its text, or None if it is suppressed."""
        times = self._times.setdefault(key, deque(maxlen=LIMIT))
        if len(times) == LIMIT and t < times[0] + WINDOW:
            count, since, _ = self._suppressed.get(key, (0, t, text))
            self._suppressed[key] = count + 1, since, text
            return None
        times.append(t)
        return text

    def due(self, t: float) -> list[str]:
        """Remove and return the texts for suppressed events whose first is `WINDOW` s old at t, s; inf: for all."""
        due = [key for key, (_, since, _) in self._suppressed.items() if t >= since + WINDOW]
        suppressed = [self._suppressed.pop(key) for key in due]
        return [
            f"{text} ({count} times since {since:.1f} s)" if count > 1 else text
            for count, since, text in suppressed
        ]
