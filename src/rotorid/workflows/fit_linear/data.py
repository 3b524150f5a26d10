"""Inputs and outputs of a log or a table on one grid of time, in parts without gaps.

Outputs are interpolated at the rows. An input is its mean over the time from a row to the next one, where the logged values are
held: as commands act, and without aliasing if it is logged faster. Means over all rows are subtracted: the model is that of
changes around this operating point.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import numpy as np
from jaxtyping import Float, Float64

from rotorid.errors import ExcitationError, SettingError, SignalError
from rotorid.identification.linear.model import Experiment
from rotorid.logs.flight import KINDS, Flight
from rotorid.logs.tables.columns import Columns, unit_of
from rotorid.logs.tables.table import close_matches
from rotorid.signals.airborne import airborne_intervals
from rotorid.signals.series import Intervals

_GAP: Final = 5.0  # of the usual interval, from which on rows are missing
_SHORTEST: Final = 40  # rows of a part
_LEAST: Final = 200  # rows in all
_MOST: Final = 5_000_000  # rows in all


@dataclasses.dataclass(frozen=True)
class Column:
    """A column on its own clock, s."""

    name: str
    unit: str
    times: Float64[np.ndarray, " n"]
    values: Float64[np.ndarray, " n"]

    @property
    def interval(self) -> float:
        """The usual time between two rows, s."""
        return float(np.median(np.diff(self.times)))


@dataclasses.dataclass(frozen=True)
class LinearData:
    """Experiments of one sampling interval. starts: time of the first row of each, s. units: of each column. means: that were
    subtracted. notes: remarks, as sentences."""

    runs: tuple[Experiment, ...]
    starts: tuple[float, ...]
    units: Mapping[str, str]
    means: Mapping[str, float]
    notes: tuple[str, ...]

    @property
    def rows(self) -> int:
        """Number of rows of all runs."""
        return sum(len(run.y) for run in self.runs)

    def gain_unit(self, output: str, name: str) -> str:
        """Unit of the gain from the input of this name to an output."""
        unit, of_input = self.units[output], self.units[name]
        return "1" if unit == of_input else f"{unit} / ({of_input})"


def flight_columns(flight: Flight, names: Sequence[str]) -> list[Column]:
    """Columns of a flight. names: of columns ("body_rate_x") or of signals, which stand for all their columns.

    Raises:
        SignalError: the flight has no such column.
    """
    known = {
        column: (signal, k) for signal in flight.signals.values() for k, column in enumerate(signal.columns)
    }
    found = []
    for name in names:
        wanted = flight[name].columns if name in flight and name not in known else (name,)
        for column in wanted:
            if column not in known:
                hint = close_matches(column, list(known)) or f" (it has {', '.join(sorted(flight.signals))})"
                raise SignalError(f"{flight.source}: no column {column!r}{hint}")
            signal, k = known[column]
            found.append(Column(column, KINDS[signal.name].unit, signal.times, signal.values[:, k]))
    return found


def table_columns(source: Path, table: Columns, names: Sequence[str], time: str) -> list[Column]:
    """Columns of a table without its empty cells. time: name of the column of the time, s; "": rows are 1 s apart.

    Raises:
        SignalError: the time does not increase.
    """
    rows = len(next(iter(table.values.values())))
    t = table.values[time] if time else np.arange(rows, dtype=float)
    if not (np.isfinite(t).all() and (np.diff(t) > 0.0).all()):
        raise SignalError(f"{source}: column {time!r} must have a time in every row, and increase")
    columns = []
    for name in names:
        is_there = np.isfinite(table.values[name])
        columns.append(Column(name, unit_of(name), t[is_there], table.values[name][is_there]))
    return columns


def flying_times(flight: Flight) -> Intervals:
    """The time in the air; all of the log where it does not tell."""
    try:
        return airborne_intervals(flight) or [(-np.inf, np.inf)]
    except SignalError:
        return [(-np.inf, np.inf)]


def linear_data(
    inputs: Sequence[Column],
    outputs: Sequence[Column],
    *,
    rate: float | None = None,
    within: Intervals | None = None,
) -> LinearData:
    """Sample columns on one grid.

    Args:
        inputs, outputs: the columns.
        rate: rows per second; None: that of the slowest column.
        within: intervals to use, s; None: all.
    Raises:
        SettingError: no input or output, a column that is both, or a rate that is not positive.
        ExcitationError: too few rows, or a constant column.
    """
    names = [c.name for c in (*inputs, *outputs)]
    if not inputs or not outputs:
        raise SettingError("give at least one input and one output, with --inputs and --outputs")
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise SettingError(f"{twice!r} is given twice: a column is an input or an output, once")
    for column in (*inputs, *outputs):
        if len(column.times) < _LEAST:
            raise ExcitationError(
                f"{column.name}: {len(column.times)} rows are too few; a linear model needs {_LEAST} or more"
            )
    if rate is not None and not rate > 0.0:
        raise SettingError(f"--rate must be a positive number of rows per second, not {rate:g}")
    dt = 1.0 / rate if rate else max(c.interval for c in (*inputs, *outputs))
    notes = [
        f"{c.name} is logged at {1.0 / c.interval:.3g} Hz, slower than the rows of the model"
        for c in (*inputs, *outputs)
        if c.interval > 1.5 * dt
    ]
    runs, starts = [], []
    parts = _common_parts((*inputs, *outputs), within or [(-np.inf, np.inf)])
    if (seconds := sum(end - start for start, end in parts)) > _MOST * dt:
        raise SettingError(
            f"{1.0 / dt:.3g} rows per second for {seconds:.3g} s are more than {_MOST:,}; give a lower --rate"
        )
    for start, end in parts:
        count = int((end - start) / dt)
        if count >= _SHORTEST:
            t = start + dt * np.arange(count + 1)
            y = np.stack([np.interp(t[:-1], c.times, c.values) for c in outputs], axis=1)
            runs.append((y, np.stack([_held_means(t, c) for c in inputs], axis=1)))
            starts.append(start)
    rows = sum(len(y) for y, _ in runs)
    if rows < _LEAST:
        raise ExcitationError(
            f"the columns have {rows} rows at {1.0 / dt:.3g} Hz in common, in parts of {_SHORTEST} rows or more; "
            f"a linear model needs {_LEAST}"
        )
    y_mean, u_mean = (np.concatenate(tables).mean(axis=0) for tables in zip(*runs, strict=True))
    for column, table, k in (
        *((c, 1, k) for k, c in enumerate(inputs)),
        *((c, 0, k) for k, c in enumerate(outputs)),
    ):
        values = np.concatenate([run[table][:, k] for run in runs])
        if np.ptp(values) <= 1e-9 * max(float(np.abs(values).max()), 1e-30):
            raise ExcitationError(f"{column.name} is constant: no linear model can be identified from it")
    experiments = tuple(
        Experiment(y - y_mean, u - u_mean, dt, tuple(c.name for c in outputs), tuple(c.name for c in inputs))
        for y, u in runs
    )
    means = dict(zip(names, (*map(float, u_mean), *map(float, y_mean)), strict=True))
    return LinearData(
        experiments, tuple(starts), {c.name: c.unit for c in (*inputs, *outputs)}, means, tuple(notes)
    )


def _held_means(t: Float[np.ndarray, " edges"], column: Column) -> Float[np.ndarray, " edges-1"]:
    """Means of the held values between consecutive times t, s."""
    steps = np.diff(column.times)
    total = np.concatenate([[0.0], np.cumsum(column.values[:-1] * steps)])
    k = np.clip(np.searchsorted(column.times, t, side="right") - 1, 0, len(column.times) - 1)
    at = total[k] + column.values[k] * (t - column.times[k])
    return np.diff(at) / np.diff(t)


def _common_parts(columns: Sequence[Column], within: Intervals) -> Intervals:
    """Intervals in which every column has rows without a gap."""
    parts = list(within)
    for column in columns:
        steps = np.diff(column.times)
        breaks = np.flatnonzero(steps > _GAP * column.interval)
        starts = column.times[np.concatenate([[0], breaks + 1])]
        ends = column.times[np.concatenate([breaks, [len(column.times) - 1]])]
        parts = [
            (max(a, float(b)), min(c, float(d)))
            for a, c in parts
            for b, d in zip(starts, ends, strict=True)
            if min(c, float(d)) > max(a, float(b))
        ]
    return parts
