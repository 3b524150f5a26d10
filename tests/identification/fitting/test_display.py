"""A fit shows itself, with units and bands."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest

from rotorid.identification.fitting.result import Fit, ResidualStatistics, SearchRecord

NAMES = ("mass", "<i>drag", *(f"inertia_{k}" for k in range(20)))
UNITS = dict(zip(NAMES, ("kg", "N s/m", *("kg m^2" for _ in range(20))), strict=True))


def made() -> Fit:
    """Each estimate is 2 prior standard deviations above its prior; the second prior has none."""
    values = dict.fromkeys(NAMES, 1.25)
    prior_std = dict.fromkeys(NAMES, 0.125) | {"<i>drag": 0.0}
    return Fit(
        values=values,
        std=dict.fromkeys(NAMES, 0.025),
        unit=UNITS,
        covariance=0.025**2 * np.eye(len(NAMES)),
        prior=dict.fromkeys(NAMES, 1.0),
        prior_std=prior_std,
        at_bound=(),
        information_gain=dict.fromkeys(NAMES, 0.8),
        unidentifiable_directions=(),
        residuals=ResidualStatistics({}, {}, {}, ()),
        search=SearchRecord(7, 3, True),
        parameters={},
    )


def test_repr_and_html_are_short() -> None:
    text = repr(made())
    assert len(text.splitlines()) < 10
    assert max(map(len, text.splitlines())) <= 100
    assert text.splitlines()[0] == "Fit of 22 quantities over 7 windows, converged"
    assert "1.250 ± 0.025 kg" in text
    assert "± 0.049 kg" in text
    assert "1 N s/m (fixed)" in text
    html = made()._repr_html_()
    assert len(html) < 4000
    assert "<i>" not in html
    assert "&lt;i&gt;drag" in html


def test_figure_has_estimate_and_prior_with_their_bands() -> None:
    figure = made().plot()
    prior, estimate = figure.data
    shown = len(NAMES) - 1
    assert len(estimate.x) == len(prior.x) == shown
    np.testing.assert_allclose(estimate.x, 2.0)
    np.testing.assert_allclose(estimate.error_x.array, 1.96 * 0.2)
    np.testing.assert_allclose(prior.error_x.array, 1.96)
    assert "mass: 1.250 ± 0.025 kg" in estimate.y
    assert set(estimate.text) == {"1.250 ± 0.025 kg", "1.250 ± 0.025 kg m²"}
    assert len(figure.layout.yaxis.categoryarray) == len(NAMES)
    assert "&lt;i&gt;drag: 1.250 ± 0.025 N s/m" in figure.layout.yaxis.categoryarray


def test_frame_goes_into_polars() -> None:
    frame = pl.DataFrame(made().to_frame())
    assert frame.columns == ["quantity", "unit", "value", "std", "prior", "prior_std", "information_gain"]
    assert dict(zip(frame["quantity"], frame["unit"], strict=True)) == UNITS
    row = frame.row(0, named=True)
    assert row["value"] == 1.25
    assert row["std"] == pytest.approx(0.025)
    assert math.isclose(row["prior_std"], 0.125)
