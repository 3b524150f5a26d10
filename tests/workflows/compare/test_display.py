"""Comparisons show themselves, with units and bands."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from rotorid.workflows.compare.scores import Comparison, MassEstimate, compare_scores, score_flight
from rotorid.workflows.fly_back.model_comparison import ModelComparison, SignalComparison

T = np.arange(0.0, 10.0, 0.05)


def estimate(value: float) -> MassEstimate:
    n = len(T)
    return MassEstimate(
        T,
        np.full(n, value),
        np.full(n, 0.01),
        np.zeros(n, int),
        np.full(n, 3.0),
        np.full(n, 3),
        seconds_per_update=1e-5,
    )


def made(*, has_truth: bool) -> Comparison:
    """The EKF errs by 1 and 3 %, the UKF by 2 % twice, at a mass of 1 kg."""
    truth = np.ones(len(T)) if has_truth else None
    flights = [{"ekf": estimate(1.01), "ukf": estimate(1.02)}, {"ekf": estimate(1.03), "ukf": estimate(1.02)}]
    return compare_scores([score for flight in flights for score in score_flight(flight, truth)])


def test_comparison_with_truth() -> None:
    comparison = made(has_truth=True)
    lines = repr(comparison).splitlines()
    assert len(lines) == 4
    assert lines[0] == "Comparison of 2 estimators over 2 flights"
    assert "2.0 ± 1.0 %" in lines[2]
    assert len(comparison._repr_html_()) < 1000
    figure = comparison.plot()
    assert [t.name for t in figure.data] == [
        "RMSPE of the mass",
        "bias of the mass",
        "NEES of the mass",
        "share in the 95 % band",
    ]
    assert figure.layout.yaxis.title.text == "RMSPE of the mass (%)"
    assert list(figure.data[0].x) == ["EKF", "UKF"]
    np.testing.assert_allclose(figure.data[0].y, 2.0, rtol=1e-9)
    np.testing.assert_allclose(figure.data[0].error_y.array, [1.96, 0.0], atol=1e-9)


def test_frame_of_a_comparison() -> None:
    table = made(has_truth=True).to_frame()
    assert table.schema.field("rmspe").metadata == {b"unit": b"%"}
    assert table.schema.field("final").metadata == {b"unit": b"kg"}
    frame = pl.DataFrame(table)
    assert frame["estimator"].to_list() == ["ekf", "ukf"]
    assert frame["rmspe"].to_list() == pytest.approx([2.0, 2.0])
    assert frame["rmspe_standard_error"].to_list() == pytest.approx([1.0, 0.0], abs=1e-9)
    assert frame["delay"].to_list() == [None, None]


def test_without_truth_the_masses_are_shown() -> None:
    comparison = made(has_truth=False)
    assert "1.020 ± 0.010 kg" in repr(comparison)
    assert comparison.plot().layout.yaxis.title.text == "mass at the end (kg)"
    assert comparison.to_frame()["rmspe"].null_count == 2


def test_comparison_of_models() -> None:
    horizons = (0.1, 0.5, 1.0)
    signals = tuple(
        SignalComparison(
            name, unit, (0.1, 0.2, 0.3), (0.2, 0.4, 0.3), (0.1, 0.2, 0.0), (0.01,) * 3, (0.02,) * 3
        )
        for name, unit in (("velocity", "m/s"), ("attitude", "rad"), ("body_rate", "rad/s"))
    )
    comparison = ModelComparison("a<b>.toml", "other.toml", ("x.ulg",), 40, horizons, signals, ())
    lines = repr(comparison).splitlines()
    assert len(lines) == 9
    assert lines[0] == "a<b>.toml compared with other.toml, 40 predictions"
    assert "m/s" in lines[2]
    assert "better" in lines[2]
    assert "<b>" not in comparison._repr_html_()
    figure = comparison.plot()
    assert [t.name for t in figure.data] == ["Velocity", "Attitude", "Body rate"]
    np.testing.assert_allclose(figure.data[0].y, [50.0, 50.0, 0.0], atol=1e-5)
    np.testing.assert_allclose(figure.data[0].error_y.array, [10.0, 5.0, 100.0 * 0.02 / 0.3], rtol=1e-5)
    assert figure.layout.yaxis.title.text == "reduction of the error (%)"
    frame = pl.DataFrame(comparison.to_frame())
    assert frame.height == 9
    assert frame["unit"].to_list()[::3] == ["m/s", "rad", "rad/s"]
    assert frame["band"].to_list() == [0.02] * 9
