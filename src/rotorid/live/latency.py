"""The distribution of many short times, in little memory: counts over bins of equal ratio."""

from __future__ import annotations

import math
from typing import Final

_LEAST, _RATIO, _BINS = 1e-6, 1.05, 400
_LOG: Final = math.log(_RATIO)


class Latencies:
    """Times in s, from a microsecond to some minutes, to 5 %."""

    def __init__(self) -> None:
        self.count = 0
        self._bins = [0] * _BINS

    def add(self, seconds: float) -> None:
        """Count one."""
        self.count += 1
        self._bins[min(max(int(math.log(max(seconds, _LEAST) / _LEAST) / _LOG), 0), _BINS - 1)] += 1

    def quantile(self, share: float) -> float:
        """What this share of them stays under, s; nan of none."""
        if not self.count:
            return math.nan
        seen = 0
        for k, count in enumerate(self._bins):
            seen += count
            if seen >= share * self.count:
                return _LEAST * _RATIO ** (k + 1)
        return math.inf
