"""The figures of a model that was flown back. They draw what its record holds, and compute nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from rotorid.models.fly_back import FlyBack, Gain, SignalErrors
from rotorid.report.charts import Figure, Trace, layout, numbers
from rotorid.results.fly_back_against import Against
from rotorid.results.words import label, title, unit_text

PREDICTORS: Final = (("model", "@ekf"), ("prior", "@ukf"), ("constant velocity", "@other0"))
"""Names and colours of the three that are compared."""

_SIGNALS: Final = ("@axis-x", "@axis-y", "@axis-z", "@swls", "@other1")
_TOLERANCE: Final = "@good:0.14"
_APART: Final = 1.03  # times, horizons of signals whose bands would lie on each other
_WIDEST: Final = 10.0  # times the error, of a band that one block alone leaves without end


def errors_figure(found: FlyBack, signal: SignalErrors) -> Figure:
    """Root mean square error over the horizon, of model, prior and constant velocity, with standard deviations."""
    rows = (
        (signal.model, signal.model_std),
        (signal.prior, signal.prior_std),
        (signal.constant, signal.constant_std),
    )
    traces = []
    for (name, colour), (value, std) in zip(PREDICTORS, rows, strict=True):
        known = [k for k, v in enumerate(value) if v > 0]
        traces.append(
            _curve([found.horizons[k] for k in known], [value[k] for k in known], name, colour, "%{y:.3g}")
            | {"error_y": {"type": "data", "array": [std[k] for k in known], "thickness": 1.2, "width": 3}}
        )
    figure = layout(f"error ({unit_text(signal.unit)})", x_title="horizon (s)")
    figure["yaxis"] |= {"type": "log", "dtick": 1, "exponentformat": "none"}
    figure["xaxis"] |= _horizons(found.horizons)
    model, prior, constant = traces
    prior["line"] |= {"dash": "6px,6px"}
    return Figure((constant, model, prior), figure, height=250, timed=False)  # both show where they are one


def coverage_figure(found: FlyBack) -> Figure:
    """Share of errors inside the 95 % bands over the horizon, of each signal, and what is asked of it."""
    traces = [
        _curve(found.horizons, 100.0 * np.array(signal.coverage), title(signal.name), colour, "%{y:.0f} %")
        | {"showlegend": True}
        for signal, colour in zip(found.signals, _SIGNALS, strict=False)
    ]
    figure = layout("errors in the 95 % band (%)", x_title="horizon (s)", legend=True)
    figure["xaxis"] |= _horizons(found.horizons)
    lowest = min(
        [
            80.0,
            *(
                100.0 * c
                for signal in found.signals
                for c, e in zip(signal.coverage, signal.model, strict=True)
                if e
            ),
        ]
    )
    figure["yaxis"] |= {"range": [max(lowest - 5.0, 0.0), 102.0]}
    figure["shapes"] = [_across(85.0, 100.0), _level(95.0)]
    return Figure(tuple(traces), figure, height=280, timed=False)


def against_figure(found: Against) -> Figure:
    """By how much the model's errors are smaller than the other's, over the horizon, of each signal, with 95 % bands."""
    traces = []
    for k, (signal, colour) in enumerate(zip(found.signals, _SIGNALS, strict=False)):
        known = [i for i, v in enumerate(signal.model) if v > 0]
        share = [100.0 * signal.better[i] / signal.other[i] for i in known]
        band = [100.0 * min(signal.band[i] / signal.other[i], _WIDEST) for i in known]
        beside = _APART ** (k - 0.5 * (len(found.signals) - 1))
        traces.append(
            _curve(
                [beside * found.horizons[i] for i in known], share, title(signal.name), colour, "%{y:.0f} %"
            )
            | {"showlegend": True}
            | {"error_y": {"type": "data", "array": numbers(band), "thickness": 1.2, "width": 3}}
        )
    figure = layout("smaller errors (%)", x_title="horizon (s)", legend=True)
    figure["xaxis"] |= _horizons(found.horizons)
    figure["shapes"] = [_level(0.0)]
    return Figure(tuple(traces), figure, height=280, timed=False)


def gains_figure(gains: Sequence[Gain]) -> Figure:
    """Answer of the vehicle over that of the model, with two standard deviations, and what is allowed."""
    names = [gain_label(gain) for gain in gains]
    trace: Trace = {
        "type": "scatter",
        "mode": "markers",
        "x": names,
        "y": numbers([g.value for g in gains]),
        "marker": {"color": "@ekf", "size": 9},
        "error_y": {"type": "data", "array": [2.0 * g.std for g in gains], "thickness": 1.4, "width": 5},
        "customdata": numbers([g.std for g in gains]),
        "hovertemplate": "%{y:.3f} ± %{customdata:.3f}<extra></extra>",
        "showlegend": False,
    }
    figure = layout("vehicle over model", x_title="")
    figure["xaxis"] |= {"type": "category", "range": [-0.5, len(gains) - 0.5]}
    widest = max(0.4, *(min(abs(g.value - 1.0) + 2.2 * g.std, 1.0) for g in gains))
    figure["yaxis"] |= {"range": [1.0 - widest, 1.0 + widest]}
    figure["shapes"] = [
        _across(1.0 - g.tolerance, 1.0 + g.tolerance, k - 0.4, k + 0.4) for k, g in enumerate(gains)
    ] + [_level(1.0)]
    return Figure((trace,), figure, height=280, timed=False)


def gain_label(gain: Gain) -> str:
    """A gain in words: "thrust", "turn about x"."""
    return "thrust" if gain.name == "thrust" else f"{label(gain.name[:-2])} about {gain.name[-1]}"


def _curve(x: Sequence[float], y: Sequence[float] | np.ndarray, name: str, colour: str, hover: str) -> Trace:
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "name": name,
        "x": numbers(x),
        "y": numbers(y),
        "line": {"color": colour, "width": 1.8},
        "marker": {"color": colour, "size": 6},
        "hovertemplate": hover,
        "showlegend": False,
    }


def _horizons(horizons: Sequence[float]) -> dict:
    """The axis of horizons, at those that were predicted."""
    low, high = np.log10(horizons[0]), np.log10(horizons[-1])
    return {
        "type": "log",
        "tickvals": list(horizons),
        "ticktext": [f"{h:g}" for h in horizons],
        "range": [round(float(low) - 0.1, 3), round(float(high) + 0.1, 3)],
    }


def _across(y0: float, y1: float, x0: float | None = None, x1: float | None = None) -> dict:
    """A shaded range; from side to side without x0 and x1."""
    whole = {"xref": "paper", "x0": 0, "x1": 1} if x0 is None else {"xref": "x", "x0": x0, "x1": x1}
    return {
        "type": "rect",
        "yref": "y",
        "y0": round(y0, 4),
        "y1": round(y1, 4),
        "fillcolor": _TOLERANCE,
        "line": {"width": 0},
        "layer": "below",
        **whole,
    }


def _level(y: float) -> dict:
    return {
        "type": "line",
        "xref": "paper",
        "x0": 0,
        "x1": 1,
        "y0": y,
        "y1": y,
        "line": {"color": "@ink:0.5", "width": 1, "dash": "3px,3px"},
    }
