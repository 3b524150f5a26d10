"""A report in a browser: its charts are drawn by the bundle that it contains, offline, and it is small."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from rotorid.report.charts import Figure, encode_array, layout, line, space_layout
from rotorid.report.page import Page
from tests.chromium import FOUND, chromium

pytestmark = pytest.mark.skipif(FOUND is None, reason="no Chromium (apt-get install chromium)")

T = np.arange(0.0, 60.0, 0.01)
CURVE = Figure((line(T, np.cos(T), "cosine", "@ekf"),), layout("N"))
MAP = Figure(
    ({"type": "heatmap", "z": [[1.0, 2.0], [3.0, 4.0]], "colorscale": [[0, "@ekf"], [1, "@ukf"]]},),
    layout("m"),
)
PATH = Figure(
    (
        {
            "type": "scatter3d",
            "mode": "lines",
            **{axis: encode_array(np.cos(T[:500] + k)) for k, axis in enumerate("xyz")},
        },
    ),
    space_layout(
        {axis: {"title": axis} for axis in "xyz"}, {"camera": {"eye": {"x": 1.2, "y": 1.2, "z": 0.9}}}
    ),
    has_time_axis=False,
)


@pytest.mark.parametrize(
    ("figures", "drawn"),
    [
        ((CURVE, MAP), ".chart .main-svg .heatmaplayer image, .chart .heatmap image"),
        ((CURVE, PATH), ".chart .gl-container"),
    ],
)
def test_a_report_draws_its_figures(tmp_path: Path, figures: tuple[Figure, ...], drawn: str) -> None:
    page = Page("a report")
    page.add(*(page.panel(figure, "figure") for figure in figures))
    path = tmp_path / "report.html"
    path.write_text(page.as_html())
    assert path.stat().st_size < 1_000_000
    with chromium(tmp_path / "profile", "--enable-unsafe-swiftshader") as browser:
        browser.dress(1200, 900)
        browser.call("Page.navigate", url=path.as_uri())
        browser.wait("document.querySelector('.chart .scatterlayer path.js-line') !== null")
        browser.wait(f"document.querySelector({drawn!r}) !== null")
        assert all(address.startswith(("file:", "blob:", "data:")) for address in browser.requests())
        assert not [text for text in browser.complaints() if '"level": "warning"' not in text]
        browser.picture(tmp_path / "report.png")


def test_a_page_without_figures_has_no_library() -> None:
    assert len(Page("words").as_html()) < 50_000
