"""Distribution of many latencies in constant memory: counts in logarithmic bins."""

from __future__ import annotations

import math
from typing import Final

_MINIMUM, _RATIO, _BINS = 1e-6, 1.05, 400
_LOG_RATIO: Final = math.log(_RATIO)


class LatencyHistogram:
    """Latencies from 1 microsecond to some minutes, with a resolution of 5 %. count: of all of them."""

    def __init__(self) -> None:
        self.count = 0
        self._bins = [0] * _BINS

    def add(self, seconds: float) -> None:
        """Add one latency, s."""
        self.count += 1
        index = int(math.log(max(seconds, _MINIMUM) / _MINIMUM) / _LOG_RATIO)
        self._bins[min(max(index, 0), _BINS - 1)] += 1

    def quantile(self, share: float) -> float:
        """The latency that this share (0 to 1) of all latencies does not exceed, s; nan without any."""
        if not self.count:
            return math.nan
        cumulated = 0
        for k, count in enumerate(self._bins):
            cumulated += count
            if cumulated >= share * self.count:
                return _MINIMUM * _RATIO ** (k + 1)
        return math.inf
