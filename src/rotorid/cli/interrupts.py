"""Ctrl-C ends a command at any moment, also while JAX loads or compiles."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from rotorid.errors import RotoridError

_WRITING = ("rotorid.logs.write", "rotorid.results.files")
"""Modules that write files and clean up after themselves when they are interrupted."""

_TIDY = "\r\x1b[2K\x1b[?25h"  # clears the line of a spinner, and shows the cursor again


def run_interruptible(command: Callable[[], None]) -> None:
    """Run a command as the process's own, so that Ctrl-C always ends it with exit code 130.

    Python raises KeyboardInterrupt wherever it is. In the garbage collection of JAX it is lost there, in the
    loading of a C++ module it aborts, and after an interrupted compilation the interpreter crashes while it
    shuts down. Nothing needs to be cleaned up but files that are being written: only there it is raised.
    """
    signal.signal(signal.SIGINT, _interrupt)
    try:
        command()
    except SystemExit as end:
        if end.code == 130:
            sys.stdout.flush()
            os._exit(130)
        raise


_last_act: Callable[[], str] | None = None


@contextmanager
def last_act(act: Callable[[], str]) -> Iterator[None]:
    """What Ctrl-C does before it ends the command, while the block runs. act: gives what it says then; it may write files, but
    runs between any two steps of what it interrupts."""
    global _last_act
    before, _last_act = _last_act, act
    try:
        yield
    finally:
        _last_act = before


def _interrupt(number: int, frame: FrameType | None) -> None:
    at = frame
    while at is not None:
        if at.f_globals.get("__name__") in _WRITING and at.f_code.co_name != "<module>":
            raise KeyboardInterrupt
        at = at.f_back
    global _last_act
    act, _last_act = _last_act, None
    said = ""
    if act is not None:
        try:
            said = act()
        except (RotoridError, OSError) as error:
            said = f"; {error}"
    os.write(2, ((_TIDY if os.isatty(2) else "") + f"rotorid: interrupted{said}\n").encode())
    os._exit(130)
