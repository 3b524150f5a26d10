"""What a command does with its result, by the options that all commands share.

    --json         stdout has the result as one JSON document, and nothing else
    --open         the report opens in the browser
    -q, --quiet    stdout has only what was asked for, stderr only errors
    -v, --verbose  stderr has log records: the stages of the work with their durations

-q and -v may also come before the command.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rotorid.terminal.log_records import log_to_stderr

if TYPE_CHECKING:
    from rich.console import Console


@dataclasses.dataclass
class Output:
    """The options of a run. is_quiet: of `-q`."""

    is_json: bool = False
    is_opened: bool = False
    is_quiet: bool = False


_output: ContextVar[Output | None] = ContextVar("output", default=None)


def current_output() -> Output:
    """The options of the command that runs; the defaults where none does."""
    return _output.get() or Output()


@contextmanager
def new_output() -> Iterator[None]:
    """Begin a run with the defaults, which its options change."""
    token = _output.set(Output())
    try:
        yield
    finally:
        _output.reset(token)
        log_to_stderr(0)


def print_result(
    document: Callable[[], str],
    show: Callable[[Console], None],
    report: Path | None = None,
    *,
    is_only_output: bool = False,
) -> None:
    """Print the result of a command, and open its report where that is asked for.

    Args:
        document: makes the JSON document of `--json`, with a line break at its end: the content of summary.json, where the
            command writes one.
        show: prints the result for people.
        report: the page of `--open`; None where the command has written none.
        is_only_output: whether the command leaves nothing else behind, so that `-q` does not silence it.
    """
    output = current_output()
    if output.is_json:
        typer.echo(document().encode(), nl=False)
    else:
        from rotorid.terminal.console import out

        show(out(is_asked_for=is_only_output))
    if report is not None:
        open_report(report)


def open_report(page: Path) -> None:
    """Open a page in the browser where `--open` asks for it; without a browser, say on stderr where the page is."""
    if not current_output().is_opened:
        return
    import webbrowser

    page = page.absolute()
    if not webbrowser.open(page.as_uri()):
        print(f"rotorid: no browser found; open {page}", file=sys.stderr)


def be_quiet(value: bool) -> None:
    """`-q`, before or after the command."""
    current_output().is_quiet |= value


def be_verbose(value: int) -> None:
    """`-v`, before or after the command. value: how often it was given."""
    if value:
        log_to_stderr(value)


def _set_json(value: bool) -> None:
    current_output().is_json |= value


def _set_opened(value: bool) -> None:
    current_output().is_opened |= value


def _option(*names: str, words: str, callback: Callable[[Any], None] | None, count: bool = False) -> Any:
    """An option that calls back, so that the function of a command need not have it; without a callback, a plain one."""
    return typer.Option(
        *names, help=words, count=count, callback=callback, expose_value=callback is None, show_default=False
    )


def _quiet(callback: Callable[[bool], None] | None) -> Any:
    return _option("--quiet", "-q", words="Print errors and what was asked for only.", callback=callback)


def _verbose(callback: Callable[[int], None] | None) -> Any:
    words = "Print the stages of the work with their durations and processor times on stderr; -vv: with more detail."
    return _option("--verbose", "-v", words=words, callback=callback, count=True)


Quiet = Annotated[bool, _quiet(None)]
"""`-q` before the command."""

Verbose = Annotated[int, _verbose(None)]
"""`-v` before the command."""

_Json = Annotated[bool, _option("--json", words="Print the result as one JSON document.", callback=_set_json)]
_Open = Annotated[bool, _option("--open", words="Open the report in the browser.", callback=_set_opened)]
_Quiet = Annotated[bool, _quiet(be_quiet)]
_Verbose = Annotated[int, _verbose(be_verbose)]


def shared_options(*, has_json: bool, has_report: bool) -> list[Any]:
    """The options of a command, as parameters that its function does not have."""

    def options(
        json: _Json = False, open: _Open = False, quiet: _Quiet = False, verbose: _Verbose = 0
    ) -> None: ...

    template = typer.Typer(add_completion=False)
    template.command()(options)
    left_out = {"--json": not has_json, "--open": not has_report}
    parameters = typer.main.get_command(template).params
    return [p for p in parameters if not left_out.get(p.opts[0], False)]
