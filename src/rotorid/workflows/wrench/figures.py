"""The figures of an observed wrench."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Final

import numpy as np

from rotorid.models.airframe.airframe import Rotor
from rotorid.report.charts import Figure, Trace, axis, axis_colour, band, encode_array, layout, line
from rotorid.workflows.track.figures import (
    SIGMAS,
    STRIP,
    gap_shapes,
    health_strips,
    quantity_figure,
    time_range,
    value_range,
)
from rotorid.workflows.track.track import Track
from rotorid.workflows.wrench.contacts import Contact
from rotorid.workflows.wrench.line_of_action import Box

_DIRECTIONS: Final = ("east", "north", "up")
_LABEL: Final = 0.035  # of the width of the figure
_POINTS: Final = 2500
_VIEWS: Final = ((0, 1, "forward", "left"), (0, 2, "forward", "up"))
_ARROW: Final = 0.75  # of the vehicle's half width, of the strongest force
_TURN: Final = np.linspace(0.0, 2.0 * np.pi, 49)


def force_figure(track: Track, events: Sequence[Contact]) -> Figure:
    """The three forces with their 95 % bands, contacts shaded and numbered, and the health below."""
    traces: list[Trace] = []
    names = [name for name in track.quantities if name.startswith("force")]
    for k, name in enumerate(names):
        q = track.quantities[name]
        fill = f"{axis_colour(k)}:0.13"
        traces.append(band(track.t, q.value - SIGMAS * q.std, q.value + SIGMAS * q.std, fill, points=_POINTS))
    for k, name in enumerate(names):
        q, colour = track.quantities[name], axis_colour(k)
        if name in track.truth:
            truth = line(track.t, track.truth[name], "known", f"{colour}:0.35", width=6.0, step=True)
            traces.append(truth | {"showlegend": False})
        curve = line(track.t, q.value, _DIRECTIONS[k], colour, points=_POINTS, std=q.std, width=1.6)
        traces.append(curve | {"showlegend": True})
    traces += health_strips([track])
    figure = layout("force (N)", legend=True)
    height = 398 + STRIP
    ranges = [r for name in names if (r := value_range([track], name)) is not None]
    figure["yaxis"] |= {
        "domain": [(STRIP + 28) / (height - 66), 1.0],
        "range": [min(r[0] for r in ranges), max(r[1] for r in ranges)] if ranges else None,
    }
    figure["yaxis2"] = axis(
        domain=[0.0, STRIP / (height - 66)],
        showgrid=False,
        range=[0.6, -0.6],
        tickvals=[0],
        ticktext=["health"],
        fixedrange=True,
    )
    figure["xaxis"] |= {"anchor": "y2", "range": time_range([track])}
    figure["shapes"] = gap_shapes([track]) + _event_shapes(events, "y domain")
    figure["annotations"] = _event_labels(events, time_range([track]))
    return Figure(tuple(traces), figure, height=height)


def component_figure(track: Track, name: str, events: Sequence[Contact]) -> Figure:
    """One component with its 95 % band, truth where known, and the contacts shaded."""
    figure = quantity_figure([track], name)
    layout = {"shapes": [*figure.layout["shapes"], *_event_shapes(events, "paper")]}
    return dataclasses.replace(figure, layout=figure.layout | layout, height=210)


def place_figure(
    view: int, rotors: Sequence[Rotor], centre: Sequence[float], box: Box, events: Sequence[Contact]
) -> Figure:
    """Lines of action on the vehicle, from above (view 0) or from the left (view 1), body axes, cm from the centre of mass.

    An arrow ends where the line of action enters the box around the rotors, a cross is the point nearest to the centre of mass.
    """
    i, j, across, upward = _VIEWS[view]
    low, high = 100.0 * np.array(box.low), 100.0 * np.array(box.high)
    size = float(np.max(np.abs([low, high])))
    traces: list[Trace] = []
    for rotor in rotors:
        x, y = (100.0 * (rotor.position[k] - centre[k]) for k in (i, j))
        radius = 0.38 * size
        ring = (x + radius * np.cos(_TURN), y + (radius if view == 0 else 0.06 * radius) * np.sin(_TURN))
        traces.append(_line(*ring, "@ink:0.45", 1.2) | {"fill": "toself", "fillcolor": "@ink:0.05"})
        traces.append(_line([0.0, x], [0.0, y], "@ink:0.45", 2.0))
    along_x = [low[i], high[i], high[i], low[i], low[i]]
    along_y = [low[j], low[j], high[j], high[j], low[j]]
    traces.append(_line(along_x, along_y, "@ink:0.3", 1.0, dash="3px,3px"))
    figure = layout(f"{upward} (cm)", x_title=f"{across} (cm)")
    strongest = max((e.strength for e in events), default=1.0)
    annotations = []
    for number, event in enumerate(events, 1):
        if event.line is None:
            continue
        point = 100.0 * np.array(event.line.entry or event.line.nearest)
        tail = point - _ARROW * size * event.strength / strongest * np.array(event.line.direction)
        annotations.append(_arrow(point[i], point[j], tail[i], tail[j], str(number)))
        near = 100.0 * np.array(event.line.nearest)
        traces.append(_line([point[i], near[i]], [point[j], near[j]], "@push:0.5", 1.0, dash="2px,2px"))
        traces.append(
            _line([near[i]], [near[j]], "@push", 1.0)
            | {"mode": "markers", "marker": {"symbol": "x-thin-open", "size": 8, "color": "@push"}}
        )
    reach = 2.0 * size
    figure["xaxis"] |= {"range": [-reach, reach], "constrain": "domain"}
    figure["yaxis"] |= {"range": [-reach, reach], "scaleanchor": "x", "constrain": "domain"}
    figure |= {"hovermode": False, "annotations": annotations}
    return Figure(tuple(traces), figure, height=400, has_time_axis=False)


def _line(
    x: Sequence[float] | np.ndarray,
    y: Sequence[float] | np.ndarray,
    colour: str,
    width: float,
    dash: str = "solid",
) -> Trace:
    return {
        "type": "scatter",
        "mode": "lines",
        "x": encode_array(x),
        "y": encode_array(y),
        "line": {"color": colour, "width": width, "dash": dash},
        "hoverinfo": "skip",
        "showlegend": False,
    }


def _arrow(x: float, y: float, from_x: float, from_y: float, text: str) -> dict:
    return {
        "x": round(float(x), 3),
        "y": round(float(y), 3),
        "ax": round(float(from_x), 3),
        "ay": round(float(from_y), 3),
        "xref": "x",
        "yref": "y",
        "axref": "x",
        "ayref": "y",
        "text": text,
        "showarrow": True,
        "arrowhead": 2,
        "arrowsize": 1.1,
        "arrowwidth": 2.0,
        "arrowcolor": "@push",
        "font": {"size": 12, "color": "@push"},
    }


def _event_shapes(events: Sequence[Contact], yref: str) -> list[dict]:
    return [
        {
            "type": "rect",
            "xref": "x",
            "yref": yref,
            "x0": round(e.start, 3),
            "x1": round(e.end, 3),
            "y0": 0,
            "y1": 1,
            "fillcolor": "@push:0.1",
            "line": {"width": 0},
            "layer": "below",
        }
        for e in events
    ]


def _event_labels(events: Sequence[Contact], time_range: Sequence[float]) -> list[dict]:
    """The number of each contact above it; labels that would overlap are left out."""
    label_width, end = _LABEL * (time_range[1] - time_range[0]), -np.inf
    labels = []
    for number, event in enumerate(events, 1):
        middle = 0.5 * (event.start + event.end)
        if middle < end:
            continue
        end = middle + label_width
        labels.append(
            {
                "xref": "x",
                "x": round(middle, 3),
                "yref": "y domain",
                "y": 1,
                "yanchor": "top",
                "text": str(number),
                "showarrow": False,
                "font": {"size": 12, "color": "@push"},
            }
        )
    return labels
