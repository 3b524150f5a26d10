"""A worker process, which executes one task after the other for its parent process.

The parent sends keys and receives results through a pipe. It also detects that a worker has died or exceeds its time limit.
"""

from __future__ import annotations

import contextlib
import math
import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from multiprocessing import resource_tracker
from multiprocessing.process import BaseProcess
from typing import Any, Final, NamedTuple

if sys.platform == "win32":
    from multiprocessing.connection import PipeConnection as Connection
else:
    from multiprocessing.connection import Connection

Task = Callable[[Any], bytes]
"""Function from a key to its result."""


class Ready(NamedTuple):
    """First message of a worker, once it has imported its task."""


READY: Final = Ready()
DIED: Final = object()
"""Returned for a worker that ended before it sent a result."""

TIMED_OUT: Final = object()
"""Returned for a worker that exceeded its time limit."""


class Worker:
    """A worker process.

    Args:
        task: function that it executes.
        key: first key.
        limit: time limit for a key, s; None for no limit.

    key: under way. is_ready: whether the process has started its first task. deadline: of the key, on the monotonic clock, s.
    """

    def __init__(self, task: Task, key: Any, limit: float | None) -> None:
        self.limit = math.inf if limit is None else limit
        self.connection, self.process = _start(task)
        self.key, self.is_ready, self.deadline = key, False, math.inf
        self.submit(key)

    def submit(self, key: Any) -> bool:
        """Send a key to the process. Returns False if the process has ended."""
        try:
            self.connection.send(key)
        except (BrokenPipeError, ConnectionResetError):
            return False
        self.key = key
        if self.is_ready:
            self.deadline = time.monotonic() + self.limit
        return True

    def receive(self) -> Any:
        """The message of the process: READY or the result of its key; TIMED_OUT without a message, DIED if it has ended."""
        try:
            message = self.connection.recv() if self.connection.poll() else TIMED_OUT
        except (EOFError, ConnectionResetError):
            return DIED
        if isinstance(message, Ready):
            self.is_ready, self.deadline = True, time.monotonic() + self.limit
            return READY
        return message

    def kill(self) -> None:
        """End the process at once."""
        self.process.kill()
        self.process.join()
        self.connection.close()


def _start(task: Task) -> tuple[Connection, BaseProcess]:
    """Start a process. Returns the parent's end of the pipe, and the process."""
    context = multiprocessing.get_context("spawn")
    parent_end, worker_end = context.Pipe()
    process = context.Process(target=_serve, args=(task, worker_end), daemon=True)
    with _sigint_blocked():
        process.start()
    worker_end.close()
    return parent_end, process


def _serve(task: Task, connection: Connection) -> None:
    """Main function of the worker: receives keys and sends results or exceptions. It ends with its parent process."""
    threading.Thread(target=_exit_with_parent, daemon=True).start()
    with contextlib.suppress(EOFError, BrokenPipeError, ConnectionResetError):  # the parent has ended
        connection.send(READY)
        while True:
            key = connection.recv()
            try:
                result = task(key)
            except Exception as error:
                result = error
            connection.send(result)


def _exit_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


@contextlib.contextmanager
def _sigint_blocked() -> Iterator[None]:
    """Block SIGINT. Processes that are started within the block inherit this and ignore Ctrl-C; for this process, a Ctrl-C
    within the block takes effect after it."""
    if sys.platform == "win32":
        yield
        return
    resource_tracker.ensure_running()  # otherwise the first process starts it, which unblocks SIGINT
    previous = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, previous)
