"""Findings: what a check or a command found, as data. Text is made from them in one place per command (its `text.py`)."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Iterable, Mapping
from typing import Any


class Severity(enum.IntEnum):
    """How much a finding weighs: ERROR makes every result wrong, WARNING some, NOTE is for information."""

    OK = 0
    NOTE = 1
    WARNING = 2
    ERROR = 3

    @property
    def word(self) -> str:
        return self.name.lower()


@dataclasses.dataclass(frozen=True)
class Finding:
    """One finding.

    code: which one, a stable identifier ("mass_changed"); `summary.json` and tests use it. values: the numbers and
    names that its text is made from, in SI units. signals: the names of the signals that it is about.
    """

    code: str
    severity: Severity
    values: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    signals: tuple[str, ...] = ()


def worst_first(findings: Iterable[Finding]) -> list[Finding]:
    """The findings by falling severity, else in their order."""
    return sorted(findings, key=lambda finding: -finding.severity)
