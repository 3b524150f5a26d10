"""The sentences of `rotorid fleet`: one for each finding."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from rotorid.findings import Finding


def finding_text(finding: Finding) -> str:
    """A finding of a fleet as a sentence."""
    return _TEXTS[finding.code](finding.values)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


_TEXTS: Final[Mapping[str, Callable[[Mapping[str, Any]], str]]] = {
    "no_usable_log": lambda v: f"No usable log: {_count(v['logs'], 'log')} failed.",
    "first_error": lambda v: v["error"],
    "changes_detected": lambda v: (
        f"{_count(v['flights'], 'flight')} of {_count(v['vehicles'], 'vehicle')}: {_count(v['changes'], 'change')} in "
        f"{_count(v['changed'], 'vehicle')}."
    ),
    "no_change_detected": lambda v: (
        f"{_count(v['flights'], 'flight')} of {_count(v['vehicles'], 'vehicle')}: no change detected."
    ),
    "vehicle_changed": lambda v: f"{v['vehicle']}: {v['text']}",
    "logs_failed": lambda v: f"{_count(v['logs'], 'log')} failed.",
    "flights_without_airframe": lambda v: (
        f"{_count(v['flights'], 'flight')} without an airframe: only commands, voltage and vibration were analysed."
    ),
    "short_histories": lambda v: (
        f"{_count(v['vehicles'], 'vehicle')} with fewer than 5 flights: too few to detect a change."
    ),
}
