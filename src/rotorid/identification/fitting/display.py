"""A fit as an overview, a figure in the format of plotly and an Arrow table."""

from __future__ import annotations

import html
import math
from typing import TYPE_CHECKING, Any, Final

from rotorid.display import Column, Overview, arrow_table
from rotorid.identification.fitting.result import Fit

if TYPE_CHECKING:
    import plotly.graph_objects as go
    import pyarrow as pa

SIGMAS: Final = 1.96
"""Half the width of a 95 % band, in standard deviations."""

_ESTIMATE, _PRIOR = "#0b63a8", "#9fb8cc"
_ROW: Final = 26  # px of a quantity
_FRAME: Final = 110  # px above and below


def fit_overview(fit: Fit) -> Overview:
    """Of each quantity the estimate with standard deviation and 95 % band, the prior, and the information gain."""
    rows = tuple(
        (
            name,
            number(fit.values[name], fit.std[name], fit.unit[name]),
            f"± {SIGMAS * fit.std[name]:.2g} {_unit(fit.unit[name])}".rstrip(),
            number(fit.prior[name], fit.prior_std[name], fit.unit[name]),
            f"{100.0 * fit.information_gain[name]:.0f} %",
        )
        for name in fit.names
    )
    state = "converged" if fit.search.converged else "not converged"
    heading = f"Fit of {len(fit.names)} quantities over {fit.search.windows} windows, {state}"
    return Overview(
        heading, ("quantity", "estimate ± 1 std", "95 % band", "prior ± 1 std", "identified"), rows
    )


def number(value: float, std: float, unit: str) -> str:
    """A value with its standard deviation and unit: "1.0470 ± 0.0081 kg"; "1 (fixed)" for one without."""
    if std <= 0.0:
        return f"{value:.6g} {_unit(unit)}".rstrip() + " (fixed)"
    if not 1e-4 <= max(abs(value), std) < 1e6:
        return f"{value:.6g} ± {std:.2g} {_unit(unit)}".rstrip()
    decimals = max(0, 1 - math.floor(math.log10(std)))  # two digits of the standard deviation
    return f"{value:.{decimals}f} ± {std:.{decimals}f} {_unit(unit)}".rstrip()


def _unit(unit: str) -> str:
    return "" if unit == "1" else unit.replace("^2", "²").replace("^3", "³")


def fit_figure(fit: Fit) -> go.Figure:
    """See `Fit.plot`."""
    import plotly.graph_objects as go

    traces, layout = estimate_parts(fit)
    margins = {"l": 20, "r": 20, "t": 50, "b": 60}
    return go.Figure(
        traces, layout | {"template": "plotly_white", "margin": margins, "height": figure_height(fit)}
    )


def figure_height(fit: Fit) -> int:
    """Height of the figure of a fit, px."""
    return _FRAME + _ROW * max(len(fit.names), 2)


def estimate_parts(fit: Fit) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Traces and layout of the figure of a fit in the format of plotly; colours are plain."""
    names = list(fit.names)[::-1]
    scaled = [name for name in names if fit.prior_std[name] > 0.0]
    labels = {
        name: html.escape(
            f"{name.replace('_', ' ')}: {number(fit.values[name], fit.std[name], fit.unit[name])}"
        )
        for name in names
    }

    def points(
        legend: str, colour: str, size: int, centres: list[float], stds: list[float], texts: list[str]
    ):
        return {
            "type": "scatter",
            "mode": "markers",
            "name": legend,
            "x": centres,
            "y": [labels[name] for name in scaled],
            "error_x": {
                "type": "data",
                "array": [SIGMAS * std for std in stds],
                "color": colour,
                "thickness": size,
                "width": 0,
            },
            "marker": {"color": colour, "size": 2 + 2 * size},
            "text": texts,
            "hovertemplate": "%{text}<extra></extra>",
        }

    shift = [(fit.values[n] - fit.prior[n]) / fit.prior_std[n] for n in scaled]
    share = [fit.std[n] / fit.prior_std[n] for n in scaled]
    priors = [f"prior {number(fit.prior[n], fit.prior_std[n], fit.unit[n])}" for n in scaled]
    estimates = [number(fit.values[n], fit.std[n], fit.unit[n]) for n in scaled]
    zeros, ones = [0.0 for _ in scaled], [1.0 for _ in scaled]
    traces = [
        points("prior, 95 % band", _PRIOR, 6, zeros, ones, priors),
        points("estimate, 95 % band", _ESTIMATE, 2, shift, share, estimates),
    ]
    layout = {
        "xaxis": {
            "title": {"text": "estimate − prior (standard deviations of the prior)", "standoff": 8},  # noqa: RUF001
            "automargin": True,
        },
        "yaxis": {
            "type": "category",
            "categoryorder": "array",
            "categoryarray": [labels[name] for name in names],
            "range": [-0.6, max(len(names), 1) - 0.4],
            "dtick": 1,
            "automargin": True,
        },
        "showlegend": True,
        "legend": {"orientation": "h", "x": 0, "y": 1.0, "yanchor": "bottom"},
        "hovermode": "closest",
    }
    return traces, layout


def fit_frame(fit: Fit) -> pa.Table:
    """See `Fit.to_frame`."""
    import numpy as np

    columns: dict[str, Column] = {
        "quantity": Column(list(fit.names)),
        "unit": Column([fit.unit[n] for n in fit.names]),
    }
    in_units = {"unit": "that of the column `unit`"}
    for name, values in (
        ("value", fit.values),
        ("std", fit.std),
        ("prior", fit.prior),
        ("prior_std", fit.prior_std),
    ):
        columns[name] = Column(np.array([float(values[n]) for n in fit.names]), in_units)
    gains = np.array([float(fit.information_gain[n]) for n in fit.names])
    columns["information_gain"] = Column(gains, {"unit": "1"})
    return arrow_table(columns, {})
