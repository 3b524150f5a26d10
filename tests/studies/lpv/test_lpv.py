"""The study of LPV and Bayesian identification, on few data: its parts, that it goes on where it was, and its page."""

from __future__ import annotations

import math

import numpy as np
import pytest

from rotorid.report.page import escape
from rotorid.studies.lpv import control as lpv_control
from rotorid.studies.lpv import likelihood as lpv_likelihood
from rotorid.studies.lpv import particles as lpv_particles
from rotorid.studies.lpv import pilots as lpv_pilots
from rotorid.studies.lpv import standard as lpv_standard
from rotorid.studies.lpv import stationary as lpv_stationary
from rotorid.studies.lpv import study as lpv
from rotorid.studies.lpv.control import Row as Flown
from rotorid.studies.lpv.in_flight import FaultyFlight
from rotorid.studies.lpv.likelihood import MaximumLikelihoodFit, QuadrotorFits, VaryingFits
from rotorid.studies.lpv.page import best_published_setting, headline, lpv_study_page
from rotorid.studies.lpv.particles import (
    ALPHA,
    FORMS,
    PARAMETERS,
    SETTINGS,
    V,
    W,
    exact_posterior,
    simulate,
)
from rotorid.studies.lpv.slow_changes import collapse_row
from rotorid.studies.page_parts import Numbers
from rotorid.studies.study_files import Curve, Part, Row, mean_of_all, mean_row

SIZE = lpv.Size((200,), (2, 2, 2, 1), (50,), ("measured",), 100, 30, ("helix",), ("none",))


def estimated(seed: int, names: dict[str, float]) -> MaximumLikelihoodFit:
    values = {name: (1.0 + 0.1 * seed) * value for name, value in names.items()}
    return MaximumLikelihoodFit(
        seed, values, dict.fromkeys(names, 0.05), dict.fromkeys(names, 0.1 * seed), -1.0, 1, True
    )


def in_flight() -> Part:
    """The part of the flights with faults, of made-up flights."""
    t = np.arange(0.0, 12.0, 0.1)
    ones, shares = np.ones(len(t)), np.where(t[:, None] > 9.0, [0.7, 1.0, 1.0, 1.0], 1.0)
    rows = [
        mean_row(lpv_pilots.PART, "first flight", name, "kg", mean_of_all([m]), ("helix", ""))
        for name, m in (("least mass", 0.9), ("largest mass", 1.6))
    ]
    curves: list[Curve] = []
    for k, pilot in enumerate(lpv_pilots.PILOTS):
        flight = FaultyFlight(
            t, 0.1 * (k + 1) * ones, ones, shares, 1.01 * ones, 0.01 * ones, shares, 0.01 + 0.0 * shares
        )
        rows += lpv_pilots._flight_rows(pilot, "helix", [flight])
        curves += lpv_pilots._curves(pilot, "helix", flight)
    return Part(tuple(rows), tuple(curves))


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory):
    """The study, with short replacements for the parts that other tests contain."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            lpv_standard, "third_order_rows", lambda *a: (Row("standard: third order", "subspace", "a", 1.0),)
        )
        patch.setattr(
            lpv_standard, "varying_rows", lambda *a: (Row("standard: time-varying", "pem", "a", -5.8),)
        )
        patch.setattr(
            lpv, "quadrotor_rows", lambda seeds: (Row("standard: quadrotor", "free", "condition", 1e9),)
        )
        patch.setattr(
            lpv_likelihood,
            "first_test",
            lambda seeds: [estimated(s, lpv_likelihood.TRUE) for s in seeds],
        )
        varying = {"x1": 0.75} | lpv_likelihood.VARYING
        patch.setattr(
            lpv_likelihood,
            "varying_test",
            lambda seeds: [VaryingFits(estimated(s, varying), estimated(s, varying), 10.0) for s in seeds],
        )
        patch.setattr(
            lpv_likelihood,
            "data_length",
            lambda lengths, seeds, unknown, inputs: [
                QuadrotorFits(n, unknown, inputs, (0.1, 0.3), (0.2, 0.2), 0) for n in lengths
            ],
        )
        flown = [
            Flown("helix", kind, "exact", name, rms, 0.2, 0.01, 0.0, 0.0, math.isinf(rms))
            for kind, name, rms in (
                ("none", "LQR", 0.2), ("none", "LPV", 0.1), ("heavy", "LQR", math.inf), ("heavy", "LPV", 0.1),
            )
        ]  # fmt: skip
        patch.setattr(lpv_control, "compare", lambda *a, **k: flown)
        patch.setattr(lpv_pilots, "in_flight_part", lambda *a: in_flight())
        some = {name: SETTINGS[name] for name in ("no changes", "uniform, 10 %", "ours")}
        patch.setattr(lpv_particles, "SETTINGS", some)
        patch.setattr(lpv_particles, "SPREADS", {"uniform": (0.4,)})
        patch.setattr(lpv_particles, "BETAS", (0.1,))
        patch.setattr(lpv_particles, "DRIFTS", (0.0,))
        patch.setattr(lpv_particles, "_STATES", {"Liu and West": "sampled"})
        few = {name: lpv_stationary._SETTINGS[name] for name in (lpv_stationary.RECOMMENDED,)}
        patch.setattr(lpv_stationary, "_SETTINGS", few)
        patch.setattr(lpv_stationary, "_REFERENCE_PARTICLES", 1000)
        folder = tmp_path_factory.mktemp("study") / "lpv"
        first = lpv.lpv(folder, size=SIZE)
        patch.setattr(lpv_particles, "constant_part", lambda *a: Part(()))
        return first, lpv.lpv(folder, size=SIZE)


def test_an_interrupted_study_is_resumed(study) -> None:
    first, again = study
    assert [str(row) for row in first.rows] == [str(row) for row in again.rows]
    assert len(first.curves) == len(again.curves)


def test_the_exact_posterior_contains_the_truth_and_narrows() -> None:
    short, long = (exact_posterior(simulate(np.full(n, ALPHA), 3)) for n in (50, 400))
    true = np.array(list(PARAMETERS.values()))
    assert np.all(np.abs(long.mean - true) < 3.0 * long.std)
    assert np.all(long.std < short.std)


def test_simulated_data_have_the_variances_of_the_model() -> None:
    y = np.asarray(simulate(np.full(40_000, ALPHA), 0).y)[:, 0]
    variance, lag = W / (1.0 - ALPHA**2) + V, ALPHA * W / (1.0 - ALPHA**2)
    assert np.var(y) == pytest.approx(variance, rel=0.05)
    assert np.mean(y[1:] * y[:-1]) == pytest.approx(lag, rel=0.06)


def test_changepoints_reduce_the_error(study) -> None:
    n = Numbers(study[0].rows)
    for form in FORMS:
        with_changes, without_changes = (
            n.get("changes", m, "relative error, mean", form).value for m in ("ours", "no changes")
        )
        assert with_changes < 0.5 * without_changes
        assert n.get("changes", "adaptive", "relative error, mean", form).value < without_changes
    assert best_published_setting(n) == "uniform, 10 %"


def test_the_reference_of_the_stationary_process_is_calibrated_and_reproducible() -> None:
    errors, runs = [], []
    for seed in range(12):
        alpha, y = lpv_stationary.draw(150, seed)
        (mean, std), (other, _) = (lpv_stationary.reference_posterior(y, s, 3000) for s in (seed, seed + 50))
        errors.append((mean - alpha)[20:] / std[20:])
        runs.append((other - mean)[20:])
        assert np.max(np.abs(y)) < 40.0
    assert 0.88 < np.mean(np.abs(errors) < 1.96) < 0.98
    assert np.sqrt(np.mean(np.square(runs))) < 0.02


def test_a_filter_with_the_changes_of_the_data_is_near_the_reference(study) -> None:
    n = Numbers(study[0].rows)
    distance, error = (
        n.get("stationary", lpv_stationary.RECOMMENDED, q).value
        for q in ("distance from the reference", "rms error")
    )
    assert distance < 0.5 * error
    assert n.get("stationary", "reference", "covered").flights == 2


def test_a_slow_sine_leaves_the_variances_identified(study) -> None:
    n = Numbers(study[0].rows)
    errors = {p: n.get("figure 4.5", "Liu and West", "relative error, mean", p).value for p in PARAMETERS}
    assert all(math.isfinite(e) for e in errors.values())
    curves = [c for c in study[0].curves if c.part == "figure 4.5"]
    assert [c.quantity for c in curves] == list(PARAMETERS)
    assert np.ptp(curves[0].truth) > 0.4
    assert not np.ptp(curves[1].truth)


@pytest.mark.parametrize(("std", "row"), [([1.0, 0.0, 0.0], 1), ([0.0, 0.0], 0), ([0.0, 1.0], None)])
def test_the_row_from_which_particles_are_equal(std: list[float], row: int | None) -> None:
    one = np.ones(len(std))
    assert collapse_row(Curve("p", "m", "", "", one, one, np.array(std), one)) == row


def test_page(study) -> None:
    found = study[0]
    page = lpv_study_page(found.rows, found.curves, 0)
    for line in headline(found.rows):
        assert escape(line.split("(")[0]) in page
    for words in (
        "Figures 4.1 and 4.2",
        "Figure 4.1: one unknown parameter",
        "Figure 4.6: alpha, second half",
        "Figure 4.12",
        "Figure 4.7",
        "Identified in flight: a payload",
        "identified NMPC",
        "Priors of a changed parameter",
        "crashed",
        "0.269",
        "on 2 of 2 flights",
    ):
        assert escape(words) in page, words
    assert "nan" not in page.split("<script")[0].lower().replace("finance", "")


def test_a_delay_is_counted_from_the_jump() -> None:
    part = lpv_particles._delay
    assert part(np.array([0.0, 0.0, 0.5, 0.3, 0.01, 0.2]), 2) == 2
    assert part(np.array([0.0, 0.5, 0.5]), 1) == 2
