"""How many flights are made at once: by processes on this machine, or as tasks of Ray.

An engine takes a function of a key and the keys, and gives (key, result) as they come, in any order. The process that asks
for them gets bytes and writes the files, so that nothing is half written where a worker ends. Functions must be importable,
and a worker keeps what the function caches.
"""

from __future__ import annotations

import contextlib
import importlib
import itertools
import logging
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any

from rotorid.errors import OutputError, RotoridError, SettingError

Make = Callable[[Any], bytes]
Lost = Callable[[Any], bytes]
Made = Generator[tuple[Any, bytes], None, None]

_AHEAD = 2
"""Tasks that Ray is given for each core, so that none waits for the next."""


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def local(make: Make, keys: Sequence[Any], workers: int, lost: Lost | None = None) -> Made:
    """By that many processes, started anew (not forked); in this one where one is enough.

    lost: the result of a key whose worker ended without one, which another worker takes the place of; default: OutputError.
    """
    workers = min(workers, len(keys))
    if workers == 1 and lost is None:
        yield from ((key, make(key)) for key in keys)
        return
    waiting = iter(keys)
    under_way: dict[Connection, Any] = {}
    processes: list[BaseProcess] = []
    try:
        for key in itertools.islice(waiting, workers):
            connection, process = _start(make)
            processes.append(process)
            under_way[connection] = key
            connection.send(key)
        while under_way:
            for connection in wait(list(under_way)):
                assert isinstance(connection, Connection)
                key = under_way.pop(connection)
                try:
                    result = connection.recv()
                except (EOFError, ConnectionResetError):
                    if lost is None:
                        raise
                    result = lost(key)
                    connection, process = _start(make)
                    processes.append(process)
                for following in itertools.islice(waiting, 1):
                    under_way[connection] = following
                    connection.send(following)
                if isinstance(result, Exception):
                    raise result
                yield key, result
    except (EOFError, BrokenPipeError, ConnectionResetError):
        raise OutputError(
            "a worker ended unexpectedly: out of memory, or started by a script that lacks "
            "`if __name__ == '__main__':`; run again with fewer workers to go on"
        ) from None
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            process.join()


def ray(
    make: Make, keys: Sequence[Any], workers: int, lost: Lost | None = None, address: str | None = None
) -> Made:
    """As tasks of one core each over the Ray at an address. lost: as of `local`.

    address: "auto": the one that is running. "local": one with that many cores, which is started on this machine and ended
    again. Default: the first, where there is none the second.
    """
    library = import_ray()
    with _interrupts_raised():
        yield from _by_ray(library, make, keys, workers, lost, address)


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
    library: Any, make: Make, keys: Sequence[Any], workers: int, lost: Lost | None, address: str | None
) -> Made:
    started = not library.is_initialized()
    if started:
        _join(library, workers, address)
    try:
        task = library.remote(num_cpus=1)(_call)
        slots = _AHEAD * max(1, int(library.cluster_resources().get("CPU", workers)))
        under_way = {}
        for key in keys:
            if len(under_way) >= slots:
                yield _take(library, under_way, lost)
            under_way[task.remote(make, key)] = key
        while under_way:
            yield _take(library, under_way, lost)
    finally:
        if started:
            library.shutdown()


ENGINES = {"local": local, "ray": ray}
"""By name."""


def import_ray() -> Any:
    """Ray, or a SettingError that says how to install it."""
    try:
        return importlib.import_module("ray")
    except ImportError:
        raise SettingError("the engine ray needs Ray: pip install 'rotorid[ray]'") from None


def _take(library: Any, under_way: dict[Any, Any], lost: Lost | None) -> tuple[Any, bytes]:
    """The next result, removed from what is under way."""
    (done, *_), _ = library.wait(list(under_way), num_returns=1)
    key = under_way.pop(done)
    try:
        return key, library.get(done)
    except library.exceptions.RayTaskError as error:
        if isinstance(error.cause, RotoridError):
            raise error.cause from None
        raise
    except library.exceptions.RayError as error:
        if lost is not None:
            return key, lost(key)
        why = str(error).splitlines()[0]
        raise OutputError(f"Ray lost a task ({why}); run again to go on") from None


def _call(make: Make, key: Any) -> bytes:
    return make(key)


def _start(make: Make) -> tuple[Connection, BaseProcess]:
    """A worker, and the line to it."""
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=_serve, args=(make, there), daemon=True)
    resource_tracker.ensure_running()  # else the start would start it, which lets interrupts through again
    with _without_interrupts():
        process.start()
    there.close()
    return here, process


def _serve(make: Make, connection: Connection) -> None:
    """A worker: answers keys with results, or with what went wrong. It ends with the process that started it, however that
    one ends."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    with contextlib.suppress(EOFError, BrokenPipeError, ConnectionResetError):  # nobody listens any more
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
