"""Text of numbers and names: "1.047 ± 0.008 kg", "wind force x"."""

# ruff: noqa: RUF001

from __future__ import annotations

import math
from typing import Final

from rotorid.estimators.registry import estimator_label

PLAIN_UNITS: Final = ("", "1")
_HUGE: Final = 1e9  # from which on a number is written with an exponent


def label(name: str) -> str:
    """The name of a quantity or signal: wind_force_x -> "wind force x", imu_position -> "IMU position"."""
    return name.replace("_", " ").replace("imu ", "IMU ")


def title(name: str) -> str:
    """The name of a quantity or signal at the start of a sentence: wind_force_x -> "Wind force x"."""
    words = label(name)
    return words[:1].upper() + words[1:]


def estimator_subject(name: str) -> str:
    """An estimator at the start of a sentence: "The EKF", "The adaptive estimator"."""
    written = estimator_label(name)
    return f"The {written}" if written.isupper() else f"The {written} estimator"


def unit_text(unit: str) -> str:
    """A unit: "m/s^2" -> "m/s²", nothing for a dimensionless number."""
    if unit in PLAIN_UNITS:
        return ""
    return unit.replace("^2", "²").replace("^3", "³")


def decimals(std: float) -> int:
    """The number of decimals for a standard deviation: one significant digit, two where it starts with 1."""
    if not math.isfinite(std) or std <= 0.0:
        return 3
    exponent = math.floor(math.log10(std))
    leading = round(std / 10.0**exponent, 6)
    return max(0, -exponent + (1 if leading < 1.95 else 0))


def value_text(value: float, std: float, *, signed: bool = False) -> str:
    """A value with the decimals of its standard deviation, see `decimals`. signed: "+0.21"."""
    if not math.isfinite(value):
        return "–"
    text = _number(value, std)
    if not text.strip("-0."):
        text = text.removeprefix("-")
    elif signed and value > 0:
        text = f"+{text}"
    return text.replace("-", "−")


def _number(value: float, std: float) -> str:
    return f"{value:.1e}" if abs(value) >= _HUGE else f"{value:.{decimals(std)}f}"


def plus_minus(value: float, std: float, unit: str = "", *, signed: bool = False) -> str:
    """A value with its standard deviation and unit: "1.047 ± 0.008 kg". signed: "+0.21 ± 0.02 kg"."""
    text = value_text(value, std, signed=signed)
    if math.isfinite(value) and math.isfinite(std) and std > 0.0:
        text += f" ± {_number(std, std)}"
    return f"{text} {unit_text(unit)}".rstrip()


def percent(share: float) -> str:
    """A share of 1 in percent. A share below 1 is never rounded to 100 %: 0.9996 is "99.9 %"."""
    if not math.isfinite(share):
        return "–"
    value = 100.0 * share
    if 99.0 < value < 100.0:
        return f"{math.floor(10.0 * value) / 10.0:.1f} %"
    if 0.0 < value < 1.0:
        return f"{max(value, 0.1):.1f} %"
    return f"{value:.0f} %"


def duration_text(duration: float) -> str:
    """A duration: "0.8 s", "20 s", "3 min 36 s"."""
    if duration < 10.0:
        return f"{duration:.1f} s"
    if round(duration) < 120:
        return f"{duration:.0f} s"
    minutes, rest = divmod(round(duration), 60)
    return f"{minutes} min {rest} s"


def join_words(words: list[str] | tuple[str, ...]) -> str:
    """Join words to a list in a sentence: "a, b and c"."""
    if len(words) < 2:
        return "".join(words)
    return f"{', '.join(words[:-1])} and {words[-1]}"
