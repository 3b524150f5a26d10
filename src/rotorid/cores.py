"""The cores of this computer, and work in threads on all of them."""

from __future__ import annotations

import functools
import multiprocessing
import os
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Given = TypeVar("Given")
Part = TypeVar("Part")


def available_cores() -> int:
    """Number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1


def map_in_threads(work: Callable[[Given], Part], given: Sequence[Given]) -> list[Part]:
    """Apply a function to each, in order, on all cores of a process that was not started by another one."""
    workers = worker_count()
    if min(workers, len(given)) == 1:
        return [work(one) for one in given]

    import jax

    def wide(one: Given) -> Part:
        with jax.enable_x64(True):  # JAX's settings are per thread
            return work(one)

    return list(_threads(workers).map(wide, given))


@functools.cache
def _threads(count: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(count)


if sys.platform != "win32":
    os.register_at_fork(after_in_child=_threads.cache_clear)  # the threads stay with the parent


def worker_count() -> int:
    """Number of threads: 1 in a child process or where $NPROC is 1, else that of the cores."""
    if multiprocessing.parent_process() is not None or os.environ.get("NPROC") == "1":
        return 1
    return available_cores()
