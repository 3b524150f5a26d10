"""Ctrl-C ends a command with one line and exit code 130, wherever Python is at that moment."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tests.running import settings

RUN = """
import atexit, gc, os, signal, sys, weakref
from pathlib import Path
from rotorid.terminal.interrupts import on_interrupt, run_interruptible
from rotorid.uninterrupted import uninterrupted

def ctrl_c(*_):
    os.kill(os.getpid(), signal.SIGINT)
    for _ in range(1000): pass  # the handler runs between two instructions
"""


def run(code: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Code that ends with the definition of `command`, which is run as the commands are."""
    program = RUN + textwrap.dedent(code) + "\nrun_interruptible(command)\nprint('not interrupted')\n"
    return subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=60,
        cwd=folder,
        env=settings(),
    )


def one_line(result: subprocess.CompletedProcess[str], line: str = "rotorid: interrupted") -> None:
    assert result.stderr.splitlines() == [line]
    assert result.returncode == 130
    assert result.stdout == ""


WRITING = """
from rotorid.results import files

class Content(dict):
    def items(self):
        yield "a", b"1"
        interrupted()
        yield "b", b"2"

def command():
    files.write_folder(Path("results"), Content({"a": b"", "b": b""}))
"""


@pytest.mark.parametrize(
    "interrupted",
    [
        "ctrl_c",
        "lambda: (gc.callbacks.append(ctrl_c), gc.collect(), gc.callbacks.clear())",
        "lambda: weakref.finalize(type('T', (), {})(), ctrl_c)",
        "lambda: __import__('stops')",
    ],
    ids=["plain", "garbage collection", "finalizer", "import"],
)
def test_files_that_are_being_written_are_finished_first(tmp_path: Path, interrupted: str) -> None:
    (tmp_path / "stops.py").write_text("import os, signal; os.kill(os.getpid(), signal.SIGINT)\n")
    one_line(run(f"interrupted = {interrupted}" + WRITING, tmp_path))
    assert [f.name for f in sorted((tmp_path / "results").iterdir())] == ["a", "b"]
    assert not list(tmp_path.glob(".results*"))


def test_a_table_that_is_being_written_is_finished_first(tmp_path: Path) -> None:
    one_line(
        run(
            """
            from rotorid.logs import write
            move = os.replace
            write.os.replace = lambda *paths: (ctrl_c(), ctrl_c(), move(*paths))
            def command():
                write.write_whole(Path("table.csv"), b"t")
            """,
            tmp_path,
        )
    )
    assert [f.name for f in tmp_path.iterdir()] == ["table.csv"]


def test_another_ctrl_c_later_does_not_wait(tmp_path: Path) -> None:
    one_line(
        run(
            """
            import time
            def command():
                with uninterrupted():
                    ctrl_c()
                    time.sleep(2.1)
                    ctrl_c()
                    print("waited", flush=True)
            """,
            tmp_path,
        )
    )


@pytest.mark.parametrize(
    ("act", "line"),
    [
        ("lambda: 1 / 0", "; division by zero"),
        ("lambda: ctrl_c() or '; kept'", "; kept"),
        ("lambda: Path('none/file').touch() or ''", "; [Errno 2] No such file or directory: 'none/file'"),
    ],
)
def test_what_a_command_does_last_cannot_fail(tmp_path: Path, act: str, line: str) -> None:
    code = f"def command():\n    with on_interrupt({act}):\n        ctrl_c()"
    one_line(run(code, tmp_path), "rotorid: interrupted" + line)


def test_in_a_function_that_jax_calls_back(tmp_path: Path) -> None:
    one_line(
        run(
            """
            import jax
            def command():
                shape = jax.ShapeDtypeStruct((), "float32")
                f = jax.jit(lambda x: jax.pure_callback(lambda v: (ctrl_c(), v)[1], shape, x))
                f(1.0).block_until_ready()
            """,
            tmp_path,
        )
    )


def test_while_python_ends(tmp_path: Path) -> None:
    """Commands that are done may end as they would have; none shows more than a line."""
    result = run("command = lambda: atexit.register(ctrl_c)", tmp_path)
    assert result.stderr.splitlines() == ["rotorid: interrupted"]
    assert result.returncode == 130
    late = run(
        "def command():\n    sys.late = weakref.finalize(sys, ctrl_c); sys.late.atexit = False", tmp_path
    )
    assert (late.returncode, late.stderr) == (0, "")


def test_no_broken_file_stays_in_the_cache_of_jax(tmp_path: Path) -> None:
    one_line(
        run(
            """
            import jax.numpy as jnp
            from rotorid.terminal.console import setup_jax
            def command():
                setup_jax()
                Path.write_bytes = lambda path, content: (path.touch(), ctrl_c())
                jnp.arange(3.0).sum()
            """,
            tmp_path,
        )
    )


@pytest.mark.parametrize("after", [0.0, 0.05, 0.15, 0.3, 0.5, 0.8, 1.2])
def test_at_any_time(flight_csv: Path, tmp_path: Path, after: float) -> None:
    """After so many seconds since it began; a command that is done before ends as always."""
    code = f"""
        import threading
        from rotorid.__main__ import _command
        sys.argv[1:] = ["convert", {str(flight_csv)!r}, "out.parquet"]
        def command():
            late = threading.Timer({after}, ctrl_c)
            late.daemon = True
            late.start()
            _command()
        """
    result = run(code, tmp_path)
    assert (result.returncode, result.stderr) in [(130, "rotorid: interrupted\n"), (0, "")]
    assert {f.name for f in tmp_path.iterdir()} <= {"flight.csv", "out.parquet"}
