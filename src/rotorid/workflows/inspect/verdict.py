"""The verdict of `rotorid inspect` in one sentence: what can be identified from the log, and which checks failed."""

from __future__ import annotations

from typing import Final

from rotorid.findings import Finding, Severity
from rotorid.results.text import Verdict, join_words
from rotorid.signals.inspection import identifiability
from rotorid.signals.inspection.dynamics.estimate import Estimate
from rotorid.signals.inspection.inspection import Inspection
from rotorid.workflows.inspect.dynamics import value_text
from rotorid.workflows.inspect.text import check_name, quantity_text

_MAIN: Final = (
    ("angular_acceleration_per_command", "angular acceleration per command"),
    ("total_lag", "lag + delay"),
    ("bandwidth", "bandwidth of the rate loop"),
)
"""Quantities of the dynamics that the verdict names."""


def inspection_verdict(inspection: Inspection) -> Verdict:
    """The verdict on a log: bad where it has no flight, or where a check failed; caution where a check warns, or where the
    mass cannot be identified with certainty."""
    if not inspection.flying:
        return Verdict("bad", "No flight: the vehicle stayed on the ground.")
    failed, doubtful = (_checks(inspection.findings, s) for s in (Severity.ERROR, Severity.WARNING))
    yes = _quantities(inspection, identifiability.Verdict.YES)
    weak = [name for name in _quantities(inspection, identifiability.Verdict.WEAK) if name not in yes]
    details = []
    if doubtful:
        details.append(f"Warnings: {join_words(doubtful)}.")
    if weak:
        details.append(f"Poorly excited: {join_words(weak)}.")
    measured = measured_dynamics(inspection.dynamics)
    if measured:
        details.append(f"Estimated from gyro and motor commands: {join_words(measured)}.")
    if failed:
        count = "A check" if len(failed) == 1 else f"{len(failed)} checks"
        return Verdict("bad", f"{count} failed: {join_words(failed)}.", tuple(details))
    if not yes:
        rest = "parameter of the airframe" if measured else "quantity"
        return Verdict(
            "caution", f"No {rest} can be identified from this log with certainty.", tuple(details)
        )
    tone = "good" if "mass" in yes and not doubtful else "caution"
    return Verdict(tone, f"Identifiable from this log: {join_words(yes)}.", tuple(details))


def measured_dynamics(estimates: list[Estimate]) -> list[str]:
    """The main numbers of the dynamics that have a value: "angular acceleration per command about x and y"."""
    texts = []
    for quantity, name in _MAIN:
        members = [e for e in estimates if e.quantity == quantity and e.is_identified]
        if members:
            values = join_words([f"{e.axis} {value_text(e)}".strip() for e in members])
            texts.append(f"{name} {values}")
    return texts


def _checks(findings: list[Finding], severity: Severity) -> list[str]:
    return list(dict.fromkeys(check_name(f) for f in findings if f.severity is severity))


def _quantities(inspection: Inspection, verdict: identifiability.Verdict) -> list[str]:
    """The names of the quantities with this verdict, each once and without what it is from."""
    names = (quantity_text(r.quantity) for r in inspection.identifiability if r.verdict is verdict)
    return list(dict.fromkeys(name.partition(",")[0] for name in names))
