"""Pieces that pages of studies have in common: numbers by what they are of, as text, and curves of the mass.

They draw what rows and curves hold, and compute nothing.
"""

# ruff: noqa: RUF001

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from rotorid.report.charts import Figure, Trace, band, estimator_colour, layout, line
from rotorid.report.page import Page, grid, legend
from rotorid.results.text import decimals, estimator_label, title
from rotorid.studies.study_files import Curve, Row


class Numbers:
    """Rows of a study by what they are of."""

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
        """The number, or one that is none."""
        key = (part, method, quantity, trajectory, profile, setting)
        return self._rows.get(key, Row(*key[:3], math.nan))

    def some(self, part: str, quantity: str) -> list[Row]:
        """All numbers of one kind in one part."""
        return [r for r in self.rows if r.part == part and r.quantity == quantity]


def by_cell(curves: Sequence[Curve], part: str) -> list[list[Curve]]:
    """The curves of one part, those of one trajectory with one mass profile together."""
    cells: dict[tuple[str, str], list[Curve]] = {}
    for c in curves:
        if c.part == part:
            cells.setdefault((c.trajectory, c.mass_profile), []).append(c)
    return list(cells.values())


def mass_figure(of: Sequence[Curve], banded: str | None = None) -> Figure:
    """The truth and what the methods made of it; the band of one of them, or of the only one."""
    traces: list[Trace] = []
    low, high = min(c.truth.min() for c in of), max(c.truth.max() for c in of)
    for k, c in enumerate(of):
        if c.method == banded or len(of) == 1:
            token = f"{estimator_colour(c.method, k)}:0.18"
            traces.append(band(c.t, c.value - 1.96 * c.std, c.value + 1.96 * c.std, token))
    traces += [
        line(c.t, c.value, method_label(c.method), estimator_colour(c.method, k), width=1.2, std=c.std)
        for k, c in enumerate(of)
    ]
    truth = of[0]
    traces.append(line(truth.t, truth.truth, "truth", "@ink", width=1.0, dash="dot"))
    drawn = layout("kg")
    drawn["yaxis"] |= {"range": [low - 0.12, high + 0.12], "nticks": 5}
    return Figure(tuple(traces), drawn, height=190, has_time_axis=False)


def mass_panels(page: Page, cells: Sequence[Sequence[Curve]], banded: str | None = None) -> str:
    """A figure of the mass for each cell, side by side, below one legend for all."""
    if not cells:
        return ""
    names = [(method_label(c.method), estimator_colour(c.method, k)) for k, c in enumerate(cells[0])]
    panels = [
        page.panel(mass_figure(of, banded), f"{title(of[0].trajectory)}, {of[0].mass_profile}")
        for of in cells
    ]
    return legend([*names, ("truth", "@ink")]) + grid(panels)


_LABELS: Final[Mapping[str, str]] = {"elm": "ELM", "relm": "regularised ELM", "os-elm": "OS-ELM"}


def method_label(method: str) -> str:
    """A method as people write it."""
    return _LABELS.get(method, estimator_label(method).replace("_", " "))


def row_text(row: Row, *, error: bool = False, scale: float = 1.0) -> str:
    """A number, with its standard error where asked."""
    value, std = scale * row.value, scale * row.standard_error
    if not error or not math.isfinite(std) or std <= 0.0:
        return number_text(value)
    places = min(decimals(std), 4)
    return f"{value:.{places}f} ± {std:.{places}f}".replace("-", "−")


def number_text(value: float) -> str:
    """Three digits."""
    if not math.isfinite(value):
        return "–"
    if value and not 1e-2 <= abs(value) < 1e5:
        return f"{value:.2e}".replace("-", "−")
    leading = math.floor(math.log10(abs(value))) if value else 0
    return f"{value:.{max(0, 2 - leading)}f}".replace("-", "−")
