"""The learned residual of an identification on its page and in the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rotorid.learning.prediction import AVERAGED_ROWS
from rotorid.report.charts import Figure, encode_array, layout
from rotorid.report.page import Page, table
from rotorid.results.text import duration_text, label, percent, share_text, title, unit_text
from rotorid.workflows.identify.summary import ResidualSummary
from rotorid.workflows.learn.learn import MIN_EXPLAINED

if TYPE_CHECKING:
    from rich.table import Table

_LEAST_VAF: Final = -100.0  # %, below which it is not written in digits


def add_residual(page: Page, residual: ResidualSummary) -> None:
    """The section of a learned residual."""
    part = "is part of the model" if residual.blocks else "is not part of the model"
    page.section(
        "Learned residual",
        f"What a residual, learned from {duration_text(residual.duration)} of the fitted flights, adds to the physics on "
        f"held-out flight. It {part}: force and torque are each included if they explain at least {percent(MIN_EXPLAINED)} "
        f"of the squared error there. Force and torque of rotors and air in the body frame, means over {AVERAGED_ROWS} rows. "
        "Motion: standard deviation of what was measured. VAF: share of its variance that is explained, ± one standard "
        "deviation. In band: share of the errors of the model within its 95 % bands, which were estimated without them.",
    )
    head = [
        "component",
        "motion",
        "error, physics",
        "error, model",
        "VAF, physics",
        "VAF, model",
        "in band",
    ]
    kinds = dict.fromkeys(head, "number") | {"component": "word"}
    page.add(
        '<div class="stack">', page.panel(_figure(residual)), table(head, _rows(residual), kinds), "</div>"
    )


def residual_table(residual: ResidualSummary) -> Table:
    """The same for the terminal."""
    from rotorid.terminal.console import empty_table

    result = empty_table()
    result.add_column("held-out flight", no_wrap=True)
    for name in ("error, physics", "model", "VAF, physics", "VAF, model", "in band"):
        result.add_column(name, justify="right", no_wrap=True)
    for component, _, *numbers in _rows(residual):
        result.add_row(component, *numbers)
    return result


def _rows(residual: ResidualSummary) -> list[list[str]]:
    return [
        [
            f"{label(name)} ({unit_text(c.unit)})",
            f"{c.motion:.3g}",
            f"{c.physics:.3g}",
            f"{c.hybrid:.3g}",
            _vaf_text(c.physics_vaf, c.physics_vaf_std),
            _vaf_text(c.hybrid_vaf, c.hybrid_vaf_std),
            percent(c.coverage),
        ]
        for name, c in residual.components.items()
    ]


def _vaf_text(vaf: float, std: float) -> str:
    """A share of the variance, %; far below 0 it only says that the errors are larger than the motion."""
    return share_text(vaf, std) if vaf > _LEAST_VAF else f"< \u2212{-_LEAST_VAF:.0f} %"


def _figure(residual: ResidualSummary) -> Figure:
    """Errors relative to the motion, of physics and model."""
    names = [title(name) for name in residual.components]
    series = {
        "physics": ("@bar", [c.physics / c.motion for c in residual.components.values()]),
        "model": ("@ekf", [c.hybrid / c.motion for c in residual.components.values()]),
    }
    traces = tuple(
        {
            "type": "bar",
            "name": name,
            "x": names,
            "y": encode_array([100.0 * v for v in values]),
            "marker": {"color": colour},
            "hovertemplate": "%{y:.3g} %",
        }
        for name, (colour, values) in series.items()
    )
    figure = layout("NRMSE, %", x_title="", legend=True, barmode="group")
    figure["yaxis"] |= {"rangemode": "tozero"}
    return Figure(traces, figure, height=260, has_time_axis=False)
