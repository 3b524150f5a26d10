"""A command as a child process: the same command that a user would type, with its progress, its end, and its cancellation.

What reads a log runs in a child, so that no log can end the server, and so that cancelling is the command's own Ctrl-C.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from rotorid.progress import Progress
from rotorid.terminal import progress_lines

KILL_AFTER: Final = 5.0
"""Time from the interrupt of a cancelled command to its end by force, s."""

_INTERRUPT: Final = getattr(signal, "CTRL_BREAK_EVENT", signal.SIGINT)
"""Interrupts another process, on Windows one with a group of its own."""

_OWN_GROUP: Final = getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0)
_INTERRUPTED: Final = 130  # exit code
_MOST_OUTPUT: Final = 200_000  # characters
_LONGEST_LINE: Final = 1 << 20  # bytes


@dataclasses.dataclass(frozen=True)
class Ended:
    """The end of a command. code: exit code, negative for a signal. error: its error in one line. output: what it printed."""

    code: int
    error: str
    output: str
    is_cancelled: bool


class Command:
    """A command of rotorid, run once.

    Args:
        arguments: after `rotorid`.
        folder: that it runs in.
        progress: called with what it reports.
    """

    def __init__(self, arguments: Sequence[str], folder: Path, progress: Progress) -> None:
        self._arguments, self._folder, self._progress = arguments, folder, progress
        self._process: asyncio.subprocess.Process | None = None
        self._cancelled = asyncio.Event()

    def cancel(self) -> None:
        """Interrupt the command as Ctrl-C does, and end it by force if it does not end."""
        self._cancelled.set()

    async def run(self) -> Ended:
        """Run the command to its end."""
        if self._cancelled.is_set():
            return Ended(_INTERRUPTED, "", "", True)
        variables = {progress_lines.VARIABLE: progress_lines.VALUE, "NO_COLOR": "1", "COLUMNS": "100"}
        self._process = process = await asyncio.create_subprocess_exec(
            sys.executable, "-P", "-m", "rotorid", *self._arguments,  # no module of the folder is imported
            cwd=self._folder, env=os.environ | variables, limit=_LONGEST_LINE, start_new_session=True,
            creationflags=_OWN_GROUP,
            stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip
        stop = asyncio.create_task(self._stop_when_cancelled(process))
        try:
            output, error = await asyncio.gather(self._read_output(process), self._read_errors(process))
            code = await process.wait()
        finally:
            stop.cancel()
            _kill(process)  # what the command may have left
        if code < 0 and not self._cancelled.is_set():
            error = (
                f"the command was ended by the system ({signal.Signals(-code).name}); is there enough memory?"
            )
        return Ended(code, error, output, self._cancelled.is_set())

    async def _stop_when_cancelled(self, process: asyncio.subprocess.Process) -> None:
        await self._cancelled.wait()
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(_INTERRUPT)
        await asyncio.sleep(KILL_AFTER)
        _kill(process)

    async def _read_output(self, process: asyncio.subprocess.Process) -> str:
        assert process.stdout is not None
        text = bytearray()
        while block := await process.stdout.read(1 << 16):
            text += block[: max(0, _MOST_OUTPUT - len(text))]
        return text.decode("utf-8", "replace").strip("\n")

    async def _read_errors(self, process: asyncio.subprocess.Process) -> str:
        """Pass on the progress. Returns the last line that is the command's error, without its name."""
        assert process.stderr is not None
        error = ""
        while True:
            try:
                line = await process.stderr.readline()
            except ValueError:  # longer than the limit: no line of rotorid
                continue
            if not line:
                return error
            text = line.decode("utf-8", "replace").strip()
            if report := _report(text):
                self._progress(*report)
            elif text.startswith("rotorid: "):
                error = text.removeprefix("rotorid: ")


def _kill(process: asyncio.subprocess.Process) -> None:
    """End a command by force, with the processes that it started where they are a group."""
    with contextlib.suppress(ProcessLookupError):
        if sys.platform == "win32":
            process.kill()
        else:
            os.killpg(process.pid, signal.SIGKILL)


def _report(line: str) -> tuple[str, int, int] | None:
    """A line of progress; None for another one."""
    if not line.startswith('{"stage"'):
        return None
    try:
        entry = json.loads(line)
        return str(entry["stage"]), int(entry["done"]), int(entry["total"])
    except (ValueError, KeyError, TypeError):
        return None
