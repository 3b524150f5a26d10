"""One log read with limits of time and memory."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import numpy as np

from rotorid.errors import LogError
from rotorid.logs.read import read

MOST_SECONDS: Final = 10.0
"""Of the processor, so that other work on the computer does not count."""

MOST_MEMORY: Final = 20, 300_000_000
"""Times the size of the file, and bytes in any case."""


class SlowError(BaseException):
    """Reading took too long. No Exception, so that nothing catches it."""


def read_within_limits(path: Path, seconds: float = MOST_SECONDS) -> str | None:
    """Read a log. Returns what is wrong with how it went: the time, the memory or an exception; None where all is right."""
    start = peak_memory(restart=True)
    try:
        with _limit(seconds):
            flight = read(path)
    except LogError as error:
        if error.__cause__ is not None:
            return f"LogError in place of {error.__cause__!r}"
        if "\n" in str(error):
            return f"an error of several lines: {str(error)!r}"
    except SlowError:
        return f"slower than {seconds} s"
    except Exception as error:
        return f"{type(error).__name__}: {str(error)[:200]}"
    else:
        for name, signal_ in flight.signals.items():
            if not (np.isfinite(signal_.times).all() and np.isfinite(signal_.values).all()):
                return f"{name} has values that are not finite"
    used = peak_memory() - start
    factor, base = MOST_MEMORY
    if used > factor * path.stat().st_size + base:
        return f"{used / 1e6:.0f} MB of memory for {path.stat().st_size / 1e6:.3f} MB"
    return None


@contextlib.contextmanager
def _limit(seconds: float) -> Iterator[None]:
    def stop(*_: object) -> None:
        raise SlowError

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        signal.signal(signal.SIGPROF, before)


def peak_memory(*, restart: bool = False) -> int:
    """The largest resident memory of this process in bytes, since the last restart where Linux allows it."""
    if restart:
        with contextlib.suppress(OSError):
            Path("/proc/self/clear_refs").write_text("5")
    try:
        status = Path("/proc/self/status").read_text()
    except OSError:
        return 0
    return 1024 * next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM"))
