"""`rotorid fit-linear`: a known system from a table and in closed loop, its bands, its files, and what is refused."""

from __future__ import annotations

import dataclasses
import json
import math
from pathlib import Path

import jax
import numpy as np
import pyarrow.parquet as parquet
import pytest
import scipy.signal
from typer.testing import CliRunner

from rotorid.cli import app
from rotorid.errors import LogFormatError
from rotorid.identification.linear.responses import frequency_response, modes, step_response
from rotorid.workflows.fit_linear.data import Column, linear_data
from rotorid.workflows.fit_linear.files import read_model, to_control
from rotorid.workflows.fit_linear.fit import LinearSettings, fit_linear

DT, ROWS, DELAY = 0.01, 1500, 2
FREQUENCY, DAMPING, GAIN = 6.0, 0.35, 0.8


def _signals(
    seed: int, feedback: float = 0.0, effect: float = 1.0, noise: float = 0.05
) -> dict[str, np.ndarray]:
    """A delayed second-order system with noise. feedback: of the output. effect: of the input."""
    w = 2.0 * math.pi * FREQUENCY
    system = (
        scipy.signal.TransferFunction([GAIN * w**2], [1.0, 2.0 * DAMPING * w, w**2]).to_ss().to_discrete(DT)
    )
    rng = np.random.default_rng(seed)
    r = np.repeat(rng.normal(size=ROWS // 10 + 1), 10)[:ROWS]
    u, y, x = np.zeros(ROWS), np.zeros(ROWS), np.zeros(2)
    waiting = [0.0] * DELAY
    for k in range(ROWS):
        y[k] = effect * (system.C @ x).item() + noise * rng.normal()
        u[k] = r[k] - feedback * y[k]
        waiting.append(u[k])
        x = system.A @ x + system.B[:, 0] * waiting.pop(0)
    return {"t": DT * np.arange(ROWS), "u": u + 3.0, "y": y - 1.0}


def _fit(signals: dict[str, np.ndarray]):
    u, y = (Column(name, "1", signals["t"], signals[name]) for name in "uy")
    with jax.enable_x64(True):
        return fit_linear(linear_data([u], [y]), LinearSettings(("u",), ("y",), 2, DELAY))


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    signals = _signals(1) | {"flat": np.ones(ROWS)}
    rows = [",".join(repr(float(v)) for v in row) for row in zip(*signals.values(), strict=True)]
    path = tmp_path / "table.csv"
    path.write_text("\n".join([",".join(signals), *rows]) + "\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("rotorid.terminal.console.setup_jax", lambda: None)
    return path


def test_a_known_system_of_a_table(table: Path) -> None:
    with jax.enable_x64(True):
        result = CliRunner().invoke(
            app, ["fit-linear", "table.csv", "--inputs", "u", "--outputs", "y", "-o", "out"]
        )
    assert result.exit_code == 0, result.output
    summary = json.loads(Path("out/summary.json").read_text())
    assert (summary["model"]["order"], summary["model"]["delay"]) == (2, pytest.approx(DELAY * DT))
    (mode,) = summary["model"]["modes"]
    assert mode["frequency"] == pytest.approx(FREQUENCY, abs=3.5 * mode["frequency_std"])
    assert mode["damping"] == pytest.approx(DAMPING, abs=3.5 * mode["damping_std"])
    (gain,) = summary["model"]["static_gains"]
    assert gain["value"] == pytest.approx(GAIN, abs=3.5 * gain["std"])
    assert 0.0 < gain["std"] < 0.05
    assert 0.0 < mode["frequency_std"] < 0.2
    assert summary["validation"]["held_out_fit"]["simulation"]["y"] > 70.0
    assert summary["verdict"]["tone"] == "good"
    assert "Frequency response" in Path("out/report.html").read_text()
    model, inputs, outputs = read_model("out/model.json")
    assert (model.order, inputs, outputs) == (2 + DELAY, ("u",), ("y",))
    control = to_control("out/model.json")
    frequency = parquet.read_table("out/frequency_response.parquet").to_pydict()
    k = 40
    response = control(np.exp(2j * np.pi * frequency["frequency"][k] * DT))
    assert abs(response) == pytest.approx(frequency["gain"][k], rel=1e-6)
    assert np.angle(response) == pytest.approx(frequency["phase"][k], abs=1e-6)
    step = parquet.read_table("out/step_response.parquet").to_pydict()
    assert step["time"][0] == pytest.approx(DELAY * DT)


def test_standard_deviations_of_responses_are_those_of_the_parameters() -> None:
    """A change of the parameters by a part of each of their standard deviations changes the responses accordingly."""
    fit = _fit(_signals(2)).fit
    f, part = np.array([0.0, 2.0, 7.0]), 1e-4
    response, step, (mode,) = frequency_response(fit, f), step_response(fit, 12), modes(fit)
    changes = []
    for column in fit.root.T:
        changed = dataclasses.replace(fit, coordinates=fit.coordinates + part * column)
        (other_mode,) = modes(changed)
        relative = np.log(frequency_response(changed, f).value / response.value) / part
        changes.append(
            [
                *relative.real.ravel(),
                *relative.imag.ravel(),
                *((step_response(changed, 12).value - step.value) / part).ravel(),
                (other_mode.frequency - mode.frequency) / part,
                (other_mode.damping - mode.damping) / part,
            ]
        )
    expected = np.linalg.norm(np.array(changes), axis=0)
    stds = [
        *response.log_gain_std.ravel(),
        *response.phase_std.ravel(),
        *step.std.ravel(),
        mode.frequency_std,
        mode.damping_std,
    ]
    assert np.array(stds) == pytest.approx(expected, rel=1e-2, abs=1e-6)


def test_feedback_is_named_and_the_model_stays_right() -> None:
    result = _fit(_signals(3, feedback=0.6, noise=0.4))
    assert "feedback" in [f.code for f in result.findings]
    (mode,) = result.responses.modes
    assert mode.frequency == pytest.approx(FREQUENCY, abs=3.5 * mode.frequency_std)


def test_an_input_without_effect_is_not_identified() -> None:
    result = _fit(_signals(4, effect=0.0))
    codes = [f.code for f in result.findings]
    assert "no_effect" in codes
    assert "nothing_identified" in codes


def test_gaps_split_the_rows_and_faster_inputs_are_averaged() -> None:
    t = np.concatenate([np.arange(400) * 0.01, 10.0 + np.arange(400) * 0.01])
    fast = np.arange(0.0, 14.0, 0.001)
    data = linear_data([Column("u", "1", fast, np.floor(fast / 0.005) % 2)], [Column("y", "m", t, np.sin(t))])
    assert [len(run.y) for run in data.runs] == [399, 399]
    assert data.starts == pytest.approx([0.0, 10.0])
    assert data.means["u"] == pytest.approx(0.5, abs=0.01)
    assert np.ptp(data.runs[0].u) < 0.25


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--inputs", "v", "--outputs", "y"], "no column 'v'"),
        (["--inputs", "flat", "--outputs", "y"], "flat is constant"),
        (["--inputs", "y", "--outputs", "y"], "given twice"),
        (["--inputs", "", "--outputs", "y"], "at least one input"),
        (["--inputs", "u", "--outputs", "y", "--rate", "1"], "too few|rows at 1 Hz"),
        (["--inputs", "u", "--outputs", "y", "--rate", "1e9"], "more than 5,000,000"),
        (["--inputs", "u", "--outputs", "y", "--order", "0"], "--order must be"),
    ],
)
def test_wrong_use_is_one_line(table: Path, arguments: list[str], message: str) -> None:
    result = CliRunner().invoke(app, ["fit-linear", "table.csv", *arguments, "-o", "out"])
    assert result.exit_code == 2
    text = " ".join(result.output.split())
    assert any(part in text for part in message.split("|")), text
    assert not Path("out").exists()


def test_files_of_others_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "model.json"
    for content in ("[]", "[" * 100_000, "{", "\x00"):
        path.write_text(content)
        with pytest.raises(LogFormatError, match=r"is no model\.json"):
            read_model(path)
