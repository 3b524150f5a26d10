"""Each number of a comparison against truth made by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from rotorid.estimators.base import Health
from rotorid.workflows.compare.findings import comparison_findings
from rotorid.workflows.compare.scores import (
    STEP_TIMEOUT,
    MassEstimate,
    compare_scores,
    mean_over,
    score_flight,
    step_delays,
    step_overshoots,
    step_rows,
)

T = np.arange(0.0, 10.0, 0.01)


def estimate(value, std=0.01, t=T, health: Health | np.ndarray = Health.OK, seconds=1e-5) -> MassEstimate:
    n = len(t)
    return MassEstimate(
        t=t,
        value=value * np.ones(n),
        std=std * np.ones(n),
        health=np.full(n, int(health)) if isinstance(health, Health) else health,
        nis=np.full(n, 6.0),
        nis_dof=np.full(n, 3),
        seconds_per_update=seconds,
    )


def score(value, truth, cell=None, **more):
    (one,) = score_flight({"ekf": estimate(value, **more)}, truth, cell)
    return one


def one_step(at=4.0, before=1.0, after=0.7, t=T):
    return np.where(t < at, before, after)


@pytest.mark.parametrize("share", [0.01, -0.02])
def test_a_constant_relative_error(share: float) -> None:
    truth = 1.0 + 0.3 * np.sin(T)
    s = score((1.0 + share) * truth, truth)
    assert s.metrics.rmspe == pytest.approx(100 * abs(share))
    assert s.metrics.rmspe_late == pytest.approx(100 * abs(share))
    assert s.metrics.bias == pytest.approx(100 * share)


def test_errors_that_cancel_have_no_bias() -> None:
    truth = np.full(len(T), 2.0)
    s = score(truth * (1.0 + 0.03 * (-1.0) ** np.arange(len(T))), truth)
    assert s.metrics.rmspe == pytest.approx(3.0)
    assert s.metrics.bias == pytest.approx(0.0, abs=1e-9)


def test_the_prior_counts_in_the_first_second_only() -> None:
    t = T + 7.0
    s = score(np.where(t < 8.0, 1.3, 1.0), np.ones(len(t)), t=t)
    assert s.metrics.rmspe == pytest.approx(30.0 * math.sqrt(0.1))
    assert s.metrics.rmspe_late == 0.0
    assert s.metrics.bias == 0.0


def test_nees_and_band_begin_after_two_seconds() -> None:
    truth = np.ones(len(T))
    value = np.where(T < 2.0, 9.0, np.where(T < 6.0, 1.01, 1.03))
    s = score(value, truth, std=0.01)
    assert s.metrics.nees == pytest.approx(0.5 * (1.0 + 9.0))
    assert s.metrics.coverage == pytest.approx(0.5)


def test_nees_of_a_consistent_estimator_is_one() -> None:
    rng = np.random.default_rng(0)
    truth = np.ones(len(T))
    s = score(truth + 0.05 * rng.standard_normal(len(T)), truth, std=0.05)
    assert s.metrics.nees == pytest.approx(1.0, abs=4 * math.sqrt(2.0 / 800))
    assert s.metrics.coverage == pytest.approx(0.95, abs=0.03)


@pytest.mark.parametrize("late", [0.0, 0.25, 1.4])
def test_a_pure_delay_is_found(late: float) -> None:
    assert step_delays(T, one_step(4.0 + late), one_step(4.0)) == (pytest.approx(late, abs=0.011),)


def test_the_delay_of_a_first_order_lag() -> None:
    tau, truth = 0.3, one_step(4.0)
    value = np.where(T < 4.0, 1.0, 0.7 + 0.3 * np.exp(-(T - 4.0) / tau))
    assert step_delays(T, value, truth) == (pytest.approx(tau * math.log(10.0), abs=0.011),)


def test_three_percent_of_the_new_value_are_near_enough() -> None:
    truth = one_step(4.0, 1.0, 0.92)
    value = np.where(T < 4.5, truth[0], 0.92 * 1.029)  # covers two thirds of the step
    assert step_delays(T, value, truth) == (pytest.approx(0.5, abs=0.011),)
    assert step_delays(T, np.where(T < 4.5, 1.0, 0.92 * 1.031), truth) == (math.inf,)


def test_arriving_is_for_good() -> None:
    truth = one_step(4.0)
    visits = np.where((T >= 4.2) & (T < 4.4), 0.7, one_step(5.0))
    assert step_delays(T, visits, truth) == (pytest.approx(1.0, abs=0.011),)
    overshoots = np.where((T >= 4.2) & (T < 4.8), 0.5, one_step(4.2))
    assert step_delays(T, overshoots, truth) == (pytest.approx(0.8, abs=0.011),)


@pytest.mark.parametrize("after", [0.7, 1.3])
def test_the_overshoot_is_beyond_the_new_mass_within_two_seconds(after: float) -> None:
    truth = one_step(4.0, 1.0, after)
    late = one_step(4.5, 1.0, after)
    assert step_overshoots(T, late, truth) == (0.0,)
    beyond = after * (1.0 + 0.05 * np.sign(after - 1.0))
    assert step_overshoots(T, np.where((T >= 5.0) & (T < 5.1), beyond, late), truth) == (pytest.approx(5.0),)
    assert step_overshoots(T, np.where(T >= 4.0 + STEP_TIMEOUT + 0.1, beyond, late), truth) == (0.0,)


def test_a_step_is_missed_after_two_seconds() -> None:
    truth = one_step(4.0)
    assert step_delays(T, one_step(4.0 + STEP_TIMEOUT + 0.1), truth) == (math.inf,)
    assert step_delays(T, np.ones(len(T)), truth) == (math.inf,)


def test_which_steps_count() -> None:
    def levels(*changes: tuple[float, float]):
        truth = np.ones(len(T))
        for at, mass in changes:
            truth[at <= T] = mass
        return truth

    def times(truth):
        return [round(float(t), 6) for t in T[step_rows(T, truth)]]

    assert times(levels((3.0, 1.04))) == []
    assert times(levels((3.0, 1.06))) == [3.0]
    assert times(levels((3.0, 0.8), (4.0, 1.0), (6.5, 0.8))) == [4.0, 6.5]
    assert times(levels((3.0, 0.8), (8.5, 1.0))) == [3.0]
    assert times(1.0 + 0.3 * np.sin(T)) == []


def test_scores_of_several_flights() -> None:
    truth, ones = one_step(4.0), np.ones(len(T))
    flights = [
        score_flight(
            {"ekf": estimate(one_step(4.0 + late)), "ukf": estimate(truth * 1.01)}, truth, ("loop", "step")
        )
        for late in (0.5, 0.9, 3.0)
    ]
    flights.append(
        score_flight({"ekf": estimate(1.02 * ones), "ukf": estimate(ones)}, ones, ("loop", "flat"))
    )
    c = compare_scores([s for of in flights for s in of])
    assert (c.has_truth, c.flights, list(c.estimators)) == (True, 4, ["ekf", "ukf"])
    assert list(c.cells) == [("loop", "step"), ("loop", "flat")]
    ekf, ukf = c.estimators["ekf"], c.estimators["ukf"]
    assert (ekf.steps, ekf.missed) == (3, 1)
    assert ekf.delay == pytest.approx(0.9, abs=0.011)
    assert ekf.overshoot == pytest.approx(0.0)
    assert ukf.delay == 0.0
    assert ukf.metrics.bias.value == pytest.approx(0.75)
    assert ukf.metrics.bias.standard_error == pytest.approx(0.25)
    flat = c.cells[("loop", "flat")]["ekf"]
    assert flat.metrics.rmspe.value == pytest.approx(2.0)
    assert flat.metrics.rmspe.flights == 1
    assert math.isnan(flat.metrics.rmspe.standard_error)
    assert math.isnan(flat.delay)


def test_missed_steps_count_in_the_median() -> None:
    truth = one_step(4.0)
    c = compare_scores([score(one_step(4.0 + late), truth) for late in (0.2, 3.0, 3.0)])
    assert c.estimators["ekf"].delay == math.inf


def test_mean_and_standard_error() -> None:
    mean = mean_over([1.0, 2.0, 4.0, math.nan])
    assert mean.value == pytest.approx(7.0 / 3.0)
    assert mean.standard_error == pytest.approx(math.sqrt((16.0 + 1.0 + 25.0) / 9.0 / 2.0 / 3.0))
    assert (mean.flights, mean_over([math.nan]).flights) == (3, 0)


def test_without_truth() -> None:
    rows = np.where(T < 5.0, int(Health.OK), int(Health.OUTLIER))
    three = {"ekf": estimate(1.0, health=rows), "ukf": estimate(1.02), "swls": estimate(0.99, seconds=3e-5)}
    c = compare_scores(score_flight(three, None))
    assert (c.has_truth, c.flights, dict(c.cells)) == (False, 1, {})
    assert [m.metrics.median_deviation.value for m in c.estimators.values()] == pytest.approx([0.0, 2.0, 1.0])
    assert c.estimators["ekf"].metrics.healthy.value == 0.5
    assert c.estimators["ekf"].metrics.consistency.value == 2.0
    assert c.estimators["swls"].seconds_per_update == 3e-5
    assert c.estimators["ekf"].metrics.final.value == 1.0
    for m in c.estimators.values():
        assert [getattr(m.metrics, n).flights for n in ("rmspe", "bias", "nees", "coverage")] == [0] * 4
        assert m.steps == 0


def test_a_single_estimator_has_no_deviation_from_the_median() -> None:
    assert math.isnan(score(1.0, None).metrics.median_deviation)


def test_a_flight_too_short_to_judge() -> None:
    t = T[T < 0.5]
    s = score(1.01, np.ones(len(t)), t=t)
    assert s.metrics.rmspe == pytest.approx(1.0)
    assert all(
        math.isnan(x) for x in (s.metrics.rmspe_late, s.metrics.bias, s.metrics.nees, s.metrics.coverage)
    )


def test_an_estimate_that_is_no_number_is_left_out_and_seen() -> None:
    ones = np.ones(len(T))
    c = compare_scores([score(np.where(T < 5.0, 1.01, math.nan), ones), score(1.01, ones)])
    average = c.estimators["ekf"]
    assert (average.flights, average.metrics.rmspe.flights) == (2, 1)
    assert average.metrics.rmspe.value == pytest.approx(1.0)
    alone = compare_scores([score(np.full(len(T), math.nan), ones)])
    assert alone.has_truth
    assert alone.estimators["ekf"].metrics.rmspe.flights == 0
    codes = [(f.code, dict(f.values)) for f in comparison_findings(alone, {"loop/step/3": "damaged"})]
    assert codes[1:] == [
        ("error_not_finite", {"estimator": "ekf", "flights": 1}),
        ("flights_skipped", {"flights": 1, "reasons": ("damaged",)}),
    ]
