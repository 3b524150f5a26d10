"""Two models on the same flights: which predicts better, at each signal and horizon, and whether that is more than chance.

    d = rms(other) - rms(model)        over the same windows: above 0 the model is better

Both run open loop from the same starts (see `fly_back_errors`), each with the steady torque and wind that it finds there. The
windows of a flight go wrong together, and those of both models alike: blocks of 4 s are drawn anew, the same for both, and d is
computed from each draw. Its band is 1.96 standard deviations of these, widened as Student's quantile is over the normal one for
as many blocks.

Nothing here asks what the model's numbers are uncertain: it is what happened on these flights.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Final

import numpy as np

from rotorid.identification.held_out import Masses, Spans
from rotorid.identification.jackknife import widening
from rotorid.logs.flight import Flight
from rotorid.models.airframe import Airframe
from rotorid.results.fly_back import HORIZONS, windows_of
from rotorid.results.fly_back_compared import UNITS, drawn_anew
from rotorid.results.fly_back_errors import flight_errors
from rotorid.results.fly_back_gains import short_intervals
from rotorid.results.words import joined, plus_minus, title

_BAND: Final = 1.96


@dataclasses.dataclass(frozen=True)
class SignalAgainst:
    """Errors of two models in one signal, one number a horizon, in `unit`.

    model, other: root mean square over windows, all axes together; 0 where no window is that long. better: the other's less
    the model's. std: its standard deviation over blocks of windows. band: half the width of its 95 % band.
    """

    name: str
    unit: str
    model: tuple[float, ...]
    other: tuple[float, ...]
    better: tuple[float, ...]
    std: tuple[float, ...]
    band: tuple[float, ...]

    def verdict(self, k: int) -> int:
        """At horizon k: 1 where the model is better beyond the band, -1 where it is worse, else 0."""
        return int(np.sign(self.better[k])) if abs(self.better[k]) > self.band[k] else 0


@dataclasses.dataclass(frozen=True)
class Against:
    """model, other: their names. flights: names. windows: how many predictions. horizons: s. reasons: sentences."""

    model: str
    other: str
    flights: tuple[str, ...]
    windows: int
    horizons: tuple[float, ...]
    signals: tuple[SignalAgainst, ...]
    reasons: tuple[str, ...]


def against(
    model: Airframe,
    other: Airframe,
    flights: Sequence[Flight],
    *,
    spans: Sequence[Spans | None] | None = None,
    masses: Sequence[Masses | None] | None = None,
    horizons: Sequence[float] = HORIZONS,
    seed: int = 0,
) -> Against:
    """How a model predicts flights beside another model; arguments as of `fly_back`, which says what it raises."""
    held, left_out = windows_of(flights, spans, masses, horizons)
    found = [flight_errors(h, short_intervals(h), model, other, ()) for h in held]
    signals = []
    for name in UNITS:
        use = [f for f in found if name in f.held.signals]
        if not use:
            continue
        squares = [
            np.concatenate([np.sum(getattr(f, which)[name] ** 2, axis=-1) for f in use])
            for which in ("model", "prior")
        ]
        means, drawn, blocks = drawn_anew(squares, [f.held for f in use], seed)
        rms, rms_drawn = np.nan_to_num(np.sqrt(means)), np.nan_to_num(np.sqrt(drawn))
        std = (rms_drawn[1] - rms_drawn[0]).std(axis=0) * np.sqrt(blocks / max(blocks - 1, 1))
        band = _BAND * (widening(blocks) if blocks > 1 else np.inf) * std
        columns = (rms[0], rms[1], rms[1] - rms[0], std, band)
        signals.append(SignalAgainst(name, UNITS[name], *(tuple(map(float, c)) for c in columns)))
    return Against(
        model.name,
        other.name,
        tuple(h.name for h in held),
        sum(len(h.starts) for h in held),
        tuple(float(h) for h in horizons),
        tuple(signals),
        (*_reasons(signals, horizons, other.name), *left_out),
    )


def _reasons(signals: Sequence[SignalAgainst], horizons: Sequence[float], other: str) -> list[str]:
    """Where the model is better, where worse, and where that cannot be told."""
    judged = [(s, k) for s in signals for k in range(len(horizons)) if s.model[k] > 0]
    worse = [(s, k) for s, k in judged if s.verdict(k) < 0]
    better = [(s, k) for s, k in judged if s.verdict(k) > 0]
    n, same = len(judged), len(judged) - len(worse) - len(better)
    by = "by 95 % bands of the differences"
    if len(better) == n:
        found = [f"The model predicts better than {other} at all {n} signals and horizons, {by}."]
    else:
        if worse:
            head = f"The model predicts worse than {other} at {len(worse)} of {n} signals and horizons"
        else:
            head = f"The model predicts at least as well as {other} at all {n} signals and horizons"
        found = [f"{head}: better at {len(better)}, not to be told apart at {same}, {by}."]
    for which, said in ((worse, "worse"), (better, "better")):
        for name in dict.fromkeys(s.name for s, _ in which):
            mine = [(s, k) for s, k in which if s.name == name]
            s, k = mine[-1]
            where = joined([f"{horizons[k]:g} s" for _, k in mine])
            by = plus_minus(abs(s.better[k]), s.std[k], s.unit)
            last = "" if len(mine) == 1 else f"at {horizons[k]:g} s "
            found.append(f"{title(name)} is predicted {said} at {where}: {last}by {by}.")
    return found
