"""Numbers and names as people write them: "1.047 ± 0.008 kg", "wind force x"."""

# ruff: noqa: RUF001

from __future__ import annotations

import math
from typing import Final

PLAIN_UNITS: Final = ("", "1")
_ESTIMATORS: Final = {"ekf": "EKF", "ukf": "UKF", "msckf": "MSCKF", "swls": "SWLS", "adaptive": "adaptive"}


def label(name: str) -> str:
    """The name of a quantity or signal in words: wind_force_x -> "wind force x"."""
    return name.replace("_", " ")


def title(name: str) -> str:
    """The same at the start of a sentence."""
    words = label(name)
    return words[:1].upper() + words[1:]


def estimator_label(name: str) -> str:
    """An estimator as people write it."""
    return _ESTIMATORS.get(name, name)


def the_estimator(name: str) -> str:
    """An estimator at the start of a sentence: "The EKF", "The adaptive estimator"."""
    written = estimator_label(name)
    return f"The {written}" if written.isupper() else f"The {written} estimator"


def unit_text(unit: str) -> str:
    """A unit as people write it: "m/s^2" -> "m/s²", nothing for a pure number."""
    if unit in PLAIN_UNITS:
        return ""
    return unit.replace("^2", "²").replace("^3", "³")


def decimals(std: float) -> int:
    """Decimals down to the first digit of a standard deviation that matters: two digits where it starts with
    1.
    """
    if not math.isfinite(std) or std <= 0.0:
        return 3
    exponent = math.floor(math.log10(std))
    leading = round(std / 10.0**exponent, 6)
    return max(0, -exponent + (1 if leading < 1.95 else 0))


def value_text(value: float, std: float, *, signed: bool = False) -> str:
    """A value with as many decimals as its standard deviation deserves; signed: "+0.21"."""
    if not math.isfinite(value):
        return "–"
    text = f"{value:.{decimals(std)}f}"
    if not text.strip("-0."):
        text = text.removeprefix("-")
    elif signed and value > 0:
        text = f"+{text}"
    return text.replace("-", "−")


def plus_minus(value: float, std: float, unit: str = "", *, signed: bool = False) -> str:
    """A value with its standard deviation and unit: "1.047 ± 0.008 kg"; signed: "+0.21 ± 0.02 kg"."""
    text = value_text(value, std, signed=signed)
    if math.isfinite(value) and math.isfinite(std) and std > 0.0:
        text += f" ± {std:.{decimals(std)}f}"
    return f"{text} {unit_text(unit)}".rstrip()


def percent(share: float) -> str:
    """A share of one in percent, without hiding the last bit: 0.9996 is "99.9 %", not "100 %"."""
    if not math.isfinite(share):
        return "–"
    value = 100.0 * share
    if 99.0 < value < 100.0:
        return f"{math.floor(10.0 * value) / 10.0:.1f} %"
    if 0.0 < value < 1.0:
        return f"{max(value, 0.1):.1f} %"
    return f"{value:.0f} %"


def seconds(duration: float) -> str:
    """A duration: "0.8 s", "20 s", "3 min 36 s"."""
    if duration < 10.0:
        return f"{duration:.1f} s"
    if round(duration) < 120:
        return f"{duration:.0f} s"
    minutes, rest = divmod(round(duration), 60)
    return f"{minutes} min {rest} s"


def unconfirmed(count: int, *, more: bool) -> str:
    """What becomes of changes that an estimator believed in, and its track does not bear out. more: besides others."""
    changes = f"{count}{' more' if more else ''} change{'s' if count > 1 else ''}"
    return f"{changes} did not last, or cannot be told from noise"


def joined(words: list[str] | tuple[str, ...]) -> str:
    """Words as a list in a sentence: "a, b and c"."""
    if len(words) < 2:
        return "".join(words)
    return f"{', '.join(words[:-1])} and {words[-1]}"
