"""Completion in the shell, by the protocol that the scripts of bash, zsh and fish speak."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import typer

from rotorid.cli import COMMANDS, command_of
from rotorid.estimators.registry import STREAM_ESTIMATORS, TRACK_ESTIMATORS
from rotorid.models.airframe.shipped_names import airframe_names
from rotorid.terminal.completion import airframe, list_of, one_of
from tests.running import here, process


def complete(*words: str, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What bash offers for the last of these words."""
    monkeypatch.setenv("_ROTORID_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", " ".join(["rotorid", *words]))
    monkeypatch.setenv("COMP_CWORD", str(len(words)))
    result = here()
    assert result.exit_code == 0, result.output
    return result.stdout.split()


def test_commands_are_listed_without_importing_them() -> None:
    code = (
        "import sys, rotorid.cli as a\n"
        "try: a.app(prog_name='rotorid')\n"
        "except SystemExit as e: assert not e.code\n"
        "print(*(m for m in sys.modules if m.startswith('rotorid.workflows') or m in ('jax', 'numpy')), file=sys.stderr)"
    )
    environment = {"_ROTORID_COMPLETE": "complete_bash", "COMP_WORDS": "rotorid ", "COMP_CWORD": "1"}
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, **environment}
    )
    assert result.stdout.split() == list(COMMANDS)
    assert result.stderr.strip() == ""


def test_one_command_is_imported_for_its_options() -> None:
    result = process(
        None,
        _ROTORID_COMPLETE="complete_bash",
        COMP_WORDS="rotorid track --e",
        COMP_CWORD="2",
        PYTHONVERBOSE="1",
    )
    assert result.stdout.split() == ["--estimators", "--estimator"]
    assert "import 'rotorid.workflows.track.command'" in result.stderr
    assert "import 'rotorid.workflows.identify.command'" not in result.stderr
    assert "import 'numpy'" not in result.stderr


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_is_offered(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    options = {
        option
        for p in command_of(name).params
        for option in (*p.opts, *p.secondary_opts)
        if option.startswith("--") and not getattr(p, "hidden", False)
    }
    assert options <= set(complete(name, "--", monkeypatch=monkeypatch))


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (["track", "--airframe", "cra"], [n for n in airframe_names() if n.startswith("cra")]),
        (["track", "--estimators", "ekf,"], [f"ekf,{n}" for n in TRACK_ESTIMATORS if n != "ekf"]),
        (["track", "--system", "multirotor-"], ["multirotor-bare"]),
        (["identify", "--free", "mass,in"], ["mass,inertia"]),
        (["identify", "--known", "t"], ["thrust"]),
        (["wrench", "--observer", "m"], ["mo"]),
        (["export", "px"], ["px4"]),
        (["export", "--precision", "f"], ["float"]),
        (["dataset", "--executor", "l"], ["local"]),
        (["dataset", "--preset", "h"], ["hard"]),
        (["simulate", "--sensors", "r"], ["rough"]),
        (["simulate", "--trajectory", "lo"], ["loop"]),
        (["simulate", "--mass-profile", "step"], ["step", "steps"]),
        (["compare", "--estimators", "ekf,"], [f"ekf,{n}" for n in STREAM_ESTIMATORS if n != "ekf"]),
        (["lpv", "--subsystem", "f"], ["full"]),
        (["lpv", "--estimator", "l"], ["liu-west"]),
        (["plan", "--autopilot", "p"], ["px4"]),
        (["fly-back", "--against", "px4-s"], ["px4-sih-quad", "px4-sih-quad-2026"]),
        (["airframes", "x8"], ["x8-coaxial"]),
        (["reproduce", "rot"], ["rotorpy"]),
        (["track", "flight.u"], []),  # bash completes files
    ],
    ids=lambda words: " ".join(words) if words and len(words) > 1 else "",
)
def test_values(words: list[str], offered: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    assert complete(*words, monkeypatch=monkeypatch) == offered


def test_airframe_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "found").mkdir()
    for name in ("px4-mine.toml", "px4.txt", "found/airframe.toml"):
        (tmp_path / name).touch()
    assert airframe("px4") == ["px4-sih-quad", "px4-sih-quad-2026", "px4-mine.toml"]
    assert airframe("found/a") == ["found/airframe.toml"]
    assert airframe(f"{tmp_path}/px") == [f"{tmp_path}/px4-mine.toml"]
    assert airframe("nowhere/") == []


def test_names_and_lists() -> None:
    assert one_of(("one", "other", "two"))("o") == ["one", "other"]
    assert list_of(("one", "other"))("one,o") == ["one,other"]
    assert one_of("rotorid.cli:COMMANDS")("air") == ["airframe", "airframes"]


def test_names_of_choices_are_those_that_the_commands_take() -> None:
    """The tables that would take time to import at the start are written again in the commands."""
    from typing import get_args

    from rotorid.control.gain_scheduling import Method
    from rotorid.learning.architectures import ARCHITECTURES
    from rotorid.models.quadrotor.lpv import Subsystem
    from rotorid.simulation.datasets.executors import EXECUTORS
    from rotorid.simulation.free_flight.autopilot_logs import AUTOPILOT_LOGS

    for command, option, names in (
        ("lpv", "--method", get_args(Method)),
        ("lpv", "--subsystem", get_args(Subsystem)),
        ("learn", "--architecture", (*ARCHITECTURES, "none")),
        ("dataset", "--executor", EXECUTORS),
        ("plan", "--autopilot", AUTOPILOT_LOGS),
    ):
        (parameter,) = [p for p in command_of(command).params if option in p.opts]
        context = typer.Context(command_of(command))
        assert {item.value for item in parameter.shell_complete(context, "")} == set(names), option


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells(shell: str) -> None:
    environment = {
        "_ROTORID_COMPLETE": f"complete_{shell}",
        "_TYPER_COMPLETE_ARGS": "rotorid fly",
        "_TYPER_COMPLETE_FISH_ACTION": "get-args",
    }
    result = process(None, **environment)
    assert result.returncode == 0, result.stderr
    assert "fly-back" in result.stdout
    assert "Validate a model by fly-back" in result.stdout
    script = process(None, _ROTORID_COMPLETE=f"source_{shell}")
    assert f"complete_{shell}" in script.stdout


def test_the_script_works_in_bash(tmp_path: Path) -> None:
    """The script of bash, sourced, completes a command, an airframe after a space, and an option."""
    command = tmp_path / "rotorid"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m rotorid "$@"\n')
    command.chmod(0o755)
    script = process(None, _ROTORID_COMPLETE="source_bash").stdout
    ask = (
        'ask() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _rotorid_completion rotorid; echo "${COMPREPLY[*]}"; }\n'
        "ask rotorid fle\nask rotorid track --airframe simulated-quad-h\nask rotorid plan --lim\n"
    )
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    result = subprocess.run(
        ["bash", "--norc", "-c", f"{script}\n{ask}"],
        capture_output=True,
        text=True,
        env=environment,
        cwd=tmp_path,
    )
    assert result.stdout.splitlines() == ["fleet", "simulated-quad-hard", "--limits"], result.stderr
