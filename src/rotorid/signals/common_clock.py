"""Signals that are needed at the same instants, each logged on a clock of its own, put on the clock of the slowest.

A window of a fit begins where every state was measured. Of an attitude at 100 Hz and a velocity at 50 Hz whose clocks began at
different times, no two samples need ever fall on one row. The faster ones are then interpolated at the stamps of the slowest,
between neighbours that are no further apart than a gap: nothing is invented where nothing was measured.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from rotorid.logs.flight import Flight, Signal
from rotorid.signals.gyroscope_rows import interpolate_signal, nearest_index

_MEET = 0.5  # share of the slowest one's samples at which all have one, from which on nothing is changed


def interpolate_to_slowest(flight: Flight, names: Sequence[str], rows: Float[np.ndarray, " rows"]) -> Flight:
    """The flight with these signals at the stamps of the slowest of them; as it is where they meet often enough by themselves,
    or one of them is missing.

    rows: times in s of the rows that they will be put on: samples meet whose nearest row is the same.
    """
    signals = [flight[name] for name in names if name in flight]
    if len(signals) < max(len(names), 2) or min(len(rows), *(len(s.times) for s in signals)) < 2:
        return flight
    slowest = min(signals, key=lambda s: s.rate)
    others = [s for s in signals if s is not slowest]
    of_slowest = nearest_index(rows, slowest.times)
    meets = np.all([np.isin(of_slowest, nearest_index(rows, s.times)) for s in others], axis=0)
    if np.mean(meets) >= _MEET:
        return flight
    moved = [_at(s, slowest.times) for s in others]
    note = f"{' and '.join(s.name for s in others)} at the stamps of {slowest.name}, which is slower"
    return flight.with_signals(*moved, notes=(note,))


def _at(signal: Signal, at: Float[np.ndarray, " m"]) -> Signal:
    """A signal at other times; over gaps at its own samples alone."""
    found, near = interpolate_signal(signal, at)
    near |= np.isin(at, signal.times[1:])
    return dataclasses.replace(
        signal, times=at[near], values=found[near], source=f"{signal.source}, interpolated"
    )
