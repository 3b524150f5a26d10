"""The commands, one file each. What is heavy is imported inside a command, never at the top of its file."""

from __future__ import annotations


def main() -> None:
    """Entry point of the command `rotorid`."""
    from rotorid.cli.app import app

    app(prog_name="rotorid")
