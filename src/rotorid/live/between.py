"""Rotor commands between two that come slowly, by a collective command that comes faster.

`signals.sampling.with_reconstructed_commands` does it for a log, which knows what comes next. Here the rotors are moved
together, from the last commands u_0 that came, by what the collective c has changed since,

    u(t) = u_0 + r (c(t) - c_0),        r = cov(mean u, c) / var(c)

over the last half minute, 1 as long as the collective has hardly moved. Where the rotors do not follow it (r outside 0.3
to 3, or what it does not explain above 0.05), nothing is put between."""

from __future__ import annotations

import math
from typing import Final

FASTER: Final = 1.5
"""How many times as often a collective command has to come."""

_MEMORY: Final = 30.0  # s
_MOVED: Final = 0.003  # std of the collective
_RESIDUAL: Final = 0.05

Values = tuple[float, ...]


class Between:
    """One vehicle's commands, as they come. period: of the rotor commands, s."""

    def __init__(self, period: float) -> None:
        self._keeps = math.exp(-period / _MEMORY)
        self._last: tuple[float, Values, float] | None = None
        self._collective: tuple[float, float] | None = None
        self._weight = self._c = self._u = self._cc = self._cu = self._uu = 0.0

    def forget(self) -> None:
        """Forget the last commands, not how the rotors follow: what came since is not known."""
        self._last = self._collective = None

    def rotors(self, t: float, values: Values) -> None:
        """Take rotor commands. t: s."""
        if self._collective is None or (self._last is not None and t <= self._last[0]):
            return
        c, mean = self._collective[1], sum(values) / len(values)
        self._last = t, values, c
        keep, share = self._keeps, 1.0 - self._keeps
        self._weight = keep * self._weight + share
        self._c, self._u = keep * self._c + share * c, keep * self._u + share * mean
        self._cc, self._cu = keep * self._cc + share * c * c, keep * self._cu + share * c * mean
        self._uu = keep * self._uu + share * mean * mean

    def collective(self, t: float, value: float) -> Values | None:
        """Rotor commands that follow from a collective command; None where none can be told. t: s."""
        if self._collective is not None and t <= self._collective[0]:
            return None
        self._collective = t, value
        ratio = self._ratio()
        if self._last is None or t <= self._last[0] or ratio is None:
            return None
        _, rotors, before = self._last
        return tuple(min(max(u + ratio * (value - before), 0.0), 1.0) for u in rotors)

    def _ratio(self) -> float | None:
        if not self._weight:
            return None
        c, u = self._c / self._weight, self._u / self._weight
        variance, common = self._cc / self._weight - c * c, self._cu / self._weight - c * u
        if variance < _MOVED**2:
            return 1.0
        ratio = common / variance
        left = self._uu / self._weight - u * u - ratio * common
        return ratio if 0.3 < ratio < 3.0 and left < _RESIDUAL**2 else None
