"""Errors of usage of `rotorid live`."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest
from typer.testing import CliRunner

from rotorid.cli import app
from rotorid.live.recording.replay import tlog_packets
from tests.live import simulated_flight


def error_line(*arguments: str | Path) -> str:
    """The line of an error of usage."""
    result = CliRunner().invoke(app, ["live", *map(str, arguments)])
    assert result.exit_code == 2, result.output
    lines = [line for line in result.stderr.splitlines() if line.startswith("rotorid: ")]
    assert len(lines) == 1
    return lines[0]


def free_link() -> str:
    """A link to listen on."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        return f"udpin:127.0.0.1:{probe.getsockname()[1]}"


@pytest.fixture
def tlog(tmp_path: Path) -> Path:
    """Three seconds on the ground."""
    (tmp_path / "a.tlog").write_bytes(simulated_flight.tlog(list(simulated_flight.flight(3.0))))
    return tmp_path / "a.tlog"


def test_what_cannot_be_is_said_in_one_line(tlog: Path, tmp_path: Path) -> None:
    quad = ("-a", "px4-sih-quad", "--no-wrench")
    assert "weigh it as it flies" in error_line(tlog)
    assert "runs one estimator" in error_line(tlog, *quad, "-e", "ekf,ukf")
    assert "not a valid link address" in error_line("bluetooth:7", *quad)
    assert "cannot be read" in error_line(tmp_path / "none.tlog", *quad)
    assert "requires --publish" in error_line(tlog, *quad, "--publish-parameter", "MPC_THR_HOVER")
    assert "--all cannot be used with" in error_line(tlog, *quad, "--all", "--system-id", "3")
    assert "the replay speed -1" in error_line(tlog, *quad, "--speed", "-1")
    assert "cannot be used with a recording" in error_line(tlog, *quad, "--signing-key", "key")
    assert "the key cannot be read" in error_line(free_link(), *quad, "--signing-key", tmp_path / "none")
    (tmp_path / "b.tlog").write_bytes(b"nothing")
    assert "no MAVLink messages" in error_line(tmp_path / "b.tlog", *quad)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
        taken.bind(("127.0.0.1", 0))
        assert "is in use" in error_line(f"udpin:127.0.0.1:{taken.getsockname()[1]}", *quad)


def test_a_recording_needs_no_airframe_and_a_flight_is_missed(tlog: Path, tmp_path: Path) -> None:
    """Three seconds on the ground give no estimate, and a recording all the same."""
    from rotorid.live.recording.recording import Recording

    record = tmp_path / "b.mcap"
    options = ("--no-wrench", "--speed", "0")
    assert "did not fly" in error_line(tlog, "-a", "px4-sih-quad", *options, "--record", record)
    assert list(Recording(record).packets()) == list(tlog_packets(tlog))
    assert Recording(record).settings["estimator"] == "ekf"
    assert "did not fly" in error_line(record, *options)
    assert "exists already" in error_line(record, *options, "--record", record)
