"""The pieces that figures are drawn from, as plotly.js takes them: traces, axes, layouts.

A colour is a token: "@ekf" is the page's CSS variable `--ekf`, "@ekf:0.2" the same at a fifth of its
strength. The page puts the colours of its light or dark dress in their place. Arrays travel as base64 of
float32.
"""

from __future__ import annotations

import base64
import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
from jaxtyping import Float

from rotorid.report.thin import thin_band, thin_line

Trace = dict[str, Any]
Layout = dict[str, Any]

KNOWN_COLOURS: Final = ("ekf", "ukf", "msckf", "swls", "adaptive", "mo", "acceleration")
_DASHES: Final = ("solid", "5px,4px", "2px,2px", "9px,3px", "9px,3px,2px,3px")
_AXES: Final = ("x", "y", "z")


@dataclasses.dataclass(frozen=True)
class Figure:
    """traces, layout: for plotly.js. height: px. timed: whether its x axis is the time of the flight, which
    zooms with others."""

    traces: tuple[Trace, ...]
    layout: Layout
    height: int = 220
    timed: bool = True

    def as_dict(self) -> dict[str, Any]:
        """As the page's script takes it."""
        return {"data": list(self.traces), "layout": self.layout, "timed": self.timed}


def colour(estimator: str, index: int = 0) -> str:
    """The token of an estimator's colour: its own, or the one of its place in the list."""
    return f"@{estimator}" if estimator in KNOWN_COLOURS else f"@other{index % 2}"


def stroke(index: int) -> dict[str, Any]:
    """Width and dash of the line of the estimator at that place in the list: one over the other, all show."""
    return {"width": 2.2 if index == 0 else 1.3, "dash": _DASHES[index % len(_DASHES)]}


def axis_colour(k: int) -> str:
    """The token of the colour of body or world axis k."""
    return f"@axis-{_AXES[k % 3]}"


def numbers(values: Float[np.ndarray, ...] | Sequence[float]) -> dict[str, str]:
    """An array as plotly.js reads it fastest."""
    data = np.ascontiguousarray(np.asarray(values), dtype="<f4").tobytes()
    return {"dtype": "f4", "bdata": base64.b64encode(data).decode()}


def line(
    t: Float[np.ndarray, " n"],
    value: Float[np.ndarray, " n"],
    name: str,
    colour: str,
    *,
    points: int = 800,
    longest: float = 1.0,
    width: float = 1.6,
    dash: str = "solid",
    step: bool = False,
    std: Float[np.ndarray, " n"] | None = None,
    digits: int = 3,
    **more: Any,
) -> Trace:
    """A curve over time, broken at gaps of more than `longest` s; its standard deviation shows in the hover
    text."""
    ts, values, rows = thin_line(t, value, points, longest)
    trace: Trace = {
        "type": "scatter",
        "mode": "lines",
        "name": name,
        "x": numbers(ts),
        "y": numbers(values),
        "line": {"color": colour, "width": width, "dash": dash, "shape": "hv" if step else "linear"},
        "hovertemplate": f"%{{y:.{digits}f}}",
    }
    if std is not None:
        trace["customdata"] = numbers(np.where(rows >= 0, std[rows], np.nan))
        trace["hovertemplate"] += f" ± %{{customdata:.{digits}f}}"
    return trace | more


def band(
    t: Float[np.ndarray, " n"],
    lower: Float[np.ndarray, " n"],
    upper: Float[np.ndarray, " n"],
    colour: str,
    *,
    points: int = 800,
    longest: float = 1.0,
    outline: dict[str, Any] | None = None,
) -> Trace:
    """A filled band over time. outline: the line around it, none by default."""
    ts, values = thin_band(t, lower, upper, points, longest)
    return {
        "type": "scatter",
        "mode": "lines",
        "x": numbers(ts),
        "y": numbers(values),
        "fill": "toself",
        "fillcolor": colour,
        "line": outline or {"width": 0},
        "hoverinfo": "skip",
        "showlegend": False,
    }


def layout(y_title: str, *, x_title: str = "time (s)", legend: bool = False, **more: Any) -> Layout:
    """The common dress: light grid, no frame, units on both axes."""
    return {
        "margin": {"l": 56, "r": 12, "t": 28 if legend else 8, "b": 38},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "font": {"color": "@soft", "size": 12, "family": "inherit"},
        "hovermode": "x unified",
        "hoverlabel": {"bgcolor": "@panel", "bordercolor": "@line", "font": {"color": "@ink"}},
        "showlegend": legend,
        "legend": {"orientation": "h", "x": 0, "y": 1.0, "yanchor": "bottom", "bgcolor": "rgba(0,0,0,0)"},
        "xaxis": axis(x_title),
        "yaxis": axis(y_title),
    } | more


def space_layout(axes: Mapping[str, Layout], scene: Layout) -> Layout:
    """The dress of a picture in space. axes: title and more of x, y and z. scene: aspect and camera."""
    figure = layout("", legend=False, hovermode="closest", margin={"l": 0, "r": 0, "t": 0, "b": 0})
    for unused in ("xaxis", "yaxis"):
        del figure[unused]
    common = {"gridcolor": "@grid", "zeroline": False, "showbackground": False, "color": "@soft"}
    return figure | {"scene": scene | {f"{name}axis": common | of for name, of in axes.items()}}


def axis(title: str = "", **more: Any) -> Layout:
    """An axis in the common dress."""
    return {
        "title": {"text": title, "standoff": 8},
        "gridcolor": "@grid",
        "linecolor": "@line",
        "zeroline": False,
        "automargin": True,
        "ticks": "",
        "exponentformat": "power",
    } | more


def shaded(a: float, b: float, **more: Any) -> dict[str, Any]:
    """A grey stretch of time behind everything, s."""
    return {
        "type": "rect",
        "xref": "x",
        "yref": "paper",
        "x0": round(a, 3),
        "x1": round(b, 3),
        "y0": 0,
        "y1": 1,
        "fillcolor": "@gap",
        "line": {"width": 0},
        "layer": "below",
    } | more
