"""Fly it back: a model is accepted only if it predicts flights that it was not fitted to, and a controller flies with it.

From a start every 0.25 s of a flight, the model is run open loop on the logged rotor commands, for 0.1, 0.5, 1 and 2 s, and
compared with what was measured then; so are the model that was known before, and constant velocity (see `fly_back_errors`,
`fly_back_compared`). Better than two others is not yet right, so the vehicle's answer to its rotors is measured beside the
model's (`fly_back_gains`), the errors must lie in the bands that the model claims (`fly_back_noise`), and then, in
simulation, NMPC must fly vehicles drawn from its covariance (`fly_back_path`). What speaks against it refuses it, in words
(`fly_back_words`).

Rotor commands that were logged rarely are taken straight between their rows (`slow_commands`). Below 50 Hz they do not tell how
the vehicle turns: attitude and body rate are then as measured, and only a model whose inertia and torques are those of the
prior can be accepted, for its thrust, mass and drag.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from rotorid.errors import ExcitationError, SettingError
from rotorid.identification.held_out import HeldOut, Masses, Spans, held_out
from rotorid.identification.rotor_thrusts import commands_of
from rotorid.logs.flight import Flight
from rotorid.models.airframe import Airframe
from rotorid.models.fly_back import FlyBack, fingerprint_of
from rotorid.results.fly_back_compared import UNITS, compared
from rotorid.results.fly_back_errors import flight_errors
from rotorid.results.fly_back_gains import gains, short_intervals, thrust_gains
from rotorid.results.fly_back_noise import noise_of, noise_variances
from rotorid.results.fly_back_path import reference_flight
from rotorid.results.fly_back_spread import Covariance, spread_of
from rotorid.results.fly_back_words import (
    changing_fault,
    faults,
    flight_fault,
    merits,
    slow_cost,
    slow_fault,
    turning_claims,
    unseen,
)

HORIZONS: Final = (0.1, 0.5, 1.0, 2.0)
"""s."""

_EVERY = 0.25  # s
_WINDOWS = 600  # at most, of all flights
_DRAWS = 4


def fly_back(
    model: Airframe,
    prior: Airframe,
    flights: Sequence[Flight],
    *,
    spans: Sequence[Spans | None] | None = None,
    masses: Sequence[Masses | None] | None = None,
    covariance: Covariance | None = None,
    horizons: Sequence[float] = HORIZONS,
    seed: int = 0,
) -> FlyBack:
    """Whether a model is to be trusted, by flights that it was not fitted to.

    prior: what was known before. spans: of each flight the parts to be used; None for all of its time in the air. masses: of
    each flight what the vehicle weighed (kg) from which times on (s); None where it is what the model says. covariance: of
    the model's numbers, names and matrix; without it the standard deviations of its file count, as if they were independent.
    horizons: s. seed: of what is drawn: blocks of windows, vehicles.

    Raises AirframeError and SignalError where model, prior and flights do not fit together, ExcitationError where no flight is
    long enough.
    """
    held, left_out = windows_of(flights, spans, masses, horizons)
    spread = spread_of(model, covariance)
    moved = spread.moved()
    found = [flight_errors(h, short_intervals(h), model, prior, moved) for h in held]
    close = [f.close for f in found]
    noise = noise_of(close)
    variances = [noise_variances(noise, model, h) for h in held]
    signals = []
    for name in UNITS:
        use = [k for k, h in enumerate(held) if name in h.signals]
        if use:
            signals.append(compared(name, [found[k] for k in use], [variances[k] for k in use], seed))
    answers = gains(close)
    windows = sum(len(h.starts) for h in held)
    against, nmpc, recorded = changing_fault(thrust_gains(close)), None, False
    told = [gain for gain in answers if not against or gain.name != "thrust"]
    against += faults(signals, horizons, told, windows)
    rate = max(commands_of(h.flight).rate for h in held)
    slow = [] if any(h.turns for h in held) else [slow_cost(rate, prior.name)]
    against += slow_fault(rate, turning_claims(model, prior), prior.name) if slow else []
    if not against:
        nmpc, recorded = reference_flight(model, spread.drawn(_DRAWS, seed), held)
        against = flight_fault(nmpc)
    if nmpc is None or against:
        reasons = against + unseen(signals, horizons, answers)
    else:
        reasons = slow + merits(signals, horizons, answers, nmpc, prior.name, recorded)
    return FlyBack(
        accepted=not against,
        reasons=(*reasons, *left_out),
        flights=tuple(h.name for h in held),
        prior=prior.name,
        windows=windows,
        horizons=tuple(float(h) for h in horizons),
        signals=tuple(signals),
        gains=answers,
        nmpc=nmpc,
        fingerprint=fingerprint_of(model),
    )


def windows_of(
    flights: Sequence[Flight],
    spans: Sequence[Spans | None] | None,
    masses: Sequence[Masses | None] | None,
    horizons: Sequence[float],
) -> tuple[list[HeldOut], list[str]]:
    """The flights' windows, and which flights are too short for any. A start every 0.25 s, fewer where there are many.

    Arguments as of `fly_back`. Raises SettingError for settings that cannot be, ExcitationError where no flight is long enough.
    """
    if not flights or any(given is not None and len(given) != len(flights) for given in (spans, masses)):
        raise SettingError("fly_back needs flights, and spans and masses for none or for each of them")
    if not horizons or min(horizons) <= 0 or list(horizons) != sorted(set(horizons)):
        raise SettingError(f"horizons {list(horizons)}: give positive numbers of s in rising order")
    none = [None] * len(flights)
    found, left_out, last = [], [], None
    for flight, part, weighed in zip(flights, spans or none, masses or none, strict=True):
        try:
            found.append(held_out(flight, horizons, part, _EVERY, weighed))
        except ExcitationError as error:
            last = error
            left_out.append(f"{Path(flight.source).name} was left out: too short.")
    if last is not None and not found:
        raise last
    total = sum(len(h.starts) for h in found)
    if total <= _WINDOWS:
        return found, left_out
    every = _EVERY * total / _WINDOWS
    return [held_out(h.flight, horizons, h.spans, every, h.masses) for h in found], left_out
