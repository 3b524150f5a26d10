"""A comparison of estimators as an overview, a plotly figure and an Arrow table."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from rotorid.display import Column, Overview, arrow_table
from rotorid.report.charts import Figure, estimator_colour, layout
from rotorid.report.plotly_figure import to_plotly
from rotorid.results.text import estimator_label, plus_minus, unit_text
from rotorid.workflows.compare.scores import METRICS, Comparison, Mean
from rotorid.workflows.compare.text import flights_text

if TYPE_CHECKING:
    import plotly.graph_objects as go
    import pyarrow as pa

_UNITS: Final = {
    "rmspe": "%", "rmspe_late": "%", "bias": "%", "nees": "1", "coverage": "1", "consistency": "1", "healthy": "1",
    "undetected_errors": "1", "median_deviation": "%", "final": "kg", "final_std": "kg",
}  # fmt: skip
_HEADINGS: Final = {
    "rmspe": "RMSPE of the mass", "bias": "bias of the mass", "nees": "NEES of the mass", "coverage": "share in the 95 % band",
    "final": "mass at the end", "median_deviation": "deviation from the median", "consistency": "NIS / dimension",
    "healthy": "share with health OK",
}  # fmt: skip
_WITH_TRUTH: Final = ("rmspe", "bias", "nees", "coverage")
_WITHOUT_TRUTH: Final = ("final", "median_deviation", "consistency", "healthy")


def _shown(comparison: Comparison) -> tuple[str, ...]:
    return _WITH_TRUTH if comparison.has_truth else _WITHOUT_TRUTH


def _mean(comparison: Comparison, estimator: str, metric: str) -> Mean:
    return getattr(comparison.estimators[estimator].metrics, metric)


def _spread(comparison: Comparison, estimator: str, metric: str) -> float:
    """Standard error over the flights; of a mass at the end that of the estimate, where there is one flight. NaN: unknown."""
    mean = _mean(comparison, estimator, metric)
    if metric == "final" and mean.flights == 1:
        return comparison.estimators[estimator].metrics.final_std.value
    return mean.standard_error


def comparison_overview(comparison: Comparison) -> Overview:
    """Of each estimator the main scores, with their standard errors over the flights."""
    metrics = _shown(comparison)
    rows = tuple(
        (
            estimator_label(name),
            *(
                plus_minus(_mean(comparison, name, m).value, _spread(comparison, name, m), _UNITS[m])
                for m in metrics
            ),
        )
        for name in comparison.estimators
    )
    heading = f"Comparison of {len(comparison.estimators)} estimators over {flights_text(comparison.flights)}"
    return Overview(heading, ("estimator", *(_HEADINGS[m] for m in metrics)), rows)


def comparison_figure(comparison: Comparison) -> go.Figure:
    """See `Comparison.plot`."""
    return to_plotly(score_figures(comparison))


def score_figures(comparison: Comparison) -> list[tuple[str, Figure]]:
    """The main scores: heading and figure of each."""
    return [(_HEADINGS[m], _score_figure(comparison, m)) for m in _shown(comparison)]


def _score_figure(comparison: Comparison, metric: str) -> Figure:
    """A score of all estimators, with 95 % bands."""
    names = list(comparison.estimators)
    means = [_mean(comparison, name, metric).value for name in names]
    errors = [_spread(comparison, name, metric) for name in names]
    unit = unit_text(_UNITS[metric])
    trace: dict[str, Any] = {
        "type": "scatter",
        "mode": "markers",
        "name": _HEADINGS[metric],
        "x": [estimator_label(name) for name in names],
        "y": [value if math.isfinite(value) else None for value in means],
        "error_y": {
            "type": "data",
            "array": [1.96 * e if math.isfinite(e) else 0.0 for e in errors],
            "width": 5,
            "color": "@soft",
        },
        "marker": {"size": 9, "color": [estimator_colour(name, k) for k, name in enumerate(names)]},
        "text": [plus_minus(value, error, unit) for value, error in zip(means, errors, strict=True)],
        "hovertemplate": "%{x}: %{text}<extra></extra>",
        "showlegend": False,
    }
    figure = layout(f"{_HEADINGS[metric]}{f' ({unit})' if unit else ''}", x_title="", hovermode="closest")
    figure["xaxis"] |= {"type": "category"}
    return Figure((trace,), figure, height=230, has_time_axis=False)


def comparison_frame(comparison: Comparison) -> pa.Table:
    """See `Comparison.to_frame`."""
    averages = comparison.estimators
    columns = {
        "estimator": Column(list(averages)),
        "flights": Column(np.array([a.flights for a in averages.values()])),
    }
    for metric in METRICS:
        means = [_mean(comparison, name, metric) for name in averages]
        unit = {"unit": _UNITS[metric]}
        columns[metric] = Column(np.array([m.value for m in means], float), unit)
        columns[f"{metric}_standard_error"] = Column(np.array([m.standard_error for m in means], float), unit)
    columns |= {
        "delay": Column(np.array([a.delay for a in averages.values()], float), {"unit": "s"}),
        "overshoot": Column(np.array([a.overshoot for a in averages.values()], float), {"unit": "%"}),
        "steps": Column(np.array([a.steps for a in averages.values()])),
        "missed": Column(np.array([a.missed for a in averages.values()])),
        "seconds_per_update": Column(
            np.array([a.seconds_per_update for a in averages.values()], float), {"unit": "s"}
        ),
    }
    return arrow_table(columns, {})
