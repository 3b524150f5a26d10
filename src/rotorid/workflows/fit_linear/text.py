"""The sentences of `rotorid fit-linear`: one for each finding."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from rotorid.findings import Finding
from rotorid.identification.text import finding_text as fit_finding_text
from rotorid.results.text import join_words


def finding_text(finding: Finding) -> str:
    """A finding of a fit as a sentence."""
    if finding.code in _TEXTS:
        return _TEXTS[finding.code](finding.values, finding.signals)
    text = fit_finding_text(finding)
    return f"{text[:1].upper()}{text[1:]}."


_TEXTS: Final[Mapping[str, Callable[[Mapping[str, Any], Sequence[str]], str]]] = {
    "model_fitted": lambda v, _: (
        f"A model of order {v['order']} with a delay of {v['delay']} row{'' if v['delay'] == 1 else 's'} explains "
        f"{v['fit']:.0f} % of the held-out outputs 10 rows ahead."
    ),
    "no_effect": lambda _, s: f"An effect of {s[1]} on {s[0]} cannot be identified from these data.",
    "nothing_identified": lambda *_: (
        "No effect of the inputs can be identified: the model only predicts noise."
    ),
    "no_prediction": lambda _, s: (
        f"The model does not predict the held-out rows of {s[0]} better than its mean."
    ),
    "poor_prediction": lambda v, s: (
        f"The model explains only {v['fit']:.0f} % of the held-out rows of {s[0]}: most of it has other causes."
    ),
    "feedback": lambda v, s: (
        f"The data were recorded in closed loop: {join_words(tuple(s))} depends on earlier outputs (p = {v['p']:.2g}). The "
        "model is right if its model of the noise is."
    ),
    "unstable": lambda v, _: f"The model is unstable: a pole at {v['pole']:.4f}.",
}
