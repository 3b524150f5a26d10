"""Interpolates infrequent rotor commands by a more frequent collective command.

The online form of `signals.sampling.with_reconstructed_commands`. All rotor commands are changed by the same amount, from the
latest ones u_0, in proportion to the change of the collective command c:

    u(t) = u_0 + r (c(t) - c_0),        r = cov(mean u, c) / var(c)

r is computed over the last half minute, and is 1 until the collective command has varied enough. If the rotor commands do
not follow it (r outside 0.3 to 3, or a residual above 0.05), nothing is interpolated.
"""

from __future__ import annotations

import math
from typing import Final

_MEMORY: Final = 30.0  # s
_MIN_STD: Final = 0.003  # of the collective command
_MAX_RESIDUAL: Final = 0.05  # std

Values = tuple[float, ...]


class CommandInterpolator:
    """Rotor commands of one vehicle. period: of the received rotor commands, s."""

    def __init__(self, period: float) -> None:
        self._forgetting = math.exp(-period / _MEMORY)
        self._last: tuple[float, Values, float] | None = None
        self._collective: tuple[float, float] | None = None
        self._weight = self._c = self._u = self._cc = self._cu = self._uu = 0.0

    def reset(self) -> None:
        """Discard the latest commands after a gap; the ratio r is kept."""
        self._last = self._collective = None

    def add_rotors(self, t: float, values: Values) -> None:
        """Add received rotor commands. t: session time, s. values: of each rotor, 0 to 1."""
        if self._collective is None or (self._last is not None and t <= self._last[0]):
            return
        c, mean = self._collective[1], sum(values) / len(values)
        self._last = t, values, c
        factor, share = self._forgetting, 1.0 - self._forgetting
        self._weight = factor * self._weight + share
        self._c, self._u = factor * self._c + share * c, factor * self._u + share * mean
        self._cc, self._cu = factor * self._cc + share * c * c, factor * self._cu + share * c * mean
        self._uu = factor * self._uu + share * mean * mean

    def add_collective(self, t: float, value: float) -> Values | None:
        """Add a collective command, and interpolate the rotor commands.

        Args:
            t: session time, s.
            value: collective command, 0 to 1.
        Returns:
            Command of each rotor, 0 to 1; None if they cannot be interpolated.
        """
        if self._collective is not None and t <= self._collective[0]:
            return None
        self._collective = t, value
        ratio = self._ratio()
        if self._last is None or t <= self._last[0] or ratio is None:
            return None
        _, rotors, previous = self._last
        return tuple(min(max(u + ratio * (value - previous), 0.0), 1.0) for u in rotors)

    def _ratio(self) -> float | None:
        if not self._weight:
            return None
        c, u = self._c / self._weight, self._u / self._weight
        variance, covariance = self._cc / self._weight - c * c, self._cu / self._weight - c * u
        if variance < _MIN_STD**2:
            return 1.0
        ratio = covariance / variance
        residual = self._uu / self._weight - u * u - ratio * covariance
        return ratio if 0.3 < ratio < 3.0 and residual < _MAX_RESIDUAL**2 else None
