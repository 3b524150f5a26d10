"""The benchmarks run, with small sizes; what they measure is judged by `python -m benchmarks --check` alone."""

from __future__ import annotations

import dataclasses
import importlib.util
import json
import math
import subprocess
import sys
from pathlib import Path

import jax
import pytest

from rotorid.codegen.native import compiler

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from benchmarks import fleet, identify, particles, subspace, swls, track  # noqa: E402
from benchmarks.__main__ import BENCHMARKS  # noqa: E402
from benchmarks.metrics import (  # noqa: E402
    BASELINE,
    Metric,
    Result,
    WrongResultError,
    interleaved,
    ratio,
    regressions,
    save,
)


def _run(*arguments: str) -> list[dict]:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks", "--quick", "--json", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_rotorid_alone():
    found = {m["name"]: m for m in _run("--no-peers", "stream", "readers")}
    assert found["EKF, stream: error of the mass"]["value"] < 5.0
    assert found["read flight table .csv"]["value"] > 0.0
    assert all(math.isfinite(m["value"]) for m in found.values())


@pytest.mark.parametrize(("benchmark", "peer"), [("batch", "dynamax"), ("stream", "filterpy")])
def test_beside_the_peer(benchmark, peer):
    if importlib.util.find_spec("dynamax") is None or importlib.util.find_spec("filterpy") is None:
        pytest.skip("dynamax or filterpy is not installed: pip install 'rotorid[bench]'")
    found = _run(benchmark)
    assert any(f"{peer} / ours" in m["name"] and m["value"] > 0.0 for m in found)
    for m in found:
        if "error of the mass" in m["name"]:
            assert abs(m["value"] - m["peer"]) < 1.0, m


@pytest.mark.parametrize("peers", [True, False])
def test_elm(peers):
    missing = [name for name in ("hpelm", "pyoselm") if importlib.util.find_spec(name) is None]
    if peers and missing:
        pytest.skip(f"{' and '.join(missing)} not installed: pip install 'rotorid[bench]'")
    found = {m["name"]: m for m in _run("elm", *([] if peers else ["--no-peers"]))}
    assert (
        peers
        == any("pyoselm / ours" in name for name in found)
        == any("hpelm / ours" in name for name in found)
    )
    (error,) = (m for name, m in found.items() if "error on new samples" in name)
    assert error["value"] < 30.0
    assert not peers or error["value"] < 1.5 * error["peer"]


def test_identify_track_and_fleet():
    """In one process, which simulates a flight once for two of them. drone-models takes a minute, whatever the flight."""
    found = {m["name"]: m["value"] for m in _run("--no-peers", "identify", "track", "fleet")}
    label = f"identify, {identify.QUICK[0]:g} s of flight"
    assert 0.0 < found[f"{label}: largest error"] < 3.0
    assert 0.0 < found[f"{label}: error of the inertia"] < 3.0 * found[f"{label}: std of the inertia"] < 3.0
    assert found[f"{label}: scipy, ended at 0.5 / ours"] >= 0.5
    assert 1.0 < found[f"track, {track.QUICK[0]:g} s of flight: ours / start of JAX"] < 100.0
    label = f"fleet, {fleet.QUICK[0]} logs"
    assert found[f"{label}: ours / reading by pyarrow"] > 1.0
    for count in ("planted changes not found", "other changes", "failed logs"):
        assert found[f"{label}: {count}"] == 0
    assert found[f"{label}: memory of the processes"] > 1.0


@pytest.mark.skipif(compiler() is None, reason="no C compiler on this machine")
def test_onboard():
    found = {m["name"]: m["value"] for m in _run("--no-peers", "onboard")}
    for precision, difference in (("double", 1e-10), ("float", 1e-3)):
        label = f"EKF, C in {precision}"
        assert 0.0 <= found[f"{label}: largest difference from JAX"] < difference
        assert 0.1 < found[f"{label}: step"] < 1000.0
        assert 1.0 < found[f"{label}: step / matrix product"] < 100.0
        assert 10.0 < found[f"{label}: code"] < 200.0


@pytest.mark.skipif(importlib.util.find_spec("nfoursid") is None, reason="nfoursid is not installed")
def test_subspace():
    """In this process: it starts no program."""
    found = {m.name: m for m in subspace.benchmark(*subspace.QUICK, {"nfoursid"})}
    (error,) = (m for name, m in found.items() if "error of the poles" in name)
    assert error.value < 1.1 * error.peer < 0.01
    assert any("nfoursid / ours" in name for name in found)


@pytest.mark.skipif(compiler() is None, reason="no C compiler on this machine")
def test_swls_and_scipy_come_to_one_minimum():
    """In this process, so that what other tests compiled serves here too."""
    with jax.enable_x64(True):
        found = {m.name: m for m in swls.benchmark(*swls.QUICK)}
    assert found["SWLS, window 20: distance from the minimum"].value < swls.FAR[1]
    assert {"SWLS, window 20: scipy / ours", "SWLS, window 20: scipy, 2-point / ours"} < set(found)
    assert all(m.value > 0.0 for m in found.values())


@pytest.mark.parametrize("far", [0.06, math.nan])
def test_swls_is_not_measured_at_another_minimum(far):
    with pytest.raises(WrongResultError, match="standard deviations from the minimum"):
        swls.same_minimum(far, 1)


def test_particle_filters_are_not_compared_on_different_models():
    ours = [-2076.5, -2075.9, -2076.3]
    particles.same_model("scalar", ours, [-2076.4, -2076.1, -2075.8])
    with pytest.raises(WrongResultError, match=r"scalar: .* log-likelihoods .* not the same model"):
        particles.same_model("scalar", ours, [-2070.4, -2070.1, -2069.8])


def test_interleaving_alternates_the_order():
    order = []
    took = interleaved({"a": lambda: order.append("a"), "b": lambda: order.append("b")}, rounds=2)
    assert order == ["a", "b", "b", "a"]
    assert {name: len(times) for name, times in took.items()} == {"a": 2, "b": 2}


def test_ratio_is_taken_round_by_round():
    assert ratio([2.0, 20.0, 4.0], [1.0, 10.0, 1.0]) == 2.0


SPEED = Metric("speed", 2.0, "x", "higher", tolerance=0.2)
ERROR = Metric("error", 1.0, "%", "lower", tolerance=0.1)
TIME = Metric("time", 1.0, "s", "lower")
KNOWN = ("tracking", "reading")


def _measured(*metrics: Metric, absent: str = "") -> dict[str, Result]:
    return {"tracking": Result(metrics, absent)}


@pytest.fixture
def baseline(tmp_path: Path) -> Path:
    """Of two benchmarks, one of which has the row "MB/s"."""
    path = tmp_path / "baseline.json"
    rows = {
        "tracking": Result((SPEED, ERROR, TIME)),
        "reading": Result((dataclasses.replace(SPEED, name="MB/s"),)),
    }
    save(rows, KNOWN, path)
    return path


@pytest.mark.parametrize(
    ("speed", "error", "worse"),
    [
        (1.7, 1.05, []),
        (5.0, 0.1, []),
        (1.5, 1.05, ["speed"]),
        (1.5, 1.2, ["speed", "error"]),
        (1.7, math.nan, ["error"]),
    ],
)
def test_rows_worse_by_more_than_their_tolerance_are_regressions(baseline, speed, error, worse):
    rows = dataclasses.replace(SPEED, value=speed), dataclasses.replace(ERROR, value=error)
    found = regressions(_measured(*rows, dataclasses.replace(TIME, value=99.0)), KNOWN, baseline)
    assert [line.split(":")[0] for line in found] == worse
    assert all("worse than" in line and "baseline.json" in line for line in found)


def test_a_row_that_is_no_longer_measured_is_an_error(baseline):
    (line,) = regressions(_measured(SPEED), KNOWN, baseline)
    assert line == "error: in baseline.json, but not measured"
    assert regressions(_measured(SPEED, absent="no peer"), KNOWN, baseline) == []
    (line,) = regressions(_measured(SPEED, dataclasses.replace(ERROR, tolerance=None)), KNOWN, baseline)
    assert line.startswith("error: in baseline.json")


def test_a_row_without_baseline_is_an_error(baseline):
    (line,) = regressions(_measured(SPEED, ERROR, dataclasses.replace(SPEED, name="new")), KNOWN, baseline)
    assert line == "new: not in baseline.json; add it with: python -m benchmarks tracking --save"


def test_a_benchmark_that_no_longer_exists_is_an_error(baseline):
    (line,) = regressions(_measured(SPEED, ERROR), ("tracking",), baseline)
    assert line == "reading: in baseline.json, but there is no such benchmark"


def test_saving_one_benchmark_keeps_the_rows_of_the_others(baseline):
    save(_measured(dataclasses.replace(SPEED, value=1.23456e-9)), KNOWN, baseline)
    assert json.loads(baseline.read_text()) == {"tracking": {"speed": 1.235e-9}, "reading": {"MB/s": 2.0}}
    save(_measured(ERROR, absent="no peer"), KNOWN, baseline)
    rows = {"tracking": {"speed": 1.235e-9, "error": 1.0}, "reading": {"MB/s": 2.0}}
    assert json.loads(baseline.read_text()) == rows
    save(_measured(ERROR), ("tracking",), baseline)
    assert json.loads(baseline.read_text()) == {"tracking": {"error": 1.0}}


def test_the_baseline_has_rows_of_existing_benchmarks_only():
    assert set(json.loads(BASELINE.read_text())) <= set(BENCHMARKS)
