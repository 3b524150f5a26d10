"""From moments to what a page is sent, without a wait for whoever brings the moments.

`add` puts a moment on a queue and returns. A thread takes the queue every 40 ms into the history and wakes those who
serve pages; each of them asks for what its page has not seen. So a slow page costs nobody but its own thread: what it
missed is thinned into one message, and the last state is always in it.

A message is JSON. Its arrays are base64 of little-endian float64 (`t`), uint8 (`health`, `gap`) and float32 (the others,
a row of one number for each of `names`). `least` and `greatest` are there where a row stands for several:

    {"id": "RUN.ROW", "reset": true, "t": ..., "health": ..., "gap": ..., "value": ..., "std": ..., "least": ...,
     "greatest": ..., "names": [], "units": [], "words": [], "meanings": {word: meaning}, "attitude": [w, x, y, z],
     "position": [x, y, z], "events": [[t, kind, text]], "link": [received, lost, rate, latency, skipped], "system":
     "...", "idle": s since the last moment}

With `reset` the page forgets what it has. Only the first message of a connection has `meanings`.
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

from rotorid.estimators.base import Health
from rotorid.live.moment import Event, Moment
from rotorid.live.page_history import History

PERIOD: Final = 0.04
"""Seconds between two messages, at least."""

_BEFORE: Final = {
    "waiting": "waiting for messages",
    "on_ground": "on the ground",
    "listening": "in the air, listening for two seconds",
}
"""What a session says in place of a health while there is none, in words."""

_WHOLE, _MISSED = 16384, 500  # rows at most: of a page that comes, of one that was too slow
_EVENTS: Final = 200
_QUEUE: Final = 16384  # moments; full only where the thread does not run for seconds


class Feed:
    """What all pages are served from."""

    def __init__(self) -> None:
        self.run = secrets.token_hex(4)
        self._meanings = _BEFORE | {h.name.lower(): h.meaning for h in Health}
        self._history = History(tuple(self._meanings))
        self._queue: deque[Moment] = deque(maxlen=_QUEUE)
        self._events: deque[tuple[int, Event]] = deque(maxlen=_EVENTS)
        self._last: Moment | None = None
        self._came = time.monotonic()
        self._changed = threading.Condition()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._take, name="rotorid page", daemon=True)
        self._thread.start()

    def add(self, moment: Moment) -> None:
        """Queue a moment; returns at once."""
        self._queue.append(moment)

    def end(self) -> None:
        """No more will come: whoever waits is told."""
        self._ended.set()
        self._thread.join()

    def _take(self) -> None:
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
                self._last = self._queue.popleft()
                self._history.add(self._last)
                self._events.extend((self._history.number, event) for event in self._last.events)
            self._came = time.monotonic()
            self._changed.notify_all()

    def wait(self, number: int, seconds: float) -> bool:
        """Wait for a row after that one, at most so long. False when the feed has ended and there is none."""
        with self._changed:
            self._changed.wait_for(lambda: self._history.number > number or self._ended.is_set(), seconds)
            return self._history.number > number or not self._ended.is_set()

    def seen(self, identity: str) -> int:
        """The row that a message's id names; 0 where it is none of this run."""
        run, _, number = identity.partition(".")
        return int(number) if run == self.run and re.fullmatch("[0-9]{1,15}", number) else 0

    def message(self, number: int, *, first: bool = False) -> tuple[int, str]:
        """What a page that has seen that row has to be told, and the row that it has seen then. first: the first message
        of a connection, which may be long."""
        with self._changed:
            history, last, seen = self._history, self._last, self._history.number
            reset = number < history.first or number > seen
            rows = history.after(0 if reset else number, _WHOLE if first or reset else _MISSED)
            events = [e for n, e in self._events if reset or n > number]
            told: dict[str, Any] = {
                "id": f"{self.run}.{seen}",
                "reset": reset,
                "names": list(history.units),
                "units": list(history.units.values()),
                "words": list(history.words),
                "idle": round(time.monotonic() - self._came, 2),
            }
        told |= {
            "t": _packed(rows.t, "<f8"),
            "health": _packed(rows.health, "u1"),
            "gap": _packed(rows.gap, "u1"),
            "value": _packed(rows.value, "<f4"),
            "std": _packed(rows.std, "<f4"),
            "events": [[_number(e.t), e.kind, e.text] for e in events],
        }
        if not np.array_equal(rows.least, rows.greatest, equal_nan=True):
            told |= {"least": _packed(rows.least, "<f4"), "greatest": _packed(rows.greatest, "<f4")}
        if first:
            told["meanings"] = self._meanings
        if last is not None:
            link = last.link
            told |= {
                "attitude": _numbers(last.attitude),
                "position": _numbers(last.position),
                "link": _numbers((link.received, link.lost, link.rate, link.latency, link.skipped)),
                "system": last.system,
            }
        return seen, json.dumps(told, separators=(",", ":"), allow_nan=False)


def _packed(array: np.ndarray, kind: str) -> str:
    return base64.b64encode(np.ascontiguousarray(array, dtype=kind).tobytes()).decode("ascii")


def _number(value: float | int) -> float | None:
    return round(float(value), 6) if math.isfinite(value) else None


def _numbers(values: Sequence[float | int] | None) -> list[float | None] | None:
    return None if values is None else [_number(v) for v in values]
