"""The options that commands share: `--json`, `--open`, `-q` and `-v`."""

from __future__ import annotations

import json
import logging
import re
from pathlib import Path

import pytest

from rotorid.terminal import output
from rotorid.terminal.console import count_items, progress_bar
from rotorid.terminal.output import new_output, print_result
from tests.running import here


def test_the_json_is_all_of_stdout(flight_csv: Path) -> None:
    for arguments in (("inspect", flight_csv), ("airframes",), ("airframes", "crazyflie-2.1")):
        result = here(*arguments, "--json")
        assert result.exit_code == 0, result.output
        assert json.loads(result.stdout)
        assert result.stderr == ""


def test_an_error_leaves_stdout_empty(tmp_path: Path) -> None:
    result = here("inspect", tmp_path / "none.ulg", "--json")
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize("place", ["before", "after"])
def test_quiet_silences_what_is_in_a_file(flights: Path, tmp_path: Path, place: str) -> None:
    command = ["airframe", flights / "px4_sih" / "default_logging.ulg"]
    words = ["-q", *command] if place == "before" else [*command, "-q"]
    assert here(*command, "-o", tmp_path / "a.toml").stdout.startswith("Airframe: ")
    silent = here(*words, "-o", tmp_path / "b.toml")
    assert silent.exit_code == 0
    assert silent.output == ""
    assert (tmp_path / "b.toml").read_text() == (tmp_path / "a.toml").read_text()
    assert here(*words).stdout == (tmp_path / "a.toml").read_text()


def test_quiet_silences_every_command(flight_csv: Path, tmp_path: Path) -> None:
    result = here("convert", flight_csv, tmp_path / "flight.parquet", "-q")
    assert result.exit_code == 0, result.output
    assert result.output == ""
    assert (tmp_path / "flight.parquet").is_file()
    assert "Checks" in here("-q", "inspect", flight_csv).stdout
    failed = here("-q", "convert", tmp_path / "none.csv", tmp_path / "other.parquet")
    assert failed.exit_code == 2
    assert failed.stderr.startswith("rotorid: ")


def test_options_of_a_run_end_with_it() -> None:
    assert here("-q", "-v", "airframes").exit_code == 0
    assert not output.current_output().is_quiet
    assert logging.getLogger("rotorid").level == logging.NOTSET


def test_the_report_opens(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    page, opened = tmp_path / "a report.html", []
    for found in (True, False):
        monkeypatch.setattr("webbrowser.open", lambda url, found=found: opened.append(url) or found)
        with new_output():
            output.current_output().is_opened = True
            print_result(lambda: "{}\n", lambda console: console.print("text"), page)
        assert opened.pop() == page.as_uri()
        streams = capsys.readouterr()
        assert streams.out == "text\n"
        assert streams.err == ("" if found else f"rotorid: no browser found; open {page}\n")


def test_verbose_logs_stages_with_their_durations(flight_csv: Path) -> None:
    result = here("inspect", flight_csv, "-v")
    stages = [
        re.fullmatch(r"\d\d:\d\d:\d\d\.\d{3} (.*): \d+\.\d\d s, \d+\.\d\d s of processor time", line)
        for line in result.stderr.splitlines()
    ]
    assert [stage and stage[1] for stage in stages] == ["Reading flight.csv", "Checking"]
    assert here("inspect", flight_csv).stdout == result.stdout
    assert "Checking ...\n" in here("-vv", "inspect", flight_csv).stderr
    failed = here("-v", "inspect", "none.csv").stderr.splitlines()
    assert "Reading none.csv: failed after" in failed[0]
    assert failed[1].startswith("rotorid: none.csv")


def test_stages_of_a_progress_bar_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "rotorid"), progress_bar("Fitting") as progress:
        progress("Fitting", 1, 2)
        progress("Validating", 0, 1)
    assert [record.getMessage().partition(":")[0] for record in caplog.records] == ["Fitting", "Validating"]
    caplog.clear()
    with caplog.at_level(logging.INFO, "rotorid"):
        assert list(count_items("abc", "Counting", 3)) == ["a", "b", "c"]
    assert [record.getMessage().partition(":")[0] for record in caplog.records] == ["Counting"]


def test_inspect_opens_the_report_that_it_wrote(
    flight_csv: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = []
    monkeypatch.setattr("webbrowser.open", lambda url: opened.append(url) or True)
    folder = tmp_path / "report"
    result = here("inspect", flight_csv, "-o", folder, "--open", "--json")
    assert opened == [(folder / "report.html").as_uri()]
    assert result.stdout == (folder / "summary.json").read_text()


@pytest.mark.parametrize(
    ("command", "option"),
    [
        (["inspect"], "--output DIR"),
        (["compare", "-a", "simulated-quad"], "--output DIR"),
        (["fly-back", "-a", "px4-sih-quad"], "--report PAGE.html"),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_a_report_that_is_not_written_cannot_open(flight_csv: Path, command: list[str], option: str) -> None:
    refused = here(*command, flight_csv, "--open")
    assert refused.exit_code == 2
    assert f"--open needs {option}" in refused.stderr
