"""Known truth (from a simulator or a scale), added to a flight for comparison with estimates.

A truth table is a CSV, plain or gzip. Its time column is `t_log_s` or `t`, in s of the log's own clock;
`mass_kg` or `mass` is the mass in kg; `fx, fy, fz` an external force in N (NED world) and `qx, qy, qz` an
external torque in N m (FRD body); `wind_n, wind_e, wind_d` the velocity of the air in m/s (NED), or
`wind_param_n_mps, wind_param_e_mps` PX4's SIH_WIND parameters, which are its negative. Values hold until the
next row.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

import numpy as np
from jaxtyping import Float64

from rotorid.errors import SignalError
from rotorid.logs.archives import unpack
from rotorid.logs.flight import Flight, Signal
from rotorid.logs.frames import frd_to_flu, ned_to_enu
from rotorid.logs.reader_base import LogFile, read_bytes
from rotorid.logs.tables.cells import read_cells, read_header

_TIMES: Final = ("t_log_s", "t")
_SIGNALS: Final[dict[str, dict[tuple[str, ...], Callable[[np.ndarray], np.ndarray]]]] = {
    "true_mass": {("mass_kg",): lambda m: m, ("mass",): lambda m: m},
    "true_force": {("fx", "fy", "fz"): ned_to_enu},
    "true_torque": {("qx", "qy", "qz"): frd_to_flu},
    "true_wind": {
        ("wind_n", "wind_e", "wind_d"): ned_to_enu,
        ("wind_param_n_mps", "wind_param_e_mps"): lambda w: (
            -np.stack([w[:, 1], w[:, 0], 0.0 * w[:, 0]], axis=1)
        ),
    },
}
_CORNER: Final = 1e-6


def attach_truth(flight: Flight, path: str | Path) -> Flight:
    """Add true values from a table to a flight, as signals.

    The table is a CSV file with the columns `t_log_s` or `t` (s, the log's clock) and any of `mass_kg` or `mass` (kg), `fx`,
    `fy`, `fz` (external force, N, NED), `qx`, `qy`, `qz` (external torque, N m, FRD), and `wind_n`, `wind_e`, `wind_d`
    (velocity of the air, m/s, NED). Values hold until the next row: a step gets a second row 1 us before it, so that
    zero-order hold and linear interpolation agree.

    Args:
        flight: flight that was read from its log.
        path: the table, plain or gzip.
    Returns:
        The flight with those of the signals `true_mass` (kg), `true_force` (N, world ENU), `true_torque` (N m, body FLU) and
        `true_wind` (m/s, world ENU) whose columns the table has, and with a note.
    Raises:
        LogError: the file cannot be read.
        LogFormatError: the file is empty, damaged or no table.
        SignalError: the table lacks the time or a truth signal, has empty cells or times that decrease, or does not overlap
            the flight.
    """
    path = Path(path)
    buffer = read_bytes(path)
    if buffer.startswith(b"\x1f\x8b"):
        buffer = unpack(LogFile(path, None, buffer), lambda _: True).content
    names = read_header(path, buffer).names
    time = next((n for n in _TIMES if n in names), None)
    options = {s: [c for c in columns if set(c) <= set(names)] for s, columns in _SIGNALS.items()}
    truth_columns = {s: columns[0] for s, columns in options.items() if columns}
    if time is None or not truth_columns:
        raise SignalError(
            f"{path}: no truth table: it needs t_log_s or t and mass_kg or mass; it has "
            f"{', '.join(names)[:120]}"
        )
    cells = read_cells(path, buffer, {time, *(c for cs in truth_columns.values() for c in cs)})
    clock = cells.columns[time] - flight.time_origin
    if not len(clock) or not np.isfinite(clock).all() or (np.diff(clock) < 0).any():
        raise SignalError(
            f"{path}: the times in {time!r} must be numbers that never decrease from row to row"
        )
    last = np.diff(clock, append=np.inf) > 0  # of rows with one time the last counts
    if clock[0] > flight.end or (len(clock) > 1 and clock[-1] < flight.start):
        ends = np.array([clock[0], clock[-1], flight.start, flight.end]) + flight.time_origin
        raise SignalError(
            f"{path}: covers {ends[0]:.1f} to {ends[1]:.1f} s of the log's clock, the flight "
            f"{ends[2]:.1f} to {ends[3]:.1f} s: they do not overlap"
        )
    signals = []
    for name, columns in truth_columns.items():
        values = np.stack([cells.columns[c] for c in columns], axis=1)
        if not np.isfinite(values).all():
            raise SignalError(f"{path}: {', '.join(columns)} must have a number in each row")
        values = _SIGNALS[name][columns](values)[last]
        times, values = _steps(clock[last], values, flight.start, flight.end)
        signals.append(Signal(name, times, values, f"{path.name}: {', '.join(columns)}"))
    return flight.with_signals(*signals, notes=(f"truth from {path.name}", *cells.notes))


def _steps(
    clock: Float64[np.ndarray, " n"], values: Float64[np.ndarray, "n k"], start: float, end: float
) -> tuple[Float64[np.ndarray, " m"], Float64[np.ndarray, "m k"]]:
    """The rows of a step function over a flight, with a corner before each step and a row at both ends."""
    changes = np.flatnonzero((np.diff(values, axis=0) != 0).any(axis=1)) + 1
    times = np.concatenate([clock, clock[changes] - _CORNER, [start, end]])
    rows = np.concatenate(
        [np.arange(len(clock)), changes - 1, np.searchsorted(clock, [start, end], "right") - 1]
    )
    times, first = np.unique(times, return_index=True)
    is_inside = (times >= start) & (times <= end)
    return times[is_inside], values[np.maximum(rows[first], 0)][is_inside]
