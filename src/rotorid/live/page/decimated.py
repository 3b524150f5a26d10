"""Limits the rate of snapshots for a consumer that draws."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Final

from rotorid.live.snapshot import Consumer, Snapshot

RATE: Final = 60.0
"""Maximum rate of each vehicle, Hz. Snapshots with events or a changed health are passed in addition."""


class Decimated:
    """Passes some of the snapshots to `consumer`. clock: monotonic, s."""

    def __init__(self, consumer: Consumer, clock: Callable[[], float] = time.monotonic) -> None:
        self._consumer, self._clock = consumer, clock
        self._last: dict[str, tuple[float, str]] = {}  # time of the next one, s, and health, by vehicle

    def show(self, snapshot: Snapshot) -> None:
        """Pass a snapshot to the consumer if that is due."""
        now = self._clock()
        following, health = self._last.get(snapshot.vehicle, (-math.inf, ""))
        if now < following and not snapshot.events and snapshot.health == health:
            return
        self._last[snapshot.vehicle] = now + 1.0 / RATE, snapshot.health
        self._consumer.show(snapshot)

    def close(self) -> None:
        """Close the consumer."""
        self._consumer.close()
