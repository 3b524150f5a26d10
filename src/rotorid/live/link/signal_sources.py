"""Which message of the vehicle provides which signal, and how often.

Messages are observed for `OBSERVATION_TIME` s. Then `logs.mavlink.choose` selects a message for each signal, as it does for a
log. The choice is made again every `_INTERVAL` s, since streams start, stop and change their rate during a session. A signal
whose message has stopped is taken from another message at once; any other change must be due at two choices in succession.

A message that is not used is decoded every `_INTERVAL` s only, to see which signals it has. In between its arrival is counted.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final, NamedTuple

import numpy as np

from rotorid.logs.mavlink.decoder import SOURCES, Piece, choose

OBSERVATION_TIME: Final = 2.0
"""s of the vehicle's clock."""

SIGNALS: Final = (
    *("attitude", "velocity", "specific_force", "body_rate", "rotor_command", "battery_voltage"),
    *("battery_current", "battery_remaining"),
    "position",
    "airborne",
    "collective_command",
    "rotor_speed",
)
"""Signals that a session uses if they are available."""

MIN_RATE_RATIO: Final = 1.5
"""Rate of the collective command over that of the rotor commands, from which these are interpolated."""

_INTERVAL: Final = 0.5  # s between two choices
_WINDOW: Final = 2.0  # s in which a rate is measured
_MIN_SAMPLES: Final = 5  # of a rate, if they are older than that
_MAX_PERIODS: Final = 5.0  # periods without a message after which it has stopped
_MIN_SILENCE: Final = 1.0  # s, the same at least
_LINK_GAP: Final = 1.0  # s without any message: an interruption of the link, no stream that has stopped
_RATE_RATIO: Final = 1.5  # of a rate that counts as another one
_SLOW: Final = 2.5  # Hz; lower rates are not told apart
_SETTLED: Final = 1.15  # ratio of two rates in succession that is no transition
_RATE_IS_IRRELEVANT: Final = (
    *("battery_voltage", "battery_current", "battery_remaining"),
    *("position", "airborne", "rotor_speed"),
)
_HYSTERESIS: Final = 1.25  # on the ratios of `choose`
_INTERPOLATION_HYSTERESIS: Final = 1.2
_LOSS: Final = 1.6  # median steps from which a step between two messages has a loss
_MEMORY: Final = 400  # time stamps of each signal
_PREFERRED: Final = {
    "attitude": ("ATTITUDE_QUATERNION",),
    "velocity": ("LOCAL_POSITION_NED",),
    "body_rate": ("HIGHRES_IMU", "ATTITUDE"),
    "specific_force": ("HIGHRES_IMU", "SCALED_IMU"),
    "rotor_command": ("ACTUATOR_OUTPUT_STATUS", "SERVO_OUTPUT_RAW"),
    "battery_voltage": ("BATTERY_STATUS",),
}
_MESSAGES: Final = frozenset(message for signal in SIGNALS for message in SOURCES[signal])


class Source(NamedTuple):
    """The message of a signal, and its rate, Hz."""

    message: str
    rate: float


class SourceChange(NamedTuple):
    """A signal whose source changed. before, now: None without a source."""

    signal: str
    before: Source | None
    now: Source | None

    def as_values(self) -> dict[str, Any]:
        """As values of an event: `signal`, `message`, `rate` (Hz), `previous_message`, `previous_rate`; None where there is
        none."""
        message, rate = self.now or (None, None)
        previous_message, previous_rate = self.before or (None, None)
        return {
            "signal": self.signal,
            "message": message,
            "rate": rate,
            "previous_message": previous_message,
            "previous_rate": previous_rate,
        }


class SignalSources:
    """The messages that were received and those that are used.

    chosen: signal -> message; empty before the first choice.
    """

    def __init__(self) -> None:
        self.chosen: dict[str, str] = {}
        self._times: dict[tuple[str, str], deque[float]] = {}
        self._signals: dict[str, tuple[str, ...]] = {}  # of a message when it was decoded last
        self._decoded: dict[str, float] = {}  # when that was, s
        self._reported: dict[str, Source] = {}
        self._pending: dict[str, Source | None] = {}  # changes of the previous choice that await confirmation
        self._start: float | None = None
        self._latest = -math.inf
        self._next_choice = -math.inf

    def may_use(self, message: str) -> bool:
        """Whether a message may contain a signal that is used."""
        return message in _MESSAGES

    def restart(self, t: float) -> None:
        """Observe all messages again from t, s, after a reboot of the vehicle; the choice is kept until the next one."""
        for times in self._times.values():
            times.clear()
        self._decoded.clear()
        self._pending.clear()
        self._resume(t)

    def _advance(self, t: float) -> None:
        if self._start is None or t > self._latest + _LINK_GAP:
            self._resume(t)
        self._latest = max(self._latest, t)

    def _resume(self, t: float) -> None:
        """Start again to observe at t, s. Silence before it counts for no stream."""
        self._start = self._latest = t
        self._next_choice = t + OBSERVATION_TIME

    def is_due(self, message: str, t: float) -> bool:
        """Whether a message must be decoded; otherwise `count` is enough. t: session time, s."""
        if not self.chosen or message in self.chosen.values():
            return True
        return t >= self._decoded.get(message, -math.inf) + _INTERVAL

    def count(self, message: str, t: float) -> None:
        """Count a message that was not decoded. t: session time, s."""
        for signal in self._signals.get(message, ()):
            self._add(signal, message, t)

    def _add(self, signal: str, message: str, t: float) -> None:
        self._times.setdefault((signal, message), deque(maxlen=_MEMORY)).append(t)

    def select(self, message: str, pieces: Iterable[Piece], t: float) -> list[Piece]:
        """The valid signals of one decoded message that are used. t: session time, s."""
        self._advance(t)
        pieces = [piece for piece in pieces if piece.signal in SIGNALS]
        for piece in pieces:
            self._add(piece.signal, message, t)
        self._decoded[message], self._signals[message] = t, tuple(piece.signal for piece in pieces)
        return [piece for piece in pieces if self.chosen.get(piece.signal) == piece.message]

    def update(
        self, latest: float, required: Collection[str], outputs: Collection[str]
    ) -> list[SourceChange]:
        """Choose a message for each signal, if that is due; the first time once the signals suffice.

        Args:
            latest: session time, s.
            required: signals of which all are needed.
            outputs: signals of which at least one is needed.
        Returns:
            What changed; all chosen signals after the first choice.
        """
        self._advance(latest)
        if latest < self._next_choice:
            return []
        self._next_choice = latest + _INTERVAL
        rates = self._rates(latest)
        candidates = self._candidates(rates)
        if not self.chosen and not (set(required) <= set(candidates) and set(outputs) & set(candidates)):
            return []
        changes, pending = [], {}
        for signal in SIGNALS:
            before, now = self._reported.get(signal), candidates.get(signal)
            if _is_same(signal, before, now):
                continue
            has_stopped = before is not None and (signal, before.message) not in rates
            if not self.chosen or has_stopped or _is_settled(signal, self._pending.get(signal, before), now):
                changes.append(SourceChange(signal, before, now))
            else:
                pending[signal] = now
        self._pending = pending
        for change in changes:
            if change.now is None:
                self._reported.pop(change.signal)
            else:
                self._reported[change.signal] = change.now
        self.chosen = {signal: source.message for signal, source in self._reported.items()}
        return changes

    def _rates(self, latest: float) -> dict[tuple[str, str], float]:
        """Mean rate of each signal of each message that has not stopped, Hz."""
        assert self._start is not None
        rates = {}
        for key, times in self._times.items():
            recent = self._recent(times, latest)
            if not recent:
                continue
            span = recent[-1] - recent[0]
            rate = (len(recent) - 1) / span if span > 0.0 else 1.0 / _WINDOW
            silence = max(_MIN_SILENCE, _MAX_PERIODS / rate)
            if latest - max(recent[-1], self._start) <= silence:
                rates[key] = rate
        return rates

    @staticmethod
    def _recent(times: deque[float], latest: float) -> list[float]:
        recent = sorted(t for t in times if t > latest - _WINDOW)
        return recent if len(recent) >= _MIN_SAMPLES else sorted(times)[-_MIN_SAMPLES:]

    def _candidates(self, rates: Mapping[tuple[str, str], float]) -> dict[str, Source]:
        """The best source of each signal; the one in use, unless another is better by the hysteresis."""
        chosen = choose(rates)
        for signal, message in self.chosen.items():
            if (signal, message) in rates and chosen[signal] != message:
                biased = {key: rate for key, rate in rates.items() if key[0] == signal}
                order = SOURCES[signal]
                if order.index(chosen[signal]) > order.index(message):
                    biased[signal, message] *= _HYSTERESIS  # given up for a more frequent one
                else:
                    biased[signal, chosen[signal]] /= _HYSTERESIS  # given up for a better one
                chosen[signal] = choose(biased)[signal]
        sources = {s: Source(m, rates[s, m]) for s, m in chosen.items() if s in SIGNALS}
        if not self._interpolates(sources):
            sources.pop("collective_command", None)
        return sources

    def _interpolates(self, sources: Mapping[str, Source]) -> bool:
        """Whether the collective command arrives often enough to interpolate the rotor commands."""
        if "collective_command" not in sources or "rotor_command" not in sources:
            return False
        ratio = sources["collective_command"].rate / sources["rotor_command"].rate
        limit = MIN_RATE_RATIO
        return ratio > (limit / _INTERPOLATION_HYSTERESIS if "collective_command" in self.chosen else limit)

    def periods(self) -> dict[str, float]:
        """Mean time between two messages of each chosen signal over the last seconds, without losses, s."""
        periods = {}
        for signal, message in self.chosen.items():
            times = self._times.get((signal, message), deque())
            steps = np.diff(np.unique(np.array(self._recent(times, self._latest))))
            if len(steps):
                periods[signal] = float(np.mean(steps[steps <= _LOSS * np.median(steps)]))
        return periods

    def missing(self, signals: Iterable[str]) -> dict[str, tuple[str, ...]]:
        """The signals that are not received, each with the messages that contain it."""
        received = self.chosen or {signal for (signal, _), times in self._times.items() if times}
        return {
            signal: tuple(_PREFERRED.get(signal, SOURCES[signal]))
            for signal in signals
            if signal not in received
        }


def _is_same(signal: str, a: Source | None, b: Source | None, limit: float = _RATE_RATIO) -> bool:
    """Whether two sources are one message, at about one rate. limit: on the ratio of the rates."""
    if a is None or b is None:
        return a is b
    ratio = max(a.rate, _SLOW) / max(b.rate, _SLOW)
    return a.message == b.message and (signal in _RATE_IS_IRRELEVANT or 1.0 / limit < ratio < limit)


def _is_settled(signal: str, previous: Source | None, now: Source | None) -> bool:
    """Whether a change was due at the previous choice too, and its rate changes no more."""
    return _is_same(signal, previous, now, _SETTLED)
