"""A process that makes one thing after the other for the one that started it, which watches what it says, its end and the
clock."""

from __future__ import annotations

import contextlib
import math
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any, Final, NamedTuple

Task = Callable[[Any], bytes]
"""From a key to its result."""


class Ready(NamedTuple):
    """What a worker says first."""


READY: Final = Ready()
DIED: Final = object()
"""For a worker that ended before it had a result."""

TIMED_OUT: Final = object()
"""For one that has none in time."""


class Worker:
    """A process that makes one key after the other. key: under way. ready: whether it has begun. until: when the key must be
    there, by the monotonic clock."""

    def __init__(self, make: Task, key: Any, limit: float | None) -> None:
        self.limit = math.inf if limit is None else limit
        self.connection, self.process = _start(make)
        self.key, self.ready, self.until = key, False, math.inf
        self.take(key)

    def take(self, key: Any) -> bool:
        """Begin with a key; whether the process is still there for it."""
        try:
            self.connection.send(key)
        except (BrokenPipeError, ConnectionResetError):
            return False
        self.key = key
        if self.ready:
            self.until = time.monotonic() + self.limit
        return True

    def answer(self) -> Any:
        """What it said: READY, or the result of its key; LATE or ENDED where it said nothing."""
        try:
            said = self.connection.recv() if self.connection.poll() else TIMED_OUT
        except (EOFError, ConnectionResetError):
            return DIED
        if isinstance(said, Ready):
            self.ready, self.until = True, time.monotonic() + self.limit
            return READY
        return said

    def end(self) -> None:
        self.process.kill()
        self.process.join()
        self.connection.close()


def _start(make: Task) -> tuple[Connection, BaseProcess]:
    """A worker, and the line to it."""
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=_serve, args=(make, there), daemon=True)
    resource_tracker.ensure_running()  # else the start would start it, which lets interrupts through again
    with _without_interrupts():
        process.start()
    there.close()
    return here, process


def _serve(make: Task, connection: Connection) -> None:
    """A worker: answers keys with results, or with what went wrong. It ends with the process that started it, however that
    one ends."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    with contextlib.suppress(EOFError, BrokenPipeError, ConnectionResetError):  # the parent has ended
        connection.send(READY)
        while True:
            key = connection.recv()
            try:
                result = make(key)
            except Exception as error:
                result = error
            connection.send(result)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


@contextlib.contextmanager
def _without_interrupts() -> Iterator[None]:
    """Processes that are started within never get a Ctrl-C themselves; one that comes meanwhile comes afterwards."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
