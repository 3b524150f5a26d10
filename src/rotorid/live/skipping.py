"""Messages that are not estimated with, since the estimators are late: counted, and told once they are over."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_SLOW: Final = ("airborne", "battery_voltage")  # signals that are told seldom


class Skipping:
    """count: messages so far. active: whether they are skipped now."""

    def __init__(self) -> None:
        self.count = 0
        self._used: frozenset[str] = frozenset()
        self._slow: frozenset[str] = frozenset()
        self._began: tuple[float, int] | None = None

    def settle(self, chosen: Mapping[str, str]) -> None:
        """Learn which messages are estimated with. chosen: signal -> message."""
        self._used = frozenset(chosen.values())
        self._slow = frozenset(chosen[signal] for signal in _SLOW if signal in chosen)

    @property
    def active(self) -> bool:
        """Whether messages are skipped."""
        return self._began is not None

    def spares(self, message: str) -> bool:
        """Whether a message is taken all the same: it comes seldom, and no estimator waits for it."""
        return message in self._slow

    def counts(self, message: str) -> bool:
        """Count a message, if it would have been estimated with; whether it would."""
        used = message in self._used
        self.count += used
        return used

    def begin(self, t: float) -> None:
        """t: of the latest message that was estimated with, s of the session."""
        self._began = t, self.count

    def end(self, t: float) -> str:
        """What was skipped up to t, s, in words."""
        assert self._began is not None
        (start, count), self._began = self._began, None
        return f"this computer is too slow: {self.count - count} messages of {t - start:.1f} s are not estimated with"
