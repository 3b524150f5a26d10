"""Entry point of the command `rotorid`, the same as `python -m rotorid`.

What takes time to import comes after Ctrl-C is taken care of.
"""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command."""
    try:
        from rotorid.terminal.garbage import collect_rarely
        from rotorid.terminal.interrupts import run_interruptible

        collect_rarely()
        run_interruptible(_command)
    except KeyboardInterrupt:
        sys.stderr.write("rotorid: interrupted\n")
        sys.exit(130)


def _command() -> None:
    from rotorid.cli import app
    from rotorid.terminal.plain_characters import use_plain_characters

    use_plain_characters()
    app(prog_name="rotorid")


if __name__ == "__main__":
    main()
