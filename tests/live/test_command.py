"""`rotorid live` at its door: what it takes, and what it says of the rest."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest
from typer.testing import CliRunner

from rotorid.cli.app import app
from rotorid.live.replay import tlog_pieces
from tests.live import flown


def said(*arguments: str | Path) -> str:
    """The one line of a command that cannot do."""
    result = CliRunner().invoke(app, ["live", *map(str, arguments)])
    assert result.exit_code == 2, result.output
    lines = [line for line in result.stderr.splitlines() if line.startswith("rotorid: ")]
    assert len(lines) == 1
    return lines[0]


@pytest.fixture
def tlog(tmp_path: Path) -> Path:
    """Three seconds on the ground."""
    (tmp_path / "a.tlog").write_bytes(flown.tlog(list(flown.flight(3.0))))
    return tmp_path / "a.tlog"


def test_what_cannot_be_is_said_in_one_line(tlog: Path, tmp_path: Path) -> None:
    quad = ("-a", "px4-sih-quad", "--no-wrench")
    assert "which vehicle is it? give its airframe" in said(tlog)
    assert "one estimator at a time" in said(tlog, *quad, "-e", "ekf,ukf")
    assert "no address of a vehicle" in said("bluetooth:7", *quad)
    assert "cannot be read" in said(tmp_path / "none.tlog", *quad)
    assert "needs --publish beside it" in said(tlog, *quad, "--publish-parameter", "MPC_THR_HOVER")
    assert "the speed -1" in said(tlog, *quad, "--speed", "-1")
    (tmp_path / "b.tlog").write_bytes(b"nothing")
    assert "no MAVLink messages" in said(tmp_path / "b.tlog", *quad)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
        taken.bind(("127.0.0.1", 0))
        assert "is in use" in said(f"udpin:127.0.0.1:{taken.getsockname()[1]}", *quad)


def test_a_recording_needs_no_airframe_and_a_flight_is_missed(tlog: Path, tmp_path: Path) -> None:
    """Three seconds on the ground give no estimate, and a recording all the same."""
    from rotorid.live.recording import Recorded

    record = tmp_path / "b.mcap"
    options = ("--no-wrench", "--speed", "0")
    assert "did not fly" in said(tlog, "-a", "px4-sih-quad", *options, "--record", record)
    assert list(Recorded(record).received()) == list(tlog_pieces(tlog))
    assert Recorded(record).settings["estimator"] == "ekf"
    assert "did not fly" in said(record, *options)
    assert "exists already" in said(record, *options, "--record", record)
