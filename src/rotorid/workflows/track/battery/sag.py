"""A thrust per command that falls steadily, in a log without battery voltage.

While a battery empties, its voltage and the thrust at a command fall. Without the voltage in the log a model reads that as a
mass that rises, or a thrust scale that falls; the flight does not show which. A straight line through the medians of the
logarithm of the mass in bins of 5 s gives the relative rise r over the flight of duration D, with its standard deviation by the
scatter about the line, times 2 for its correlation. Where r is above `LEAST_RISE`, above `SIGMAS` of its standard deviations,
and above 5 / 3 of the largest step between two bins (a payload that is taken up is no sag), the band is widened so that it
contains the mass without this rise: by r (t - t_0) / (1.6 D), relative to the mass.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Final

import numpy as np
from jaxtyping import Float

from rotorid.findings import Finding, Severity
from rotorid.logs.flight import Flight
from rotorid.workflows.track.changes import main_values
from rotorid.workflows.track.track import Track

LEAST_RISE: Final = 0.02
"""Steady rise of the mass over the flight, relative to it, from which on it is reported."""

SIGMAS: Final = 2.0
"""The same in standard deviations of the rise."""

BIN: Final = 5.0
"""s of a bin."""

_FEWEST: Final = 5  # rows of a bin
_LEAST_BINS: Final = 5
_CORRELATION: Final = 2.0  # standard error of the line over that of independent bins
_LARGEST_STEP: Final = 0.6  # of the rise
_BAND: Final = (
    1.6  # standard deviations: a band of 95 % then contains the mass without the rise with some margin
)


@dataclasses.dataclass(frozen=True)
class UnloggedSag:
    """A steady rise of the mass over the thrust. start: s. duration: s. rise: relative, over the duration. rise_std: its
    standard deviation."""

    start: float
    duration: float
    rise: float
    rise_std: float

    def relative_std(self, t: Float[np.ndarray, "*n"]) -> Float[np.ndarray, "*n"]:
        """Relative standard deviation of the main quantity by the rise. t: s."""
        return np.asarray(self.rise * np.maximum(t - self.start, 0.0) / (_BAND * self.duration))

    def finding(self) -> Finding:
        """The finding on it."""
        values = {"rise": self.rise, "rise_std": self.rise_std, "duration": self.duration}
        return Finding("unlogged_sag", Severity.WARNING, values, ("rotor_command", "battery_voltage"))


def unlogged_sag(track: Track, flight: Flight) -> UnloggedSag | None:
    """The steady rise of the tracked mass where sag of the battery may cause it; None without one.

    Args:
        track: of the flight.
        flight: as read from its log or prepared. Measured speeds and thrusts of rotors do not depend on the voltage.
    """
    if track.main_quantity not in ("mass", "thrust_scale") or flight.format == "simulation":
        return None
    if "rotor_command" not in flight or "battery_voltage" in flight or "rotor_speed" in flight:
        return None
    values = main_values(track)
    if not len(values.t):
        return None
    edges = np.arange(values.t[0], values.t[-1], BIN)
    index = np.searchsorted(edges, values.t, side="right")
    bins = [index == k for k in np.unique(index) if (index == k).sum() >= _FEWEST]
    t = np.array([values.t[rows].mean() for rows in bins])
    x = np.log(np.maximum([float(np.median(values.value[rows])) for rows in bins], 1e-9))
    return steady_rise(
        t, -x if track.main_quantity == "thrust_scale" else x, float(values.t[0]), float(values.t[-1])
    )


def steady_rise(
    t: Float[np.ndarray, " bins"], x: Float[np.ndarray, " bins"], start: float, end: float
) -> UnloggedSag | None:
    """The steady rise of the mass over the thrust by its medians in bins; None without one.

    Args:
        t: mean time of each bin, s.
        x: logarithm of the median.
        start, end: of the flight, s.
    """
    if len(t) < _LEAST_BINS:
        return None
    slope, level = np.polyfit(t, x, 1)
    scatter = math.sqrt(float(np.sum((x - slope * t - level) ** 2)) / (len(t) - 2))
    slope_std = _CORRELATION * scatter / math.sqrt(float(np.sum((t - t.mean()) ** 2)))
    duration = end - start
    rise, rise_std = float(slope) * duration, slope_std * duration
    if rise < max(LEAST_RISE, SIGMAS * rise_std, np.max(np.diff(x)) / _LARGEST_STEP):
        return None
    return UnloggedSag(start, duration, rise, rise_std)


def with_unlogged_sag(track: Track, flight: Flight) -> Track:
    """A track whose main quantity's band contains its value without the steady rise. Arguments as of `unlogged_sag`."""
    sag = unlogged_sag(track, flight)
    if sag is None:
        return track
    main = track.quantities[track.main_quantity]
    widened = dataclasses.replace(
        main, std=np.hypot(main.std, sag.relative_std(track.t) * np.abs(main.value))
    )
    return dataclasses.replace(track, quantities={**track.quantities, track.main_quantity: widened})
