"""One number of the dynamics with its standard deviation, or the reason why it cannot be identified."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any, Literal

from rotorid.findings import Finding, Severity

Group = Literal["noise", "gain", "lag", "rate_loop"]


@dataclasses.dataclass(frozen=True)
class Estimate:
    """A number, or the reason why there is none.

    group: which of the four tables it belongs to. quantity: what it is, a stable identifier. axis: "x", "y", "z", or ""
    where it has none. value, std: in `unit`, NaN where it cannot be identified. reason: why it cannot be, None where it
    is. notes: what it applies to, or what limits it.
    """

    group: Group
    quantity: str
    axis: str
    value: float
    std: float
    unit: str
    reason: Finding | None = None
    notes: tuple[Finding, ...] = ()

    @property
    def is_identified(self) -> bool:
        """Whether it has a value."""
        return self.reason is None


def not_identified(
    group: Group, quantity: str, axis: str, unit: str, code: str, values: Mapping[str, Any] | None = None
) -> Estimate:
    """An estimate without a value. code, values: of the reason."""
    reason = Finding(code, Severity.WARNING, values or {})
    return Estimate(group, quantity, axis, math.nan, math.nan, unit, reason)
