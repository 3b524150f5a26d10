"""Fewer moments for a consumer that draws: nobody sees more than some tens a second, and each costs time."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Final

from rotorid.live.moment import Consumer, Moment

RATE: Final = 60.0
"""Moments a second, at most; those with events, or of another health than the one before, come beside them."""


class Thinned:
    """Shows `consumer` some of the moments. clock: s, that runs on."""

    def __init__(self, consumer: Consumer, clock: Callable[[], float] = time.monotonic) -> None:
        self._consumer, self._clock = consumer, clock
        self._due = -math.inf
        self._health = ""

    def show(self, moment: Moment) -> None:
        """Pass a moment on, if it is time to."""
        now = self._clock()
        if now < self._due and not moment.events and moment.health == self._health:
            return
        self._due, self._health = now + 1.0 / RATE, moment.health
        self._consumer.show(moment)

    def close(self) -> None:
        """Close the consumer."""
        self._consumer.close()
