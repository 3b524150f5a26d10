"""How many flights are made at once: by processes on this machine, or as tasks of Ray.

An engine takes a function of a key and the keys, and gives (key, result) as they come, in any order. The process that asks
for them gets bytes and writes the files, so that nothing is half written where a worker ends. Functions must be importable,
and a worker keeps what the function caches.
"""

from __future__ import annotations

import contextlib
import faulthandler
import importlib
import itertools
import logging
import math
import os
import signal
import threading
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from multiprocessing.connection import wait
from typing import Any

from rotorid.errors import OutputError, RotoridError, SettingError
from rotorid.simulation.datasets.workers import DIED, READY, TIMED_OUT, Task, Worker

LostResult = Callable[[Any, bool], bytes]
"""Of a key without a result, and whether it took too long."""

Results = Generator[tuple[Any, bytes], None, None]

_TASKS_PER_CORE = 2
"""Tasks that Ray is given for each core, so that none waits for the next."""

_RETRIES = 1  # of a task whose worker or machine Ray lost
_MAX_FAILED_STARTS = 3  # workers that may end one after the other before they begin

_WORKER_DIED = (
    "a worker ended unexpectedly: out of memory, or started by a script that lacks "
    "`if __name__ == '__main__':`; run again with fewer workers to go on"
)
_TIMED_OUT = "a task took longer than {:g} s"


def available_cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def run_local(
    make: Task, keys: Sequence[Any], workers: int, lost: LostResult | None = None, limit: float | None = None
) -> Results:
    """Run the tasks in that many spawned processes, or in this process if one is enough.

    lost: the result of a key whose worker ended without one, which another worker takes the place of; default: OutputError.
    limit: s that a key may take; a worker that takes longer is ended, and its key lost. None: any.
    """
    workers = min(workers, len(keys))
    if workers == 1 and lost is None and limit is None:
        yield from ((key, make(key)) for key in keys)
        return
    waiting = iter(keys)
    at_work: list[Worker] = []
    in_vain = 0
    try:
        for key in itertools.islice(waiting, workers):
            at_work.append(Worker(make, key, limit))
        while at_work:
            for worker in _wait_for_workers(at_work):
                key, result = worker.key, worker.answer()
                if result is READY:
                    in_vain = 0
                    continue
                if result is DIED or result is TIMED_OUT:
                    at_work.remove(worker)
                    worker.end()
                    in_vain += not worker.ready
                    if lost is None or in_vain > _MAX_FAILED_STARTS:
                        raise OutputError(_TIMED_OUT.format(limit) if result is TIMED_OUT else _WORKER_DIED)
                    if not worker.ready:  # that was not this key's fault
                        at_work.append(Worker(make, key, limit))
                        continue
                    result = lost(key, result is TIMED_OUT)
                    at_work += [Worker(make, one, limit) for one in itertools.islice(waiting, 1)]
                else:
                    following = list(itertools.islice(waiting, 1))
                    if not following or not worker.take(following[0]):
                        at_work.remove(worker)
                        worker.end()
                        at_work += [Worker(make, one, limit) for one in following]
                if isinstance(result, Exception):
                    raise result
                yield key, result
    finally:
        for worker in at_work:
            worker.process.terminate()
        for worker in at_work:
            worker.process.join()


def _wait_for_workers(at_work: list[Worker]) -> list[Worker]:
    """The workers that have said something, ended, or are late: at least one."""
    while True:
        first = min(worker.until for worker in at_work)
        left = None if first == math.inf else max(first - time.monotonic(), 0.0)
        said = set(wait([worker.connection for worker in at_work], left))
        now = time.monotonic()
        found = [worker for worker in at_work if worker.connection in said or worker.until <= now]
        if found:
            return found


def run_ray(
    make: Task,
    keys: Sequence[Any],
    workers: int,
    lost: LostResult | None = None,
    address: str | None = None,
    limit: float | None = None,
) -> Results:
    """As tasks of one core each over the Ray at an address. lost, limit: as of `run_local`.

    address: "auto": the one that is running. "local": one with that many cores, which is started on this machine and ended
    again. Default: the first, where there is none the second.
    """
    library = import_ray()
    with _interrupts_raised():
        yield from _by_ray(library, make, keys, workers, lost, address, limit)


def _join(library: Any, workers: int, address: str | None) -> None:
    quiet: dict[str, Any] = {"logging_level": logging.ERROR, "log_to_driver": False}
    if address != "local":
        refused = ConnectionError if address is None else (ConnectionError, ValueError, RuntimeError)
        try:
            library.init(address=address or "auto", **quiet)
            return
        except refused as error:
            if address is not None:
                raise SettingError(f"no Ray at {address}: {str(error).splitlines()[0]}") from None
    library.init(address="local", num_cpus=workers, include_dashboard=False, **quiet)


def _by_ray(
    library: Any,
    make: Task,
    keys: Sequence[Any],
    workers: int,
    lost: LostResult | None,
    address: str | None,
    limit: float | None,
) -> Results:
    started = not library.is_initialized()
    if started:
        _join(library, workers, address)
    try:
        task = library.remote(num_cpus=1, max_retries=_RETRIES)(_call)
        slots = _TASKS_PER_CORE * max(1, int(library.cluster_resources().get("CPU", workers)))
        under_way = {}
        for key in keys:
            if len(under_way) >= slots:
                yield _take(library, under_way, lost, limit)
            under_way[task.remote(make, key, limit)] = key
        while under_way:
            yield _take(library, under_way, lost, limit)
    finally:
        if started:
            library.shutdown()


EXECUTORS = {"local": run_local, "ray": run_ray}
"""By name."""


def import_ray() -> Any:
    """Ray, or a SettingError that says how to install it."""
    try:
        return importlib.import_module("ray")
    except ImportError:
        raise SettingError("the engine ray needs Ray: pip install 'rotorid[ray]'") from None


def _take(
    library: Any, under_way: dict[Any, Any], lost: LostResult | None, limit: float | None
) -> tuple[Any, bytes]:
    """The next result, removed from what is under way."""
    (done, *_), _ = library.wait(list(under_way), num_returns=1)
    key = under_way.pop(done)
    try:
        result = library.get(done)
    except library.exceptions.RayTaskError as error:
        if isinstance(error.cause, RotoridError):
            raise error.cause from None
        raise
    except library.exceptions.RayError as error:
        if lost is not None:
            return key, lost(key, False)
        why = str(error).splitlines()[0]
        raise OutputError(f"Ray lost a task ({why}); run again to go on") from None
    if result is not None:
        return key, result
    if lost is None:
        raise OutputError(_TIMED_OUT.format(limit))
    return key, lost(key, True)


def _call(make: Task, key: Any, limit: float | None) -> bytes | None:
    """In a task of Ray: the result; None where it is not there in time. Code that lets no signal through ends with its worker,
    at twice the limit."""
    if limit is None or threading.current_thread() is not threading.main_thread():
        return make(key)
    before = signal.signal(signal.SIGALRM, _too_late)
    faulthandler.dump_traceback_later(2.0 * limit, exit=True)
    try:
        signal.setitimer(signal.ITIMER_REAL, limit)
        try:
            return make(key)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0.0)
    except _TooLate:
        return None
    finally:
        faulthandler.cancel_dump_traceback_later()
        signal.signal(signal.SIGALRM, before)


class _TooLate(BaseException):
    """Out of whatever is under way, past what catches errors."""


def _too_late(*_: object) -> None:
    raise _TooLate


@contextlib.contextmanager
def _interrupts_raised() -> Iterator[None]:
    """Ctrl-C raises KeyboardInterrupt within, so that a Ray which was started is ended too."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
