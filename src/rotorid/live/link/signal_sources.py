"""Which message of the vehicle provides which signal, and how often.

Messages are observed for `OBSERVATION_TIME` s. Then `logs.mavlink.choose` selects a message for each signal, as it does for
a log. A signal that arrives later is taken from the message that contains it first.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Collection, Iterable, Mapping
from typing import Final

import numpy as np

from rotorid.logs.mavlink.decoder import SOURCES, Piece, choose

OBSERVATION_TIME: Final = 2.0
"""s of the vehicle's clock."""

SIGNALS: Final = (
    *("attitude", "velocity", "specific_force", "body_rate", "rotor_command", "battery_voltage"),
    "position",
    "airborne",
    "collective_command",
)
"""Signals that a session uses if they are available."""

MIN_RATE_RATIO: Final = 1.5
"""Rate of the collective command over that of the rotor commands, from which these are interpolated."""

_MEMORY: Final = 200  # time stamps of each signal
_PREFERRED: Final = {
    "attitude": ("ATTITUDE_QUATERNION",),
    "velocity": ("LOCAL_POSITION_NED",),
    "body_rate": ("HIGHRES_IMU", "ATTITUDE"),
    "specific_force": ("HIGHRES_IMU", "SCALED_IMU"),
    "rotor_command": ("ACTUATOR_OUTPUT_STATUS", "SERVO_OUTPUT_RAW"),
    "battery_voltage": ("BATTERY_STATUS",),
}


class SignalSources:
    """The messages that were received and those that are used. chosen: signal -> message; empty before the choice."""

    def __init__(self) -> None:
        self.chosen: dict[str, str] = {}
        self._times: dict[tuple[str, str], deque[float]] = {}
        self._start: float | None = None
        self._unused: frozenset[str] = frozenset()

    def may_use(self, message: str) -> bool:
        """Whether a message may contain a signal that is used."""
        return message not in self._unused

    def select(self, pieces: Iterable[Piece], t: float) -> list[Piece]:
        """The signals of one message that are used. t: session time, s."""
        used = []
        for piece in pieces:
            if piece.signal not in SIGNALS:
                continue
            key = piece.signal, piece.message
            if self.chosen:
                if self.chosen.setdefault(piece.signal, piece.message) != piece.message:
                    continue
                used.append(piece)
            self._times.setdefault(key, deque(maxlen=_MEMORY)).append(t)
        return used

    def choose(self, latest: float, required: Collection[str], outputs: Collection[str]) -> bool:
        """Choose a message for each signal, after `OBSERVATION_TIME`, once the signals suffice.

        Args:
            latest: session time, s.
            required: signals of which all are needed.
            outputs: signals of which at least one is needed.
        Returns:
            Whether the choice was made in this call.
        """
        if self._start is None:
            self._start = latest
        if self.chosen or latest < self._start + OBSERVATION_TIME:
            return False
        chosen = choose({key: len(times) for key, times in self._times.items()})
        chosen = {signal: message for signal, message in chosen.items() if signal in SIGNALS}
        if not set(required) <= set(chosen) or not set(outputs) & set(chosen):
            return False
        if not self._has_fast_collective(chosen):
            chosen.pop("collective_command", None)
        self.chosen = chosen
        used = set(chosen.values())
        self._unused = frozenset(
            message
            for message in {m for _, m in self._times}
            if message not in used and not any(message in SOURCES[s] for s in SIGNALS[:-1] if s not in chosen)
        )
        self._times = {key: times for key, times in self._times.items() if chosen.get(key[0]) == key[1]}
        return True

    def _has_fast_collective(self, chosen: Mapping[str, str]) -> bool:
        """Whether the collective command arrives often enough to interpolate the rotor commands."""
        collective, rotors = (
            self._period(signal, chosen[signal]) if signal in chosen else math.nan
            for signal in ("collective_command", "rotor_command")
        )
        return collective * MIN_RATE_RATIO < rotors

    def _period(self, signal: str, message: str) -> float:
        """Median time between two messages, s; nan for fewer than two."""
        steps = np.diff(np.unique(np.array(self._times.get((signal, message), ()))))
        return float(np.median(steps)) if len(steps) else math.nan

    def periods(self) -> dict[str, float]:
        """Median time between two messages of each chosen signal, s."""
        periods = {signal: self._period(signal, message) for signal, message in self.chosen.items()}
        return {signal: period for signal, period in periods.items() if period == period}

    def missing(self, signals: Iterable[str]) -> dict[str, tuple[str, ...]]:
        """The signals that were not received, each with the messages that contain it."""
        received = {signal for signal, _ in self._times}
        return {
            signal: tuple(_PREFERRED.get(signal, SOURCES[signal]))
            for signal in signals
            if signal not in received
        }
