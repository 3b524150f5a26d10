"""The study of the external wrench on few short flights: its numbers, its page, and its resumption."""

from __future__ import annotations

import functools
import math
import shutil

import numpy as np
import pytest

from rotorid.estimators.run import run
from rotorid.estimators.wrench.observers import momentum_observer
from rotorid.learning.architectures import multirotor_heads
from rotorid.logs.flight import Flight
from rotorid.models.airframe.airframe import load_airframe
from rotorid.models.multirotor.rigid import rigid_multirotor
from rotorid.progress import Stage, no_progress
from rotorid.signals.measurement_noise import measured_noise
from rotorid.signals.sampling import truth_at
from rotorid.simulation.wrench.flights import evaluation_flights, simulate_wrench_flight
from rotorid.studies.nemo import axes
from rotorid.studies.nemo import models as nemo_models
from rotorid.studies.nemo import study as nemo
from rotorid.studies.nemo.models import ERRORS, Plan, wrong_physics
from rotorid.studies.nemo.page import headline, nemo_page, ranking
from rotorid.studies.nemo.wrench import SETTLING_TIME
from rotorid.studies.page_parts import Numbers
from rotorid.studies.study_files import PARTS
from rotorid.workflows.track.track import prepare_samples

AIRFRAME = load_airframe(nemo.AIRFRAME)
SYSTEM = rigid_multirotor(AIRFRAME, "rotor_speed")
SIZE = nemo.Size(1, 2, (2, 1, 1), 2, ("nemo-1",), (), 2, (), 0)
DURATION = 6.0


def some_plans(size: nemo.Size) -> tuple[Plan, ...]:
    return (Plan("nemo-1", "split", 1, size.epochs[0]),)


SHORT = {"duration": DURATION, "rate": 100.0}


@functools.cache
def training_flights() -> list[Flight]:
    return [simulate_wrench_flight(AIRFRAME, "free-flight", k, **SHORT) for k in (1, 2)]


@functools.cache
def flights_by_scenario(seed: int, n: int) -> dict[str, list[Flight]]:
    return evaluation_flights(AIRFRAME, seed, n, **SHORT)


@pytest.fixture(scope="module")
def patched():
    """Flights of 6 s, two to learn from and one in each scenario, with exact logs; one of the trainings, two of the types."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(nemo, "SETS", ("exact",))
        patch.setattr(nemo, "plans", some_plans)
        patch.setattr(nemo_models, "multirotor_heads", lambda a: multirotor_heads(a, hidden=8))
        patch.setattr(nemo, "ERRORS", {kind: ERRORS[kind] for kind in ("MG-1", "MGD")})
        patch.setattr(nemo, "training_flights", lambda a, seed, n, **more: training_flights())
        patch.setattr(nemo, "evaluation_flights", lambda a, seed, n, **more: flights_by_scenario(seed, n))
        yield


@pytest.fixture(scope="module")
def study(patched, tmp_path_factory: pytest.TempPathFactory):
    folder = tmp_path_factory.mktemp("study") / "nemo"
    return nemo.nemo(folder, size=SIZE), folder


def test_wrong_parameters_are_those_of_table_1() -> None:
    g, mgd = wrong_physics(SYSTEM, "G"), wrong_physics(SYSTEM, "MGD")
    assert g == pytest.approx(
        {
            "tilt_scale": 1.1,
            "arm_scale": 0.95,
            "torque_ratio": 0.6 * 0.0203,
            "thrust_coefficient": 1.4 * 11.75e-4,
        }
    )
    assert (mgd["drag"], mgd["angular_drag"], mgd["thrust_scale"]) == (0.1, (0.1, 0.1, 0.1), 0.9)
    assert mgd["mass"] == pytest.approx(0.975 * 2.81)
    assert mgd["inertia"] == pytest.approx(tuple(1.035 * v for v in (0.115, 0.114, 0.194)))
    doubled = wrong_physics(SYSTEM, "MG-2")
    for name in g:
        assert doubled[name] == pytest.approx(g[name])
        assert wrong_physics(SYSTEM, "MG-1")[name] - SYSTEM.parameter(name).values[0] == pytest.approx(
            0.5 * (g[name] - SYSTEM.parameter(name).values[0])
        )


def test_published_totals_are_those_of_the_document() -> None:
    totals = {
        "G": (278.8540, 34.4121),
        "MG-1": (434.9977, 69.1641),
        "MG-2": (278.7971, 53.2561),
        "MGD": (182.4156, 74.1087),
    }
    for kind, (mo, best) in totals.items():
        assert sum(nemo.PUBLISHED[kind]["mo"]) == pytest.approx(mo, abs=2e-4)
        assert sum(nemo.PUBLISHED[kind]["nemo-50"]) == pytest.approx(best, abs=2e-4)


def test_errors_are_those_of_an_observer_of_each_flight(study) -> None:
    n = Numbers(study[0].rows)
    wrong = wrong_physics(SYSTEM, "MG-1")
    for scenario, (flight,) in flights_by_scenario(0, 1).items():
        samples = prepare_samples(flight, SYSTEM, whole=True)
        priors = {name: SYSTEM.parameter(name).with_prior(value) for name, value in wrong.items()}
        noise = measured_noise(samples, SYSTEM.outputs)
        value = np.asarray(
            run(momentum_observer(SYSTEM, priors=priors, measurement_noise=noise), samples).value
        )
        t = np.asarray(samples.t)
        truth = np.hstack([truth_at(flight, name, t) for name in ("true_force", "true_torque")])
        error = math.sqrt(np.mean(np.sum((value - truth)[t > SETTLING_TIME] ** 2, axis=1)))
        assert n.get("exact", "mo", "rms error", scenario, setting="MG-1").value == pytest.approx(
            error, rel=1e-3
        )


def test_identified_parameters_are_as_good_as_the_true_ones(study) -> None:
    n = Numbers(study[0].rows)
    for kind in ("MG-1", "MGD"):
        for scenario in ("hover-wrench", "free-flight-wrench"):
            error = {
                m: n.get("exact", m, "rms error", scenario, setting=kind).value
                for m in ("mo", "identified", "oracle")
            }
            assert error["identified"] < 1.25 * error["oracle"] < error["mo"]
        assert ranking(n, "exact", kind) == [
            "identified",
            "mo",
        ]  # in the order of their errors, and no others


def test_a_residual_without_attitude_does_not_determine_the_horizontal_force(monkeypatch) -> None:
    monkeypatch.setattr(axes, "_TRAINING_FLIGHTS", ("free-flight",) * 2)
    monkeypatch.setattr(axes, "_DURATION", 4.0)
    monkeypatch.setattr(axes, "SCENARIOS", ("free-flight",))
    monkeypatch.setattr(axes, "KINDS", ("MG-1",))
    n = Numbers(axes.axes_part(AIRFRAME, SYSTEM, 0, 1, Stage(no_progress, "", 1)).rows)

    def get(method: str, quantity: str) -> float:
        return n.get("axes", method, quantity, "free-flight", setting="MG-1").value

    for axis in "xyz":
        rms, ratio = f"rms force_{axis}", f"ratio force_{axis}"
        assert get("linear, body", rms) < 1e-6 * get("mo", rms)
        assert get("linear, world", rms) == pytest.approx(get("linear, world", ratio) * get("mo", rms))
        assert (get("linear, world", ratio) < 0.05) == (axis == "z")


def test_an_interrupted_study_is_resumed(study, monkeypatch: pytest.MonkeyPatch) -> None:
    found, folder = study
    with monkeypatch.context() as patch:
        patch.setattr(nemo, "training_flights", None)  # nothing is flown again
        again = nemo.nemo(folder, size=SIZE)
    assert [(r.method, r.quantity, r.value) for r in again.rows if math.isfinite(r.value)] == [
        (r.method, r.quantity, r.value) for r in found.rows if math.isfinite(r.value)
    ]
    shutil.rmtree(folder / PARTS)
    with monkeypatch.context() as patch:
        patch.setattr(nemo_models, "learn_residual", None)  # nothing is trained again
        patch.setattr(nemo, "identify", lambda system, flights, physics, stage: (physics, {}))
        once_more = nemo.nemo(folder, size=SIZE)
    rows = {
        tuple(
            (r.trajectory, r.setting, r.value)
            for r in made.rows
            if (r.method, r.quantity) == ("nemo-1", "rms error")
        )
        for made in (found, once_more)
    }
    assert len(rows) == 1


def test_page(study) -> None:
    rows, curves, flights = study[0]
    page = nemo_page(rows, curves, flights, 0)
    for text in (
        "NeMO, \u03b1 = 1",
        "Table II",
        "Figure 5: free flight",
        "0.454",
        "hovering + wrench",
        "MO, identified parameters",
    ):
        assert text in page, text
    identified = max(
        Numbers(rows).get("exact", "identified", "rms error", s, setting=kind).value
        / Numbers(rows).get("exact", "oracle", "rms error", s, setting=kind).value
        for s in ("hover-wrench", "free-flight-wrench")
        for kind in ("MG-1", "MGD")
    )
    lines = headline(rows)
    assert f"MO, identified parameters {identified:.2f}" in lines[1]
    assert "NeMO, identified" not in lines[1]  # it was not run
