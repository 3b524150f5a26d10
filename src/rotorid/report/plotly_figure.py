"""Figures of pages as one plotly figure, for notebooks: one above the other, with the colours of the page's light theme."""

from __future__ import annotations

import base64
import functools
import html
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from rotorid.report.charts import Figure
from rotorid.report.page import style_sheet

if TYPE_CHECKING:
    import plotly.graph_objects as go

_FRAME: Final = 66  # px of a figure's height that are above and below its axes
_BETWEEN: Final = 72  # px between the axes of two figures, for ticks and heading
_MARGINS: Final = {"l": 70, "r": 20, "t": 64, "b": 48}  # px
_TOKEN: Final = re.compile(r"@([\w-]+)(?::([\d.]+))?")


def to_plotly(figures: Sequence[tuple[str, Figure]], title: str = "") -> go.Figure:
    """Figures with their headings as one plotly figure, one above the other; their time axes zoom together.

    Args:
        figures: heading and figure, from the top; two-dimensional ones.
        title: of the whole.
    Returns:
        The figure; arrays are numpy arrays of float32.
    """
    import plotly.graph_objects as go

    heights = [figure.height - _FRAME for _, figure in figures]
    inner = sum(heights) + _BETWEEN * max(len(figures) - 1, 0)
    layout: dict[str, Any] = dict(figures[0][1].layout) if figures else {}
    for key in [key for key in layout if key.startswith(("xaxis", "yaxis"))]:
        del layout[key]
    layout |= {
        "title": {"text": html.escape(title), "x": 0.0, "xref": "paper"},
        "height": inner + _MARGINS["t"] + _MARGINS["b"],
        "margin": _MARGINS,
        "paper_bgcolor": "@panel",
        "font": {"color": "@soft", "size": 12},
        "showlegend": any(figure.layout["showlegend"] for _, figure in figures),
        "legend": {"orientation": "h", "x": 1, "xanchor": "right", "y": 1, "yanchor": "bottom"},
        "shapes": [],
        "annotations": [],
    }
    traces: list[dict[str, Any]] = []
    top, time_axis = float(inner), ""
    for number, ((heading, figure), height) in enumerate(zip(figures, heights, strict=True)):
        slot = (max((top - height) / inner, 0.0), top / inner)
        names = _axis_names(figure, number)
        placed = _placed(figure, names, slot)
        if figure.has_time_axis:
            if time_axis:
                placed["axes"][_layout_key(names["x"])]["matches"] = time_axis
            time_axis = time_axis or names["x"]
        layout |= placed["axes"]
        layout["shapes"] += placed["shapes"]
        layout["annotations"] += [*placed["annotations"], _heading(heading, slot[1])]
        traces += [
            trace | {"xaxis": names[trace.get("xaxis", "x")], "yaxis": names[trace.get("yaxis", "y")]}
            for trace in figure.traces
        ]
        top -= height + _BETWEEN
    return go.Figure(_dressed(traces), _dressed(layout))


def _axis_names(figure: Figure, number: int) -> dict[str, str]:
    """The axes of a figure ("x", "y2") by their names among all figures; number: of the figure."""
    own = [f"{key[0]}{key[5:]}" for key in figure.layout if key.startswith(("xaxis", "yaxis"))]
    return {name: name if number == 0 else f"{name[0]}{10 * number + int(name[1:] or 1)}" for name in own}


def _layout_key(axis: str) -> str:
    return f"{axis[0]}axis{axis[1:]}"


def _placed(figure: Figure, names: Mapping[str, str], slot: tuple[float, float]) -> dict[str, Any]:
    """Axes, shapes and annotations of a figure in a slot: the share of the whole height from its bottom to its top."""
    low, size = slot[0], slot[1] - slot[0]
    axes: dict[str, Any] = {}
    for name, new in names.items():
        axis = dict(figure.layout[_layout_key(name)])
        anchor = axis.get("anchor", "y" if name[0] == "x" else "x")
        axis["anchor"] = names[anchor]
        if name[0] == "y":
            axis["domain"] = [low + size * end for end in axis.get("domain", (0.0, 1.0))]
        axes[_layout_key(new)] = axis

    def moved(item: Mapping[str, Any]) -> dict[str, Any]:
        item = dict(item)
        for key in ("xref", "yref", "axref", "ayref"):
            name, _, rest = str(item.get(key, "")).partition(" ")
            if name in names:
                item[key] = f"{names[name]} {rest}".rstrip()
        if item.get("yref") == "paper":
            item |= {key: low + size * item[key] for key in ("y", "y0", "y1") if key in item}
        return item

    return {
        "axes": axes,
        "shapes": [moved(shape) for shape in figure.layout.get("shapes", ())],
        "annotations": [moved(note) for note in figure.layout.get("annotations", ())],
    }


def _heading(text: str, top: float) -> dict[str, Any]:
    place = {"xref": "paper", "x": 0, "xanchor": "left", "yref": "paper", "y": top, "yanchor": "bottom"}
    style = {"showarrow": False, "font": {"size": 13, "color": "@ink"}, "yshift": 4}
    return place | style | {"text": html.escape(text)}


@functools.cache
def _palette() -> Mapping[str, str]:
    """The colours of the light theme, by token."""
    palette: dict[str, str] = {}
    for name, colour in re.findall(r"--([\w-]+):\s*(#[0-9a-fA-F]{6})\s*;", style_sheet()):
        palette.setdefault(name, colour)
    return palette


def _dressed(thing: Any) -> Any:
    """Layouts and traces with colours for tokens and arrays for their encoded form."""
    if isinstance(thing, str):
        match = _TOKEN.fullmatch(thing)
        if match is None or match[1] not in _palette():
            return thing
        colour = _palette()[match[1]]
        if match[2] is None:
            return colour
        red, green, blue = (int(colour[k : k + 2], 16) for k in (1, 3, 5))
        return f"rgba({red},{green},{blue},{match[2]})"
    if isinstance(thing, Mapping):
        if "bdata" in thing:
            values = np.frombuffer(base64.b64decode(thing["bdata"]), "<f4")
            return values.reshape([int(n) for n in thing["shape"].split(",")]) if "shape" in thing else values
        return {key: _dressed(value) for key, value in thing.items()}
    if isinstance(thing, (list, tuple)):
        return [_dressed(value) for value in thing]
    return thing
