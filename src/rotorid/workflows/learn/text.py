"""The sentences of `rotorid learn`: one for each finding."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from rotorid.findings import Finding
from rotorid.results.text import duration_text, join_words, label, percent

EFFECTS: Final = {"velocity": "force", "body_rate": "torque"}
"""What a head of the residual models, by its block."""

_MOST_PARTS: Final = 5  # of a flight that are listed


def finding_text(finding: Finding) -> str:
    """A finding of a learned model as a sentence."""
    return _TEXTS[finding.code](finding.values)


def explained_text(share: float) -> str:
    """An explained share in per cent; 0 for a negative one."""
    return percent(max(share, 0.0))


def contact_text(name: str, spans: list[tuple[float, float]]) -> str:
    """The excluded parts of a flight. name: of the flight. spans: start and end, s."""
    parts = join_words([f"{start:.1f} to {end:.1f} s" for start, end in spans])
    if len(spans) > _MOST_PARTS:
        parts = f"{spans[0][0]:.1f} to {spans[-1][1]:.1f} s in {len(spans)} parts"
    total = duration_text(sum(end - start for start, end in spans))
    return f"{name}: contact or external force from {parts}, excluded ({total})"


def _physics(v: Mapping[str, Any]) -> str:
    return (
        f"{v['estimated']} parameters estimated" if v["estimated"] else "Parameters of the airframe unchanged"
    )


def _shares(explained: Mapping[str, float]) -> str:
    shares = [
        f"{explained_text(share)} of the squared {EFFECTS[block]} error" for block, share in explained.items()
    ]
    return join_words(shares)


def _residual(v: Mapping[str, Any]) -> str:
    omitted = join_words([EFFECTS[block] for block in v["omitted"]])
    rest = f"; no residual for the {omitted}" if omitted else ""
    return f"{_physics(v)}; the residual explains {_shares(v['explained'])} on held-out data{rest}."


_TEXTS: Final[Mapping[str, Callable[[Mapping[str, Any]], str]]] = {
    "model_without_residual": lambda v: f"{_physics(v)}, no residual.",
    "residual_omitted": lambda v: (
        f"{_physics(v)}; no residual, since it explains only {_shares(v['explained'])} on held-out data, less than "
        f"{percent(v['required'])} each."
    ),
    "residual_learned": _residual,
    "parameters_poorly_excited": lambda v: (
        f"{join_words([label(n) for n in v['names']]).capitalize()}: poorly excited in these flights, prior values kept."
    ),
    "fit_not_converged": lambda v: (
        f"The parameter fit did not converge in {v['iterations']} iterations; its values may be inaccurate."
    ),
    "contact_excluded": lambda v: f"{contact_text(v['flight'], v['spans'])}.",
    "saturation_excluded": lambda v: (
        f"Excluded parts of {join_words(v['flights'])}: a rotor command was at its limit."
    ),
}
