"""Limits the rate of snapshots for a consumer that draws."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Final

from rotorid.live.snapshot import Consumer, Snapshot

RATE: Final = 60.0
"""Maximum rate, Hz. Snapshots with events or a changed health are passed in addition."""


class Decimated:
    """Passes some of the snapshots to `consumer`. clock: monotonic, s."""

    def __init__(self, consumer: Consumer, clock: Callable[[], float] = time.monotonic) -> None:
        self._consumer, self._clock = consumer, clock
        self._next = -math.inf
        self._health = ""

    def show(self, snapshot: Snapshot) -> None:
        """Pass a snapshot to the consumer if that is due."""
        now = self._clock()
        if now < self._next and not snapshot.events and snapshot.health == self._health:
            return
        self._next, self._health = now + 1.0 / RATE, snapshot.health
        self._consumer.show(snapshot)

    def close(self) -> None:
        """Close the consumer."""
        self._consumer.close()
