"""Failures become one line on stderr and an exit code here, and nowhere else.

    2    wrong use, wrong input, no permission, a full disk
    130  interrupted (Ctrl-C)
    1    a fault of rotorid itself

`rotorid --traceback COMMAND`, or ROTORID_TRACEBACK=1 in the environment, shows where it happened.
"""

from __future__ import annotations

import contextlib
import os
import sys
from typing import Any

import typer
from typer.core import TyperGroup

from rotorid.errors import RotoridError


class OneLineErrors(TyperGroup):
    """The group of commands, which turns their exceptions into one line and an exit code."""

    def invoke(self, ctx: Any) -> Any:
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
            return result
        except BrokenPipeError:  # the reader of a pipe (`| head`) has gone: nothing more to say
            _silence(sys.stdout)
            raise typer.Exit(0) from None
        except KeyboardInterrupt:
            _say("interrupted")
            raise typer.Exit(130) from None
        except (RotoridError, OSError) as error:
            if ctx.params.get("traceback"):
                raise
            _say(in_words(error))
            raise typer.Exit(2) from None
        except MemoryError:
            _say("out of memory")
            raise typer.Exit(2) from None
        except Exception as error:
            # typer's own exceptions (usage, exit) carry an exit code and are printed by typer
            if hasattr(error, "exit_code") or ctx.params.get("traceback"):
                raise
            what = " ".join(f"{type(error).__name__}: {error}".split())
            _say(f"a fault of rotorid, not of your data: {what} (--traceback before the command shows where)")
            raise typer.Exit(1) from None


def in_words(error: RotoridError | OSError) -> str:
    """The error in one line."""
    if isinstance(error, OSError) and error.strerror:
        reason = error.strerror[0].lower() + error.strerror[1:]
        name = error.filename2 or error.filename
        return f"{os.fsdecode(name)}: {reason}" if isinstance(name, (str, bytes)) else reason
    return " ".join(str(error).split()) or type(error).__name__


def _say(text: str) -> None:
    print(f"rotorid: {text}", file=sys.stderr)


def _silence(stream: Any) -> None:
    """Point a stream whose reader has gone to nowhere, so that closing it does not fail again."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
