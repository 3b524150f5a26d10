"""Response gains in two frequency bands: whether the flights test thrust slope and inertia in slow and in fast variations.

The modelled effect x of the rotors and the error e (see `response_gains`), each less its mean over a part of a flight without a
gap, are divided into their moving mean over 1 s and what is above it. In each band

    g = 1 + sum x e / sum x^2,    var g = sum_b (sum_{k in b} x_k (e_k - (g - 1) x_k))^2 / (sum x^2)^2 + h^2

b are blocks of 2 s (4 s in the slow band). h is half of the distance to the reverse regression, of the command on the motion:
noise and the controller's feedback bias both in opposite directions, so that h is small only where the motion is that which the
rotors cause. The thrust, whose noise no controller feeds back, has no h. Since the mean is left out, g of the thrust is that of
the slope of the thrust curve.

A model whose gains are right in one band can be wrong in the other: a lag that is too long and an inertia that is too small
compensate each other in one band only. Where a band's gain is uncertain by more than half of its tolerance, the flights do
not test the quantity there.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
from jaxtyping import Float

from rotorid.findings import Finding, Severity
from rotorid.workflows.fly_back.prediction_errors import ShortErrors
from rotorid.workflows.fly_back.response_gains import INTERVAL, effects_and_errors

BANDS: Final = ("slow", "fast")
"""Variations slower and faster than about 1 Hz."""

TOLERANCES: Final = {"thrust": 0.2, "turn_x": 0.2, "turn_y": 0.2, "turn_z": 0.3}
"""Largest accepted difference of each gain from 1; that of the thrust is of its slope."""

_MEAN: Final = round(1.0 / INTERVAL)  # intervals
_BLOCKS: Final = {"slow": round(4.0 / INTERVAL), "fast": round(2.0 / INTERVAL)}  # intervals
_FEWEST: Final = 2  # blocks
_SIGMAS: Final = 2.0


class BandGain(NamedTuple):
    """Measured over modelled response in a band. name: as of a `Gain`. std: infinite where the flights are too short."""

    name: str
    band: str
    value: float
    std: float

    @property
    def is_certain(self) -> bool:
        """Whether the flights test this response in this band."""
        return self.std <= 0.5 * TOLERANCES[self.name]

    @property
    def is_wrong(self) -> bool:
        """Whether it is tested and not 1 within its tolerance."""
        return self.is_certain and abs(self.value - 1.0) > TOLERANCES[self.name] + _SIGMAS * self.std


def band_gains(flights: Sequence[ShortErrors]) -> tuple[BandGain, ...]:
    """The response gains of a model in both bands, from its errors over short intervals of flights."""
    gains = []
    for name, parts in effects_and_errors(flights).items():
        bands: dict[str, list[tuple[np.ndarray, np.ndarray]]] = {band: [] for band in BANDS}
        for x, e in parts:
            is_known = np.isfinite(e)
            if is_known.sum() >= _MEAN:
                x, e = (v[is_known] - v[is_known].mean() for v in (x, e))
                slow = (_moving_mean(x), _moving_mean(e))
                bands["slow"].append(slow)
                bands["fast"].append((x - slow[0], e - slow[1]))
        for band, rows in bands.items():
            if parts:
                has_feedback = name != "thrust"
                gains.append(BandGain(name, band, *_gain(rows, _BLOCKS[band], has_feedback)))
    return tuple(gains)


def band_reasons(gains: Sequence[BandGain]) -> list[Finding]:
    """The reasons for rejection: responses that are wrong in a band."""
    return [
        Finding("band_response_gain", Severity.ERROR, {**g._asdict(), "tolerance": TOLERANCES[g.name]})
        for g in gains
        if g.is_wrong
    ]


def band_limits(gains: Sequence[BandGain]) -> list[Finding]:
    """What the flights do not test: a finding for each band with such responses."""
    findings = []
    for band in BANDS:
        names = tuple(g.name for g in gains if g.band == band and not g.is_certain)
        if names:
            findings.append(Finding("band_not_validated", Severity.NOTE, {"band": band, "names": names}))
    return findings


def _moving_mean(v: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    """Mean over 1 s about each interval, fewer intervals at the ends."""
    kernel = np.ones(_MEAN)
    return np.convolve(v, kernel, "same") / np.convolve(np.ones(len(v)), kernel, "same")


def _gain(
    parts: Sequence[tuple[np.ndarray, np.ndarray]], block: int, has_feedback: bool
) -> tuple[float, float]:
    """g and its standard deviation. parts: x and e of each part without a gap. block: intervals."""
    xx, xe, ee = (sum(float(a[i] @ a[j]) for a in parts) for i, j in ((0, 0), (0, 1), (1, 1)))
    blocks = sum(len(x) for x, _ in parts) // block
    if blocks < _FEWEST or xx <= 0.0:
        return 1.0, math.inf
    g = xe / xx
    scatter = sum(
        float(np.sum(np.add.reduceat(x * (e - g * x), np.arange(0, len(x), block)) ** 2)) for x, e in parts
    )
    variance = scatter / xx**2 * blocks / (blocks - 1)
    if has_feedback:
        both = xx + xe  # of x and the motion x + e
        variance += (0.5 * ((xx + 2.0 * xe + ee) / both - 1.0 - g)) ** 2 if both > 0.0 else math.inf
    return 1.0 + g, math.sqrt(variance)
