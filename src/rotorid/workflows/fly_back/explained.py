"""How much of the motion of the held-out flights a model explains, in one number per signal.

With the root mean square errors of the open-loop predictions over a horizon, of the model (e_m) and of constant velocity (e_c),

    NRMSE = e_m / e_c                    VAF = 1 - NRMSE^2

are the normalised root mean square error and the variance accounted for: the share of the motion beyond constant velocity (of
velocity, body rate and specific force: of their change) that the model predicts from the rotor commands. The horizon is the
longest that is assessed up to 1 s, else the shortest assessed one. The errors of both are taken as independent in the standard
deviation, which is therefore too large rather than too small.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Final

from rotorid.models.airframe.validation import FlyBack
from rotorid.results.text import join_words, label, share_text

_HORIZON: Final = 1.0  # s
_ONE_BLOCK: Final = 1e-9  # relative standard deviation, which is rounding where all errors are in one block


@dataclasses.dataclass(frozen=True)
class ExplainedMotion:
    """Variance of one signal that is accounted for over a horizon (s), with its standard deviation, and normalised root mean
    square error; in %."""

    horizon: float
    vaf: float
    vaf_std: float
    nrmse: float


def explained_motion(record: FlyBack) -> dict[str, ExplainedMotion]:
    """The explained motion of each signal of a validation that is assessed, and whose standard deviation is known."""
    explained = {}
    for signal in record.signals:
        assessed = [k for k, decides in enumerate(signal.decides) if decides and signal.constant[k] > 0.0]
        if not assessed:
            continue
        near = [k for k in assessed if record.horizons[k] <= _HORIZON]
        k = near[-1] if near else assessed[0]
        error, reference = signal.model[k], signal.constant[k]
        ratio = (error / reference) ** 2
        relative = math.hypot(signal.model_std[k] / max(error, 1e-300), signal.constant_std[k] / reference)
        if relative < _ONE_BLOCK:
            continue
        explained[signal.name] = ExplainedMotion(
            record.horizons[k], 100.0 * (1.0 - ratio), 200.0 * ratio * relative, 100.0 * error / reference
        )
    return explained


def explained_text(explained: Mapping[str, ExplainedMotion]) -> str:
    """The explained motion as a sentence."""
    texts = [
        f"{label(name)} {share_text(e.vaf, e.vaf_std)} (over {e.horizon:g} s)"
        for name, e in explained.items()
    ]
    return f"Of the motion beyond constant velocity the model explains (VAF): {join_words(texts)}."
