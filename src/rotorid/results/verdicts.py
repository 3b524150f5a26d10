"""The verdict on a result: whether it can be used, and the findings behind that."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal

from rotorid.findings import Finding

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
