"""An identification, validated or not, as an overview, a plotly figure and an Arrow table."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from rotorid.display import Column, Overview, arrow_table
from rotorid.identification.fitting.display import SIGMAS, estimate_parts, figure_height, fit_frame
from rotorid.models.airframe.mass import mass_std
from rotorid.report.charts import Figure
from rotorid.report.plotly_figure import to_plotly
from rotorid.results.text import label, percent, plus_minus, title, unit_text

if TYPE_CHECKING:
    import plotly.graph_objects as go
    import pyarrow as pa

    from rotorid.models.airframe.validation import FlyBack
    from rotorid.workflows.identify.result import Identification


def identification_overview(model: Identification) -> Overview:
    """Of each quantity the estimate with standard deviation and 95 % band, and the information gain."""
    fit, rows = model.fit, []
    if model.known == "mass":
        mass, std = model.airframe.mass.number, mass_std(model.airframe)
        rows.append(_row("Mass (held fixed)", mass, std, "kg", "–"))  # noqa: RUF001
    elif "mass" not in fit.names:
        for part in model.masses:
            name = f"Mass, {part.flight}, {part.start:.1f} to {part.end:.1f} s"
            rows.append(_row(name, part.value, part.std, "kg", "–"))  # noqa: RUF001
    for name in fit.names:
        gain = percent(fit.information_gain[name])
        rows.append(_row(title(name), fit.values[name], fit.std[name], fit.unit[name], gain))
    flights = model.preparation.flights
    heading = f"Identification from {len(flights)} flight{'' if len(flights) == 1 else 's'}, {model.known} held fixed"
    return Overview(heading, ("quantity", "estimate ± 1 std", "95 % band", "identified"), tuple(rows))


def _row(name: str, value: float, std: float, unit: str, gain: str) -> tuple[str, str, str, str]:
    band = f"± {SIGMAS * std:.2g} {unit_text(unit)}".rstrip() if math.isfinite(std) else "not given"
    return (name, plus_minus(value, std, unit), band, gain)


def validated_overview(model: Identification, fly_back: FlyBack | None) -> Overview:
    """The same with the result of the validation in the heading."""
    overview = identification_overview(model)
    state = "not validated" if fly_back is None else "accepted" if fly_back.accepted else "rejected"
    return Overview(f"{overview.heading}; {state}", overview.columns, overview.rows)


def identification_figure(model: Identification) -> go.Figure:
    """See `Identification.plot`."""
    from rotorid.workflows.identify.page import curve_figure
    from rotorid.workflows.identify.summary import thrust_curves

    traces, layout = estimate_parts(model.fit)
    estimates = Figure(tuple(traces), layout, figure_height(model.fit), has_time_axis=False)
    figures = [("Estimates ± one standard deviation; bars: 95 % bands", estimates)]
    curves = thrust_curves(model)
    if curves is not None:
        figures.append((f"{title('thrust_curve')} with 95 % bands", curve_figure(curves)))
    return to_plotly(figures)


def identification_frame(model: Identification) -> pa.Table:
    """See `Identification.to_frame`."""
    table = fit_frame(model.fit)
    parts = () if "mass" in model.fit.names else model.masses
    names = [*(["mass"] * len(parts)), *table["quantity"].to_pylist()]
    rest = len(names) - len(parts)
    empty, gaps = [math.nan] * len(parts), [math.nan] * rest

    def joined(name: str, own: list[float]) -> np.ndarray:
        return np.array([*own, *(math.nan if v is None else v for v in table[name].to_pylist())], float)

    in_units = {"unit": "that of the column `unit`"}
    columns = {
        "quantity": Column(names),
        "unit": Column([*(["kg"] * len(parts)), *table["unit"].to_pylist()]),
        "value": Column(joined("value", [part.value for part in parts]), in_units),
        "std": Column(joined("std", [part.std for part in parts]), in_units),
        "prior": Column(joined("prior", empty), in_units),
        "prior_std": Column(joined("prior_std", empty), in_units),
        "information_gain": Column(joined("information_gain", empty), {"unit": "1"}),
        "flight": Column([*(part.flight for part in parts), *([""] * rest)]),
        "start": Column(np.array([*(part.start for part in parts), *gaps], float), {"unit": "s"}),
        "end": Column(np.array([*(part.end for part in parts), *gaps], float), {"unit": "s"}),
    }
    return arrow_table(columns, {"held_fixed": label(model.known)})
