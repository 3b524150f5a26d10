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

from benchmarks import particles, subspace, swls  # noqa: E402
from benchmarks.metrics import Metric, interleaved, ratio, regressions, save  # noqa: E402


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


@pytest.mark.skipif(compiler() is None, reason="no C compiler on this machine")
def test_onboard():
    found = {m["name"]: m["value"] for m in _run("--no-peers", "onboard")}
    for precision, difference in (("double", 1e-10), ("float", 1e-3)):
        label = f"EKF, C in {precision}"
        assert 0.0 <= found[f"{label}: most off from JAX"] < difference
        assert 0.1 < found[f"{label}: step"] < 1000.0
        assert 10.0 < found[f"{label}: code"] < 200.0


@pytest.mark.skipif(importlib.util.find_spec("nfoursid") is None, reason="nfoursid is not installed")
def test_subspace():
    """In this process: it starts no program."""
    found = {m.name: m for m in subspace.benchmark(500, 1, peer=True)}
    (error,) = (m for name, m in found.items() if "error of the poles" in name)
    assert error.value < 1.1 * error.peer < 0.01
    assert any("nfoursid / ours" in name for name in found)


@pytest.mark.skipif(compiler() is None, reason="no C compiler on this machine")
def test_swls_and_scipy_come_to_one_minimum():
    """In this process, so that what other tests compiled serves here too."""
    with jax.enable_x64(True):
        found = {m.name: m for m in swls.benchmark(0.5, 2, 2, (1,))}
    assert found["SWLS, window 20: from the minimum"].value < swls.FAR[1]
    assert {"SWLS, window 20: scipy / ours", "SWLS, window 20: scipy, 2-point / ours"} < set(found)
    assert all(m.value > 0.0 for m in found.values())


@pytest.mark.parametrize("far", [0.06, math.nan])
def test_swls_is_not_measured_at_another_minimum(far):
    with pytest.raises(swls.DifferentMinimumError, match="standard deviations from the minimum"):
        swls.same_minimum(far, 1)


def test_particle_filters_are_not_compared_on_different_models():
    ours = [-2076.5, -2075.9, -2076.3]
    particles.same_model("scalar", ours, [-2076.4, -2076.1, -2075.8])
    with pytest.raises(AssertionError, match=r"scalar: log-likelihood .* not the same model"):
        particles.same_model("scalar", ours, [-2070.4, -2070.1, -2069.8])


def test_interleaving_alternates_the_order():
    order = []
    took = interleaved({"a": lambda: order.append("a"), "b": lambda: order.append("b")}, rounds=2)
    assert order == ["a", "b", "b", "a"]
    assert {name: len(times) for name, times in took.items()} == {"a": 2, "b": 2}


def test_ratio_is_taken_round_by_round():
    assert ratio([2.0, 20.0, 4.0], [1.0, 10.0, 1.0]) == 2.0


def test_only_what_got_worse_beyond_its_tolerance_is_a_regression(tmp_path):
    speed = Metric("speed", 2.0, "x", "higher", tolerance=0.2)
    error = Metric("error", 1.0, "%", "lower", tolerance=0.1)
    free = Metric("time", 1.0, "s", "lower")
    path = tmp_path / "baseline.json"
    save([speed, error, free], path)

    def now(s, e):
        metrics = [
            dataclasses.replace(speed, value=s),
            dataclasses.replace(error, value=e),
            dataclasses.replace(free, value=99.0),
        ]
        return regressions(metrics, path)

    assert now(1.7, 1.05) == []
    assert now(5.0, 0.1) == []
    assert len(now(1.5, 1.05)) == 1
    assert len(now(1.5, 1.2)) == 2
    assert len(now(1.7, math.nan)) == 1
