"""The figures of an identification. They draw what was found, and compute nothing."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from rotorid.identification.flown_residuals import Autocorrelation
from rotorid.report.charts import Figure, axis_colour, band, layout, line, numbers
from rotorid.results.identify_shown import CurveBand, Curves, Stretch
from rotorid.results.identify_summary import IdentifySummary, ParameterRow
from rotorid.results.words import label, plus_minus, unit_text

_SIGMAS = 1.96
_AXES = "xyz"


def told_figure(parameters: Mapping[str, ParameterRow]) -> Figure:
    """Of each quantity, the share of its prior standard deviation that the flights removed."""
    rows = list(parameters.items())[::-1]
    trace = {
        "type": "bar",
        "orientation": "h",
        "y": [label(name) for name, _ in rows],
        "x": [round(100.0 * row.told, 2) for _, row in rows],
        "marker": {"color": ["@ekf:0.8" if row.told > 0.3 else "@bar:0.6" for _, row in rows]},
        "hovertemplate": "%{y}: %{x:.1f} %<extra></extra>",
    }
    figure = layout("", x_title="of the prior std removed (%)", hovermode="closest")
    figure["xaxis"] |= {"range": [0, 101]}
    figure["yaxis"] |= {"type": "category", "dtick": 1}
    figure["bargap"] = 0.35
    return Figure((trace,), figure, height=70 + 22 * len(rows), timed=False)


def correlation_figure(summary: IdentifySummary) -> Figure:
    """The correlations of all numbers."""
    names = [label(n) for n in summary.names]
    z = [[round(v, 3) for v in row] for row in summary.correlation]
    trace = {
        "type": "heatmap",
        "x": names,
        "y": names,
        "z": z,
        "zmin": -1,
        "zmax": 1,
        "colorscale": [
            [0.0, "#2166ac"],
            [0.25, "#92c5de"],
            [0.5, "#f7f7f7"],
            [0.75, "#f4a582"],
            [1.0, "#b2182b"],
        ],
        "colorbar": {"thickness": 10, "len": 0.7, "outlinewidth": 0, "tickvals": [-1, -0.5, 0, 0.5, 1]},
        "xgap": 1,
        "ygap": 1,
        "hovertemplate": "%{y}, %{x}: %{z:.2f}<extra></extra>",
    }
    figure = layout("", x_title="", hovermode="closest")
    figure["xaxis"] |= {"type": "category", "tickangle": -90, "showgrid": False, "dtick": 1}
    figure["yaxis"] |= {"type": "category", "autorange": "reversed", "showgrid": False, "dtick": 1}
    return Figure((trace,), figure, height=150 + 19 * len(names), timed=False)


def stretch_figure(of: Stretch, axis: int) -> Figure:
    """One axis: what was measured, and the prediction of each window on it."""
    name = _AXES[axis]
    figure = layout(f"{name} ({unit_text(of.unit)})")
    measured = _drawn(of.t, of.measured[:, axis], "measured", "@ink:0.35", 3.0)
    return Figure(
        (measured, _drawn(of.t, of.predicted[:, axis], "predicted", "@ekf", 1.3)), figure, height=190
    )


def _drawn(t: np.ndarray, value: np.ndarray, name: str, token: str, width: float) -> dict:
    """A curve, broken between windows where it is NaN, and not at rows without a measurement."""
    there = np.isfinite(value) | ~np.isfinite(t)
    return {
        "type": "scatter",
        "mode": "lines",
        "name": name,
        "x": numbers(t[there]),
        "y": numbers(value[there]),
        "line": {"color": token, "width": width},
        "hovertemplate": "%{y:.3f}",
        "showlegend": False,
    }


def autocorrelation_figure(of: Autocorrelation) -> Figure:
    """Autocorrelation of the residuals of one output, an axis a line, and the 95 % band of white ones."""
    lags, widest = of.lag, np.max(np.nan_to_num(of.band), axis=1)
    traces = [band(lags, -widest, widest, "@ink:0.13", longest=1e9)]
    for k in range(of.value.shape[1]):
        traces.append(
            line(lags, of.value[:, k], _AXES[k % 3], axis_colour(k), width=1.5, longest=1e9, showlegend=False)
        )
    figure = layout("autocorrelation", x_title="lag (s)")
    figure["yaxis"] |= {"range": [-1.02, 1.02], "nticks": 5}
    return Figure(tuple(traces), figure, height=200, timed=False)


def curve_figure(curves: Curves) -> Figure:
    """Thrust of one rotor over its command, before and after, with 95 % bands."""
    traces = []
    for of, name, token in ((curves.before, "before", "@ukf"), (curves.after, "found", "@ekf")):
        traces += _curve(of, name, token)
    figure = layout("thrust of one rotor (N)", x_title="command", legend=True)
    low, high = curves.used
    figure["shapes"] = [
        {
            "type": "rect",
            "xref": "x",
            "yref": "paper",
            "x0": round(low, 3),
            "x1": round(high, 3),
            "y0": 0,
            "y1": 1,
            "fillcolor": "@good:0.10",
            "line": {"width": 0},
            "layer": "below",
        }
    ]
    top = float(np.max(np.maximum(curves.before.thrust, curves.after.thrust)))
    figure["yaxis"] |= {"range": [-0.05 * top, 1.5 * top]}
    return Figure(tuple(traces), figure, height=320, timed=False)


def _curve(of: CurveBand, name: str, token: str) -> list[dict]:
    half = _SIGMAS * of.std
    return [
        band(of.command, of.thrust - half, of.thrust + half, f"{token}:0.16", longest=1e9),
        line(of.command, of.thrust, name, token, width=1.8, longest=1e9, std=of.std, showlegend=True),
    ]


def masses_figure(summary: IdentifySummary, flight: str) -> Figure:
    """What a flight weighed, in its parts, with 95 % bands."""
    traces, own = [], [m for m in summary.masses if m.flight == flight]
    for m in own:
        t, value = np.array([m.start, m.end]), np.array([m.value, m.value])
        half = _SIGMAS * m.std
        traces.append(band(t, value - half, value + half, "@ekf:0.18", longest=1e9))
        traces.append(
            line(t, value, plus_minus(m.value, m.std, "kg"), "@ekf", width=2.0, longest=1e9, showlegend=False)
        )
    figure = layout("mass (kg)")
    values = [m.value for m in own]
    room = max(4.0 * max(m.std for m in own), 0.15 * (max(values) - min(values)), 0.01 * max(values))
    figure["yaxis"] |= {"range": [min(values) - room, max(values) + room]}
    return Figure(tuple(traces), figure, height=220)
