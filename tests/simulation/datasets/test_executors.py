"""Workers that hang, are killed at work or while they wait, and never begin: what is lost, and what goes on."""

from __future__ import annotations

import os
import signal
import time
from types import SimpleNamespace

import pytest

from rotorid.errors import OutputError, SettingError
from rotorid.simulation.datasets import executors


def troubled(key: int) -> bytes:
    """1 never ends, 2 is killed."""
    if key == 1:
        time.sleep(1000.0)
    if key == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    return bytes([key])


def gone(key: int, late: bool) -> bytes:
    return b"late" if late else b"lost"


def process(key: int) -> bytes:
    return str(os.getpid()).encode()


class Unloadable:
    """A function that no worker can take over."""

    def __reduce__(self):
        return os._exit, (3,)

    def __call__(self, key: int) -> bytes:
        return b""


def test_one_that_hangs_and_one_that_is_killed_are_lost_and_the_others_are_not() -> None:
    found = dict(executors.run_local(troubled, range(6), 2, gone, 0.5))
    assert found == {0: b"\0", 1: b"late", 2: b"lost", 3: b"\3", 4: b"\4", 5: b"\5"}
    with pytest.raises(OutputError, match=r"took longer than 0\.2 s"):
        list(executors.run_local(troubled, [1], 1, None, 0.2))


def test_a_worker_that_is_killed_while_it_waits_loses_nothing() -> None:
    made = executors.run_local(process, range(5), 2, gone)
    results = dict([next(made)])
    (first,) = results.values()
    time.sleep(0.5)  # by now it has made another, and waits
    os.kill(int(first), signal.SIGKILL)
    os.waitid(os.P_PID, int(first), os.WEXITED | os.WNOWAIT)
    results |= dict(made)
    assert sorted(results) == list(range(5))
    assert b"lost" not in results.values()


def test_workers_that_never_begin_are_not_started_forever() -> None:
    with pytest.raises(OutputError, match="a worker ended unexpectedly"):
        list(executors.run_local(Unloadable(), range(100), 1, gone))


def test_a_task_of_ray_ends_in_time() -> None:
    """What runs in Ray's worker, here in this process."""
    assert executors._run_with_limit(troubled, 1, 0.1) is None
    assert executors._run_with_limit(troubled, 3, 5.0) == b"\3"
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def test_ray_that_does_not_start_is_one_line() -> None:
    """Ray raises `Exception` itself where one of its processes does not start."""

    def init(**_: object) -> None:
        raise Exception("The current node timed out during startup.\nSee the log.")

    with pytest.raises(
        SettingError,
        match=r"^Ray did not start on this computer: The current node timed out during startup\.$",
    ):
        executors._connect(SimpleNamespace(init=init), 2, "local")
