"""Asks a vehicle for parameters and decides which answers to believe.

A PARAM_VALUE counts only as the answer to a request that waits for it. A value is believed once two requests in a row were
answered with the same finite value. Different answers to one request, or answers that keep changing, are contradictory: two
vehicles, or somebody who forges messages.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

REPLY_TIMEOUT: Final = 2.0
"""s after which a request is repeated."""

_MAX_CONTRADICTIONS: Final = 3
_CONTRADICTION_PERIOD: Final = 30.0  # s


class ParameterQuery:
    """The value of one parameter. request: sends PARAM_REQUEST_READ.

    value: the latest value that is believed; None before the first. confirmed_at: time of its latest confirmation.
    unanswered: requests in a row without an answer. is_set_lost: whether the latest `was_set` got no answer of its own.
    is_contradictory: whether answers contradict each other.
    """

    def __init__(self, request: Callable[[], None]) -> None:
        self._request = request
        self.value: float | None = None
        self.confirmed_at = -math.inf
        self.unanswered = 0
        self.is_set_lost = self._is_set = False
        self._candidate: float | None = None
        self._candidate_at = -math.inf
        self._asked_at: float | None = None
        self._needs_answers = 0
        self._contradictions: list[float] = []

    @property
    def is_contradictory(self) -> bool:
        """Whether answers contradict each other."""
        return len(self._contradictions) >= _MAX_CONTRADICTIONS

    @property
    def is_settled(self) -> bool:
        """Whether no answer is waited for."""
        return self._needs_answers == 0 and self._asked_at is None

    def ask(self) -> None:
        """Start to read the value: it is settled again after two equal answers."""
        self._needs_answers, self._candidate = 2, None

    def was_set(self, now: float) -> None:
        """The value was set: the vehicle answers without a request, and one more answer is asked for."""
        self.ask()
        self._asked_at, self._is_set, self.is_set_lost = now, True, False

    def update(self, now: float) -> None:
        """Send the request that is due. now: time of a monotonic clock, s."""
        if self._asked_at is not None and now >= self._asked_at + REPLY_TIMEOUT:
            self._asked_at = None
            self.unanswered += 1
            self.is_set_lost = self.is_set_lost or self._is_set
            self._is_set = False
        if self._needs_answers and self._asked_at is None:
            self._asked_at = now
            self._request()

    def answer(self, value: float, now: float) -> bool:
        """Process a PARAM_VALUE. Returns whether it is unexpected and differs from what is believed.

        Args:
            value: of the message.
            now: time of a monotonic clock, s.
        """
        if not math.isfinite(value):
            return False
        if self._asked_at is None:
            if (
                self._candidate is not None
                and value != self._candidate
                and now < self._candidate_at + REPLY_TIMEOUT
            ):
                self._contradict(now)  # the request was answered already, with another value
            return self.value is not None and value != self.value
        self._asked_at, self.unanswered, self._is_set = None, 0, False
        if self._candidate is not None and value != self._candidate:
            self._contradict(now)
            self._needs_answers = 2
        self._candidate, self._candidate_at = value, now
        self._needs_answers -= 1
        if self._needs_answers == 0:
            self.value, self.confirmed_at = value, now
        return False

    def _contradict(self, now: float) -> None:
        self._contradictions = [t for t in self._contradictions if t > now - _CONTRADICTION_PERIOD]
        self._contradictions.append(now)
        if not self.is_settled:
            self._needs_answers, self._candidate = 2, None
