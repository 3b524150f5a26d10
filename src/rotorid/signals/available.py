"""Whether signals have numbers that a model can be fitted to."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from rotorid.errors import SignalError
from rotorid.logs.flight import Flight


def check_finite(flight: Flight, names: Iterable[str]) -> None:
    """Raises SignalError for one of these signals that has numbers that cannot be. The flight may lack some."""
    for name in names:
        if name not in flight:
            continue
        signal = flight[name]
        wrong = ~np.isfinite(signal.values).all(axis=1)
        if wrong.any():
            raise SignalError(
                f"{flight.source}: {name} is not finite (NaN or infinite) at t = {signal.times[np.argmax(wrong)]:.3f} s; "
                "remove those rows, or leave their cells empty"
            )


def check_rotors_run(flight: Flight, rotors: str) -> None:
    """Raises SignalError for a rotor that never turns. rotors: the signal that tells them."""
    values = flight[rotors].values
    still = np.flatnonzero(~values.any(axis=0))
    if len(still):
        which = "no rotor turns" if len(still) == values.shape[1] else f"rotor {still[0]} never turns"
        raise SignalError(
            f"{flight.source}: {which} ({rotors} is 0 throughout); give flights in which all do"
        )
