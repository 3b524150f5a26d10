"""Text of results: numbers, units and names ("1.047 ± 0.008 kg", "wind force x"), and findings as sentences and a verdict."""

# ruff: noqa: RUF001

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, Literal

from rotorid.estimators.registry import estimator_label
from rotorid.findings import Finding

PLAIN_UNITS: Final = ("", "1")
_HUGE: Final = 1e9  # from which on a number is written with an exponent
_DECISIVE: Final = 1000.0  # log evidence, beyond which it is not written in digits
_SMALL: Final = 1e-4  # below which a number and its standard deviation are written with a power of ten
_SUPERSCRIPTS: Final = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


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
    """A unit: "m/s^2" -> "m/s²", "N^0.5 s/m" -> "√N s/m", nothing for a dimensionless number."""
    if unit in PLAIN_UNITS:
        return ""
    return unit.replace("^2", "²").replace("^3", "³").replace("N^0.5", "√N").replace("Hz^0.5", "√Hz")


def decimals(std: float) -> int:
    """The number of decimals for a standard deviation: one significant digit, two where it starts with 1."""
    if not math.isfinite(std) or std <= 0.0:
        return 3
    exponent = math.floor(math.log10(std))
    leading = round(std / 10.0**exponent, 6)
    return max(0, -exponent + (1 if leading < 1.95 else 0))


def value_text(value: float, std: float, *, signed: bool = False) -> str:
    """A value with the decimals of its standard deviation, see `decimals`: "1.047", "1.12·10⁻⁵". signed: "+0.21"."""
    exponent = _exponent(value, std)
    return _number(value, std, exponent, signed) + _power(exponent)


def std_text(value: float, std: float) -> str:
    """The standard deviation of a value, with its power of ten: "0.008" of 1.047, "0.08·10⁻⁵" of 1.12·10⁻⁵."""
    exponent = _exponent(value, std)
    return _number(std, std, exponent) + _power(exponent)


def plus_minus(value: float, std: float, unit: str = "", *, signed: bool = False) -> str:
    """A value with its standard deviation and unit: "1.047 ± 0.008 kg", "(1.12 ± 0.08)·10⁻⁵ kg m²". signed: "+0.21 ± 0.02"."""
    if not (math.isfinite(value) and math.isfinite(std) and std > 0.0):
        return f"{value_text(value, std, signed=signed)} {unit_text(unit)}".rstrip()
    exponent = _exponent(value, std)
    text = f"{_number(value, std, exponent, signed)} ± {_number(std, std, exponent)}"
    return f"{f'({text}){_power(exponent)}' if exponent else text} {unit_text(unit)}".rstrip()


def _number(value: float, std: float, exponent: int, signed: bool = False) -> str:
    if not math.isfinite(value):
        return "–"
    scale = 10.0**-exponent
    text = f"{value:.1e}" if abs(value) >= _HUGE else f"{scale * value:.{decimals(scale * std)}f}"
    if not text.strip("-0."):
        text = text.removeprefix("-")
    elif signed and value > 0:
        text = f"+{text}"
    return text.replace("-", "−")


def _exponent(value: float, std: float) -> int:
    """The power of ten of a number and its standard deviation: 0 from 0.0001 on, else that of the larger one."""
    size = max(abs(value) if math.isfinite(value) else 0.0, std if math.isfinite(std) else 0.0)
    return 0 if size >= _SMALL or size == 0.0 else math.floor(math.log10(size))


def _power(exponent: int) -> str:
    return f"·10{str(exponent).translate(_SUPERSCRIPTS)}" if exponent else ""


def number_text(value: float | None) -> str:
    """A number without standard deviation, with four significant digits; a dash for none."""
    if value is None or not math.isfinite(value):
        return "–"
    return f"{value + 0.0:.4g}".replace("-", "−")


def rounded_text(value: float, digits: int = 2) -> str:
    """A number with this many significant digits, a small one with its power of ten: "0.0075", "1.2·10⁻⁵"; a dash for none."""
    if not math.isfinite(value):
        return "–"
    exponent = _exponent(value, 0.0)
    mantissa = float(f"{value * 10.0**-exponent:.{digits}g}")
    return f"{mantissa + 0.0:g}".replace("-", "−") + _power(exponent)


def percent(share: float) -> str:
    """A share of 1 in percent. A share is never rounded to all or nothing: "99.9 %", "< 0.1 %"."""
    if not math.isfinite(share):
        return "–"
    value = 100.0 * share
    if 99.0 < value < 100.0:
        return f"{math.floor(10.0 * value) / 10.0:.1f} %"
    if 0.0 < value < 0.05:
        return "< 0.1 %"
    if 0.0 < value < 1.0:
        return f"{value:.1f} %"
    return f"{value:.0f} %"


def share_text(value: float, std: float) -> str:
    """A share and its standard deviation, both in %: "97.1 ± 0.4 %"; the share alone where that is unknown."""
    return plus_minus(value, std, "%") if math.isfinite(std) else f"{value:.1f} %"


def evidence_text(log_evidence: float, *, signed: bool = False) -> str:
    """A log evidence, which is known to some tenths: "412", "−1.2", "> 1000". signed: "+412", "> +1000"."""
    plus = "+" if signed else ""
    if abs(log_evidence) > _DECISIVE:
        return f"> {plus}{_DECISIVE:.0f}" if log_evidence > 0.0 else f"< −{_DECISIVE:.0f}"
    digits = 0 if abs(log_evidence) >= 9.95 else 1
    return f"{round(log_evidence, digits) + 0.0:{plus}.{digits}f}".replace("-", "−")


def correlation_text(correlation: float) -> str:
    """A correlation: "0.95", "−0.95"; one that is not complete is never rounded to 1: "0.999"."""
    digits = 2 if abs(correlation) < 0.995 else 3
    size = math.floor(abs(correlation) * 10**digits) / 10**digits if digits == 3 else abs(correlation)
    return f"{math.copysign(size, correlation):.{digits}f}".replace("-", "−")


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


Tone = Literal["good", "caution", "bad"]


@dataclasses.dataclass(frozen=True)
class Statement:
    """A finding with its sentence, as `summary.json` has it. severity: "ok", "note", "warning" or "error"."""

    code: str
    severity: str
    values: Mapping[str, Any]
    text: str


@dataclasses.dataclass(frozen=True)
class Verdict:
    """tone: whether the result can be used. headline: one sentence. details: further sentences. findings: what these sentences
    were made from, in their order."""

    tone: Tone
    headline: str
    details: tuple[str, ...] = ()
    findings: tuple[Statement, ...] = ()

    @property
    def text(self) -> str:
        """The headline and the details."""
        return " ".join((self.headline, *self.details))

    @property
    def codes(self) -> list[str]:
        """The codes of the findings, in order."""
        return [finding.code for finding in self.findings]


def to_statements(findings: Iterable[Finding], to_text: Callable[[Finding], str]) -> tuple[Statement, ...]:
    """Write findings as sentences. to_text: of the command, see `to_verdict`."""
    return tuple(Statement(f.code, f.severity.name.lower(), dict(f.values), to_text(f)) for f in findings)


def to_verdict(tone: Tone, findings: Sequence[Finding], to_text: Callable[[Finding], str]) -> Verdict:
    """Make a verdict of findings.

    Args:
        tone: whether the result can be used.
        findings: at least one; the first becomes the headline, each other one a detail.
        to_text: writes a finding as a sentence; a command has one such function, in its `text.py`.
    """
    statements = to_statements(findings, to_text)
    headline, *details = (statement.text for statement in statements)
    return Verdict(tone, headline, tuple(details), statements)
