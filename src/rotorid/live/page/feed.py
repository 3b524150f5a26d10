"""Messages for the browsers, from snapshots, without delaying the session.

`add` puts a snapshot into a queue and returns. A thread moves the queue into the history every 40 ms and notifies the threads
that serve browsers; each of these requests what its browser has not received. A slow browser therefore only delays its own
thread. What it missed is decimated into one message, which always contains the latest state.

A message is JSON. Its arrays are base64 of little-endian float64 (`t`), uint8 (`health`, `gap`) and float32 (the others, one
number for each of `names` per row). `minimum` and `maximum` are present if a row represents several:

    {"id": "RUN.ROW", "reset": true, "t": ..., "health": ..., "gap": ..., "value": ..., "std": ..., "minimum": ...,
     "maximum": ..., "names": [], "units": [], "health_names": [], "health_texts": {name: text},
     "attitude": [w, x, y, z], "position": [x, y, z], "events": [[t, source, severity, text]],
     "link": [received, lost, rate, latency, skipped], "system": "...", "idle": s since the latest snapshot,
     "vehicles": [{"name", "health", "quantity", "value", "std", "unit", "link", "idle"}]}

With `reset` the page discards its data. Only the first message of a connection has `health_texts`. A message is of one vehicle;
`vehicles` has the latest state of each, where there are several.
"""

from __future__ import annotations

import base64
import json
import math
import re
import secrets
import threading
import time
from collections import deque
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from rotorid.live.events import EVENT_TYPES
from rotorid.live.page.history import History
from rotorid.live.snapshot import Event, Snapshot
from rotorid.live.text import HEALTH_TEXTS, event_text

PERIOD: Final = 0.04
"""Minimum time between two messages, s."""

_MAX_FIRST, _MAX_NEXT = 16384, 500  # rows of the first message of a connection, and of the others
_MAX_EVENTS: Final = 200
_MAX_QUEUE: Final = 16384  # snapshots


class _Vehicle:
    """What is known of one vehicle. last: latest snapshot, None before the first. last_arrival: its time, s."""

    def __init__(self) -> None:
        self.history = History(tuple(HEALTH_TEXTS))
        self.events: deque[tuple[int, Event]] = deque(maxlen=_MAX_EVENTS)
        self.last: Snapshot | None = None
        self.last_arrival = time.monotonic()

    def add(self, snapshot: Snapshot) -> None:
        self.last, self.last_arrival = snapshot, time.monotonic()
        self.history.add(snapshot)
        self.events.extend((self.history.number, event) for event in snapshot.events)

    @property
    def idle(self) -> float:
        """Time since the latest snapshot, s."""
        return round(time.monotonic() - self.last_arrival, 2)

    def state(self, name: str) -> dict[str, Any]:
        """The latest state, with the main quantity."""
        assert self.last is not None
        quantity, reading = next(iter(self.last.readings.items()), ("", None))
        return {
            "name": name,
            "health": self.last.health,
            "quantity": quantity,
            "value": None if reading is None else _number(reading.value),
            "std": None if reading is None else _number(reading.std),
            "unit": "" if reading is None else reading.unit,
            "link": _link(self.last),
            "idle": self.idle,
        }


class Feed:
    """Source of the messages for all browsers. A vehicle is that of `Snapshot.vehicle`; "" for the only one."""

    def __init__(self) -> None:
        self.run = secrets.token_hex(4)
        self._health_texts = dict(HEALTH_TEXTS)
        self._queue: deque[Snapshot] = deque(maxlen=_MAX_QUEUE)
        self._vehicles = {"": _Vehicle()}
        self._changed = threading.Condition()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="rotorid page", daemon=True)
        self._thread.start()

    def add(self, snapshot: Snapshot) -> None:
        """Queue a snapshot; returns at once."""
        self._queue.append(snapshot)

    def end(self) -> None:
        """End the feed, and notify the waiting threads."""
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._ended.wait(PERIOD):
            self._drain()
        self._drain()
        with self._changed:
            self._changed.notify_all()

    def _drain(self) -> None:
        if not self._queue:
            return
        with self._changed:
            while self._queue:
                snapshot = self._queue.popleft()
                if snapshot.vehicle not in self._vehicles:
                    self._vehicles[snapshot.vehicle] = _Vehicle()
                self._vehicles[snapshot.vehicle].add(snapshot)
            self._changed.notify_all()

    def _vehicle(self, name: str) -> _Vehicle:
        """A vehicle by its name; an unknown name is that of the only vehicle."""
        return self._vehicles.get(name, self._vehicles[""])

    def wait(self, number: int, seconds: float, vehicle: str = "") -> bool:
        """Wait for a row of a vehicle after `number`, at most `seconds`. Returns False if the feed has ended without one."""

        def has_more() -> bool:
            return self._vehicle(vehicle).history.number > number

        with self._changed:
            self._changed.wait_for(lambda: has_more() or self._ended.is_set(), seconds)
            return has_more() or not self._ended.is_set()

    def row_number(self, identity: str) -> int:
        """Row number of a message id; 0 if it is not of this run."""
        run, _, number = identity.partition(".")
        return int(number) if run == self.run and re.fullmatch("[0-9]{1,15}", number) else 0

    def message(self, number: int, *, first: bool = False, vehicle: str = "") -> tuple[int, str]:
        """The message for a page that has received the rows up to `number`.

        Args:
            number: latest row that the page has.
            first: whether this is the first message of a connection, which may be long.
            vehicle: name of the vehicle.
        Returns:
            Latest row in the message, and the message as JSON.
        """
        with self._changed:
            shown = self._vehicle(vehicle)
            history, last, latest = shown.history, shown.last, shown.history.number
            reset = number < history.first or number > latest
            rows = history.after(0 if reset else number, _MAX_FIRST if first or reset else _MAX_NEXT)
            events = [e for n, e in shown.events if reset or n > number]
            message: dict[str, Any] = {
                "id": f"{self.run}.{latest}",
                "reset": reset,
                "names": list(history.units),
                "units": list(history.units.values()),
                "health_names": list(history.health_names),
                "idle": shown.idle,
                "vehicles": [v.state(name) for name, v in sorted(self._vehicles.items()) if name and v.last],
            }
        message |= {
            "t": _encode(rows.t, "<f8"),
            "health": _encode(rows.health, "u1"),
            "gap": _encode(rows.gap, "u1"),
            "value": _encode(rows.value, "<f4"),
            "std": _encode(rows.std, "<f4"),
            "events": [_event_entry(event) for event in events],
        }
        if not np.array_equal(rows.minimum, rows.maximum, equal_nan=True):
            message |= {"minimum": _encode(rows.minimum, "<f4"), "maximum": _encode(rows.maximum, "<f4")}
        if first:
            message["health_texts"] = self._health_texts
        if last is not None:
            message |= {
                "attitude": _numbers(last.attitude),
                "position": _numbers(last.position),
                "link": _link(last),
                "system": last.system,
            }
        return latest, json.dumps(message, separators=(",", ":"), allow_nan=False)


def _event_entry(event: Event) -> list[Any]:
    return [_number(event.t), EVENT_TYPES[event.code].source, event.severity.word, event_text(event)]


def _link(snapshot: Snapshot) -> list[float | None] | None:
    link = snapshot.link
    return _numbers((link.received, link.lost, link.rate, link.latency, link.skipped))


def _encode(array: np.ndarray, kind: str) -> str:
    return base64.b64encode(np.ascontiguousarray(array, dtype=kind).tobytes()).decode("ascii")


def _number(value: float | int) -> float | None:
    return round(float(value), 6) if math.isfinite(value) else None


def _numbers(values: Sequence[float | int] | None) -> list[float | None] | None:
    return None if values is None else [_number(v) for v in values]
