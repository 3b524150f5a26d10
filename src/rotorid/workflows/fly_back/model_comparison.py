"""Comparison of two models on the same flights: which predicts better at each signal and horizon, and whether significantly.

    d = rms(other) - rms(model)        over the same windows: above 0 the model is better

Both run open loop from the same starts (see `prediction_errors`), each with its own estimate of constant torque and wind. The
errors of overlapping windows, and those of both models, are correlated: d is computed from bootstrap samples of blocks of 4
s, the same for both models. Its 95 % band is 1.96 standard deviations of these, times the ratio of Student's quantile to the
normal one for the number of blocks.

The uncertainty of the models' parameters is not included: the comparison holds for these flights.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from rotorid.display import AbstractDisplay, Column, Overview, arrow_table
from rotorid.findings import Finding, Severity
from rotorid.identification.fitting.uncertainty import student_t_factor
from rotorid.identification.open_loop.validation_windows import Masses, Spans
from rotorid.logs.flight import Flight
from rotorid.models.airframe.airframe import Airframe
from rotorid.workflows.fly_back.error_comparison import UNITS, block_bootstrap
from rotorid.workflows.fly_back.prediction_errors import flight_errors
from rotorid.workflows.fly_back.response_gains import short_intervals
from rotorid.workflows.fly_back.text import to_text
from rotorid.workflows.fly_back.validate import HORIZONS, prediction_windows

if TYPE_CHECKING:
    import plotly.graph_objects as go
    import pyarrow as pa

_BAND: Final = 1.96


@dataclasses.dataclass(frozen=True)
class SignalComparison:
    """Errors of two models in one signal, one number a horizon, in `unit`.

    model, other: root mean square over windows and axes; 0 where no window is that long. difference: the other's minus the
    model's. std: its standard deviation over blocks of windows. band: half the width of its 95 % band.
    """

    name: str
    unit: str
    model: tuple[float, ...]
    other: tuple[float, ...]
    difference: tuple[float, ...]
    std: tuple[float, ...]
    band: tuple[float, ...]

    def outcome(self, k: int) -> int:
        """At horizon k: 1 where the model is significantly better, -1 where it is worse, else 0."""
        return int(np.sign(self.difference[k])) if abs(self.difference[k]) > self.band[k] else 0


@dataclasses.dataclass(frozen=True, repr=False)
class ModelComparison(AbstractDisplay):
    """A comparison of the predictions of two models.

    model: name of the model. other: name of the model that it is compared with. flights: names of the flights. windows:
    number of predictions. horizons: prediction horizons, s. signals: errors of both models and their difference, by signal
    and horizon. findings: conclusions as data.
    """

    model: str
    other: str
    flights: tuple[str, ...]
    windows: int
    horizons: tuple[float, ...]
    signals: tuple[SignalComparison, ...]
    findings: tuple[Finding, ...]

    @property
    def reasons(self) -> tuple[str, ...]:
        """The findings as sentences."""
        return tuple(to_text(finding) for finding in self.findings)

    def overview(self) -> Overview:
        """A table for the terminal or a notebook: errors of both models for each signal and horizon, and their difference
        with standard deviation and 95 % band.
        """
        from rotorid.workflows.fly_back.page import comparison_rows

        heading = f"{self.model} compared with {self.other}, {self.windows} predictions"
        head = ("signal", "horizon", "model", "other", "difference", "95 % band", "unit", "model is")
        return Overview(heading, head, tuple(tuple(row) for row in comparison_rows(self)))

    def plot(self) -> go.Figure:
        """The reduction of the errors (%) over the horizon (s), a curve with 95 % bands for each signal, as a plotly figure."""
        from rotorid.report.plotly_figure import to_plotly
        from rotorid.workflows.fly_back.page import comparison_figure

        return to_plotly([(f"Errors of {self.model} compared with {self.other}", comparison_figure(self))])

    def to_frame(self) -> pa.Table:
        """The errors as an Arrow table.

        Returns:
            A row for each signal and `horizon` (s), with `model`, `other` (root mean square errors), `difference`, `std`
            and `band` (half the width of the 95 % band) in the unit of the column `unit`.
        """
        cells = [(s, k) for s in self.signals for k in range(len(self.horizons))]
        in_units = {"unit": "that of the column `unit`"}
        columns = {
            "signal": Column([s.name for s, _ in cells]),
            "unit": Column([s.unit for s, _ in cells]),
            "horizon": Column(np.array([self.horizons[k] for _, k in cells], float), {"unit": "s"}),
        }
        for name in ("model", "other", "difference", "std", "band"):
            columns[name] = Column(np.array([getattr(s, name)[k] for s, k in cells], float), in_units)
        return arrow_table(columns, {"model": self.model, "other": self.other})


def compare_models(
    model: Airframe,
    other: Airframe,
    flights: Sequence[Flight],
    *,
    spans: Sequence[Spans | None] | None = None,
    masses: Sequence[Masses | None] | None = None,
    horizons: Sequence[float] = HORIZONS,
    seed: int = 0,
) -> ModelComparison:
    """Compare the predictions of a model with those of another one.

    Args:
        model: an airframe.
        other: the airframe that it is compared with.
        flights, spans, masses, horizons, seed: as in `fly_back`.
    Returns:
        The differences of their errors with 95 % bands, and findings.
    Raises:
        AirframeError, SignalError, ExcitationError, SettingError: as in `fly_back`.
    """
    validation_flights, left_out = prediction_windows(model, flights, spans, masses, horizons)
    errors = [flight_errors(h, short_intervals(h), model, other, ()) for h in validation_flights]
    signals = []
    for name in UNITS:
        used = [f for f in errors if name in f.held.signals]
        if not used:
            continue
        squares = [
            np.concatenate([np.sum(getattr(f, prediction)[name] ** 2, axis=-1) for f in used])
            for prediction in ("model", "prior")
        ]
        means, samples, blocks = block_bootstrap(squares, [f.held for f in used], seed)
        rms, rms_samples = np.nan_to_num(np.sqrt(means)), np.nan_to_num(np.sqrt(samples))
        std = (rms_samples[1] - rms_samples[0]).std(axis=0) * np.sqrt(blocks / max(blocks - 1, 1))
        band = _BAND * (student_t_factor(blocks) if blocks > 1 else np.inf) * std
        columns = (rms[0], rms[1], rms[1] - rms[0], std, band)
        signals.append(SignalComparison(name, UNITS[name], *(tuple(map(float, c)) for c in columns)))
    return ModelComparison(
        model.name,
        other.name,
        tuple(h.name for h in validation_flights),
        sum(len(h.starts) for h in validation_flights),
        tuple(float(h) for h in horizons),
        tuple(signals),
        (*_findings(signals, horizons, other.name), *left_out),
    )


def _findings(signals: Sequence[SignalComparison], horizons: Sequence[float], other: str) -> list[Finding]:
    """Where the model is better, where worse, and where the difference is not significant."""
    assessed = [(s, k) for s in signals for k in range(len(horizons)) if s.model[k] > 0]
    worse = [(s, k) for s, k in assessed if s.outcome(k) < 0]
    better = [(s, k) for s, k in assessed if s.outcome(k) > 0]
    values = {"other": other, "assessed": len(assessed), "better": len(better), "worse": len(worse)}
    findings = [Finding("comparison", Severity.WARNING if worse else Severity.OK, values)]
    for group in (worse, better):
        for name in dict.fromkeys(s.name for s, _ in group):
            mine = [(s, k) for s, k in group if s.name == name]
            s, k = mine[-1]
            values = {
                "signal": name,
                "horizons": tuple(horizons[k] for _, k in mine),
                "difference": s.difference[k],
                "std": s.std[k],
                "unit": s.unit,
            }
            findings.append(Finding("compared_signal", Severity.NOTE, values, (name,)))
    return findings
