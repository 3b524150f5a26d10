"""Elements of the pages of studies: access to rows, numbers as text, and figures of the mass.

They show the contents of rows and curves and compute nothing.
"""

# ruff: noqa: RUF001

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import numpy as np

from rotorid.report.charts import Figure, Trace, axis, band, estimator_colour, layout, line
from rotorid.report.page import Page, grid, legend
from rotorid.results.text import decimals, estimator_label, title
from rotorid.studies.study_files import Curve, Row


class Numbers:
    """Rows of a study, by part, method, quantity, trajectory, mass profile and setting."""

    def __init__(self, rows: Iterable[Row]) -> None:
        self._rows = {
            (r.part, r.method, r.quantity, r.trajectory, r.mass_profile, r.setting): r for r in rows
        }
        self.rows = list(self._rows.values())

    def get(
        self,
        part: str,
        method: str,
        quantity: str,
        trajectory: str = "",
        profile: str = "",
        setting: str = "",
    ) -> Row:
        """The row with these keys, or a row with the value NaN."""
        key = (part, method, quantity, trajectory, profile, setting)
        return self._rows.get(key, Row(*key[:3], math.nan))

    def select(self, part: str, quantity: str) -> list[Row]:
        """All rows of a quantity in a part."""
        return [r for r in self.rows if r.part == part and r.quantity == quantity]


def by_cell(curves: Sequence[Curve], part: str) -> list[list[Curve]]:
    """The curves of a part, grouped by trajectory and mass profile."""
    cells: dict[tuple[str, str], list[Curve]] = {}
    for c in curves:
        if c.part == part:
            cells.setdefault((c.trajectory, c.mass_profile), []).append(c)
    return list(cells.values())


def mass_figure(curves: Sequence[Curve], band_method: str | None = None) -> Figure:
    """The true mass and the estimates, with the 95 % band of one method, or of a single curve."""
    traces: list[Trace] = []
    for k, c in enumerate(curves):
        if c.method == band_method or len(curves) == 1:
            token = f"{estimator_colour(c.method, k)}:0.18"
            traces.append(band(c.t, c.value - 1.96 * c.std, c.value + 1.96 * c.std, token))
    traces += [
        line(c.t, c.value, method_label(c.method), estimator_colour(c.method, k), width=1.2, std=c.std)
        for k, c in enumerate(curves)
    ]
    traces.append(line(curves[0].t, curves[0].truth, "truth", "@ink", width=1.0, dash="dot"))
    axes = layout("kg")
    axes["yaxis"] |= {"nticks": 5}
    return Figure(tuple(traces), axes, height=190, has_time_axis=False)


def mass_panels(page: Page, cells: Sequence[Sequence[Curve]], band_method: str | None = None) -> str:
    """A figure of the mass for each cell, with a common legend. See `mass_figure`."""
    if not cells:
        return ""
    names = [(method_label(c.method), estimator_colour(c.method, k)) for k, c in enumerate(cells[0])]
    panels = [
        page.panel(
            mass_figure(curves, band_method), f"{title(curves[0].trajectory)}, {curves[0].mass_profile}"
        )
        for curves in cells
    ]
    return legend([*names, ("truth", "@ink")]) + grid(panels)


_MASS_STRIP, _STRIP, _MARGINS = 76, 72, 46  # px
_GAP = 0.025  # of the height, between strips


def error_strips(curves: Sequence[Curve]) -> Figure:
    """The true mass, and below it the error of each method in a strip of its own. All errors have the same axis, which includes
    the largest one."""
    height = _MASS_STRIP + _STRIP * len(curves)
    errors = [c.value - c.truth for c in curves]
    low, high = min(float(np.nanmin(e)) for e in errors), max(float(np.nanmax(e)) for e in errors)
    margin = 0.05 * (high - low)
    axes = layout("kg")
    axes["yaxis"] = axis("mass", domain=[1.0 - _MASS_STRIP / height, 1.0], nticks=3)
    traces: list[Trace] = [line(curves[0].t, curves[0].truth, "true mass", "@ink", width=1.2)]
    for k, (c, error) in enumerate(zip(curves, errors, strict=True)):
        top = 1.0 - (_MASS_STRIP + _STRIP * k) / height - _GAP
        axes[f"yaxis{k + 2}"] = axis(
            method_label(c.method),
            domain=[1.0 - (_MASS_STRIP + _STRIP * (k + 1)) / height, top],
            range=[low - margin, high + margin],
            anchor="x",
            zeroline=True,
            zerolinecolor="@line",
            nticks=4,
        )
        trace = line(
            c.t, error, f"error of {method_label(c.method)}", estimator_colour(c.method, k), width=1.2
        )
        traces.append(trace | {"yaxis": f"y{k + 2}"})
    axes["xaxis"] |= {"anchor": f"y{len(curves) + 1}"}
    return Figure(tuple(traces), axes, height=height + _MARGINS, has_time_axis=False)


def error_panels(page: Page, cells: Sequence[Sequence[Curve]]) -> str:
    """Strips of errors (see `error_strips`) for each cell."""
    return grid(
        [
            page.panel(error_strips(curves), f"{title(curves[0].trajectory)}, {curves[0].mass_profile}")
            for curves in cells
        ]
    )


_LABELS: Final[Mapping[str, str]] = {"elm": "ELM", "relm": "regularised ELM", "os-elm": "OS-ELM"}


def method_label(method: str) -> str:
    """The name of a method for display."""
    return _LABELS.get(method, estimator_label(method).replace("_", " "))


def row_text(row: Row, *, error: bool = False, scale: float = 1.0) -> str:
    """A number with three digits. error: with its standard error, if it has one. scale: factor for both."""
    value, std = scale * row.value, scale * row.standard_error
    if not error or not math.isfinite(std) or std <= 0.0:
        return number_text(value)
    places = min(decimals(std), 4)
    return f"{value:.{places}f} ± {std:.{places}f}".replace("-", "−")


def number_text(value: float) -> str:
    """A number with three digits; a dash if it is not finite."""
    if not math.isfinite(value):
        return "–"
    if value and not 1e-2 <= abs(value) < 1e5:
        return f"{value:.2e}".replace("-", "−")
    leading = math.floor(math.log10(abs(value))) if value else 0
    return f"{value:.{max(0, 2 - leading)}f}".replace("-", "−")
