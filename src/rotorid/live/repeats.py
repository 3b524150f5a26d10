"""What happens again and again is said less often: `MOST` times in `WITHIN` s, and then how often it was."""

from __future__ import annotations

from collections import deque
from typing import Final

MOST: Final = 3
WITHIN: Final = 30.0
"""s."""


class Repeats:
    """Things that happen, by what they are (`key`)."""

    def __init__(self) -> None:
        self._said: dict[str, deque[float]] = {}
        self._more: dict[str, tuple[int, float, str]] = {}

    def happened(self, t: float, key: str, text: str) -> str | None:
        """What to say of it now, if anything. t: s."""
        said = self._said.setdefault(key, deque(maxlen=MOST))
        if len(said) == MOST and t < said[0] + WITHIN:
            count, since, _ = self._more.get(key, (0, t, text))
            self._more[key] = count + 1, since, text
            return None
        said.append(t)
        return text

    def left(self, t: float) -> list[str]:
        """What was not said, once `WITHIN` s have passed since the first of it; at the end, with t = inf, all of it."""
        due = [key for key, (_, since, _) in self._more.items() if t >= since + WITHIN]
        told = [self._more.pop(key) for key in due]
        return [
            f"{count} times more, the first at {since:.1f} s: {text}" if count > 1 else text
            for count, since, text in told
        ]
