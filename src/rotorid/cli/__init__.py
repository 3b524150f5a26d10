"""The commands, one file each. What is heavy is imported inside a command, never at the top of its file."""

from __future__ import annotations


def main() -> None:
    """Entry point of the command `rotorid`."""
    import sys

    try:
        from rotorid.cli.interrupts import run_interruptible

        run_interruptible(_command)
    except KeyboardInterrupt:
        print("rotorid: interrupted", file=sys.stderr)
        sys.exit(130)


def _command() -> None:
    from rotorid.cli.app import app

    app(prog_name="rotorid")
