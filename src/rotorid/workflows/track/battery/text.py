"""The battery in words."""

from __future__ import annotations

import math
from typing import Final

from rotorid.estimators.battery.estimator import BatteryEstimate
from rotorid.results.text import plus_minus

NO_TIME: Final = {
    "hover": "unknown: no hover in this flight",
    "share": "unknown: the autopilot does not log the remaining charge",
    "capacity": "unknown: neither a parameter of the autopilot nor the fall of the remaining charge gives the capacity",
    "not_full": "unknown: the autopilot counts the charge from a full battery, and this one was not full at the start",
}
"""Why there is no hover time, by `BatteryEstimate.no_time`."""


def battery_rows(battery: BatteryEstimate) -> list[tuple[str, str]]:
    """Name and value of what is known of a battery."""
    b = battery
    rows = [
        ("internal resistance", _value(1e3 * b.resistance, 1e3 * b.resistance_std, "mΩ")),
        ("slope of the open-circuit voltage", _value(b.slope, b.slope_std, "V/Ah")),
        ("power in hover", _value(b.hover_power, b.hover_power_std, "W")),
    ]
    time = NO_TIME.get(b.no_time, "")
    if not time:
        time = (
            f"{plus_minus(b.hover_time / 60.0, b.hover_time_std / 60.0, 'min')} until the charge is used up"
        )
    return [*rows, ("remaining hover time", time)]


def _value(value: float, std: float, unit: str) -> str:
    return "not identified" if math.isnan(value) else plus_minus(value, std, unit)
