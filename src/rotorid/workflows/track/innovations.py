"""Consistency of a filter's innovations, as a whole and over time, and its figures.

Divided by its predicted standard deviation, each innovation of a consistent filter is standard normal. The sum of n of them
squared is chi-square with n degrees of freedom, so that their mean lies around 1, within its 95 % band (Bar-Shalom, Li and
Kirubarajan, Estimation with Applications to Tracking and Navigation, 2001, section 5.4).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Final

import numpy as np
from jaxtyping import Float

from rotorid.estimators.registry import estimator_label
from rotorid.report.charts import (
    Figure,
    Trace,
    axis_colour,
    band,
    encode_array,
    estimator_colour,
    layout,
    line,
    line_style,
)
from rotorid.workflows.track.track import Innovations, Track

_WINDOWS: Final = 150
_SHORTEST: Final = 1.0  # s
_BIN: Final = 0.2
_POINTS: Final = 900
_MAX_GAP: Final = 30.0  # s between two windows that a line connects


@dataclasses.dataclass(frozen=True)
class Consistency:
    """Mean NIS per dimension in windows centred at t (s), with the 95 % band of a consistent filter."""

    t: Float[np.ndarray, " w"]
    ratio: Float[np.ndarray, " w"]
    lower: Float[np.ndarray, " w"]
    upper: Float[np.ndarray, " w"]


@dataclasses.dataclass(frozen=True)
class NormalisedInnovations:
    """Innovations of one output, normalised by their predicted standard deviation, all axes in one row.

    t: s. value: NaN where not measured. density: their histogram as a probability density in bins around `centre`.
    inside_share: share of them within +-1.96.
    """

    t: Float[np.ndarray, " n"]
    value: Float[np.ndarray, "n k"]
    centre: Float[np.ndarray, " b"]
    density: Float[np.ndarray, " b"]
    inside_share: float


def running_consistency(track: Track) -> Consistency:
    """The consistency of a track over time."""
    width = max(_SHORTEST, float(track.t[-1] - track.t[0]) / _WINDOWS)
    index = np.floor((track.t - track.t[0]) / width).astype(int)
    nis, dof = np.bincount(index, track.nis), np.bincount(index, track.nis_dof)
    used = dof > 0
    n = dof[used]
    return Consistency(
        track.t[0] + width * (np.flatnonzero(used) + 0.5),
        nis[used] / n,
        _chi_square_over_dof(-1.96, n),
        _chi_square_over_dof(1.96, n),
    )


def _chi_square_over_dof(sigmas: float, dof: Float[np.ndarray, " w"]) -> Float[np.ndarray, " w"]:
    """Quantile by the cube of Wilson and Hilferty (PNAS 17, 1931)."""
    spread = 2.0 / (9.0 * dof)
    return np.maximum(1.0 - spread + sigmas * np.sqrt(spread), 0.0) ** 3


def normalise(t: Float[np.ndarray, " n"], innovations: Innovations) -> NormalisedInnovations:
    """Normalise the innovations of one output by their predicted standard deviation. t: s."""
    measured = innovations.std > 0
    value = np.where(measured, innovations.value / np.where(measured, innovations.std, 1.0), np.nan)
    flat = value[np.isfinite(value)]
    edges = np.arange(-4.0 - 0.5 * _BIN, 4.0 + _BIN, _BIN)
    counts = np.histogram(flat, edges)[0]
    return NormalisedInnovations(
        t,
        value,
        0.5 * (edges[1:] + edges[:-1]),
        counts / max(len(flat), 1) / _BIN,
        float(np.mean(np.abs(flat) <= 1.96)) if len(flat) else float("nan"),
    )


def standard_normal(x: Float[np.ndarray, " b"]) -> Float[np.ndarray, " b"]:
    """Density of the standard normal."""
    return np.exp(-0.5 * x * x) / np.sqrt(2.0 * np.pi)


def consistency_figure(tracks: Sequence[Track], consistencies: Sequence[Consistency]) -> Figure:
    """NIS per dimension in windows of time, with the 95 % band of a consistent filter, on a logarithmic scale."""
    first = consistencies[0]
    traces: list[Trace] = [band(first.t, first.lower, first.upper, "@ink:0.16", max_gap=_MAX_GAP)]
    lowest, highest = [0.1], [10.0]
    for i, (track, running) in enumerate(zip(tracks, consistencies, strict=True)):
        traces.append(
            line(
                running.t,
                running.ratio,
                estimator_label(track.estimator),
                estimator_colour(track.estimator, i),
                max_gap=_MAX_GAP,
                showlegend=len(tracks) > 1,
                **line_style(i),
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


def innovation_figure(normalised: NormalisedInnovations) -> Figure:
    """Normalised innovations of one output over time, with the band of +-2 standard deviations."""
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
    figure = layout("innovation / std", legend=True)
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


def histogram_figure(normalised: NormalisedInnovations) -> Figure:
    """The histogram of normalised innovations, with the standard normal density that they should follow."""
    steps: Trace = {
        "type": "scatter",
        "mode": "lines",
        "x": encode_array(normalised.centre),
        "y": encode_array(normalised.density),
        "line": {"width": 0, "shape": "hvh", "simplify": False},
        "fill": "tozeroy",
        "fillcolor": "@bar",
        "name": "measured",
        "hovertemplate": "%{y:.2f}",
    }
    x = np.linspace(-4.0, 4.0, 161)
    normal = line(x, standard_normal(x), "expected", "@ink", width=1.6, digits=2)
    normal["line"]["simplify"] = False
    figure = layout("density", x_title="innovation / std")
    figure["xaxis"] |= {"range": [-4.1, 4.1], "dtick": 2}
    figure["yaxis"] |= {"nticks": 4, "rangemode": "tozero"}
    return Figure((steps, normal), figure, height=170, has_time_axis=False)
