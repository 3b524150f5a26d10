"""Output in an encoding that lacks characters, as of Windows where it goes to a file."""

from __future__ import annotations

import io
import json
import shutil
import sys
from pathlib import Path

import pytest

from rotorid.terminal.plain_characters import use_plain_characters
from tests.running import process


@pytest.mark.parametrize(
    ("encoding", "written"),
    [
        ("utf-8", "\u22120.2 ± 0.1 m/s², ≤ 3 µs 日"),
        ("cp1252", "-0.2 ± 0.1 m/s², <= 3 µs ?"),
        ("ascii", "-0.2 +- 0.1 m/s^2, <= 3 us ?"),
    ],
)
def test_characters_that_an_encoding_lacks_are_plain(
    monkeypatch: pytest.MonkeyPatch, encoding: str, written: str
) -> None:
    stream = io.TextIOWrapper(io.BytesIO(), encoding)
    monkeypatch.setattr(sys, "stdout", stream)
    use_plain_characters()
    print("\u22120.2 ± 0.1 m/s², ≤ 3 µs 日", end="", flush=True)
    monkeypatch.undo()
    assert stream.buffer.getvalue().decode(encoding) == written


def test_a_log_with_a_name_of_other_characters(tmp_path: Path, flights: Path) -> None:
    log = tmp_path / "vol à côté 日.ulg"
    shutil.copy(flights / "px4_samples" / "sample.ulg", log)
    shown = process(tmp_path, "inspect", log.name, PYTHONIOENCODING="ascii")
    assert shown.returncode == 0, shown.stderr
    assert "vol ? c?t? ?.ulg" in shown.stdout
    document = process(tmp_path, "inspect", log.name, "--json", PYTHONIOENCODING="ascii")
    assert log.name in str(json.loads(document.stdout))
    without = process(tmp_path, "inspect", "été 日.ulg", PYTHONIOENCODING="ascii")
    assert (without.returncode, without.stdout) == (2, "")
    assert "?t? ?.ulg" in without.stderr
