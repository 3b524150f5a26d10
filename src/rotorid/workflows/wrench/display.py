"""A wrench over time as an overview, a plotly figure and an Arrow table."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rotorid.display import Overview
from rotorid.results.text import estimator_label, percent, plus_minus, title, unit_text
from rotorid.workflows.track.display import quantity_text, track_frame
from rotorid.workflows.track.figures import SIGMAS
from rotorid.workflows.wrench.figures import component_figure, force_figure
from rotorid.workflows.wrench.observe import COMPONENTS, WrenchTrack

if TYPE_CHECKING:
    import plotly.graph_objects as go
    import pyarrow as pa


def wrench_overview(wrench: WrenchTrack) -> Overview:
    """Of each component the median with standard deviation and 95 % band, and the value farthest from it, with its time."""
    track, rows = wrench.track, wrench.usable_rows
    heading = f"Wrench by {estimator_label(track.estimator)} over {len(track.t)} rows, {percent(float(np.mean(rows)))} usable"
    if not rows.any():
        return Overview(heading, (), ())
    t, lines = track.t[rows], []
    for name in COMPONENTS:
        q = track.quantities[name]
        value, std = q.value[rows], q.std[rows]
        middle, typical = float(np.median(value)), float(np.median(std))
        k = int(np.argmax(np.abs(value - middle)))
        farthest = plus_minus(float(value[k]), float(std[k]), q.unit)
        band = f"± {SIGMAS * typical:.2g} {unit_text(q.unit)}"
        lines.append((title(name), plus_minus(middle, typical, q.unit), band, f"{farthest} at {t[k]:.1f} s"))
    return Overview(heading, ("component", "median ± 1 std", "95 % band", "largest deviation"), tuple(lines))


def wrench_figure(wrench: WrenchTrack) -> go.Figure:
    """See `WrenchTrack.plot`."""
    from rotorid.report.plotly_figure import to_plotly

    track = wrench.track
    figures = [("Force (N), world axes, with 95 % bands", force_figure(track, ()))]
    figures += [
        (f"{quantity_text(track, name)}, body axes, with its 95 % band", component_figure(track, name, ()))
        for name in COMPONENTS[3:]
    ]
    return to_plotly(figures)


def wrench_frame(wrench: WrenchTrack) -> pa.Table:
    """See `WrenchTrack.to_frame`."""
    import pyarrow as pa

    table = track_frame(wrench.track, COMPONENTS)
    added = {f"attitude_{axis}": (pa.array(wrench.attitude[:, k]), "1") for k, axis in enumerate("wxyz")}
    added["usable"] = (pa.array(wrench.usable_rows), "")
    for name, (values, unit) in added.items():
        field = pa.field(name, values.type, metadata={"unit": unit} if unit else None)
        table = table.append_column(field, values)
    return table
