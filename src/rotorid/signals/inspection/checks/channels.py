"""Checks of single channels: at a limit, constant, or outside the physical range."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
from jaxtyping import Float

from rotorid.findings import Finding, Severity
from rotorid.logs.flight import Flight, Signal
from rotorid.signals.series import Intervals, is_inside, true_runs

_MEASURED: Final = ("position", "velocity", "attitude", "body_rate", "specific_force", "rotor_speed")
_UPPER, _LOWER = 0.995, 0.005  # of a command
_RARE, _OFTEN = 0.005, 0.05  # shares of the time in flight
_SENSORS: Final = (("specific_force", 15.0), ("body_rate", 4.0))
"""Inertial sensors with the smallest value (m/s^2, rad/s) that can be the end of their range."""

_LONG: Final = 1.0  # s: a channel that is constant for longer is reported
_PLAUSIBLE_VOLTAGE: Final = (2.5, 120.0)  # V
_MILLIVOLT: Final = 2500.0  # from which on a voltage is in mV


def _in_flight(signal: Signal, flying: Intervals) -> Float[np.ndarray, "n columns"]:
    return signal.values[is_inside(signal.times, flying)]


def check_saturation(flight: Flight, flying: Intervals) -> Iterator[Finding]:
    """Rotor commands and inertial sensors at the end of their range."""
    findings, checked = [], []
    for name in ("rotor_command", "collective_command"):
        if name not in flight or len(values := _in_flight(flight[name], flying)) < 20:
            continue
        checked.append(name)
        findings += _command_limits(name, values)
    for name, smallest in _SENSORS:
        if name not in flight or len(values := _in_flight(flight[name], flying)) < 100:
            continue
        checked.append(name)
        for axis, column in zip("xyz", np.abs(values).T, strict=True):
            largest = float(column.max())
            count = int((column >= largest * (1.0 - 1e-6)).sum())
            if largest > smallest and count > max(5, 5e-4 * len(column)):
                about = {"axis": axis, "limit": largest, "unit": flight[name].kind.unit, "count": count}
                findings.append(Finding("sensor_clipped", Severity.WARNING, about, (name,)))
    yield from findings
    if checked and not findings:
        yield Finding("no_saturation", Severity.OK, signals=tuple(checked))


def _command_limits(name: str, values: Float[np.ndarray, "n columns"]) -> Iterator[Finding]:
    high, low = float((values >= _UPPER).any(axis=1).mean()), float((values <= _LOWER).any(axis=1).mean())
    if high > _RARE:
        at = np.flatnonzero((values >= _UPPER).mean(axis=0) > _RARE)
        rotors = tuple(int(k) for k in at) if name == "rotor_command" else ()
        severity = Severity.WARNING if high > _OFTEN else Severity.NOTE
        yield Finding("command_at_upper_limit", severity, {"share": high, "rotors": rotors}, (name,))
    if low > _RARE:
        yield Finding("command_zero", Severity.NOTE, {"share": low}, (name,))


def check_constant(flight: Flight, flying: Intervals) -> Iterator[Finding]:
    """Measured channels that are constant in flight."""
    for name in _MEASURED:
        if name not in flight or flight[name].rate < 3.0:
            continue
        signal = flight[name]
        in_flight = is_inside(signal.times, flying)
        times, values = signal.times[in_flight], signal.values[in_flight]
        if len(times) < 30:
            continue
        for column, channel in zip(values.T, signal.columns, strict=True):
            same = np.diff(column) == 0.0
            runs = ((float(times[b + 1] - times[a]), float(times[a])) for a, b in true_runs(same))
            duration, start = max(runs, default=(0.0, 0.0))
            about: dict[str, object] = {"channel": channel}
            if same.all():
                if name == "rotor_speed":
                    continue  # see `rotor_speeds`
                about |= {"value": float(column[0]), "cause": "stuck" if column[0] != 0.0 else "not_measured"}
                yield Finding("channel_constant", Severity.WARNING, about, (name,))
            elif duration > _LONG and np.ptp(column) > 0.0 and float(same.mean()) < 0.5:
                about |= {"duration": duration, "start": start}
                yield Finding("channel_frozen", Severity.WARNING, about, (name,))


def check_battery(flight: Flight, flying: Intervals) -> Iterator[Finding]:
    """Battery voltages in flight: whether a battery can have them, and how far they fall."""
    if "battery_voltage" not in flight or not len(flight["battery_voltage"].times):
        return
    signal = flight["battery_voltage"]
    values = _in_flight(signal, flying)[:, 0] if flying else signal.values[:, 0]
    values = values if len(values) else signal.values[:, 0]
    low, high = float(values.min()), float(values.max())
    about = {"low": low, "high": high}
    least, most = _PLAUSIBLE_VOLTAGE
    if low < least or high > most:
        about |= {"cause": "millivolt" if high > _MILLIVOLT else None}
        yield Finding("battery_implausible", Severity.WARNING, about, signals=("battery_voltage",))
        return
    about |= {"is_in_flight": bool(flying)}
    yield Finding("battery_plausible", Severity.OK, about, signals=("battery_voltage",))
