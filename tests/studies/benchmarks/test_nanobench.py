"""NanoBench: its flights, the baselines on flights of known motion, and leaving one flight out."""

from __future__ import annotations

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rotorid.errors import SignalError
from rotorid.geometry.gravity import GRAVITY
from rotorid.logs.flight import Flight, Signal
from rotorid.progress import Stage, no_progress
from rotorid.studies.benchmarks import nanobench, nanodrone
from rotorid.studies.benchmarks.nanobench import MASS, flight_paths, read_nanobench
from rotorid.studies.benchmarks.page import benchmarks_page, headline
from rotorid.studies.benchmarks.prediction import MultiStepErrors
from rotorid.studies.benchmarks.study import NANOBENCH_AIRFRAME, Size, benchmarks
from rotorid.studies.page_parts import number_text

EXAMPLE = Path(__file__).parents[3] / "examples" / "nanobench.toml"
GAIN = 0.1  # N
STRIDE = 100


def test_the_example_mapping_is_that_of_the_study() -> None:
    assert nanobench.MAPPING.read_text() == EXAMPLE.read_text()


def test_a_flight_is_read_with_its_units(flights: Path) -> None:
    paths = flight_paths(flights / "nanobench")
    assert len(paths) == 5
    flight = read_nanobench(paths[1])
    assert np.median(flight["specific_force"].values[:, 2]) == pytest.approx(GRAVITY, abs=0.1)
    hover = np.median(flight["rotor_command"].values)
    assert 0.75 < hover / nanobench.prior_airframe().thrust_curve.full < 0.9
    slope = np.gradient(flight["position"].values, flight["position"].times, axis=0)
    assert np.abs(slope - flight["velocity"].values).mean() < 0.02


def test_too_few_flights(tmp_path: Path) -> None:
    (tmp_path / "one.csv").write_text("t\n0\n")
    with pytest.raises(SignalError, match=r"1 \.csv files; 3 or more"):
        flight_paths(tmp_path)


def test_the_thrust_curve_of_the_saved_airframe_is_over_the_logged_commands() -> None:
    prior = nanobench.prior_airframe()
    logged = nanobench.over_logged_commands(prior)
    full = prior.thrust_curve.full
    np.testing.assert_allclose(
        logged.thrust_curve.collective(jnp.full((1, 4), 0.8)),
        prior.thrust_curve.collective(jnp.full((1, 4), 0.8 * full)),
    )


def known_flight(voltage: float, exponent: float = 0.0, noise: float = 0.0) -> Flight:
    """A vehicle in hover whose rotors have the thrust GAIN u^2 (V / 4 V)^exponent, at a battery that falls by 0.5 V.

    noise: of position (m), velocity (m/s), attitude (quaternion), body rate (rad/s) and commands.
    """
    rng = np.random.default_rng(0)
    t = 0.01 * np.arange(800)
    battery = voltage - 0.5 * t / t[-1]
    command = np.sqrt(MASS * GRAVITY / 4 / GAIN * (4.0 / battery) ** exponent)
    zero, full = np.zeros((len(t), 3)), nanobench.prior_airframe().thrust_curve.full
    values = {
        "position": np.tile([0.0, 0.0, 1.0], (len(t), 1)),
        "velocity": zero,
        "attitude": np.tile([1.0, 0.0, 0.0, 0.0], (len(t), 1)),
        "body_rate": zero,
        "specific_force": np.tile([0.0, 0.0, GRAVITY], (len(t), 1)),
        "rotor_command": full * np.tile(command[:, None], (1, 4)),
        "battery_voltage": battery[:, None],
    }
    for name in ("position", "velocity", "attitude", "body_rate", "rotor_command"):
        values[name] = values[name] + noise * rng.normal(size=values[name].shape)
    values["attitude"] /= np.linalg.norm(values["attitude"], axis=1, keepdims=True)
    signals = {name: Signal(name, t, value, name) for name, value in values.items()}
    return Flight(signals, Path("known.csv"), "simulation")


def test_a_constant_gain_and_a_gain_by_voltage_of_known_rotors() -> None:
    with jax.enable_x64(True):
        (constant,) = nanobench.thrust_gain([known_flight(4.2), known_flight(3.9)], 0)
        assert constant == pytest.approx(GAIN, rel=1e-6)
        by_voltage = nanobench.thrust_gain([known_flight(v, 1.5) for v in (4.2, 3.9)], 2)
    voltage = np.array([3.5, 3.8, 4.1])
    gain = np.polynomial.polynomial.polyval(voltage, by_voltage)
    np.testing.assert_allclose(gain, GAIN * (voltage / 4.0) ** 1.5, rtol=2e-3)


def test_a_vehicle_in_hover_is_predicted_by_the_gains_only() -> None:
    """The baselines without acceleration are right, and the gains; the published rotors are too strong."""
    training, test = [known_flight(4.2), known_flight(3.9)], known_flight(4.0)
    size = nanobench.Size(stride=STRIDE)
    predicted = nanobench.predictions(
        training, test, nanobench.prior_airframe(), size, Stage(no_progress, "", 6)
    )
    assert predicted.windows == 8
    for model in (nanobench.UNCHANGED, nanobench.CONSTANT_VELOCITY, nanobench.CONSTANT_GAIN):
        assert predicted.errors[model].mean.max() < 1e-4
    assert predicted.errors[nanobench.PUBLISHED_AIRFRAME].mean[1, -1] > 1.0
    assert predicted.errors[nanobench.PHYSICS].coverage is not None


def test_the_residual_corrects_the_thrust_of_the_prior() -> None:
    """The rotors of the prior are too strong, which the thrust scale that is learned with the residual removes."""
    training, test = [known_flight(v, noise=0.003) for v in (4.2, 3.9)], known_flight(4.0, noise=0.003)
    airframe, size = nanobench.prior_airframe(0.0), nanobench.Size(stride=STRIDE)
    before = nanobench.predictions(training, test, airframe, size, Stage(no_progress, "", 6))
    stage = Stage(no_progress, "", nanobench.ITERATIONS)
    after = nanobench.residual_errors(training, test, airframe, size, stage)
    assert before.errors[nanobench.PHYSICS].mean[1, -1] > 1.0
    assert after.mean[1, -1] < 0.1
    assert stage.done > 0


def test_each_flight_is_predicted_by_models_of_the_others(
    flights: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The quick form, with one flight left out and one step of training: errors of all models, files, page and headline."""
    monkeypatch.setattr(nanobench, "ITERATIONS", 1)
    data = tmp_path / "data"
    data.mkdir()
    (data / "nanobench").symlink_to(flights / "nanobench")
    size = Size(nanodrone.Size(), nanobench=nanobench.Size(flights=1, stride=STRIDE, identify=False))
    study = benchmarks(tmp_path / "out", data, size=size)
    means = {
        (r.method, r.quantity): r.value for r in study.rows if r.part == "nanobench" and not r.trajectory
    }
    assert means[nanobench.CONSTANT_VELOCITY, "position"] < 0.4 * means[nanobench.UNCHANGED, "position"]
    assert means[nanobench.VOLTAGE_GAIN, "velocity"] < means[nanobench.CONSTANT_VELOCITY, "velocity"]
    assert 0.0 < means[nanobench.PHYSICS, "coverage, velocity"] <= 1.0
    assert means[nanobench.RESIDUAL, "body_rate"] < 0.5 * means[nanobench.PHYSICS, "body_rate"]
    accepted = [r for r in study.rows if r.part == NANOBENCH_AIRFRAME and r.quantity == "accepted"]
    assert [r.setting for r in accepted] == ["not run in the quick form"]
    assert len(list((tmp_path / "out" / "airframes").glob("nanobench-without-*.toml"))) == 1
    page = benchmarks_page(study.rows, study.curves, 0)
    assert "thrust gain by voltage" in page
    assert "not run in the quick form" in page
    assert headline(study.rows)[0].startswith("NanoBench, flights left out: 1")


def test_numbers_of_the_identified_airframes_are_on_the_page(
    flights: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fit that halves the standard deviation of the drag."""
    prior = nanobench.prior_airframe()
    number = nanobench.Number(0.0123, 0.005, "N s/m", 0.01, 0.01)
    errors = MultiStepErrors(np.full((4, 50), 0.25), np.full(4, 0.94))
    monkeypatch.setattr(nanobench, "residual_errors", lambda *arguments: errors)
    monkeypatch.setattr(
        nanobench, "identified", lambda training, progress: nanobench.Identified(prior, "", {"drag": number})
    )
    data = tmp_path / "data"
    data.mkdir()
    (data / "nanobench").symlink_to(flights / "nanobench")
    size = Size(nanodrone.Size(), nanobench=nanobench.Size(flights=1, stride=10 * STRIDE))
    study = benchmarks(tmp_path / "out", data, size=size)
    row = next(r for r in study.rows if r.part == NANOBENCH_AIRFRAME and r.method == "number")
    assert (row.value, row.standard_error, row.unit) == (0.0123, 0.005, "N s/m")
    mean = next(r.value for r in study.rows if r.method == nanobench.RESIDUAL and r.quantity == "position")
    assert mean == pytest.approx(50 * 0.25)
    page = benchmarks_page(study.rows, study.curves, 0)
    assert f">0.0123 ± {number_text(0.005)}<" in page.replace("\N{NO-BREAK SPACE}", " ")
    assert ">50<" in page
    assert "Identification completed 1 of 1 times" in headline(study.rows)[0]
