"""Snapshot of a live session, for everything that displays, records or forwards it.

The session makes a `Snapshot` after each step of the estimators and calls `consumer.show(snapshot)` for every consumer:
terminal, page and publisher. A consumer does not block: slow work is done in a thread of its own. Snapshots are immutable
and can be kept by any thread.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol, runtime_checkable

from rotorid.findings import Severity
from rotorid.live.link.clock import ClockState

WAITING: Final = "waiting"
ON_GROUND: Final = "on_ground"
TAKE_OFF: Final = "take_off"
ESTIMATING_NOISE: Final = "estimating_noise"
LANDING: Final = "landing"
CONTACT: Final = "contact"
CRASH: Final = "crash"
MOTOR_STOPPED: Final = "motor_stopped"

PHASES: Final = (WAITING, ON_GROUND, TAKE_OFF, ESTIMATING_NOISE, LANDING, CONTACT, CRASH, MOTOR_STOPPED)
"""`Snapshot.health` while there is no new estimate; the readings, if any, are the latest of free flight."""


@dataclass(frozen=True)
class Reading:
    """One estimated quantity. std: its standard deviation, in the same unit; infinite without information."""

    value: float
    std: float
    unit: str


@dataclass(frozen=True)
class Event:
    """An event.

    t: session time, s. code: a key of `events.EVENT_TYPES`. values: numbers and names that its text is made from, in SI units.
    count: number of events of this code, if several are reported as one. since: session time of the first of these, s.
    """

    t: float
    code: str
    severity: Severity = Severity.NOTE
    values: Mapping[str, Any] = field(default_factory=dict)
    count: int = 1
    since: float | None = None


@dataclass(frozen=True)
class LinkState:
    """State of the link.

    received: messages of the vehicle so far. lost: messages that are missing by their sequence numbers. rate: messages/s
    over the last seconds. latency: s from the arrival of a datagram to the estimate that follows from it, the latest.
    clock: offset of the vehicle's clock; None if unknown. skipped: messages that were recorded but not used, since the
    computer was overloaded.
    """

    received: int
    lost: int
    rate: float
    latency: float
    clock: ClockState | None = None
    skipped: int = 0


@dataclass(frozen=True)
class Snapshot:
    """State of a session after one step.

    t: session time on the vehicle's clock, s. readings: by quantity, e.g. `mass` (kg), `drag`, `wind_x` (m/s, world ENU),
    `force_x` (N, world ENU), `torque_x` (N m, body FLU). health: as in `estimates.parquet`, or one of `PHASES`.
    attitude: quaternion w, x, y, z from body FLU to world ENU; None without a new estimate. position: m, world ENU. events:
    since the previous snapshot, oldest first. system: System and estimators, e.g. "multirotor by ekf". vehicle: e.g. "system 3"
    in a session with several vehicles, else "".
    """

    t: float
    readings: Mapping[str, Reading]
    health: str
    attitude: tuple[float, float, float, float] | None
    position: tuple[float, float, float] | None
    events: tuple[Event, ...]
    link: LinkState
    system: str
    vehicle: str = ""


@runtime_checkable
class Consumer(Protocol):
    """Uses snapshots. `show` returns at once and does not raise."""

    def show(self, snapshot: Snapshot) -> None: ...

    def close(self) -> None: ...
