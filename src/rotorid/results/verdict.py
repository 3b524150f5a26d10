"""What a track says, in plain words. A pure function of the tracks: nothing is said that they do not show."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Final, Literal

import numpy as np

from rotorid.estimators.base import Health
from rotorid.results.jumps import Jump, jumps
from rotorid.results.metrics import consistency, rmspe
from rotorid.results.settled import Change, change, settled
from rotorid.results.track import Quantity, Track
from rotorid.results.words import (
    estimator_label,
    joined,
    label,
    percent,
    plus_minus,
    seconds,
    the_estimator,
    title,
    unit_text,
    value_text,
)

Tone = Literal["good", "caution", "bad"]

OVERCONFIDENT = 2.0
"""Innovations with this many times the expected square are called larger than the model expects."""

_TROUBLED: Final = (Health.INCONSISTENT, Health.RECOVERING, Health.DIVERGED)
_TROUBLED_SHARE: Final = 0.2
_DISAGREE: Final = 3.0  # standard deviations between two estimators
_SETTLING: Final = 3.0  # s until a change can be told
_QUICK: Final = 4.0  # s; faster is a step, since a filter itself takes a second or two
_SLOW: Final = 1.0  # m/s; slower is a hover, in which drag does not show
_MOST_JUMPS: Final = 3  # that are told one by one


@dataclasses.dataclass(frozen=True)
class Verdict:
    """tone: whether the result can be used. headline: one sentence. details: further sentences."""

    tone: Tone
    headline: str
    details: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        return " ".join((self.headline, *self.details))


def verdict(tracks: Sequence[Track], speed: float | None = None) -> Verdict:
    """The verdict on the tracks of one flight; the first one that holds leads.

    speed: what the vehicle flew, m/s, 95th percentile; None where the log does not tell.
    """
    usable = [t for t in tracks if len(t.t)]
    if not usable:
        return Verdict("bad", "No part of this log is in the air, so there is nothing to track.")
    lead = leading(usable)
    main, name = lead.quantities[lead.main], lead.main
    rows = settled(lead, name, _SETTLING)
    if lead.health[-1] == Health.DIVERGED or not rows.any() or not np.isfinite(main.value[-1]):
        return Verdict(
            "bad",
            f"The {label(name)} could not be tracked: the numbers became invalid.",
            ("The airframe or the units of the log do not fit this flight; `rotorid inspect` checks them.",),
        )
    if not main.informed.any():
        return Verdict(
            "caution",
            f"This flight does not tell the {label(name)}: it stays what the airframe says, "
            f"{plus_minus(float(main.value[-1]), float(main.std[-1]), main.unit)}.",
            ("Some seconds in the air, with thrust and velocity or acceleration logged, would tell it.",),
        )
    moved = change(lead.t[rows], main.value[rows], main.std[rows])
    headline, jumped = _headline(name, main.unit, moved, _found_jumps(usable, name))
    doubts = _doubts(usable, lead)
    bad = lead.health[-1] == Health.INCONSISTENT or _troubled(lead) > 0.5
    return Verdict(
        "bad" if bad else "caution" if doubts else "good",
        headline,
        (*doubts, *jumped, *_against_truth(usable, name), *_others(lead, speed)),
    )


def leading(tracks: Sequence[Track]) -> Track:
    """The first track that ends well, else the first."""
    return next((t for t in tracks if len(t.t) and t.health[-1] != Health.DIVERGED), tracks[0])


def _found_jumps(tracks: Sequence[Track], name: str) -> tuple[Jump, ...] | None:
    """The jumps of a quantity, from the first estimator that looks for them."""
    return next((found for t in tracks if t.main == name and (found := jumps(t)) is not None), None)


def _headline(name: str, unit: str, moved: Change, found: tuple[Jump, ...] | None) -> tuple[str, list[str]]:
    """The headline, and sentences on jumps that it does not tell itself."""
    what, jumped = title(name), _jumped(name, unit, found or ())
    one_way = moved.monotonic and len({j.size > 0 for j in found or ()}) < 2
    if not moved.significant:
        return f"{what} stayed at {plus_minus(0.5 * (moved.start + moved.end), moved.std, unit)}.", jumped
    if one_way and abs(moved.total) > 0:
        verb = "rose" if moved.total > 0 else "fell"
        from_to = (
            f"{what} {verb} from {plus_minus(moved.start, moved.start_std, unit)} "
            f"to {plus_minus(moved.end, moved.end_std, unit)}"
        )
        duration = moved.change_end - moved.change_start
        if duration <= _QUICK:
            if found and len(found) == 1 and abs(found[0].time - moved.step_time) <= _QUICK:
                return f"{from_to} in one step at {found[0].time:.1f} s.", []
            return f"{from_to} in one step near {moved.step_time:.0f} s.", jumped
        return f"{from_to} over {seconds(duration)}, from {moved.change_start:.0f} s on.", jumped
    lowest, highest = (value_text(v, moved.std) for v in (moved.lowest, moved.highest))
    ended = (
        f"{what} varied between {lowest} and {f'{highest} {unit_text(unit)}'.strip()}, "
        f"and ended at {plus_minus(moved.end, moved.end_std, unit)}"
    )
    if found is None and abs(moved.step) > 0.3 * (moved.highest - moved.lowest):
        step = f"{value_text(moved.step, moved.std, signed=True)} {unit_text(unit)}".strip()
        return f"{ended}; its largest step was {step} near {moved.step_time:.0f} s.", jumped
    return f"{ended}.", jumped


def _jumped(name: str, unit: str, found: Sequence[Jump]) -> list[str]:
    """A sentence on the jumps that an estimator found."""
    if not found:
        return []
    if len(found) == 1:
        verb = "rose" if found[0].size > 0 else "dropped"
        by = plus_minus(abs(found[0].size), found[0].size_std, unit)
        return [f"The {label(name)} {verb} by {by} at {found[0].time:.1f} s."]
    texts = [f"{plus_minus(j.size, j.size_std, unit, signed=True)} at {j.time:.1f} s" for j in found]
    if len(found) <= _MOST_JUMPS:
        return [f"The {label(name)} jumped by {joined(texts)}."]
    largest = max(range(len(found)), key=lambda i: abs(found[i].size))
    return [f"The {label(name)} jumped {len(found)} times, most by {texts[largest]}."]


def _troubled(track: Track) -> float:
    return sum(track.share(h) for h in _TROUBLED)


def _doubts(tracks: Sequence[Track], lead: Track) -> list[str]:
    found = []
    if (share := _troubled(lead)) > _TROUBLED_SHARE:
        found.append(
            f"Do not rely on it: for {percent(share)} of the time the measurements disagreed with the model "
            "(a wrong airframe, or a force that the model does not have)."
        )
    elif (ratio := consistency(lead.nis, lead.nis_dof)) > OVERCONFIDENT:
        found.append(
            f"Take the band with care: innovations are {np.sqrt(ratio):.1f} times what the model expects."
        )
    mine = lead.quantities[lead.main]
    for other in tracks:
        theirs = other.quantities.get(lead.main)
        if other is lead or theirs is None:
            continue
        if other.health[-1] == Health.DIVERGED or not np.isfinite(theirs.value[-1]):
            found.append(f"{the_estimator(other.estimator)} diverged.")
        elif _apart(mine, theirs) > _DISAGREE:
            found.append(
                f"{the_estimator(other.estimator)} disagrees: it ends at "
                f"{plus_minus(float(theirs.value[-1]), float(theirs.std[-1]), theirs.unit)}."
            )
    return found


def _measured(track: Track, output: str) -> bool:
    return output not in track.innovations or bool((track.innovations[output].std > 0).any())


def _apart(a: Quantity, b: Quantity) -> float:
    difference = abs(float(a.value[-1] - b.value[-1]))
    return difference / max(float(min(a.std[-1], b.std[-1])), 1e-12)


def _against_truth(tracks: Sequence[Track], name: str) -> list[str]:
    errors = []
    for track in tracks:
        if name in track.truth and name in track.quantities and (rows := settled(track, name)).any():
            error = rmspe(track.quantities[name].value[rows], track.truth[name][rows])
            if np.isfinite(error):
                errors.append(f"{error:.1f} % ({estimator_label(track.estimator)})")
    if not errors:
        return []
    return [f"The root mean square error against the known {label(name)} is {joined(errors)}."]


def _others(lead: Track, speed: float | None) -> list[str]:
    """What the flight tells of drag and wind."""
    quantities: Mapping[str, Quantity] = lead.quantities
    if "drag" not in quantities:
        return []
    drag = quantities["drag"]
    if not _measured(lead, "velocity"):
        return ["The log has no velocity: what drag and wind it shows is little more than a guess."]
    if not drag.informed[-1]:
        because = "it moved too little" if speed is None or speed >= _SLOW else "it hovered"
        return [f"This flight cannot tell drag from wind: {because}."]
    text = f"Drag is {plus_minus(float(drag.value[-1]), float(drag.std[-1]), drag.unit)} at the end"
    wind = [quantities.get("wind_x"), quantities.get("wind_y")]
    if wind[0] is not None and wind[1] is not None and wind[0].informed[-1] and wind[1].informed[-1]:
        x, y = wind[0], wind[1]
        strength = np.hypot(x.value, y.value)
        spread = np.hypot(x.std, y.std)
        windy = strength > 2.5 * spread
        if windy[len(windy) // 10 :].mean() > 0.05:
            strongest = float(np.percentile(strength[windy], 95))
            text += f"; the wind reached {strongest:.1f} m/s"
        else:
            text += "; no wind shows"
    return [text + "."]
