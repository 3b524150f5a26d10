"""Channels that are clipped, frozen, or out of any sensible range."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from rotorid.logs.flight import Flight, Signal
from rotorid.signals.inspection.findings import Finding, Severity
from rotorid.signals.series import Intervals, is_inside, true_runs

_MEASURED: Final = ("position", "velocity", "attitude", "body_rate", "specific_force", "rotor_speed")
_FREEZE: Final = 1.0


def _in_air(signal: Signal, flying: Intervals) -> np.ndarray:
    return signal.values[is_inside(signal.times, flying)]


def saturation(flight: Flight, flying: Intervals) -> Iterator[Finding]:
    """Rotor commands at their limits, and inertial sensors at theirs."""
    checked, found = [], 0
    for name in ("rotor_command", "collective_command"):
        if name not in flight or len(values := _in_air(flight[name], flying)) < 20:
            continue
        high, low = (values >= 0.995).any(axis=1).mean(), (values <= 0.005).any(axis=1).mean()
        checked.append(name)
        if high > 0.005:
            found += 1
            full = np.flatnonzero((values >= 0.995).mean(axis=0) > 0.005)
            which = f" (rotor {', '.join(map(str, full))})" if name == "rotor_command" else ""
            yield Finding(
                "saturation",
                Severity.WARNING if high > 0.05 else Severity.NOTE,
                f"{name}{which}: at its upper limit in {100 * high:.1f} % of the flight",
                (name,),
                "less thrust came than was asked for; fly more gently, lighter, or with a fresh battery",
            )
        if low > 0.005:
            found += 1
            yield Finding(
                "saturation", Severity.NOTE, f"{name}: at zero in {100 * low:.1f} % of the flight", (name,)
            )
    for name, least in (("specific_force", 15.0), ("body_rate", 4.0)):
        if name not in flight or len(values := _in_air(flight[name], flying)) < 100:
            continue
        checked.append(name)
        for axis, column in zip("xyz", np.abs(values).T, strict=True):
            top = float(column.max())
            clipped = int((column >= top * (1.0 - 1e-6)).sum())
            if top > least and clipped > max(5, 5e-4 * len(column)):
                found += 1
                yield Finding(
                    "saturation",
                    Severity.WARNING,
                    f"{name} {axis}: clipped at {top:.1f} {flight[name].kind.unit} in {clipped} samples",
                    (name,),
                    "choose a wider range of the sensor, or damp its vibration",
                )
    if checked and not found:
        yield Finding(
            "saturation", Severity.OK, f"{', '.join(checked)} stay off their limits", tuple(checked)
        )


def frozen(flight: Flight, flying: Intervals) -> Iterator[Finding]:
    """Measured channels that stop changing in flight."""
    for name in _MEASURED:
        if name not in flight or flight[name].rate < 3.0:
            continue
        signal = flight[name]
        air = is_inside(signal.times, flying)
        times, values = signal.times[air], signal.values[air]
        if len(times) < 30:
            continue
        for column, channel in zip(values.T, signal.columns, strict=True):
            same = np.diff(column) == 0.0
            longest = max(
                ((times[b + 1] - times[a], times[a]) for a, b in true_runs(same)), default=(0.0, 0.0)
            )
            if same.all():
                dead = name == "rotor_speed" or column[0] != 0.0
                cause = "stuck" if dead else "zero: not connected, or not logged"
                yield Finding(
                    "constant",
                    Severity.WARNING,
                    f"{channel} is {column[0]:.3g} through the whole flight, {cause}",
                    (name,),
                )
            elif longest[0] > _FREEZE and np.ptp(column) > 0.0 and _changes_fast(column, same):
                yield Finding(
                    "constant",
                    Severity.WARNING,
                    f"{channel} stands still for {longest[0]:.1f} s from {longest[1]:.2f} s on, in flight",
                    (name,),
                    "leave that stretch out",
                )


def _changes_fast(column: np.ndarray, same: np.ndarray) -> bool:
    """Whether a channel usually changes with each sample, so that standing still is odd."""
    return float(same.mean()) < 0.5


def battery(flight: Flight, flying: Intervals) -> Iterator[Finding]:
    """A voltage that some pack of cells can have, and how far it sags."""
    if "battery_voltage" not in flight or not len(flight["battery_voltage"].times):
        return
    signal = flight["battery_voltage"]
    values = _in_air(signal, flying)[:, 0] if flying else signal.values[:, 0]
    values = values if len(values) else signal.values[:, 0]
    low, high = float(values.min()), float(values.max())
    name = ("battery_voltage",)
    if low < 2.5 or high > 120.0:
        unit = "; the values may be in mV" if high > 2500.0 else ""
        yield Finding(
            "battery",
            Severity.WARNING,
            f"battery voltage from {low:.4g} to {high:.4g} V is that of no pack{unit}",
            name,
            "calibrate the power module, or correct the unit",
        )
        return
    words = (
        f"battery at {high:.2f} V"
        if high - low < 0.02 * high
        else f"battery from {high:.2f} down to {low:.2f} V"
    )
    yield Finding("battery", Severity.OK, f"{words} in flight" if flying else words, name)
