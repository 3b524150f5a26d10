"""The JSON of `rotorid inspect`."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any

from rotorid.findings import Finding
from rotorid.logs.flight import Flight, Signal
from rotorid.models.registry import INPUTS_OF_COMMANDS, ROTOR_INPUTS
from rotorid.results.text import Verdict
from rotorid.signals.inspection.checks.clock import signal_gaps
from rotorid.signals.inspection.dynamics.estimate import Estimate
from rotorid.signals.inspection.identifiability import Identifiability
from rotorid.signals.inspection.inspection import Inspection
from rotorid.workflows.inspect.dynamics import finding_text as dynamics_text
from rotorid.workflows.inspect.dynamics import value_text
from rotorid.workflows.inspect.text import (
    check_name,
    finding_text,
    reason_text,
    recommendation_texts,
    remedy_text,
)
from rotorid.workflows.inspect.verdict import inspection_verdict


def summary(inspection: Inspection) -> dict[str, Any]:
    """An inspection as plain data. Times in s from the start of the log."""
    flight = inspection.flight
    return {
        "file": str(flight.source),
        "format": flight.format,
        "vehicle": flight.vehicle,
        "time_origin": flight.time_origin,
        "duration": round(flight.duration, 6),
        "airborne": _rounded(inspection.flying),
        "verdict": _verdict(inspection_verdict(inspection)),
        "signals": [summarise_signal(signal) for signal in flight.signals.values()],
        "rotor_signals": rotor_signals_text(flight),
        "findings": [_finding(finding) for finding in inspection.findings],
        "identifiability": [_identifiability(result) for result in inspection.identifiability],
        "dynamics": [_estimate(estimate) for estimate in inspection.dynamics],
    }


def rotor_signals_text(flight: Flight) -> str:
    """Which command uses which signal of the rotors, of a log with several; empty for other logs."""
    if sum(name in flight for name in ROTOR_INPUTS) < 2:
        return ""
    uses = [
        f"{commands}: {', else '.join(name for name in inputs if name in flight)}"
        for commands, inputs in INPUTS_OF_COMMANDS.items()
    ]
    needs = "rotor_command needs a thrust curve in the airframe, rotor_speed a thrust coefficient"
    return f"{'; '.join(uses)} ({needs})"


def _verdict(verdict: Verdict) -> dict[str, Any]:
    return {"tone": verdict.tone, "headline": verdict.headline, "details": list(verdict.details)}


def summarise_signal(signal: Signal) -> dict[str, Any]:
    """A signal as plain data. Times in s from the start of the log, rate in Hz."""
    return {
        "name": signal.name,
        "unit": signal.kind.unit,
        "frame": signal.kind.frame,
        "columns": list(signal.columns),
        "rate": round(signal.rate, 3),
        "samples": len(signal.times),
        "start": round(float(signal.times[0]), 6) if len(signal.times) else None,
        "end": round(float(signal.times[-1]), 6) if len(signal.times) else None,
        "gaps": _rounded(signal_gaps(signal)),
        "source": signal.source,
    }


def _rounded(intervals: Iterable[tuple[float, float]]) -> list[list[float]]:
    return [[round(start, 6), round(end, 6)] for start, end in intervals]


def _finding(finding: Finding) -> dict[str, Any]:
    return {
        "check": check_name(finding),
        **_data(finding),
        "message": finding_text(finding),
        "remedy": remedy_text(finding),
    }


def _identifiability(result: Identifiability) -> dict[str, Any]:
    return {
        "quantity": result.quantity,
        "verdict": result.verdict.value,
        "reason": reason_text(result),
        "reasons": [_data(reason) for reason in result.reasons],
        "recommendations": list(recommendation_texts(result)),
    }


def _estimate(estimate: Estimate) -> dict[str, Any]:
    is_identified = estimate.is_identified
    return {
        "group": estimate.group,
        "quantity": estimate.quantity,
        "axis": estimate.axis,
        "value": estimate.value if is_identified else None,
        "std": estimate.std if is_identified else None,
        "unit": estimate.unit,
        "reason": None if estimate.reason is None else _with_text(estimate.reason),
        "notes": [_with_text(note) for note in estimate.notes],
        "text": value_text(estimate),
    }


def _with_text(finding: Finding) -> dict[str, Any]:
    return {**_data(finding), "text": dynamics_text(finding)}


def _data(finding: Finding) -> dict[str, Any]:
    return dataclasses.asdict(finding) | {"severity": finding.severity.word}
