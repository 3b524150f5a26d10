"""Which message of a vehicle gives which signal, and how often: heard for a while, then settled.

The messages that come in the first `HEARING` s tell what the vehicle sends; `logs.mavlink.choose` picks among them as
it does for a recording. A signal that begins to come later is taken from the message that it comes in first."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Collection, Iterable, Mapping
from typing import Final

import numpy as np

from rotorid.live.between import FASTER
from rotorid.logs.mavlink import SOURCES, Piece, choose
from rotorid.models.system import System

HEARING: Final = 2.0
"""s of the vehicle's clock."""

NEEDED: Final = (
    *("attitude", "velocity", "specific_force", "body_rate", "rotor_command", "battery_voltage"),
    "position",
    "airborne",
    "collective_command",
)
"""Signals that are used, where they come."""

_STAMPS: Final = 200
_ASKED: Final = {
    "attitude": ("ATTITUDE_QUATERNION",),
    "velocity": ("LOCAL_POSITION_NED",),
    "body_rate": ("HIGHRES_IMU", "ATTITUDE"),
    "specific_force": ("HIGHRES_IMU", "SCALED_IMU"),
    "rotor_command": ("ACTUATOR_OUTPUT_STATUS", "SERVO_OUTPUT_RAW"),
    "battery_voltage": ("BATTERY_STATUS",),
}


class Sources:
    """What comes, and what of it is used. chosen: signal -> message, once settled; empty before."""

    def __init__(self) -> None:
        self.chosen: dict[str, str] = {}
        self._stamps: dict[tuple[str, str], deque[float]] = {}
        self._began: float | None = None
        self._idle: frozenset[str] = frozenset()

    def wants(self, message: str) -> bool:
        """Whether a message may tell something that is used."""
        return message not in self._idle

    def hear(self, pieces: Iterable[Piece], t: float) -> list[Piece]:
        """Those of the pieces of one message that are used. t: s of the session."""
        used = []
        for piece in pieces:
            if piece.signal not in NEEDED:
                continue
            key = piece.signal, piece.message
            if self.chosen:
                if self.chosen.setdefault(piece.signal, piece.message) != piece.message:
                    continue
                used.append(piece)
            self._stamps.setdefault(key, deque(maxlen=_STAMPS)).append(t)
        return used

    def settle(self, latest: float, needed: Collection[str], either: Collection[str]) -> bool:
        """Choose, once `HEARING` s were heard and all signals that are `needed` and one of `either` have come;
        whether that was done now. latest: s of the session."""
        if self._began is None:
            self._began = latest
        if self.chosen or latest < self._began + HEARING:
            return False
        found = choose({key: len(stamps) for key, stamps in self._stamps.items()})
        found = {signal: message for signal, message in found.items() if signal in NEEDED}
        if not set(needed) <= set(found) or not set(either) & set(found):
            return False
        if not self._faster(found):
            found.pop("collective_command", None)
        self.chosen = found
        of_use = set(found.values())
        self._idle = frozenset(
            message
            for message in {m for _, m in self._stamps}
            if message not in of_use and not any(message in SOURCES[s] for s in NEEDED[:-1] if s not in found)
        )
        self._stamps = {key: stamps for key, stamps in self._stamps.items() if found.get(key[0]) == key[1]}
        return True

    def _faster(self, found: Mapping[str, str]) -> bool:
        """Whether the collective command comes often enough to tell the rotors' between theirs."""
        collective, rotors = (
            self._period(signal, found[signal]) if signal in found else math.nan
            for signal in ("collective_command", "rotor_command")
        )
        return collective * FASTER < rotors

    def _period(self, signal: str, message: str) -> float:
        """Median time between two messages, s; nan of less than two."""
        steps = np.diff(np.unique(np.array(self._stamps.get((signal, message), ()))))
        return float(np.median(steps)) if len(steps) else math.nan

    def periods(self) -> dict[str, float]:
        """Median time between two messages of each chosen signal, s."""
        found = {signal: self._period(signal, message) for signal, message in self.chosen.items()}
        return {signal: period for signal, period in found.items() if period == period}

    def missing(self, needed: Iterable[str]) -> list[str]:
        """Signals that do not come, in words with the messages that would tell them."""
        there = {signal for signal, _ in self._stamps}
        return [
            f"{signal.replace('_', ' ')} ({' or '.join(_ASKED.get(signal, SOURCES[signal]))})"
            for signal in needed
            if signal not in there
        ]


def rate_of(periods: Mapping[str, float], system: System, most: float) -> float:
    """Rate of the grid for a System, Hz: of its fastest signal, at most `most`."""
    rates = [1.0 / periods[n] for n in (*system.inputs, *system.outputs) if periods.get(n, 0.0) > 0.0]
    return min(most, max(rates))
