"""The sentences of `rotorid fit-dlm`: one for each finding."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from rotorid.findings import Finding
from rotorid.results.text import join_words, label, title


def finding_text(finding: Finding) -> str:
    """A finding of a fit as a sentence."""
    return _TEXTS[finding.code](finding.values)


def direction_text(names: Sequence[str], steps: Sequence[float]) -> str:
    """A direction that the data do not identify, as a sentence without a full stop.

    Args:
        names: parameters that take part.
        steps: their changes that leave the likelihood as it is, in their units.
    """
    if len(names) == 1:
        return f"{names[0]} cannot be identified from the data"
    changes = ", ".join(f"{name} by {step:+.3g}" for name, step in zip(names, steps, strict=True))
    return f"{join_words(tuple(names))} cannot be separated: a change of {changes} does not change the likelihood"


def _at_bound(v: Mapping[str, Any]) -> str:
    names = v["names"]
    constant = [n.removesuffix("_variance") for n in names if n.endswith("_variance")]
    meaning = ""
    if len(constant) == len(names):
        meaning = f"; {join_words([label(n) for n in constant])} without process noise"
    return f"Estimate at its bound: {join_words([label(n) for n in names])}{meaning}."


_TEXTS: Final[Mapping[str, Callable[[Mapping[str, Any]], str]]] = {
    "parameters_identified": lambda v: (
        f"{v['identified']}{'' if v['identified'] == v['parameters'] else ' of ' + str(v['parameters'])} parameters of "
        f"{v['column']} identified from {v['measurements']} measurements."
    ),
    "unidentifiable_direction": lambda v: f"{title(direction_text(v['names'], v['steps']))}.",
    "estimates_at_bound": _at_bound,
    "several_maxima": lambda v: (
        f"{v['count']} local maxima have nearly the same likelihood; the report lists all of them."
    ),
    "search_not_converged": lambda _: "The search did not converge; the estimates may be inaccurate.",
    "innovations_not_white": lambda _: "The innovations are not white: a term is missing in the model.",
}
