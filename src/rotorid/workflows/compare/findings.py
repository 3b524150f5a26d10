"""Findings on a comparison, as data."""

from __future__ import annotations

from collections.abc import Mapping

from rotorid.findings import Finding, Severity
from rotorid.workflows.compare.scores import LATE_START, SETTLED_START, STEP_TIMEOUT, Comparison


def comparison_findings(comparison: Comparison, skipped: Mapping[str, str]) -> list[Finding]:
    """The findings on a comparison, in the order in which they are printed.

    Args:
        comparison: average scores.
        skipped: reason for each skipped flight, by its name.
    """
    findings = []
    if not comparison.has_truth:
        findings.append(Finding("true_mass_unknown", Severity.WARNING, signals=("true_mass",)))
    else:
        values = {"late": LATE_START, "settled": SETTLED_START, "timeout": STEP_TIMEOUT}
        findings.append(Finding("score_definitions", Severity.NOTE, values))
    if comparison.flights > 1:
        findings.append(Finding("standard_errors", Severity.NOTE, {"flights": comparison.flights}))
    if comparison.has_truth:
        for name, average in comparison.estimators.items():
            excluded = average.flights - average.metrics.rmspe.flights
            if excluded:
                values = {"estimator": name, "flights": excluded}
                findings.append(Finding("error_not_finite", Severity.WARNING, values))
    if skipped:
        values = {"flights": len(skipped), "reasons": tuple(skipped.values())}
        findings.append(Finding("flights_skipped", Severity.WARNING, values))
    return findings
