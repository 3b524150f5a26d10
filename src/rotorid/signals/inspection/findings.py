"""What a check of a flight found, in words."""

from __future__ import annotations

import dataclasses
import enum


class Severity(enum.IntEnum):
    """How bad a finding is: ERROR makes every result wrong, WARNING some, NOTE is good to know."""

    OK = 0
    NOTE = 1
    WARNING = 2
    ERROR = 3

    @property
    def word(self) -> str:
        return self.name.lower()


@dataclasses.dataclass(frozen=True)
class Finding:
    """The outcome of one check.

    check: its name. message: what was found, with numbers and their uncertainty. signals: the names of those
    it looked at. remedy: what to do ("" where nothing is to be done).
    """

    check: str
    severity: Severity
    message: str
    signals: tuple[str, ...] = ()
    remedy: str = ""


def worst_first(findings: list[Finding]) -> list[Finding]:
    """The findings by falling severity, else in their order."""
    return sorted(findings, key=lambda f: -f.severity)
