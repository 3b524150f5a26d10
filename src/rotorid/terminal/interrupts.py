"""Ctrl-C ends a command at any moment, also while JAX loads or compiles."""

from __future__ import annotations

import atexit
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType

from rotorid.uninterrupted import postpone

_TIDY = "\r\x1b[2K\x1b[?25h"  # clears the line of a spinner, and shows the cursor again

_CACHE_WRITE = ("jax._src.lru_cache", "put", "cache_path")
"""Module, function and local variable of the file that JAX writes to its cache."""


def run_interruptible(command: Callable[[], None]) -> None:
    """Run the command of this process so that Ctrl-C always ends it with one line and exit code 130.

    No KeyboardInterrupt is raised, since Python would raise it anywhere: in a callback of the garbage collector (JAX has one)
    it is printed and lost, while a C++ module is loaded it becomes another exception or aborts, and after an interrupted
    compilation the interpreter crashes when it shuts down. Only files that are being written need care: they are finished
    first (`rotorid.uninterrupted`); another Ctrl-C 2 s later does not wait for them.
    """
    atexit.register(
        signal.signal, signal.SIGINT, signal.SIG_IGN
    )  # runs last, when the interpreter is taken apart
    signal.signal(signal.SIGINT, _interrupt)
    if sys.platform == "win32":  # Windows: from another process
        signal.signal(signal.SIGBREAK, _interrupt)
    try:
        command()
    except SystemExit as end:
        if end.code == 130:
            sys.stdout.flush()
            os._exit(130)
        raise


_action: Callable[[], str] | None = None


@contextmanager
def on_interrupt(act: Callable[[], str]) -> Iterator[None]:
    """Run an action when Ctrl-C ends the command while the block runs.

    act: returns what is added to the message. It may write files, but runs between any two steps of what it interrupts.
    """
    global _action
    before, _action = _action, act
    try:
        yield
    finally:
        _action = before


def _interrupt(number: int, frame: FrameType | None) -> None:
    if postpone():
        return
    global _action
    act, _action = _action, None
    said = ""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        if act is not None:
            said = act()
    except Exception as error:
        said = f"; {' '.join(str(error).split()) or type(error).__name__}"
    with suppress(OSError):
        _remove_unfinished_cache(frame)
        os.write(2, ((_TIDY if os.isatty(2) else "") + f"rotorid: interrupted{said}\n").encode())
    os._exit(130)


def _remove_unfinished_cache(frame: FrameType | None) -> None:
    """Remove what JAX was writing to its cache: it does not replace a broken file, and warns of it ever after."""
    module, function, variable = _CACHE_WRITE
    while frame is not None:
        if frame.f_code.co_name == function and frame.f_globals.get("__name__") == module:
            path = frame.f_locals.get(variable)
            if path is not None:
                path.unlink(missing_ok=True)
            return
        frame = frame.f_back
