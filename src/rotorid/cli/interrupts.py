"""Ctrl-C ends a command at any moment, also while JAX loads or compiles."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from types import FrameType

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


def _interrupt(number: int, frame: FrameType | None) -> None:
    at = frame
    while at is not None:
        if at.f_globals.get("__name__") in _WRITING and at.f_code.co_name != "<module>":
            raise KeyboardInterrupt
        at = at.f_back
    os.write(2, ((_TIDY if os.isatty(2) else "") + "rotorid: interrupted\n").encode())
    os._exit(130)
