"""The figures of a tracked flight."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Final

import numpy as np

from rotorid.estimators.base import Health
from rotorid.numerics.decimation import segments
from rotorid.report.charts import (
    Figure,
    Trace,
    axis,
    band,
    encode_array,
    estimator_colour,
    layout,
    line,
    line_style,
    shaded_interval,
    space_layout,
)
from rotorid.results.text import decimals, estimator_label, label, plus_minus, unit_text, value_text
from rotorid.signals.phases.phase import Phase
from rotorid.workflows.track.changes import Jump, settled_rows
from rotorid.workflows.track.motion import Curve, Motion
from rotorid.workflows.track.summary import QuantitySummary
from rotorid.workflows.track.track import Quantity, Track

SIGMAS: Final = 1.96
"""Half the width of a 95 % band, in standard deviations."""

BANDS: Final = 2
"""Up to this number of estimators, each has its band; of more, only the first."""

_DIRECTIONS: Final = ("east", "north", "up")
_POINTS_MAIN, _POINTS_SMALL = 3000, 700
_SETTLING: Final = 2.0  # s that do not determine the range of values
STRIP: Final = 16  # px of an estimator's health
_CLEARLY: Final = 0.9  # share of the absolute standard deviation
_LABEL: Final = 0.08  # of the width of the figure
_PHASE_COLOURS: Final = {
    Phase.TAKE_OFF: "@no-information:0.25",
    Phase.LANDING: "@no-information:0.25",
    Phase.CONTACT: "@recovering:0.3",
    Phase.CRASH: "@diverged:0.3",
}
_HEALTH_COLOURS: Final = {
    Health.NO_INFORMATION: "@no-information",
    Health.OUTLIER: "@outlier",
    Health.OUT_OF_RANGE: "@out-of-range",
    Health.INCONSISTENT: "@inconsistent",
    Health.RECOVERING: "@recovering",
    Health.DIVERGED: "@diverged",
    Health.ROTOR_FAULT: "@rotor-fault",
}


def quantity_with_unit(quantity: str, unit: str) -> str:
    """A quantity with its unit, for an axis: "wind force x (N)"."""
    text = unit_text(unit)
    return f"{label(quantity)} ({text})" if text else label(quantity)


def main_figure(tracks: Sequence[Track], jumps: Sequence[Jump] = ()) -> Figure:
    """The main quantity with its 95 % band, truth where known, and the health of each estimator below.

    jumps: of the main quantity, drawn as thin vertical lines.
    """
    name = tracks[0].main_quantity
    traces = _curves(tracks, name, _POINTS_MAIN, legend=True)
    unit = tracks[0].quantities[name].unit
    if jumps:
        traces.append(_jump_marks(jumps, unit))
    traces += health_strips(tracks)
    figure = layout(quantity_with_unit(name, unit), legend=True)
    strip = STRIP * len(tracks)
    height = 398 + strip
    figure["yaxis"] |= {"domain": [(strip + 28) / (height - 66), 1.0], "range": value_range(tracks, name)}
    figure["yaxis2"] = axis(
        domain=[0.0, strip / (height - 66)],
        showgrid=False,
        range=[len(tracks) - 0.4, -0.6],
        tickvals=list(range(len(tracks))),
        ticktext=[estimator_label(t.estimator) for t in tracks],
        fixedrange=True,
    )
    span = _flight_range(tracks)
    figure["xaxis"] |= {"anchor": "y2", "range": span}
    figure["shapes"] = gap_shapes(tracks) + phase_shapes(tracks[0]) + [_jump_line(j) for j in jumps]
    figure["annotations"] = _jump_labels(jumps, unit, span) + _phase_labels(tracks[0], span)
    return Figure(tuple(traces), figure, height=height)


def has_change_band(quantity: Quantity) -> bool:
    """Whether changes of a quantity are known clearly better than its absolute value, so that they get a band of their own."""
    std, change_std = np.nanmedian(quantity.std), np.nanmedian(quantity.change_std)
    return bool(change_std < _CLEARLY * std)


def quantity_figure(tracks: Sequence[Track], name: str) -> Figure:
    """A small figure of one of the other quantities."""
    having = [t for t in tracks if name in t.quantities]
    unit = having[0].quantities[name].unit
    figure = layout(unit_text(unit))
    figure["xaxis"] |= {"range": time_range(tracks)}
    figure["yaxis"] |= {"range": value_range(having, name), "nticks": 5}
    figure["shapes"] = gap_shapes(tracks)
    return Figure(tuple(_curves(having, name, _POINTS_SMALL)), figure, height=190)


def motion_figure(curve: Curve, tracks: Sequence[Track]) -> Figure:
    """One curve of the vehicle's motion."""
    figure = layout(unit_text(curve.unit))
    figure["xaxis"] |= {"range": time_range(tracks)}
    figure["yaxis"] |= {"nticks": 5}
    figure["shapes"] = gap_shapes(tracks)
    trace = line(curve.t, curve.value, curve.name, "@ink:0.75", points=_POINTS_SMALL, width=1.1)
    return Figure((trace,), figure, height=190)


def path_figure(motion: Motion, track: Track, summary: QuantitySummary) -> Figure | None:
    """The flight path, coloured by the main quantity, with equal scale on all axes. None without a position."""
    if motion.path is None or motion.path_t is None:
        return None
    every = max(1, len(motion.path_t) // _POINTS_MAIN)
    t, path = motion.path_t[::every], motion.path[::every]
    quantity = track.quantities[track.main_quantity]
    value = np.interp(t, track.t, quantity.value)
    low, high = summary.lowest, summary.highest
    x, y, z = (encode_array(path[:, k]) for k in range(3))
    lowest, highest = path.min(axis=0).astype(float), path.max(axis=0).astype(float)
    middle, sides = 0.5 * (lowest + highest), 1.08 * (highest - lowest)
    sides = np.maximum(sides, max(0.3 * float(sides.max()), 1e-3))
    curve: Trace = {
        "type": "scatter3d",
        "mode": "lines",
        "x": x,
        "y": y,
        "z": z,
        "line": {
            "width": 5,
            "color": encode_array(value),
            "colorscale": "Viridis",
            "cmin": low,
            "cmax": high if high > low else low + 1e-9,
            "colorbar": {
                "title": {"text": quantity_with_unit(track.main_quantity, quantity.unit), "side": "right"},
                "thickness": 10,
                "len": 0.7,
                "outlinewidth": 0,
            },
        },
        "customdata": encode_array(np.stack([t, value], axis=1).ravel()) | {"shape": f"{len(t)}, 2"},
        "hovertemplate": f"%{{customdata[0]:.1f}} s<br>{label(track.main_quantity)} %{{customdata[1]:.3f}}"
        "<extra></extra>",
        "showlegend": False,
    }
    ends: Trace = {
        "type": "scatter3d",
        "mode": "markers+text",
        "x": encode_array(path[[0, -1], 0]),
        "y": encode_array(path[[0, -1], 1]),
        "z": encode_array(path[[0, -1], 2]),
        "text": ["start", "end"],
        "textposition": ["bottom center", "top center"],
        "textfont": {"color": "@ink", "size": 12},
        "marker": {"size": 4, "color": "@ink"},
        "hoverinfo": "skip",
        "showlegend": False,
    }
    axes = {
        axis_: {"title": {"text": f"{direction} (m)"}, "range": [m - s / 2, m + s / 2]}
        for axis_, direction, m, s in zip("xyz", _DIRECTIONS, middle, sides, strict=True)
    }
    shape = {"aspectmode": "manual", "aspectratio": dict(zip("xyz", sides / sides.max(), strict=True))}
    camera = {"eye": {"x": 0.95, "y": -1.05, "z": 0.7}, "center": {"x": 0, "y": 0, "z": -0.08}}
    figure = space_layout(axes, shape | {"camera": camera})
    return Figure((curve, ends), figure, height=460, has_time_axis=False)


def _curves(tracks: Sequence[Track], name: str, points: int, *, legend: bool = False) -> list[Trace]:
    """Bands, truth as a broad pale line, and the estimates.

    All but the first estimator are thin and dashed, so that equal ones are all visible. A second estimator has the outline of
    its band, further ones have none.
    """
    traces = []
    for i, track in enumerate(tracks if len(tracks) <= BANDS else tracks[:1]):
        q, own = track.quantities[name], estimator_colour(track.estimator, i)
        lower, upper = q.value - SIGMAS * q.std, q.value + SIGMAS * q.std
        outline = None if i == 0 else {"width": 0.8, "color": f"{own}:0.7", "dash": "2px,2px"}
        fill = f"{own}:0.18" if i == 0 else "rgba(0,0,0,0)"
        traces.append(band(track.t, lower, upper, fill, points=points, outline=outline))
        if i == 0 and legend and has_change_band(q):
            inner = SIGMAS * q.change_std
            traces.append(band(track.t, q.value - inner, q.value + inner, f"{own}:0.22", points=points))
    truth = next(((t.t, t.truth[name]) for t in tracks if name in t.truth), None)
    if truth is not None:
        width = 7.0 if legend else 5.0
        traces.append(
            line(*truth, "known", "@ink:0.28", points=points, width=width, step=True, showlegend=legend)
        )
    for i, track in enumerate(tracks):
        q = track.quantities[name]
        traces.append(
            line(
                track.t,
                q.value,
                estimator_label(track.estimator),
                estimator_colour(track.estimator, i),
                points=points,
                std=q.std,
                digits=max(3, decimals(float(np.nanmedian(q.std)))),
                showlegend=legend,
                **line_style(i),
            )
        )
    return traces


def _jump_line(jump: Jump) -> dict:
    return {
        "type": "line",
        "xref": "x",
        "yref": "y domain",
        "x0": round(jump.time, 3),
        "x1": round(jump.time, 3),
        "y0": 0,
        "y1": 1,
        "line": {"color": "@ink:0.55", "width": 1},
        "layer": "below",
    }


def _jump_marks(jumps: Sequence[Jump], unit: str) -> Trace:
    """A small triangle at the value after each jump, with its size in the hover text."""
    texts = [f"{plus_minus(j.size, j.size_std, unit, signed=True)} at {j.time:.1f} s" for j in jumps]
    return {
        "type": "scatter",
        "mode": "markers",
        "name": "jump",
        "x": encode_array([j.time for j in jumps]),
        "y": encode_array([j.after for j in jumps]),
        "text": texts,
        "hovertemplate": "%{text}<extra>jump</extra>",
        "marker": {
            "symbol": ["triangle-up" if j.size > 0 else "triangle-down" for j in jumps],
            "size": 9,
            "color": "@ink",
        },
    }


def _jump_labels(jumps: Sequence[Jump], unit: str, time_range: Sequence[float]) -> list[dict]:
    """The size of each jump beside its line, in two rows; labels that would overlap are left out."""
    room, ends = _LABEL * (time_range[1] - time_range[0]), [-np.inf, -np.inf]
    labels = []
    for jump in jumps:
        row = next((k for k, end in enumerate(ends) if jump.time >= end), None)
        if row is None:
            continue
        ends[row] = jump.time + room
        last = jump.time > time_range[1] - room
        labels.append(
            {
                "xref": "x",
                "x": round(jump.time, 3),
                "xanchor": "right" if last else "left",
                "xshift": -3 if last else 3,
                "yref": "y domain",
                "y": 1,
                "yanchor": "top",
                "yshift": -14 * row,
                "text": f"{value_text(jump.size, jump.size_std, signed=True)} {unit_text(unit)}".strip(),
                "showarrow": False,
                "font": {"size": 11, "color": "@ink"},
            }
        )
    return labels


def health_strips(tracks: Sequence[Track]) -> list[Trace]:
    """A strip per estimator: a thin line while it is healthy, a thick one in the colour of its health otherwise."""
    start, end = time_range(tracks)
    shortest = 0.004 * (end - start)
    common = {"type": "scatter", "mode": "lines", "yaxis": "y2"}
    traces: list[Trace] = []
    for i, track in enumerate(tracks):
        xs = [
            x for s in segments(track.t) for x in (float(track.t[s.start]), float(track.t[s.stop - 1]), None)
        ]
        healthy = {
            "x": xs,
            "y": [None if x is None else i for x in xs],
            "hoverinfo": "skip",
            "showlegend": False,
        }
        traces.append(common | healthy | {"line": {"color": "@ok", "width": 3}})
    shown = set()
    for health, token in _HEALTH_COLOURS.items():
        for i, track in enumerate(tracks):
            xs = [x for a, b in _runs(track, health) for x in (a, max(b, a + shortest), None)]
            if not xs:
                continue
            traces.append(
                common
                | {
                    "x": xs,
                    "y": [None if x is None else i for x in xs],
                    "name": health.name.lower().replace("_", " "),
                    "line": {"color": token, "width": 11},
                    "hovertemplate": health.meaning + f"<extra>{estimator_label(track.estimator)}</extra>",
                    "showlegend": health not in shown,
                }
            )
            shown.add(health)
    return traces


def _runs(track: Track, health: Health) -> list[tuple[float, float]]:
    rows = np.concatenate([[False], track.health == health, [False]])
    first, last = np.flatnonzero(rows[1:] & ~rows[:-1]), np.flatnonzero(~rows[1:] & rows[:-1]) - 1
    return [(float(track.t[a]), float(track.t[b])) for a, b in zip(first, last, strict=True)]


def time_range(tracks: Sequence[Track]) -> list[float]:
    """The first and the last time, s."""
    return [round(min(float(t.t[0]) for t in tracks), 3), round(max(float(t.t[-1]) for t in tracks), 3)]


def gap_shapes(tracks: Sequence[Track]) -> list[dict]:
    """Grey intervals where the first track has a gap."""
    t = tracks[0].t
    parts = segments(t)
    return [shaded_interval(float(t[a.stop - 1]), float(t[b.start])) for a, b in itertools.pairwise(parts)]


def _flight_range(tracks: Sequence[Track]) -> list[float]:
    """The time of the rows, with take-off and landing around it, s."""
    start, end = time_range(tracks)
    shown = [p for p in tracks[0].phases if p.phase in _PHASE_COLOURS]
    longest = 0.03 * (end - start)
    before = [p.start for p in shown if start - longest < p.start < start]
    after = [min(p.end, p.start + longest) for p in shown if end - longest < p.start < end + longest]
    return [round(min([start, *before]), 3), round(max([end, *after]), 3)]


def phase_shapes(track: Track) -> list[dict]:
    """Intervals of the phases other than free flight and ground, in the colour of each."""
    return [
        shaded_interval(p.start, p.end, fillcolor=_PHASE_COLOURS[p.phase])
        for p in track.phases
        if p.phase in _PHASE_COLOURS
    ]


def _phase_labels(track: Track, span: Sequence[float]) -> list[dict]:
    """The name of each of these phases at the bottom of the figure; labels that would overlap are left out."""
    room, end, labels = 0.6 * _LABEL * (span[1] - span[0]), -np.inf, []
    for p in track.phases:
        if p.phase not in _PHASE_COLOURS or not max(end, span[0]) <= p.start < span[1]:
            continue
        end = p.start + room
        is_last = p.start > span[1] - room
        labels.append(
            {
                "xref": "x",
                "x": round(p.start, 3),
                "xanchor": "right" if is_last else "left",
                "yref": "y domain",
                "y": 0,
                "yanchor": "bottom",
                "text": label(p.phase.value),
                "showarrow": False,
                "font": {"size": 11, "color": "@ink:0.75"},
            }
        )
    return labels


def value_range(tracks: Sequence[Track], name: str) -> list[float] | None:
    """The range of the settled values with their bands, and of the truth; the wide band at the start may exceed it."""
    low, high = [], []
    for track in tracks:
        q, rows = track.quantities[name], settled_rows(track, name, _SETTLING)
        if rows.any():
            low += [np.min(q.value[rows]), np.percentile(q.value[rows] - SIGMAS * q.std[rows], 1)]
            high += [np.max(q.value[rows]), np.percentile(q.value[rows] + SIGMAS * q.std[rows], 99)]
        if name in track.truth:
            low.append(np.min(track.truth[name]))
            high.append(np.max(track.truth[name]))
    if not low:
        return None
    margin = 0.06 * (max(high) - min(low)) or 1.0
    return [float(min(low) - margin), float(max(high) + margin)]
