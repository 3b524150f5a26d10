"""Messages that are skipped while the estimators are late: which ones, and how many."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_INFREQUENT: Final = (
    "airborne",
    "battery_voltage",
    "battery_current",
    "battery_remaining",
)  # signals that are sent rarely


class OverloadPolicy:
    """Skips the messages that estimators use, except those that are sent rarely. count: messages skipped so far."""

    def __init__(self) -> None:
        self.count = 0
        self._used: frozenset[str] = frozenset()
        self._exempt: frozenset[str] = frozenset()
        self._start: tuple[float, int] | None = None

    def set_sources(self, chosen: Mapping[str, str]) -> None:
        """Set which messages the estimators use. chosen: signal -> message."""
        self._used = frozenset(chosen.values())
        self._exempt = frozenset(chosen[signal] for signal in _INFREQUENT if signal in chosen)

    @property
    def is_active(self) -> bool:
        """Whether messages are skipped now."""
        return self._start is not None

    def is_exempt(self, message: str) -> bool:
        """Whether a message is read even while others are skipped."""
        return message in self._exempt

    def count_message(self, message: str) -> bool:
        """Count a skipped message if the estimators use it. Returns whether they do."""
        is_used = message in self._used
        self.count += is_used
        return is_used

    def begin(self, t: float) -> None:
        """Start skipping. t: session time of the latest message that was used, s."""
        self._start = t, self.count

    def end(self, t: float) -> tuple[int, float]:
        """Stop skipping.

        Args:
            t: session time of the latest message, s.
        Returns:
            Number of skipped messages, and their duration, s.
        """
        assert self._start is not None
        (start, count), self._start = self._start, None
        return self.count - count, t - start
