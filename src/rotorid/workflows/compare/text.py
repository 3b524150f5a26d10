"""The sentences of `rotorid compare`, made of findings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from rotorid.estimators.registry import estimator_label
from rotorid.findings import Finding

_MAX_REASONS: Final = 5  # reasons for skipped flights that are listed


def to_text(finding: Finding) -> str:
    """The sentences of a finding. A list has one line for each entry."""
    return _TEXTS[finding.code](finding.values)


def flights_text(count: int) -> str:
    """A number of flights: "1 flight", "3 flights"."""
    return f"{count} flight{'' if count == 1 else 's'}"


def _true_mass_unknown(_: Mapping[str, Any]) -> str:
    return (
        "The true mass is unknown: errors and delays cannot be computed. Give the mass with --truth CSV. Mass: at the end of "
        "the flight. Deviation: root mean square, relative to the median of the estimators."
    )


def _score_definitions(v: Mapping[str, Any]) -> str:
    return (
        f"RMSPE: over the whole flight, and from {v['late']:g} s on. Bias: from {v['late']:g} s on. Delay: median time from a "
        f"step of the mass until the error is below 10 % of the step; a step is missed after {v['timeout']:g} s. NEES (1 for a "
        f"consistent estimator), 95 % band, and undetected errors (outside the band with good health): from {v['settled']:g} s "
        "on."
    )


def _standard_errors(_: Mapping[str, Any]) -> str:
    return "±: standard error over the flights."


def _error_not_finite(v: Mapping[str, Any]) -> str:
    flights = flights_text(v["flights"])
    return (
        f"{estimator_label(v['estimator'])}: the error is not finite in {flights}; the averages exclude them."
    )


def _flights_skipped(v: Mapping[str, Any]) -> str:
    reasons = v["reasons"]
    lines = [f"{flights_text(v['flights'])} skipped:", *(f"  {reason}" for reason in reasons[:_MAX_REASONS])]
    if len(reasons) > _MAX_REASONS:
        lines.append(f"  and {len(reasons) - _MAX_REASONS} more")
    return "\n".join(lines)


_TEXTS: Final[Mapping[str, Callable[[Mapping[str, Any]], str]]] = {
    "true_mass_unknown": _true_mass_unknown,
    "score_definitions": _score_definitions,
    "standard_errors": _standard_errors,
    "error_not_finite": _error_not_finite,
    "flights_skipped": _flights_skipped,
}
