"""`rotorid app` on the command line."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
from typer.testing import CliRunner

from rotorid.app.command import INSTALL
from rotorid.cli import app


def test_ctrl_c_ends_the_server(tmp_path: Path) -> None:
    arguments = [
        sys.executable,
        "-m",
        "rotorid",
        "app",
        "--port",
        "0",
        "--no-open",
        "-o",
        str(tmp_path / "new" / "work"),
    ]
    environment = os.environ | {"PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(
        arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as child:
        assert child.stdout is not None
        address = child.stdout.readline().removeprefix("Page:").strip()
        assert address.startswith("http://127.0.0.1:")
        with urllib.request.urlopen(address, timeout=20) as answer:
            assert b"rotorid app" in answer.read()
        child.send_signal(signal.SIGINT)
        _, errors = child.communicate(timeout=20)
    assert (child.returncode, errors) == (0, "")
    assert sorted(path.name for path in (tmp_path / "new" / "work").iterdir()) == [
        "airframes",
        "logs",
        "results",
    ]


def test_a_port_in_use_and_a_file_as_folder_get_one_line(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        result = CliRunner().invoke(app, ["app", "--port", str(port), "--no-open", "-o", str(tmp_path)])
    assert result.exit_code == 2
    assert "the port is in use" in result.stderr
    file = tmp_path / "file"
    file.write_text("")
    result = CliRunner().invoke(app, ["app", "--port", "0", "--no-open", "-o", str(file)])
    assert result.exit_code == 2
    assert "name another folder with -o" in result.stderr


def test_a_missing_extra_prints_its_install_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    result = CliRunner().invoke(app, ["app", "--no-open", "-o", str(tmp_path / "work")])
    assert (result.exit_code, result.stderr) == (2, f"rotorid: {INSTALL}\n")
    assert not (tmp_path / "work").exists()


def test_the_help_does_not_import_the_server() -> None:
    code = (
        "import sys; from rotorid.cli import app; app(['--help'], standalone_mode=False);"
        "print([m for m in sys.modules if m in ('starlette', 'uvicorn')])"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.splitlines()[-1] == "[]"
