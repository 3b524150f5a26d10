"""A track as an overview, a plotly figure and an Arrow table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from rotorid.display import Column, Overview, arrow_table
from rotorid.errors import SettingError
from rotorid.estimators.base import Health
from rotorid.report.plotly_figure import to_plotly
from rotorid.results.text import estimator_label, percent, plus_minus, title, unit_text
from rotorid.workflows.track.changes import find_jumps
from rotorid.workflows.track.figures import SIGMAS, main_figure, quantity_figure, quantity_with_unit
from rotorid.workflows.track.track import Track

if TYPE_CHECKING:
    import plotly.graph_objects as go
    import pyarrow as pa


def track_overview(track: Track) -> Overview:
    """Estimator, time and health of a track, and of each quantity its value at the end with its standard deviation."""
    if not len(track.t):
        return Overview(f"Track by {estimator_label(track.estimator)} without rows", (), ())
    rows = tuple(
        (
            title(name),
            plus_minus(float(q.value[-1]), float(q.std[-1]), q.unit),
            f"± {SIGMAS * float(q.std[-1]):.2g} {unit_text(q.unit)}".rstrip(),
            percent(float(np.mean(q.informed))),
        )
        for name, q in track.quantities.items()
    )
    heading = (
        f"Track by {estimator_label(track.estimator)} over {track.t[0]:.1f} to {track.t[-1]:.1f} s, {len(track.t)} rows, "
        f"health OK {percent(track.health_share(Health.OK))}"
    )
    return Overview(heading, ("quantity", "at the end ± 1 std", "95 % band", "informed"), rows)


def track_figure(track: Track, names: Sequence[str]) -> go.Figure:
    """See `Track.plot`."""
    figures = []
    for name in chosen(track, names):
        if name == track.main_quantity:
            figure = main_figure([track], find_jumps(track) or ())
        else:
            figure = quantity_figure([track], name)
        figures.append((f"{quantity_text(track, name)}, with its 95 % band", figure))
    return to_plotly(figures)


def quantity_text(track: Track, name: str) -> str:
    """A quantity with its unit, as a heading: "Wind x (m/s)"."""
    text = quantity_with_unit(name, track.quantities[name].unit)
    return text[:1].upper() + text[1:]


def track_frame(track: Track, names: Sequence[str]) -> pa.Table:
    """See `Track.to_frame`."""
    columns = {"t": Column(track.t, {"unit": "s"})}
    for name in chosen(track, names):
        quantity = track.quantities[name]
        columns |= {
            name: Column(quantity.value, {"unit": quantity.unit}),
            f"{name}_std": Column(quantity.std, {"unit": quantity.unit, "meaning": "one standard deviation"}),
            f"{name}_informed": Column(quantity.informed),
        }
        if name in track.truth:
            columns[f"{name}_truth"] = Column(track.truth[name], {"unit": quantity.unit})
    words: Mapping[int, str] = {int(health): health.name.lower() for health in Health}
    columns["health"] = Column([words[int(health)] for health in track.health])
    return arrow_table(columns, {"estimator": track.estimator, "system": track.system})


def chosen(track: Track, names: Sequence[str]) -> Sequence[str]:
    """These quantities, all where none is named. Raises SettingError for one that the track lacks."""
    for name in names:
        if name not in track.quantities:
            raise SettingError(f"no quantity {name!r} in this track (it has {', '.join(track.quantities)})")
    return names or tuple(track.quantities)
