"""`rotorid learn` and `rotorid wrench --model`: error messages, Ctrl-C, files and terminal output."""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console
from typer.testing import CliRunner

from rotorid.cli import app
from rotorid.codegen.native import compiler
from rotorid.findings import Finding, Severity
from rotorid.learning.model_files import LearnedModel, load_model, model_files
from rotorid.logs.flight import Flight, Signal
from rotorid.logs.read import read
from rotorid.logs.write import write_table
from rotorid.models.airframe.airframe import load_airframe
from rotorid.results.text import Verdict, to_statements
from rotorid.workflows.learn.command import CHECKPOINT
from rotorid.workflows.learn.learn import LearnSettings
from rotorid.workflows.learn.summary import (
    FlightSummary,
    LearnSummary,
    ParameterSummary,
    ResidualSummary,
)
from rotorid.workflows.learn.terminal import show
from rotorid.workflows.learn.text import finding_text
from tests.workflows.learn import learn_session

HEXAROTOR = "fully-actuated-hexarotor"


def hover(path: Path, rotors: int = 6, seconds: float = 5.0, leave_out: str = "") -> Path:
    """A flight table of a vehicle that hangs in the air."""
    t = np.arange(0.0, seconds, 0.02)
    up = np.tile([0.0, 0.0, 2.0], (len(t), 1))
    values = {
        "attitude": np.tile([1.0, 0.0, 0.0, 0.0], (len(t), 1)),
        "position": up,
        "velocity": 0.0 * up,
        "body_rate": 0.0 * up,
        "rotor_speed": np.full((len(t), rotors), 63.0),
        "airborne": np.ones((len(t), 1)),
    }
    signals = {n: Signal(n, t, v, "made") for n, v in values.items() if n != leave_out}
    return write_table(Flight(signals, path, "table-csv"), path)


def refused(folder: Path, monkeypatch, *arguments: str) -> str:
    """The one line of a command that must fail with exit code 2 and leave nothing."""
    monkeypatch.chdir(folder)
    monkeypatch.setattr("rotorid.terminal.console.setup_jax", lambda: None)
    before = sorted(folder.iterdir())
    result = CliRunner().invoke(app, list(arguments))
    assert result.exit_code == 2, result.output
    (line,) = result.stderr.splitlines()
    assert sorted(folder.iterdir()) == before
    return line


def test_an_error_is_one_line_that_names_the_log(tmp_path: Path, monkeypatch) -> None:
    hover(tmp_path / "good.csv")
    hover(tmp_path / "four.csv", rotors=4)
    hover(tmp_path / "bare.csv", leave_out="rotor_speed")
    hover(tmp_path / "blind.csv", leave_out="velocity")
    hover(tmp_path / "short.csv", seconds=1.0)
    (tmp_path / "file").write_text("")
    for log, words in {
        "four.csv": "the log has 4 columns of rotor_speed",
        "bare.csv": "bare.csv: none of rotor_thrust, rotor_speed, rotor_command in this log",
        "blind.csv": "blind.csv: the log has no velocity",
        "short.csv": "short.csv: the vehicle is never in the air",
        "missing.csv": "missing.csv: there is no such file",
    }.items():
        line = refused(tmp_path, monkeypatch, "learn", "good.csv", log, "-a", HEXAROTOR, "-o", "model")
        assert words in line
    common = ["learn", "good.csv", "-a", HEXAROTOR]
    for arguments, words in (
        (["-o", "file"], "file: this is a file"),
        (["-o", "file/model"], "file is a file"),
        (["-o", "model", "--architecture", "deep"], "no architecture 'deep'; choose from split, body, none"),
        (["-o", "model", "--horizon", "0"], "horizon 0: must be 1 or more"),
        (["-o", "model", "--epochs", "0"], "epochs 0: must be 1 or more"),
        (["-o", "model", "--architecture", "none", "--no-identify"], "nothing to learn"),
    ):
        assert words in refused(tmp_path, monkeypatch, *common, *arguments)


def test_models_of_another_vehicle_or_rotor_signal_are_rejected(tmp_path: Path, monkeypatch) -> None:
    log = str(hover(tmp_path / "good.csv"))
    for name, model in {
        "other": LearnedModel(load_airframe("crazyflie-2.1"), None),
        "commands": LearnedModel(load_airframe(HEXAROTOR), None, rotor_input="rotor_command"),
    }.items():
        (tmp_path / name).mkdir()
        for file, content in model_files(model).items():
            (tmp_path / name / file).write_bytes(content)
    common = ["wrench", log, "-a", HEXAROTOR, "-o", "found", "--model"]
    assert "a model of 'crazyflie-2.1' with 4 rotors" in refused(tmp_path, monkeypatch, *common, "other")
    assert "the model was learned from rotor command" in refused(tmp_path, monkeypatch, *common, "commands")
    assert "give a folder that `rotorid learn` wrote" in refused(tmp_path, monkeypatch, *common, "none")


def test_ctrl_c_saves_before_it_ends_the_command() -> None:
    code = (
        "import os, signal\n"
        "from rotorid.terminal.interrupts import on_interrupt, run_interruptible\n"
        "def command():\n"
        "    with on_interrupt(lambda: '; kept'):\n"
        "        os.kill(os.getpid(), signal.SIGINT)\n"
        "        while True: pass\n"
        "run_interruptible(command)"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert result.returncode == 130
    assert result.stderr == "rotorid: interrupted; kept\n"


@pytest.fixture(scope="module")
def sessions(tmp_path_factory) -> Path:
    """The folder of two sessions, the first of which Ctrl-C ended (see `learn_session`)."""
    folder = tmp_path_factory.mktemp("learn")

    first = subprocess.run(
        [sys.executable, "-m", "tests.workflows.learn.learn_session"],
        capture_output=True,
        text=True,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[3]), *sys.path])},
    )
    assert first.returncode == 130, first.stderr
    assert first.stderr == (
        "rotorid: interrupted; 2 of 4 epochs saved in model, the same command resumes the training\n"
    )
    assert [f.name for f in (folder / "model").iterdir()] == [CHECKPOINT]
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        learn_session.second()
    return folder


def test_an_interrupted_training_ends_in_the_same_model(sessions: Path) -> None:
    resumed, whole = sessions / "model", sessions / "whole"
    names = ["airframe.toml", "model.json", "report.html", "summary.json", "weights.safetensors"]
    assert sorted(f.name for f in resumed.iterdir()) == names
    for name in names:
        assert (resumed / name).read_bytes() == (whole / name).read_bytes(), name
    model = load_model(resumed)
    assert model.residual is not None
    assert model.loss < 0.8
    assert model.airframe.mass == load_airframe(HEXAROTOR).mass
    summary = json.loads((resumed / "summary.json").read_text())
    assert summary["residual"]["blocks"] == ["velocity"]
    assert summary["residual"]["explained"]["velocity"] > 0.5
    phi = dict(zip((h.output for h in model.residual.heads), model.residual.weights, strict=True))
    assert np.any(phi["velocity"]["L"])
    assert not any(np.any(phi["body_rate"][name]) for name in ("L", "W_2", "b_2", "typical"))
    assert summary["parameters"] == {}
    before, after = (
        np.linalg.norm([*summary["acceleration_errors"][k].values()]) for k in ("airframe", "with residual")
    )
    assert after < 0.7 * before
    assert summary["verdict"]["findings"][0]["code"] == "residual_learned"


@pytest.mark.skipif(compiler() is None or shutil.which("make") is None, reason="no C compiler and make")
def test_a_learned_model_runs_on_board(sessions: Path, tmp_path: Path) -> None:
    arguments = [
        "export",
        "nemo",
        "-a",
        HEXAROTOR,
        "--model",
        str(sessions / "whole"),
        "-o",
        str(tmp_path / "c"),
    ]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0, done.output
    checked = subprocess.run(
        ["make", "-s", "check"],
        cwd=tmp_path / "c",
        capture_output=True,
        text=True,
        env=os.environ | {"CFLAGS": "-O0"},
    )
    assert (checked.returncode, checked.stderr) == (0, "")
    assert checked.stdout.startswith("200 rows: agreed"), checked.stdout
    settings = json.loads((tmp_path / "c" / "export.json").read_text())["settings"]
    assert settings["model"] == load_model(sessions / "whole").description


def test_contact_is_excluded_and_hover_does_not_identify_all_parameters(sessions: Path) -> None:
    summary = json.loads((sessions / "identified" / "summary.json").read_text())
    assert summary["residual"] is None
    assert summary["verdict"]["tone"] == "caution"
    findings = {f["code"]: f["values"] for f in summary["verdict"]["findings"]}
    assert findings["contact_excluded"]["flight"] == "hover-wrench.parquet"
    assert findings["parameters_poorly_excited"]["names"]
    assert {f["code"] for f in summary["findings"]} == {"unidentifiable_direction"}
    contact = {f["name"]: f["contact_duration"] for f in summary["flights"]}
    truth = read(sessions / "hover-wrench.parquet")["true_force"]
    pushed = np.sum(np.linalg.norm(truth.values, axis=1) > 0) / truth.rate
    assert contact["hover.parquet"] == 0.0
    assert 0.8 * pushed < contact["hover-wrench.parquet"] < pushed + 3.0
    assert list(summary["acceleration_errors"]) == ["airframe", "identified"]
    for name, p in summary["parameters"].items():
        assert p["std"] <= 1.2 * p["prior_std"], (
            name
        )  # blocks that disagree make a fit less sure than its prior
    model = load_model(sessions / "identified")
    assert model.residual is None
    assert set(model.quantities) == set(summary["parameters"])
    np.testing.assert_allclose(np.diag(np.array(model.correlation)), 1.0, atol=1e-9)
    mass = model.airframe.mass
    assert mass.std is not None
    assert mass.value[0] == summary["parameters"]["mass"]["value"]
    true = load_airframe(HEXAROTOR).mass.number
    assert abs(mass.value[0] - true) < 3.0 * mass.std[0]


@pytest.fixture
def summary() -> LearnSummary:
    return LearnSummary(
        verdict=Verdict("caution", "Two numbers identified.", ("a.csv: contact.",)),
        settings=LearnSettings(),
        airframe=HEXAROTOR,
        rotor_input="rotor_speed",
        inputs=(),
        versions={},
        flights=(FlightSummary("a.csv", 12.0, 50.0, 1.0, 0.0),),
        parameters={
            "mass": ParameterSummary("kg", 2.81, 0.28, 3.01, 0.03, 0.9, False),
            "angular_drag": ParameterSummary("N m s", 0.0, 0.4, 0.0, 0.002, 0.99, True),
        },
        findings=to_statements(
            [
                Finding(
                    "unidentifiable_direction",
                    Severity.NOTE,
                    {"names": ["arm_scale"], "is_common_scale": False},
                ),
                Finding(
                    "explained_error",
                    Severity.NOTE,
                    {
                        "architecture": "body",
                        "epochs": 40,
                        "explained": {"velocity": 0.84, "body_rate": -0.1},
                        "blocks": ["velocity"],
                    },
                ),
            ],
            finding_text,
        ),
        residual=ResidualSummary(("velocity",), "body", 25, 40, 0.6, {"velocity": 0.84, "body_rate": -0.1}),
        acceleration_errors={"airframe": {"velocity_x": float("nan")}},
        notes=("a note",),
    )


def test_terminal_output(summary: LearnSummary) -> None:
    stream = io.StringIO()
    show(summary, Path("model"), Console(file=stream, width=100))
    text = " ".join(stream.getvalue().split())
    assert "mass 2.8 ± 0.3 3.01 0.03 kg 90 %" in text
    assert "angular drag 0.0 ± 0.4 0.000 0.002 N m s at 0" in text
    assert "Arm scale cannot be identified from these flights: the prior value is kept." in text
    assert "by the residual (body, 40 epochs): force 84 %, torque 0 % (omitted)" in text
    assert "Report: model/report.html" in text
    assert json.loads(summary.to_json())["acceleration_errors"]["airframe"]["velocity_x"] is None
