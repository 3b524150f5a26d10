"""The commands, one file each. A file of a command imports what is heavy inside the function, never at its top."""

from __future__ import annotations


def main() -> None:
    """Entry point of the command `rotorid`."""
    from rotorid.cli.app import app

    app(prog_name="rotorid")
