"""The verdict on a model that was flown back, in sentences: accepted only where nothing speaks against it.

Against it speak: a gain that is off by more than it may be, beyond two standard deviations of it (four, where it is told
badly); a thrust or turning about x or y that the flights do not tell to half of that; a signal and horizon that is judged by,
at which the prior or constant velocity is better by more than three standard deviations, and by more than 3 % and 2 % of the
error of constant velocity; bands that hold less than 85 % of the errors, beyond chance; nothing in which it is better than
constant velocity; a vehicle drawn from its covariance that its NMPC does not keep on the path.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Final

import numpy as np
from jaxtyping import Float

from rotorid.identification.held_out import QUICK
from rotorid.models.airframe import Airframe
from rotorid.models.fly_back import Gain, ReferenceFlight, SignalErrors
from rotorid.results.fly_back_gains import TOLERANCES
from rotorid.results.words import joined, label, plus_minus

_MEASURABLY = 3.0
_TIE, _SLIGHT = 1.03, 0.02
_BETTER = 2.0
_COVERAGE = 0.85
_SIGMAS, _CLEARLY = 2.0, 4.0
_NOTHING = 10.0  # standard deviation of a gain that is not worth a number
_PARTS = 2
_NEEDED: Final = ("thrust", "turn_x", "turn_y")
_MANOEUVRES: Final = {
    "thrust": "longer, with climbs and descents",
    "turn_x": "with quick rolls to either side",
    "turn_y": "with quick pitching forth and back",
    "turn_z": "with quick turns of the heading",
}
_TURNING: Final = (
    "inertia", "products_of_inertia", "centre_of_mass", "torque_ratio", "torque_coefficient", "angular_drag",
)  # fmt: skip


def faults(
    signals: Sequence[SignalErrors],
    horizons: Sequence[float],
    gains: Sequence[Gain],
    windows: int,
) -> list[str]:
    """What the predictions say against a model."""
    found = [sentence for gain in gains if (sentence := _gain_fault(gain))]
    for signal in signals:
        found += _losses(signal, horizons, "prior", signal.prior, signal.prior_z)
        found += _losses(signal, horizons, "constant velocity", signal.constant, signal.constant_z)
        found += _uncovered(signal, horizons, windows)
    if not any(d and z > _BETTER for s in signals for d, z in zip(s.decides, s.constant_z, strict=True)):
        found.append(
            "At no horizon is the model measurably better than constant velocity: these flights prove nothing; fly livelier "
            "ones."
        )
    return found


def changing_fault(parts: Float[np.ndarray, " parts"]) -> list[str]:
    """Of a thrust whose gain is not the same in all parts of the flights."""
    if len(parts) < _PARTS or np.ptp(parts) <= 2.0 * TOLERANCES["thrust"]:
        return []
    return [
        f"The vehicle pulls {parts.min():.2f} to {parts.max():.2f} times as strongly for its mass as the model says, which "
        "changes within these flights: give parts with one mass."
    ]


def turning_claims(model: Airframe, prior: Airframe) -> tuple[str, ...]:
    """What of a model's turning is not as its prior has it, in words."""
    found = [n for n in _TURNING if _value(model, n) != _value(prior, n)]
    places = [[dataclasses.replace(r, thrust_scale_std=0.0) for r in a.rotors] for a in (model, prior)]
    return (*(label(n) for n in found), *(["rotors"] if places[0] != places[1] else []))


def slow_fault(rate: float, claims: Sequence[str], prior: str) -> list[str]:
    """Of flights whose commands are logged too slowly to tell how the vehicle turns: nothing where the model claims nothing of
    it. rate: Hz. claims: see `turning_claims`."""
    if not claims:
        return []
    return [
        f"The flights do not tell how fast it turns, and the model has other numbers for that than {prior} "
        f"({joined(list(claims))}): rotor commands were logged {rate:.0f} times a second. Log them {2 * QUICK:.0f} times."
    ]


def slow_cost(rate: float, prior: str) -> str:
    """What a model that was flown back on such flights is not proven in."""
    return (
        f"How it turns is not proven: rotor commands were logged {rate:.0f} times a second, so predictions took the attitude "
        f"as measured; inertia, torques and rotors stand as in {prior}. Log the commands {2 * QUICK:.0f} times a second."
    )


def flight_fault(nmpc: ReferenceFlight) -> list[str]:
    """What NMPC with the model says against it."""
    if nmpc.flown == nmpc.draws:
        return []
    worst = "" if math.isinf(nmpc.position_worst) else f", up to {nmpc.position_worst:.2g} m off it"
    return [
        f"NMPC with the model did not keep {nmpc.draws - nmpc.flown} of {nmpc.draws} vehicles drawn from its covariance on the "
        f"path{worst}."
    ]


def merits(
    signals: Sequence[SignalErrors],
    horizons: Sequence[float],
    gains: Sequence[Gain],
    nmpc: ReferenceFlight,
    prior: str,
    recorded: bool,
) -> list[str]:
    """What was shown of a model that is accepted, and what was not."""
    judged = [(s, k) for s in signals for k, d in enumerate(s.decides) if d]
    better = sum(s.prior_z[k] > _BETTER for s, k in judged)
    beaten = sum(s.constant_z[k] > _BETTER for s, k in judged)
    n = len(judged)
    found = [
        f"Better than {prior} at {better} of {n} signals and horizons, as good at the other {n - better}; better than constant "
        f"velocity at {beaten} of {n}.",
        f"The 95 % bands hold {_percents([s.coverage[k] for s, k in judged])} of the errors.",
    ]
    answers = [f"{plus_minus(g.value, g.std)} {_short(g)}" for g in gains if _told(g)]
    found.append(f"The vehicle's answer to its rotors over the model's: {joined(answers)}.")
    path = "along the recorded path" if recorded else "along a circle (no path was recorded)"
    found.append(
        f"NMPC with the model flew {nmpc.flown} of {nmpc.draws} vehicles drawn from its covariance {path} for "
        f"{nmpc.duration:.0f} s, {nmpc.position_rms:.2g} m off it at most (root mean square)."
    )
    return found + unseen(signals, horizons, gains)


def unseen(signals: Sequence[SignalErrors], horizons: Sequence[float], gains: Sequence[Gain]) -> list[str]:
    """What the flights did not tell."""
    found = []
    for signal in signals:
        left = [
            f"{h:g} s" for h, d, e in zip(horizons, signal.decides, signal.model, strict=True) if not d and e
        ]
        if left:
            found.append(
                f"{label(signal.name).capitalize()} at {joined(left)} is not judged by: every model drifts "
                "further off there than constant velocity."
            )
        short = [f"{h:g} s" for h, e in zip(horizons, signal.model, strict=True) if not e]
        if short:
            found.append(f"{label(signal.name).capitalize()} at {joined(short)}: the windows are too short.")
    for gain in gains:
        if gain.name not in _NEEDED and not _told(gain):
            found.append(
                f"Turning about {gain.name[-1]} is not proven{_times(gain)}: fly {_MANOEUVRES[gain.name]}."
            )
    return found


def _value(airframe: Airframe, name: str) -> tuple[float, ...] | None:
    found = airframe.get(name)
    return None if found is None else found.value


def _told(gain: Gain) -> bool:
    return gain.std <= 0.5 * gain.tolerance


def _times(gain: Gain) -> str:
    """The gain in brackets, where it says anything."""
    return f" ({plus_minus(gain.value, gain.std)} times the model's)" if gain.std < _NOTHING else ""


def _short(gain: Gain) -> str:
    return "in thrust" if gain.name == "thrust" else f"in turning about {gain.name[-1]}"


def _gain_fault(gain: Gain) -> str | None:
    value = plus_minus(gain.value, gain.std)
    sigmas = _SIGMAS if _told(gain) else _CLEARLY
    if abs(gain.value - 1.0) > gain.tolerance + sigmas * gain.std:
        if gain.name == "thrust":
            return f"The vehicle pulls {value} times as strongly for its mass as the model says: check mass and thrust."
        return (
            f"The vehicle turns {value} times as fast about {gain.name[-1]} as the model says: check inertia, geometry and "
            "motor lag."
        )
    if gain.name in _NEEDED and not _told(gain):
        what = (
            "how strongly it pulls" if gain.name == "thrust" else f"how fast it turns about {gain.name[-1]}"
        )
        return f"The flights do not tell {what}{_times(gain)}: fly {_MANOEUVRES[gain.name]}."
    return None


def _losses(
    signal: SignalErrors, horizons: Sequence[float], rival: str, errors: Sequence[float], z: Sequence[float]
) -> list[str]:
    lost = [
        k
        for k, decides in enumerate(signal.decides)
        if decides
        and z[k] < -_MEASURABLY
        and signal.model[k] > _TIE * errors[k] + _SLIGHT * signal.constant[k]
    ]
    if not lost:
        return []
    k = min(lost, key=lambda k: z[k])
    where = joined([f"{horizons[k]:g} s" for k in lost])
    return [
        f"{label(signal.name).capitalize()} at {where} is predicted worse than by {_the(rival)}: at {horizons[k]:g} s "
        f"{signal.model[k]:.2g} {signal.unit} off, in place of {errors[k]:.2g} {signal.unit}."
    ]


def _the(rival: str) -> str:
    return "the prior" if rival == "prior" else rival


def _uncovered(signal: SignalErrors, horizons: Sequence[float], windows: int) -> list[str]:
    allowed = _COVERAGE - _SIGMAS * (_COVERAGE * (1.0 - _COVERAGE) / max(windows / 8.0, 1.0)) ** 0.5
    low = [
        k for k, d in enumerate(signal.decides) if d and signal.coverage[k] < allowed
    ]  # windows overlap: about one in 8 is independent
    if not low:
        return []
    k = min(low, key=lambda k: signal.coverage[k])
    return [
        f"The 95 % band of {label(signal.name)} at {horizons[k]:g} s holds only {100 * signal.coverage[k]:.0f} % of its "
        "errors: its standard deviations are too small, or something is missing from the model."
    ]


def _percents(shares: Sequence[float]) -> str:
    low, high = (f"{100 * s:.0f}" for s in (min(shares), max(shares)))
    return f"{low} %" if low == high else f"{low} to {high} %"
