"""The command `rotorid live` as a child process."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Final

PATIENCE: Final = 300.0
"""s to wait for it on a busy computer."""


class Command:
    """`rotorid live` in a child process, on a free port of 127.0.0.1.

    Args:
        path: of its recording.
        options: more options.
        state: folder of its parameters, default: the user's.
        program: what Python runs.

    port: on which it listens. lines: of its output so far.
    """

    def __init__(
        self,
        path: Path,
        *options: str,
        state: Path | None = None,
        program: Sequence[str] = ("-m", "rotorid"),
    ) -> None:
        self.path, self.lines = path, list[str]()
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.bind(("127.0.0.1", 0))
            self.port: int = probe.getsockname()[1]
        link = f"udpin:127.0.0.1:{self.port}"
        self.process = subprocess.Popen(
            [
                sys.executable,
                *program,
                "live",
                link,
                "-a",
                "px4-sih-quad",
                "--record",
                str(path),
                *options,
            ],
            env=os.environ if state is None else {**os.environ, "ROTORID_STATE": str(state)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        with self.process.stdout as output:
            for line in output:
                self.lines.append(line)

    @property
    def is_ready(self) -> bool:
        """Whether its estimators are compiled."""
        return any("compiled and ready" in line for line in self.lines)

    @property
    def text(self) -> str:
        """The output, with single spaces."""
        return re.sub(r"\s+", " ", " ".join(self.lines))

    def interrupt_soon(self) -> None:
        """Ctrl-C, without waiting for the end."""
        self.process.send_signal(signal.SIGINT)

    def finish(self) -> int:
        """Wait for the end. Returns the exit status."""
        status = self.process.wait(PATIENCE)
        self._reader.join()
        return status

    def interrupt(self) -> int:
        """Ctrl-C. Returns the exit status."""
        self.interrupt_soon()
        return self.finish()

    def kill(self) -> None:
        """End a child that a failed test left."""
        self.process.kill()
        self.process.wait()
        self._reader.join()
