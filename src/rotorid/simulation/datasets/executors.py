"""Parallel execution of tasks: by worker processes on this machine, or on a Ray cluster.

An executor takes a function and its keys, and yields (key, result) in the order of completion. Results are bytes; the calling
process writes the files, so that no file is incomplete if a worker ends. The function must be importable. A worker process
keeps what the function caches.
"""

from __future__ import annotations

import contextlib
import faulthandler
import importlib
import itertools
import logging
import math
import signal
import sys
import threading
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from multiprocessing.connection import wait
from typing import Any

from rotorid.errors import OutputError, RotoridError, SettingError
from rotorid.simulation.datasets.workers import DIED, READY, TIMED_OUT, Task, Worker

LostResult = Callable[[Any, bool], bytes]
"""(key, whether it exceeded the time limit) -> result of a key whose worker ended without one."""

Results = Generator[tuple[Any, bytes], None, None]

_TASKS_PER_CORE = 2  # tasks that are submitted to Ray for each core, so that no core waits
_RETRIES = 1  # of a task whose worker or machine Ray lost
_MAX_FAILED_STARTS = 3  # consecutive workers that end before they are ready

_WORKER_DIED = (
    "a worker ended unexpectedly: out of memory, or started by a script without `if __name__ == '__main__':`; "
    "run again with fewer workers to resume"
)
_TIMED_OUT = "a task took longer than {:g} s"


def run_local(
    task: Task, keys: Sequence[Any], workers: int, lost: LostResult | None = None, limit: float | None = None
) -> Results:
    """Run tasks in spawned processes, or in this process if one worker is enough.

    Args:
        task: function from a key to its result.
        keys: to be processed.
        workers: number of processes.
        lost: makes the result of a key whose worker ended without one; the worker is replaced. None: raise OutputError.
        limit: time limit for a key, s. A worker that exceeds it is killed, and its key is lost. None: no limit.
    """
    workers = min(workers, len(keys))
    if workers == 1 and lost is None and limit is None:
        yield from ((key, task(key)) for key in keys)
        return
    pending = iter(keys)
    active: list[Worker] = []
    failed_starts = 0
    try:
        for key in itertools.islice(pending, workers):
            active.append(Worker(task, key, limit))
        while active:
            for worker in _wait_for_workers(active):
                key, result = worker.key, worker.receive()
                if result is READY:
                    failed_starts = 0
                    continue
                if result is DIED or result is TIMED_OUT:
                    active.remove(worker)
                    worker.kill()
                    failed_starts += not worker.is_ready
                    if lost is None or failed_starts > _MAX_FAILED_STARTS:
                        raise OutputError(_TIMED_OUT.format(limit) if result is TIMED_OUT else _WORKER_DIED)
                    if not worker.is_ready:  # the key is not the cause: try it again
                        active.append(Worker(task, key, limit))
                        continue
                    result = lost(key, result is TIMED_OUT)
                    active += [Worker(task, following, limit) for following in itertools.islice(pending, 1)]
                else:
                    following = list(itertools.islice(pending, 1))
                    if not following or not worker.submit(following[0]):
                        active.remove(worker)
                        worker.kill()
                        active += [Worker(task, one, limit) for one in following]
                if isinstance(result, Exception):
                    raise result
                yield key, result
    finally:
        for worker in active:
            worker.process.terminate()
        for worker in active:
            worker.process.join()


def _wait_for_workers(active: list[Worker]) -> list[Worker]:
    """Wait until a worker has sent a message, ended, or exceeded its deadline. Returns these workers, at least one."""
    while True:
        deadline = min(worker.deadline for worker in active)
        timeout = None if deadline == math.inf else max(deadline - time.monotonic(), 0.0)
        ready = set(wait([worker.connection for worker in active], timeout))
        now = time.monotonic()
        workers = [worker for worker in active if worker.connection in ready or worker.deadline <= now]
        if workers:
            return workers


def run_ray(
    task: Task,
    keys: Sequence[Any],
    workers: int,
    lost: LostResult | None = None,
    address: str | None = None,
    limit: float | None = None,
) -> Results:
    """Run tasks on a Ray cluster, one core each.

    Args:
        task, keys, lost, limit: as of `run_local`.
        workers: number of cores of a cluster that is started here.
        address: "auto": the running cluster. "local": a cluster that is started on this machine and ended afterwards. None:
            the running cluster if there is one, otherwise "local".
    """
    library = import_ray()
    with _keyboard_interrupts():
        yield from _run_on_cluster(library, task, keys, workers, lost, address, limit)


def _connect(library: Any, workers: int, address: str | None) -> None:
    options: dict[str, Any] = {"logging_level": logging.ERROR, "log_to_driver": False}
    if address != "local":
        errors = ConnectionError if address is None else (ConnectionError, ValueError, RuntimeError)
        try:
            library.init(address=address or "auto", **options)
            return
        except errors as error:
            if address is not None:
                raise SettingError(f"no Ray cluster at {address}: {str(error).splitlines()[0]}") from None
    try:
        library.init(address="local", num_cpus=workers, include_dashboard=False, **options)
    except Exception as error:  # Ray raises the base class where one of its processes does not start
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise SettingError(f"Ray did not start on this computer: {reason}") from error


def _run_on_cluster(
    library: Any,
    task: Task,
    keys: Sequence[Any],
    workers: int,
    lost: LostResult | None,
    address: str | None,
    limit: float | None,
) -> Results:
    is_own_connection = not library.is_initialized()
    if is_own_connection:
        _connect(library, workers, address)
    try:
        remote = library.remote(num_cpus=1, max_retries=_RETRIES)(_run_with_limit)
        slots = _TASKS_PER_CORE * max(1, int(library.cluster_resources().get("CPU", workers)))
        submitted = {}
        for key in keys:
            if len(submitted) >= slots:
                yield _next_result(library, submitted, lost, limit)
            submitted[remote.remote(task, key, limit)] = key
        while submitted:
            yield _next_result(library, submitted, lost, limit)
    finally:
        if is_own_connection:
            library.shutdown()


EXECUTORS = {"local": run_local, "ray": run_ray}
"""Executors by name."""


def import_ray() -> Any:
    """Import Ray. Raises SettingError with the installation command if it is not installed."""
    try:
        return importlib.import_module("ray")
    except ImportError:
        raise SettingError("the executor ray needs Ray: pip install 'rotorid[ray]'") from None


def _next_result(
    library: Any, submitted: dict[Any, Any], lost: LostResult | None, limit: float | None
) -> tuple[Any, bytes]:
    """Wait for the next result and remove it from the submitted tasks."""
    (done, *_), _ = library.wait(list(submitted), num_returns=1)
    key = submitted.pop(done)
    try:
        result = library.get(done)
    except library.exceptions.RayTaskError as error:
        if isinstance(error.cause, RotoridError):
            raise error.cause from None
        raise
    except library.exceptions.RayError as error:
        if lost is not None:
            return key, lost(key, False)
        reason = str(error).splitlines()[0]
        raise OutputError(f"Ray lost a task ({reason}); run again to resume") from None
    if result is not None:
        return key, result
    if lost is None:
        raise OutputError(_TIMED_OUT.format(limit))
    return key, lost(key, True)


def _run_with_limit(task: Task, key: Any, limit: float | None) -> bytes | None:
    """In a Ray worker: the result; None after the time limit. A task that blocks signals is ended at twice the limit."""
    if limit is None or threading.current_thread() is not threading.main_thread():
        return task(key)
    if sys.platform == "win32":  # without signals, the worker is ended at the limit
        faulthandler.dump_traceback_later(limit, exit=True)
        try:
            return task(key)
        finally:
            faulthandler.cancel_dump_traceback_later()
    previous = signal.signal(signal.SIGALRM, _raise_time_limit)
    faulthandler.dump_traceback_later(2.0 * limit, exit=True)
    try:
        signal.setitimer(signal.ITIMER_REAL, limit)
        try:
            return task(key)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0.0)
    except _TimeLimit:
        return None
    finally:
        faulthandler.cancel_dump_traceback_later()
        signal.signal(signal.SIGALRM, previous)


class _TimeLimit(BaseException):
    """The time limit of a task. Not an Exception, so that the task does not catch it."""


def _raise_time_limit(*_: object) -> None:
    raise _TimeLimit


@contextlib.contextmanager
def _keyboard_interrupts() -> Iterator[None]:
    """Ctrl-C raises KeyboardInterrupt within the block, so that a cluster that was started here is shut down."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    previous = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous)
