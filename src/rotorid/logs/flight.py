"""Signals and flights: the common form of all logs.

World frame ENU, body frame FLU, SI units; readers convert to them. Time is seconds from the start of the
flight. A signal has a row only where something was measured.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
from jaxtyping import Float64

from rotorid.display import AbstractDisplay, Overview
from rotorid.errors import SignalError

if TYPE_CHECKING:
    import plotly.graph_objects as go
    import pyarrow as pa

_CUT: Final = re.compile(r"\b(is|be) cut\b")


@dataclasses.dataclass(frozen=True)
class SignalKind:
    """Unit, frame and column endings of one kind of signal in the flight table.

    limit: magnitude, in the unit, that no sensor or command of this kind exceeds, with a wide margin; readers leave out rows
    beyond it.
    """

    unit: str
    frame: str
    suffixes: tuple[str, ...] | None  # None: one column per rotor
    meaning: str
    limit: float = math.inf


_XYZ: Final = ("_x", "_y", "_z")

KINDS: Final[Mapping[str, SignalKind]] = {
    "position": SignalKind("m", "world", _XYZ, "position", 1e8),
    "velocity": SignalKind("m/s", "world", _XYZ, "velocity over ground", 1e4),
    "attitude": SignalKind("1", "body to world", ("_w", "_x", "_y", "_z"), "unit quaternion, Hamilton"),
    "body_rate": SignalKind("rad/s", "body", _XYZ, "angular velocity", 500.0),
    "body_rate_setpoint": SignalKind("rad/s", "body", _XYZ, "set point of the rate controller", 1e4),
    "specific_force": SignalKind("m/s^2", "body", _XYZ, "what an accelerometer measures", 1e4),
    "thrust": SignalKind("N", "body z", ("",), "collective thrust", 1e5),
    "control_torque": SignalKind("N m", "body", _XYZ, "torque that the controller asks of the rotors", 1e5),
    "collective_command": SignalKind("1", "body z", ("",), "collective thrust command, 0 to 1", 1e5),
    "rotor_speed": SignalKind("rad/s", "rotor", None, "rotor speed", 1e5),
    "rotor_command": SignalKind("1", "rotor", None, "normalised rotor command, 0 to 1", 1e5),
    "rotor_thrust": SignalKind("N", "rotor", None, "thrust of each rotor", 1e5),
    "battery_voltage": SignalKind("V", "-", ("",), "battery voltage", 1e4),
    "battery_current": SignalKind("A", "-", ("",), "current that the battery supplies", 1e5),
    "battery_remaining": SignalKind("1", "-", ("",), "remaining share of the charge, by the autopilot", 1e3),
    "airborne": SignalKind("1", "-", ("",), "1 in the air, 0 on the ground"),
    "true_mass": SignalKind("kg", "-", ("",), "true mass", 1e5),
    "true_force": SignalKind("N", "world", _XYZ, "true external force", 1e6),
    "true_torque": SignalKind("N m", "body", _XYZ, "true external torque", 1e6),
    "true_wind": SignalKind("m/s", "world", _XYZ, "true velocity of the air", 1e3),
}
"""Every signal of the flight table by name, with its unit, frame, endings of columns and meaning, and the magnitude (in the
unit) beyond which readers discard a row. The [log formats](../formats.md) describe the flight table.
"""


@dataclasses.dataclass(frozen=True)
class Signal:
    """One measured quantity on its own clock.

    name: a key of `KINDS`. times: s from the start of the flight, strictly increasing. values: one row for each time, in the
    unit and frame of its kind. source: field of the log and its conversion ("vehicle_local_position.vx/vy/vz, NED to ENU").
    """

    name: str
    times: Float64[np.ndarray, " n"]
    values: Float64[np.ndarray, "n k"]
    source: str

    @property
    def kind(self) -> SignalKind:
        return KINDS[self.name]

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns that this signal fills in the flight table."""
        suffixes = self.kind.suffixes
        if suffixes is None:
            suffixes = tuple(f"_{i}" for i in range(self.values.shape[1]))
        return tuple(self.name + s for s in suffixes)

    @functools.cached_property
    def rate(self) -> float:
        """Median rate in Hz; 0 where there are fewer than two samples."""
        return float(1.0 / np.median(np.diff(self.times))) if len(self.times) > 1 else 0.0


@dataclasses.dataclass(frozen=True, repr=False)
class Flight(AbstractDisplay):
    """The named signals of one flight.

    signals: signals by name, a key of `KINDS`. vehicle: the vehicle as the log describes it ("" if it does not). source: the
    log file. format: "px4-ulog", "ardupilot-bin", "mavlink-tlog", "mavlink-mcap", "ros1-bag", "ros2-db3", "ros2-mcap",
    "crazyflie-usd", "blackbox", "table-csv", "table-parquet", "table-mcap", "mapped-csv", "mapped-parquet", "simulation".
    time_origin: time of the log's own clock at t = 0, s. notes: texts for the user (a truncated end, dropouts, ignored
    columns). parameters: the vehicle's own settings, where the log has them. identity: the serial number of the vehicle's
    autopilot, "" where the log has none. utc: Unix time at t = 0, in s, NaN if unknown. estimator_faults: start and end, s,
    of the intervals in which the autopilot's estimator reported a fault, and its velocity and attitude are unreliable; empty
    where the log has no such report.
    """

    signals: Mapping[str, Signal]
    source: Path
    format: str
    time_origin: float = 0.0
    vehicle: str = ""
    notes: tuple[str, ...] = ()
    parameters: Mapping[str, float] = dataclasses.field(default_factory=dict)
    identity: str = ""
    utc: float = math.nan
    estimator_faults: tuple[tuple[float, float], ...] = ()

    def __contains__(self, name: str) -> bool:
        return name in self.signals

    def __getitem__(self, name: str) -> Signal:
        if name not in self.signals:
            available = ", ".join(sorted(self.signals)) or "nothing"
            raise SignalError(f"{self.source}: no signal {name!r} in this log (it has {available})")
        return self.signals[name]

    @property
    def cut(self) -> str:
        """The reader's note on a truncated file, "" for a complete one."""
        return next((note for note in self.notes if _CUT.search(note)), "")

    @property
    def start(self) -> float:
        """Earliest time of any signal, s."""
        return min((float(s.times[0]) for s in self.signals.values() if len(s.times)), default=0.0)

    @property
    def end(self) -> float:
        """Latest time of any signal, s."""
        return max((float(s.times[-1]) for s in self.signals.values() if len(s.times)), default=0.0)

    @property
    def duration(self) -> float:
        """Length of the flight in s."""
        return self.end - self.start

    @property
    def rotors(self) -> int:
        """Number of rotors in the log, 0 without rotor signals."""
        signals = (self.signals.get(n) for n in ("rotor_command", "rotor_speed", "rotor_thrust"))
        return next((s.values.shape[1] for s in signals if s is not None), 0)

    def with_signals(self, *signals: Signal, notes: tuple[str, ...] = ()) -> Flight:
        """A copy with these signals added or replaced."""
        merged = dict(self.signals) | {s.name: s for s in signals}
        return dataclasses.replace(self, signals=merged, notes=self.notes + notes)

    def overview(self) -> Overview:
        """A table for the terminal or a notebook: file, duration and vehicle; unit, frame, rate and number of samples of each
        signal.
        """
        from rotorid.logs.display import flight_overview

        return flight_overview(self)

    def plot(self, *names: str) -> go.Figure:
        """The signals over time as a plotly figure.

        Args:
            names: names of signals, keys of `KINDS`; without names, all of the log.
        Returns:
            A panel for each signal, with its unit on the axis and a curve for each component. A curve has about 2,000 points;
            its lowest and highest values remain.
        Raises:
            SignalError: the log lacks one of the signals.
        """
        from rotorid.logs.display import flight_figure

        return flight_figure(self, names)

    def to_frame(self, *names: str) -> pa.Table:
        """The signals as the flight table, an Arrow table.

        Args:
            names: names of signals, keys of `KINDS`; without names, all of the log.
        Returns:
            `t` in s from the start of the flight, a row for every time stamp of any of the signals, and a column for each
            component, null where it was not measured. The metadata of a column has its unit, frame and source.
        Raises:
            SignalError: the log lacks one of the signals.
        """
        from rotorid.logs.display import flight_frame

        return flight_frame(self, names)


@functools.lru_cache(maxsize=1024)
def split_column(column: str) -> tuple[str, int] | None:
    """Signal and component of a column of the flight table: "velocity_y" -> ("velocity", 1); else None."""
    for name, kind in KINDS.items():
        if kind.suffixes is None:
            if match := re.fullmatch(name + "_([0-9]{1,4})", column):
                return name, int(match.group(1))
        elif column.startswith(name) and column[len(name) :] in kind.suffixes:
            return name, kind.suffixes.index(column[len(name) :])
    return None
