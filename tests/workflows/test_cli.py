"""The command itself: it starts without what is heavy, and fails in one line with an exit code."""

from __future__ import annotations

import functools
import inspect
import itertools
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import get_type_hints

import pytest
import typer
from typer.testing import CliRunner

from rotorid.cli import COMMANDS, app, command_of
from rotorid.errors import LogError
from rotorid.terminal.command_group import OneLineErrors
from tests.running import process

HEAVY = (
    "jax",
    "numpy",
    "scipy",
    "polars",
    "pyarrow",
    "plotly",
    "casadi",
    "equinox",
    "pymavlink",
    "onnx",
    "rich.progress",
)


rotorid = functools.partial(process, None)


def run_with(action: Callable[[], None], *arguments: str):
    """Run a one-command application that does `action`."""
    small = typer.Typer(cls=OneLineErrors, pretty_exceptions_enable=False)

    @small.callback()
    def options(traceback: bool = typer.Option(False, envvar="ROTORID_TRACEBACK")) -> None: ...

    @small.command()
    def act() -> None:
        action()

    return CliRunner().invoke(small, [*arguments, "act"])


def failing(error: BaseException) -> Callable[[], None]:
    def action() -> None:
        raise error

    return action


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys, rotorid.cli as a\n"
        "try: a.app(['--help'])\n"
        "except SystemExit as e: assert not e.code\n"
        f"print([m for m in {HEAVY!r} if m in sys.modules], file=sys.stderr)"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.stderr.strip() == "[]"
    assert "inspect" in result.stdout


@pytest.mark.parametrize("workflow", ["track.track", "identify.identify", "fleet.worker"])
def test_workflows_start_without_what_few_flights_need(workflow: str) -> None:
    rare = ("scipy.signal", "scipy.stats", "optax", "matplotlib", "pandas")
    code = f"import sys, rotorid.workflows.{workflow}; print([m for m in {rare!r} if m in sys.modules])"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


def test_every_command_has_help_that_names_its_arguments() -> None:
    for name, entry in COMMANDS.items():
        result = CliRunner().invoke(app, [name, "--help"])
        assert result.exit_code == 0
        assert "Usage" in result.output
        first_paragraph = command_of(name).help.split("\n\n")[0]
        assert entry.summary == " ".join(first_paragraph.split())


@pytest.mark.parametrize("width", [80, 100, 110, 120, 160])
def test_help_wraps_at_the_width_of_the_terminal_only(width: int) -> None:
    for name in COMMANDS:
        result = CliRunner().invoke(app, [name, "--help"], env={"COLUMNS": str(width)})
        described = result.output.split("╭")[0].splitlines()
        for line, after in itertools.pairwise(line.strip() for line in described):
            if line and after:
                assert len(line) + 1 + len(after.split()[0]) > width - 2, (name, line)


def test_help_shows_every_character_of_its_texts() -> None:
    """Rich takes "[fly_back]" for markup and drops it."""
    for name in COMMANDS:
        callback = command_of(name).callback
        shown = CliRunner().invoke(app, [name, "--help"], env={"COLUMNS": "300"}).output
        shown = "".join(shown.replace("│", "").split())
        texts = [inspect.getdoc(callback)]
        for hint in get_type_hints(callback, include_extras=True).values():
            texts += [option.help for option in getattr(hint, "__metadata__", ())]
        for text in texts:
            assert "".join((text or "").split()) in shown, f"{name}: {text}"


def test_version() -> None:
    result = rotorid("--version")
    assert result.returncode == 0
    assert result.stdout.startswith("rotorid 0.")


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (LogError("a.ulg: is empty;\nfetch it again"), 2, r"rotorid: a.ulg: is empty;\nfetch it again"),
        (PermissionError(13, "Permission denied", "b.csv"), 2, "rotorid: b.csv: permission denied"),
        (OSError(28, "No space left on device"), 2, "rotorid: no space left on device"),
        (IsADirectoryError(21, "Is a directory", "c"), 2, "rotorid: c: is a directory"),
        (MemoryError(), 2, "rotorid: out of memory"),
        (KeyboardInterrupt(), 130, "rotorid: interrupted"),
    ],
    ids=lambda x: type(x).__name__ if isinstance(x, BaseException) else "",
)
def test_a_failure_is_one_line_and_an_exit_code(error: BaseException, code: int, line: str) -> None:
    result = run_with(failing(error))
    assert result.exit_code == code
    assert result.stderr.splitlines() == [line]
    assert result.stdout == ""


def test_a_fault_of_ours_is_one_line_too_and_says_how_to_see_more() -> None:
    result = run_with(failing(KeyError("speed")))
    assert result.exit_code == 1
    (line,) = result.stderr.splitlines()
    assert "KeyError" in line
    assert "--traceback" in line


def test_developers_see_the_traceback() -> None:
    error = LogError("broken")
    assert run_with(failing(error), "--traceback").exception is error
    result = rotorid("inspect", "/nowhere.ulg", ROTORID_TRACEBACK="1")
    assert "Traceback" in result.stderr
    assert result.returncode == 1


@pytest.mark.parametrize("command", ["inspect", "convert"])
def test_bad_logs(tmp_path: Path, command: str) -> None:
    picture = tmp_path / "picture.ulg"
    picture.write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(100))
    empty = tmp_path / "empty.ulg"
    empty.touch()
    more = [tmp_path / "out.csv"] if command == "convert" else []
    for log in (tmp_path / "missing.ulg", tmp_path, picture, empty):
        result = rotorid(command, log, *more)
        assert result.returncode == 2
        (line,) = result.stderr.splitlines()
        assert line.startswith(f"rotorid: {log}: ")
        assert result.stdout == ""
        assert not (tmp_path / "out.csv").exists()


def test_wrong_use() -> None:
    for arguments in (["inspct"], ["inspect"], ["inspect", "a", "--colour"]):
        result = rotorid(*arguments)
        assert result.returncode == 2
        assert "Traceback" not in result.stderr


def test_a_full_disk_leaves_no_file(flight_csv: Path, tmp_path: Path) -> None:
    folder = tmp_path / "disk"
    folder.mkdir()
    limited = f"ulimit -f 4; exec {sys.executable} -m rotorid convert {flight_csv} {folder / 'out.csv'}"  # kB
    result = subprocess.run(["bash", "-c", limited], capture_output=True, text=True)
    assert result.returncode == 2
    (line,) = result.stderr.splitlines()
    assert line.startswith(f"rotorid: {folder / 'out.csv'}: could not be written")
    assert list(folder.iterdir()) == []


def test_ctrl_c_while_it_works(tmp_path: Path) -> None:
    log = tmp_path / "log.csv"
    os.mkfifo(log)
    command = [sys.executable, "-m", "rotorid", "convert", str(log), str(tmp_path / "out.csv")]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    with log.open("wb"):  # waits until the command reads
        process.send_signal(signal.SIGINT)
        _, said = process.communicate()
    assert process.returncode == 130
    assert said.splitlines() == ["rotorid: interrupted"]
    assert list(tmp_path.iterdir()) == [log]


def test_a_reader_that_leaves_is_no_failure(flight_csv: Path) -> None:
    command = f"{sys.executable} -m rotorid inspect {flight_csv} --json | true"
    result = subprocess.run(["bash", "-o", "pipefail", "-c", command], capture_output=True, text=True)
    assert result.stderr == ""
