"""Figures of a page as one plotly figure: axes apart, colours of the theme, nothing lost."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from rotorid.report.charts import Figure, band, layout, line, shaded_interval
from rotorid.report.plotly_figure import to_plotly

T = np.arange(0.0, 10.0, 0.1)


def made(height: int = 220, *, has_time_axis: bool = True) -> Figure:
    traces = (
        band(T, np.cos(T) - 1, np.cos(T) + 1, "@ekf:0.2"),
        line(T, np.cos(T), "cosine", "@ekf", std=np.full(len(T), 0.5)),
    )
    shapes = [shaded_interval(1.0, 2.0)]
    notes = [{"x": 1.0, "y": 1, "xref": "x", "yref": "y domain", "text": "note", "showarrow": False}]
    return Figure(traces, layout("N", shapes=shapes, annotations=notes), height, has_time_axis)


def test_arrays_and_colours_are_plain() -> None:
    figure = to_plotly([("Force", made())])
    np.testing.assert_array_equal(figure.data[1].x, T.astype(np.float32))
    np.testing.assert_array_equal(figure.data[1].customdata, np.full(len(T), 0.5, np.float32))
    assert figure.data[1].line.color == "#0b63a8"
    assert figure.data[0].fillcolor == "rgba(11,99,168,0.2)"
    text = figure.to_json()
    assert "@" not in text
    assert "bdata" in text


def test_figures_stand_apart_and_zoom_together() -> None:
    heights = (220, 400, 190)
    figure = to_plotly([(f"figure {h}", made(h)) for h in heights])
    axes = [figure.layout[key] for key in ("yaxis", "yaxis11", "yaxis21")]
    assert [trace.yaxis for trace in figure.data] == ["y", "y", "y11", "y11", "y21", "y21"]
    assert axes[0].domain[1] == 1.0
    assert axes[2].domain[0] == pytest.approx(0.0, abs=1e-12)
    for upper, lower in itertools.pairwise(axes):
        assert upper.domain[0] > lower.domain[1]
    sizes = [axis.domain[1] - axis.domain[0] for axis in axes]
    np.testing.assert_allclose(np.array(sizes) / sizes[0], (np.array(heights) - 66) / (220 - 66))
    assert [figure.layout[key].matches for key in ("xaxis", "xaxis11", "xaxis21")] == [None, "x", "x"]
    assert [shape.xref for shape in figure.layout.shapes] == ["x", "x11", "x21"]
    for shape, axis in zip(figure.layout.shapes, axes, strict=True):
        assert (shape.y0, shape.y1) == pytest.approx(axis.domain)
    assert [note.yref for note in figure.layout.annotations if note.text == "note"] == [
        "y domain",
        "y11 domain",
        "y21 domain",
    ]


def test_axes_without_time_do_not_zoom_together() -> None:
    figure = to_plotly([("a", made()), ("b", made(has_time_axis=False)), ("c", made())])
    assert figure.layout.xaxis11.matches is None
    assert figure.layout.xaxis21.matches == "x"


def test_headings_are_escaped() -> None:
    figure = to_plotly([("a <b> c", made())], "x <i> y")
    assert "a &lt;b&gt; c" in [note.text for note in figure.layout.annotations]
    assert figure.layout.title.text == "x &lt;i&gt; y"
