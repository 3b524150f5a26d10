"""When the wrench leaves its band: a cumulative-sum test with hysteresis.

The score of a row is the larger of

    x = e^T S^-1 e / 3

of force and torque, e being the wrench less its steady offset (the flight's median) and S its covariance: that of noise,
scaled to the flight (`wrench_scatter`), and of the part of the parameters' errors that changes in flight. A wrench that always
wanders, in wind or by a poor model, is so no endless row of events.

    g <- max(0, g + K (x - 4) dt)          E. S. Page, Continuous inspection schemes, Biometrika 41 (1954)

An event begins where g last was 0 before it passed 4, and ends once x has stayed below 2 for 0.25 s; g counts in time
constants 1/K of the observer, the time over which its noise is correlated. By noise alone x exceeds 4 for 0.7 % of the time.
Shorter than 0.05 s it is none.
"""

from __future__ import annotations

import dataclasses
from typing import Final

import numpy as np
from jaxtyping import Float

from rotorid.results.wrench import WrenchTrack
from rotorid.results.wrench_scatter import GAP, squares

ALARM: Final = 4.0
SLACK: Final = 4.0
QUIET: Final = 2.0
HOLD: Final = 0.25
"""s below QUIET after which an event is over."""

SHORTEST: Final = 0.05
"""s."""


@dataclasses.dataclass(frozen=True)
class Baseline:
    """What the wrench is when nothing pushes. offset: force (world, N) and torque (body, N m), the flight's median; offset_std:
    by noise and by the parameters. errors: of the parameters, less their median. score: x of force and of torque."""

    offset: Float[np.ndarray, " 6"]
    offset_std: Float[np.ndarray, " 6"]
    errors: Float[np.ndarray, "n 6 causes"]
    score: Float[np.ndarray, "n 2"]


def baseline(found: WrenchTrack) -> Baseline:
    """The steady part of a wrench, and how far it is from its offset at every time."""
    rows, wrench = found.usable, found.wrench
    offset = np.median(wrench[rows], axis=0)
    steady = np.median(found.spread.errors[rows], axis=0)
    errors = found.spread.errors - steady
    noise = np.median(found.noise_std[rows], axis=0) * shrunk(usable_time(found), found.gain)
    offset_std = np.hypot(noise, np.sqrt(np.sum(steady**2, axis=1)))
    S = found.covariance + errors @ errors.transpose(0, 2, 1)
    e = wrench - offset
    score = [squares(e[:, half], S[:, half, half]) / 3.0 for half in (slice(0, 3), slice(3, 6))]
    return Baseline(offset, offset_std, errors, np.stack(score, axis=1))


def usable_time(found: WrenchTrack) -> float:
    """Length of what counts, s."""
    return float(np.sum(np.minimum(np.diff(found.t, prepend=found.t[:1]), GAP)[found.usable]))


def shrunk(time: float, gain: float) -> float:
    """Factor of the noise in a mean over some time (s): values are correlated over 1/gain."""
    return float(np.sqrt(min(1.0, 2.0 / max(gain * time, 1e-12))))


def detect(found: WrenchTrack, steady: Baseline) -> list[tuple[int, int]]:
    """First and last row of each stretch in which the wrench is outside its band."""
    x = np.where(found.usable, steady.score.max(axis=1), 0.0)
    dt = np.diff(found.t, prepend=found.t[:1])
    events: list[tuple[int, int]] = []
    g, begin, last, active = 0.0, 0, 0, False
    for k in range(len(x)):
        broken = dt[k] > GAP or not found.usable[k]
        if active and (broken or found.t[k] - found.t[last] > HOLD):
            events.append((begin, last))
            g, active = 0.0, False
        if broken:
            g = 0.0
            continue
        if active:
            last = k if x[k] >= QUIET else last
            continue
        if g == 0.0:
            begin = k
        g = max(0.0, g + found.gain * (x[k] - SLACK) * dt[k])
        if g > ALARM:
            active, last = True, k
    if active:
        events.append((begin, last))
    return [(a, b) for a, b in events if found.t[b] - found.t[a] >= SHORTEST]
