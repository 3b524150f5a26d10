"""Figures of the innovations: whether the measurements were as the model expected, and as surely."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rotorid.report.charts import Figure, Trace, axis_colour, band, colour, layout, line, numbers, stroke
from rotorid.results.track import Track
from rotorid.results.whiteness import Consistency, Normalised, standard_normal
from rotorid.results.words import estimator_label

_POINTS = 900
_LONGEST = 30.0  # s between two windows with a line between them


def consistency_figure(tracks: Sequence[Track], consistencies: Sequence[Consistency]) -> Figure:
    """NIS over its dimension in windows of time, with the 95 % band of a consistent filter, on a logarithmic
    scale."""
    first = consistencies[0]
    traces: list[Trace] = [band(first.t, first.lower, first.upper, "@ink:0.16", longest=_LONGEST)]
    lowest, highest = [0.1], [10.0]
    for i, (track, running) in enumerate(zip(tracks, consistencies, strict=True)):
        traces.append(
            line(
                running.t,
                running.ratio,
                estimator_label(track.estimator),
                colour(track.estimator, i),
                longest=_LONGEST,
                showlegend=len(tracks) > 1,
                **stroke(i),
            )
        )
        shown = running.ratio[running.ratio > 0]
        lowest += shown.tolist()
        highest += shown.tolist()
    figure = layout("NIS / dimension", legend=len(tracks) > 1)
    low, high = float(np.log10(min(lowest))), float(np.log10(max(highest)))
    figure["yaxis"] |= {"type": "log", "range": [low - 0.1, high + 0.1], "dtick": 1, "exponentformat": "none"}
    start, end = float(tracks[0].t[0]), float(tracks[0].t[-1])
    figure["xaxis"] |= {"range": [round(start, 3), round(end, 3)]}
    figure["shapes"] = [
        {
            "type": "line",
            "xref": "paper",
            "x0": 0,
            "x1": 1,
            "y0": 1,
            "y1": 1,
            "line": {"color": "@ink:0.5", "width": 1},
        }
    ]
    return Figure(tuple(traces), figure, height=230)


def innovation_figure(normalised: Normalised) -> Figure:
    """Innovations of one output over their predicted standard deviation; 95 % should lie within the band of
    +-2."""
    names = "xyz" if normalised.value.shape[1] <= 3 else [str(k) for k in range(normalised.value.shape[1])]
    traces = [
        line(
            normalised.t,
            normalised.value[:, k],
            names[k],
            f"{axis_colour(k)}:0.8",
            points=_POINTS,
            width=0.8,
            digits=1,
            showlegend=True,
        )
        for k in range(normalised.value.shape[1])
    ]
    figure = layout("innovation / its std", legend=True)
    largest = float(np.nanmax(np.abs(normalised.value), initial=0.0))
    reach = float(np.clip(1.1 * largest, 3.0, 12.0))
    figure["yaxis"] |= {"range": [-reach, reach], "nticks": 6}
    start, end = float(normalised.t[0]), float(normalised.t[-1])
    figure["xaxis"] |= {"range": [round(start, 3), round(end, 3)]}
    figure["shapes"] = [
        {
            "type": "rect",
            "xref": "paper",
            "x0": 0,
            "x1": 1,
            "y0": -2,
            "y1": 2,
            "fillcolor": "@ink:0.08",
            "line": {"width": 0},
            "layer": "below",
        }
    ]
    return Figure(tuple(traces), figure, height=210)


def histogram_figure(normalised: Normalised) -> Figure:
    """The same innovations as a histogram, against the standard normal that they should follow."""
    bars: Trace = {
        "type": "bar",
        "x": numbers(normalised.centre),
        "y": numbers(normalised.density),
        "marker": {"color": "@bar", "line": {"width": 0}},
        "name": "measured",
        "hovertemplate": "%{y:.2f}",
    }
    x = np.linspace(-4.0, 4.0, 161)
    normal = line(x, standard_normal(x), "expected", "@ink", width=1.6, digits=2)
    normal["line"]["simplify"] = False
    figure = layout("density", x_title="innovation / its std")
    figure |= {"bargap": 0.0}
    figure["xaxis"] |= {"range": [-4.1, 4.1], "dtick": 2}
    figure["yaxis"] |= {"nticks": 4, "rangemode": "tozero"}
    return Figure((bars, normal), figure, height=170, timed=False)
