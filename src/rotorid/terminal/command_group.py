"""The group of commands: failures become one line on stderr and an exit code, and help texts wrap once.

    2    wrong use, wrong input, no permission, a full disk
    130  interrupted (Ctrl-C)
    1    an error in rotorid itself

`rotorid --traceback COMMAND`, or ROTORID_TRACEBACK=1 in the environment, shows where it happened.
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
from collections.abc import Mapping
from importlib import import_module
from types import MappingProxyType
from typing import Annotated, Any, Final, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup

from rotorid.errors import RotoridError
from rotorid.terminal.output import Quiet, Verbose, be_quiet, be_verbose, new_output, shared_options

_TAG: Final = re.compile(r"\[(?=[a-z#/@][^\[]*?\])")


class Entry(NamedTuple):
    """A command. module: of its function, which has the command's name. summary: its line in `rotorid --help`, the first
    paragraph of the function's docstring. has_json, has_report: whether it has `--json` and `--open`."""

    module: str
    summary: str
    has_json: bool = False
    has_report: bool = False


class OneLineErrors(TyperGroup):
    """A group of commands whose exceptions become one line and an exit code."""

    def invoke(self, ctx: Any) -> Any:
        try:
            with new_output():
                result = super().invoke(ctx)
            sys.stdout.flush()
            return result
        except BrokenPipeError:  # the reader of a pipe (`| head`) has ended
            _silence(sys.stdout)
            raise typer.Exit(0) from None
        except KeyboardInterrupt:
            _say("interrupted")
            raise typer.Exit(130) from None
        except (RotoridError, OSError) as error:
            if ctx.params.get("traceback"):
                raise
            _say(error_text(error))
            raise typer.Exit(2) from None
        except MemoryError:
            _say("out of memory")
            raise typer.Exit(2) from None
        except Exception as error:
            if hasattr(error, "format_message"):  # of typer: wrong use
                _say(_usage_text(error))
                raise typer.Exit(2) from None
            # typer's other exceptions (exit, abort) carry an exit code and are handled by typer
            if hasattr(error, "exit_code") or ctx.params.get("traceback"):
                raise
            what = " ".join(f"{type(error).__name__}: {error}".split())
            _say(
                f"an error in rotorid, not in your data: {what} (--traceback before the command shows where)"
            )
            raise typer.Exit(1) from None


class CommandGroup(OneLineErrors):
    """A group of commands that are imported when they run, and listed without that."""

    entries: Mapping[str, Entry] = MappingProxyType({})
    _is_listing = False

    def list_commands(self, ctx: Any) -> list[str]:
        return list(self.entries)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        entry = self.entries.get(cmd_name)
        if entry is None:
            return None
        return (
            TyperCommand(cmd_name, help=entry.summary) if self._is_listing else load_command(cmd_name, entry)
        )

    def shell_complete(self, ctx: Any, incomplete: str) -> list[Any]:
        self._is_listing = True
        return super().shell_complete(ctx, incomplete)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        self._is_listing = True
        super().format_help(ctx, formatter)


def make_app(entries: Mapping[str, Entry]) -> typer.Typer:
    """The application `rotorid` with these commands, by name."""
    group = type("Commands", (CommandGroup,), {"entries": entries})
    app = typer.Typer(
        name="rotorid",
        cls=group,
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(rotorid)
    return app


def load_command(name: str, entry: Entry) -> Any:
    """Import a command."""
    function = getattr(import_module(entry.module), name.replace("-", "_"))
    alone = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    alone.command(name)(function)
    command = typer.main.get_command(alone)
    command.params += shared_options(has_json=entry.has_json, has_report=entry.has_report)
    return with_plain_help(command)


def _version(context: typer.Context, is_requested: bool) -> bool:
    if is_requested and not context.resilient_parsing:
        from importlib.metadata import version

        typer.echo(f"rotorid {version('rotorid')}")
        raise typer.Exit()
    return is_requested


def rotorid(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
    traceback: Annotated[
        bool,
        typer.Option(
            "--traceback", envvar="ROTORID_TRACEBACK", hidden=True, help="Show the traceback of errors."
        ),
    ] = False,
    quiet: Quiet = False,
    verbose: Verbose = 0,
) -> None:
    """Identify the model of a flying robot from its flight logs: its mass, thrust, drag and wind."""
    be_quiet(quiet)
    be_verbose(verbose)


def error_text(error: RotoridError | OSError) -> str:
    """The error in one line."""
    if isinstance(error, OSError) and error.strerror:
        reason = error.strerror[0].lower() + error.strerror[1:]
        name = error.filename2 or error.filename
        return f"{os.fsdecode(name)}: {reason}" if isinstance(name, (str, bytes)) else reason
    return " ".join(str(error).split()) or type(error).__name__


def _usage_text(error: Any) -> str:
    """What is wrong with the words of a command line, and where its use is described, in one line."""
    message = " ".join(error.format_message().split()).rstrip(".")
    message = message[:1].lower() + message[1:]
    return message if error.ctx is None else f"{message}; see {error.ctx.command_path} --help"


def _say(text: str) -> None:
    print(f"rotorid: {text}", file=sys.stderr)


def _silence(stream: Any) -> None:
    """Point a stream whose reader has gone to nowhere, so that closing it does not fail again."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def with_plain_help(command: Any) -> Any:
    """The command, with a help text that wraps at the width of the terminal only and keeps its square brackets.

    Typer removes the line breaks of the first paragraph only; the other paragraphs would break where the source does and
    again at the edge of the terminal. Rich would drop text in square brackets, which it takes for markup.
    """
    if command.help:
        command.help = one_line_paragraphs(command.help)
    parts: list[Any] = [command, *command.params]
    for part in parts:
        if getattr(part, "help", None):
            part.help = without_markup(part.help)
    return command


def one_line_paragraphs(text: str) -> str:
    """The text with each paragraph on one line; paragraphs that start with a backspace character stay as they are."""
    paragraphs = text.split("\n\n")
    return "\n\n".join(p if p.lstrip().startswith("\b") else " ".join(p.split()) for p in paragraphs)


def without_markup(text: str) -> str:
    """The text, escaped so that rich shows every square bracket."""
    return _TAG.sub(r"\\[", text)
