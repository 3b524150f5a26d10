"""What a live session says at one instant, to everything that shows it or passes it on.

The session makes one Moment after each step of the estimators and calls `consumer.show(moment)` for every consumer:
the terminal, the page, the publisher. A consumer never blocks: it keeps what it needs and does its slow work in a
thread of its own. Moments are immutable, so that any thread may keep one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from rotorid.live.clock import ClockState


@dataclass(frozen=True)
class Reading:
    """One estimated number. std: its standard deviation, in the same unit; infinite where nothing is known."""

    value: float
    std: float
    unit: str


@dataclass(frozen=True)
class Event:
    """Something that happened, once. t: s since the session's start. kind: "link", "vehicle", "health", "write", ..."""

    t: float
    kind: str
    text: str


@dataclass(frozen=True)
class LinkState:
    """How the link does.

    received: messages of the vehicle so far. lost: messages that its sequence numbers show missing. rate: messages/s
    over the last seconds. latency: s from the arrival of a datagram to the estimate that it let through, the latest.
    clock: how the vehicle's clock stands to ours, None where that is not known yet. skipped: messages that were
    recorded but not estimated with, since this computer was too slow.
    """

    received: int
    lost: int
    rate: float
    latency: float
    clock: ClockState | None = None
    skipped: int = 0


@dataclass(frozen=True)
class Moment:
    """All that is known after one step.

    t: s since the session's start, on the vehicle's clock. readings: by quantity, as `mass` (kg), `drag`, `wind_x`
    (m/s, world ENU), `force_x` (N, world ENU), `torque_x` (N m, body FLU). health: in a word, as in
    `estimates.parquet`. attitude: quaternion w, x, y, z from body FLU to world ENU. position: m, world ENU. events:
    those since the previous Moment, oldest first. system: what was identified, e.g. "multirotor", and by which
    estimator.
    """

    t: float
    readings: Mapping[str, Reading]
    health: str
    attitude: tuple[float, float, float, float] | None
    position: tuple[float, float, float] | None
    events: tuple[Event, ...]
    link: LinkState
    system: str


@runtime_checkable
class Consumer(Protocol):
    """What takes moments: it returns at once and never raises."""

    def show(self, moment: Moment) -> None: ...

    def close(self) -> None: ...
