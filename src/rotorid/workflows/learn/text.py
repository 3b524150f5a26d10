"""The sentences of `rotorid learn`: one for each finding."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from rotorid.findings import Finding
from rotorid.results.text import duration_text, join_words, label, percent, title

EFFECTS: Final = {"velocity": "force", "body_rate": "torque"}
"""What a head of the residual models, by its block."""

_MAX_SPANS: Final = 5  # excluded parts of a flight that are listed one by one


def finding_text(finding: Finding) -> str:
    """A finding of a learned model as a sentence."""
    return _TEXTS[finding.code](finding.values)


def explained_text(share: float) -> str:
    """An explained share in per cent; 0 for a negative one."""
    return percent(max(share, 0.0))


def contact_text(name: str, spans: list[tuple[float, float]]) -> str:
    """The excluded parts of a flight. name: of the flight. spans: start and end, s."""
    times = join_words([f"{start:.1f} to {end:.1f} s" for start, end in spans])
    if len(spans) > _MAX_SPANS:
        times = f"{spans[0][0]:.1f} to {spans[-1][1]:.1f} s in {len(spans)} parts"
    total = duration_text(sum(end - start for start, end in spans))
    return f"{name}: contact or external force from {times}, excluded ({total})"


def _physics(v: Mapping[str, Any]) -> str:
    return (
        f"{v['estimated']} parameters estimated" if v["estimated"] else "Parameters of the airframe unchanged"
    )


def shares_text(explained: Mapping[str, float]) -> str:
    """The explained shares of the squared errors, by block, as words."""
    shares = [
        f"{explained_text(share)} of the squared {EFFECTS[block]} error" for block, share in explained.items()
    ]
    return join_words(shares)


def _residual(v: Mapping[str, Any]) -> str:
    omitted = join_words([EFFECTS[block] for block in v["omitted"]])
    omission = f"; no residual for the {omitted}" if omitted else ""
    return f"{_physics(v)}; the residual explains {shares_text(v['explained'])} on held-out data{omission}."


def _unidentifiable_direction(v: Mapping[str, Any]) -> str:
    names = [label(name) for name in v["names"]]
    if len(names) == 1:
        return f"{title(names[0])} cannot be identified from these flights: the prior value is kept."
    relation = "ratios" if v["is_common_scale"] else "relation"
    return f"{title(join_words(names))} cannot be separated with these flights: only their {relation} can be identified."


def _explained_error(v: Mapping[str, Any]) -> str:
    shares = [
        f"{EFFECTS[block]} {explained_text(share)}{'' if block in v['blocks'] else ' (omitted)'}"
        for block, share in v["explained"].items()
    ]
    return (
        f"Share of the squared error explained by the residual ({v['architecture']}, {v['epochs']} epochs): "
        f"{', '.join(shares)}."
    )


_TEXTS: Final[Mapping[str, Callable[[Mapping[str, Any]], str]]] = {
    "model_without_residual": lambda v: f"{_physics(v)}, no residual.",
    "residual_omitted": lambda v: (
        f"{_physics(v)}; no residual, since it explains only {shares_text(v['explained'])} on held-out data, less than "
        f"{percent(v['required'])} each."
    ),
    "residual_learned": _residual,
    "unidentifiable_direction": _unidentifiable_direction,
    "explained_error": _explained_error,
    "parameters_poorly_excited": lambda v: (
        f"{title(join_words(v['names']))}: poorly excited in these flights; the estimates stay near the prior."
    ),
    "fit_not_converged": lambda v: (
        f"The parameter fit did not converge in {v['iterations']} iterations; its values may be inaccurate."
    ),
    "contact_excluded": lambda v: f"{contact_text(v['flight'], v['spans'])}.",
    "saturation_excluded": lambda v: (
        f"{join_words(v['flights'])}: parts with a rotor command at its limit were excluded."
    ),
}
