"""What turned a vehicle beside what its rotors did, averaged over short stretches: rows for checks that need no fit.

    J (w_{k+1} - w_k) / W + w x J w = G_tau (mean T) + b

w_k and T are means over a stretch of W seconds: the difference of two means of w is the torque averaged with a triangle over
two stretches, and so are the thrusts. No signal is differentiated from row to row, so that noise counts little.
"""

from __future__ import annotations

import dataclasses

import numpy as np
from jaxtyping import Float

from rotorid.identification.flown_priors import value_of
from rotorid.identification.rotor_thrusts import commands_of, rotor_thrusts
from rotorid.logs.flight import Flight
from rotorid.models.airframe import Airframe
from rotorid.models.mixing import with_asked_thrusts
from rotorid.signals.series import Intervals, between

STRETCH = 0.08
"""W, s."""


@dataclasses.dataclass(frozen=True)
class TurningRows:
    """t: middle of each row, s. torque: that turned the body of the airframe's inertia, N m, body frame. thrust: of each rotor
    as the airframe has it, N. rate: of the body, rad/s, averaged as the torque is. A row is about what was within `STRETCH` of
    its middle."""

    t: Float[np.ndarray, " n"]
    torque: Float[np.ndarray, "n 3"]
    thrust: Float[np.ndarray, "n rotors"]
    rate: Float[np.ndarray, "n 3"]


def turning_rows(flight: Flight, airframe: Airframe, spans: Intervals) -> TurningRows:
    """The rows of these parts of a flight that has body rates. Raises what `rotor_thrusts` does."""
    flight = with_asked_thrusts(flight, airframe, lagged=False)
    rate = flight["body_rate"]
    h = 1.0 / min(rate.rate, max(commands_of(flight).rate, 1.0), 250.0)
    size = max(round(STRETCH / h), 2)
    J = np.array(value_of(airframe, "inertia"))
    found = []
    for start, end in spans:
        n = int((end - start) / h)
        t = start + h * (1.0 + np.arange(n))
        whole = n // size
        if whole < 3:
            continue
        w = between(t, rate.times, rate.values)
        mean, _ = rotor_thrusts(airframe, flight, t)
        pulled = np.cumsum(h * mean, axis=0)  # N s up to each time, whose differences are as those of w
        spun, turned = np.cumsum(h * np.cross(w, J * w), axis=0), np.cumsum(h * w, axis=0)
        middle, w, pulled, spun, turned = (
            v[: whole * size].reshape(whole, size, -1).mean(axis=1)
            for v in (t[:, None], w, pulled, spun, turned)
        )
        step = size * h
        found.append(
            np.concatenate(
                [
                    0.5 * (middle[1:] + middle[:-1]),
                    (J * np.diff(w, axis=0) + np.diff(spun, axis=0)) / step,
                    np.diff(pulled, axis=0) / step,
                    np.diff(turned, axis=0) / step,
                ],
                axis=1,
            )
        )
    rows = np.concatenate(found) if found else np.zeros((0, 7 + len(airframe.rotors)))
    return TurningRows(rows[:, 0], rows[:, 1:4], rows[:, 4:-3], rows[:, -3:])
