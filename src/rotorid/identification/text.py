"""The sentences of fits: one text for each code of a finding."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from rotorid.findings import Finding
from rotorid.models.system import by_vectors

Values = Mapping[str, Any]
Signals = Sequence[str]


def finding_text(finding: Finding) -> str:
    """A finding of a fit, or of the tests of its residuals, as a sentence without a full stop."""
    return _TEXTS[finding.code](finding.values, finding.signals)


def _label(name: str) -> str:
    return name.replace("_", " ")


def _join(names: Sequence[str]) -> str:
    words = [_label(name) for name in names]
    return f"{', '.join(words[:-1])} and {words[-1]}"


def _not_separable(v: Values, _: Signals) -> str:
    text = f"{_join(v['names'])} cannot be separated"
    if v["is_common_scale"]:
        return f"{text}: only their ratios can be identified"
    pairs = zip(v["weights"], v["names"], strict=True)
    weights = " ".join(f"{weight:+.2g} {_label(name)}" for weight, name in pairs).lstrip("+")
    return f"{text}: a change by {weights} in their sizes has no effect"


def _prior_kept(v: Values, _: Signals) -> str:
    names = by_vectors(v["names"])
    if len(names) == 1:
        return f"{_label(names[0])} cannot be identified from these flights: the prior value is kept"
    identified = "ratios" if v["is_common_scale"] else "relation"
    return f"{_join(names)} cannot be separated with these flights: only their {identified} can be identified"


def _at_bound(v: Values, _: Signals) -> str:
    if v["bound"] == "upper":
        return (
            f"{_label(v['name'])} is at its upper bound, the sum of the other two moments: "
            "check the geometry and the products of inertia"
        )
    return f"{_label(v['name'])} is at its lower bound, {v['value']:g}"


_TEXTS: Final[Mapping[str, Callable[[Values, Signals], str]]] = {
    "not_identifiable": lambda v, _: f"{_label(v['name'])} cannot be identified from the data",
    "poorly_identified": lambda v, _: (
        f"{_label(v['name'])} is poorly identified: its standard deviation {v['std']:.3g} is as large as its value "
        f"{v['value']:.3g}"
    ),
    "not_separable": _not_separable,
    "prior_kept": _prior_kept,
    "at_bound": _at_bound,
    "not_converged": lambda v, _: (
        f"the fit did not converge in {v['iterations']} iterations: the values may be wrong"
    ),
    "disturbed_span": lambda v, _: (
        f"flight {v['flight']} from {v['start']:.2f} to {v['end']:.2f} s is not free flight: a disturbance acts"
    ),
    "residuals_not_white": lambda v, s: (
        f"the residuals of {s[0]} are not white (p = {v['p']:.2g}): the model lacks noise or dynamics, and its standard "
        "deviations may be wrong"
    ),
    "residuals_depend_on_input": lambda v, s: (
        f"the residuals of {s[0]} depend on {s[1]} (p = {v['p']:.2g}): the model lacks a part of the effect of this input"
    ),
}
