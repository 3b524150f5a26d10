"""Check of measured rotor speeds: sensors that are stuck or scaled, spikes, and rotors that are swapped.

The rotors of a vehicle in flight turn at similar speeds. A speed of half or twice the median of the others, while the commands
are alike, comes from a sensor with the wrong number of pole pairs. A spike is a value that differs from the median of its
neighbours by more than a rotor can accelerate. Two speeds are swapped where each follows the command of the other rotor.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Final, Literal

import numpy as np
from jaxtyping import Bool, Float

from rotorid.findings import Finding, Severity
from rotorid.logs.flight import Flight
from rotorid.signals.series import Intervals, interpolate_linear, is_inside, smooth

_LEAST_ROWS: Final = 50
_STUCK_SHARE: Final = 0.98  # of equal neighbours
_STOPPED: Final = 0.05  # of the speed of the others
_SCALED: Final = (
    0.4,
    0.6,
    1.7,
    2.4,
)  # ratios to the others from and to which a speed counts as halved, and as doubled
_ALIKE: Final = (0.6, 1.6)  # ratio of commands
_NEIGHBOURS: Final = 3  # on either side
_SPIKE: Final = 0.4  # of the speed
_SLOW: Final = 0.015  # s, period from which on a rotor may change its speed from one row to the next
_IMPOSSIBLE: Final = 4.0  # of the speed
_SPIKE_FACTOR: Final = 10.0  # of the usual deviation from the neighbours
_FOLLOWS, _MARGIN = 0.6, 0.3  # correlation with a command, and how much larger than with its own
_LARGEST_DELAY: Final = 0.15  # s

FaultKind = Literal["stuck", "halved", "doubled", "swapped"]


@dataclasses.dataclass(frozen=True)
class SpeedFault:
    """A sensor whose speeds cannot be used.

    rotor: number of its column. kind: of the fault. value: the speed at which it is stuck, rad/s; the ratio to the others;
    or the number of the rotor that it is swapped with.
    """

    rotor: int
    kind: FaultKind
    value: float


def spikes(
    times: Float[np.ndarray, " n"], speed: Float[np.ndarray, "n rotors"]
) -> Bool[np.ndarray, "n rotors"]:
    """The values of rotor speeds that no rotor can have between those before and after, and values that are not finite.

    Args:
        times: s.
        speed: rad/s.
    """
    is_bad = ~np.isfinite(speed)
    if len(times) < 2 * _NEIGHBOURS + 1:
        return is_bad
    width = 2 * _NEIGHBOURS + 1
    padded = np.pad(np.where(is_bad, np.nan, speed), ((_NEIGHBOURS, _NEIGHBOURS), (0, 0)), mode="edge")
    around = np.lib.stride_tricks.sliding_window_view(padded, width, axis=0)
    median = np.nanmedian(np.where(np.isfinite(around).any(axis=2, keepdims=True), around, 0.0), axis=2)
    deviation = np.abs(np.where(is_bad, 0.0, speed) - median)
    usual = 1.4826 * np.median(deviation, axis=0)
    typical = np.median(np.abs(median), axis=0)
    if float(np.median(np.diff(times))) > _SLOW:
        return is_bad | (deviation > _IMPOSSIBLE * typical)
    return is_bad | (deviation > np.maximum(_SPIKE * typical, _SPIKE_FACTOR * usual))


def speed_faults(flight: Flight, flying: Intervals) -> list[SpeedFault]:
    """The faults of the sensors of a flight's rotor speeds, of a rotor at most one.

    Args:
        flight: with rotor speeds, and rotor commands where they are logged.
        flying: start and end of each part in the air, s.
    """
    signal = flight["rotor_speed"]
    in_flight = is_inside(signal.times, flying)
    t, speed = signal.times[in_flight], signal.values[in_flight]
    if len(t) < _LEAST_ROWS:
        return []
    is_bad = spikes(t, speed)
    speed = np.where(is_bad, np.nan, np.abs(speed))
    is_dead = np.logical_not(np.asarray(np.isfinite(speed).any(axis=0)))
    typical = np.where(is_dead, 0.0, np.nanmedian(np.where(is_dead, 0.0, speed), axis=0))
    command = None
    if "rotor_command" in flight and flight["rotor_command"].values.shape[1] == speed.shape[1]:
        logged = flight["rotor_command"]
        command = interpolate_linear(t, logged.times, logged.values)
    faults, n = [], speed.shape[1]
    others = [float(np.median(np.delete(typical, j))) if n > 1 else float(typical[0]) for j in range(n)]
    for j in range(n):
        column = speed[np.isfinite(speed[:, j]), j]
        is_still = len(column) < 2 or float(np.mean(np.diff(column) == 0.0)) > _STUCK_SHARE
        rest = [k for k in range(n) if k != j and not is_dead[k]]
        varies = any(float(np.nanstd(speed[:, k])) > 1e-3 * others[j] for k in rest)
        if (is_still and varies) or typical[j] < _STOPPED * others[j]:
            faults.append(SpeedFault(j, "stuck", float(typical[j])))
            continue
        ratio = typical[j] / max(others[j], 1e-9)
        if command is not None:
            own = float(np.median(command[:, j]))
            typical_command = max(float(np.median(np.delete(command, j, axis=1))), 1e-9) if n > 1 else own
            if not _ALIKE[0] * typical_command < own < _ALIKE[1] * typical_command:
                continue
        if n > 2 and _SCALED[0] < ratio < _SCALED[1]:
            faults.append(SpeedFault(j, "halved", float(ratio)))
        elif n > 2 and _SCALED[2] < ratio < _SCALED[3]:
            faults.append(SpeedFault(j, "doubled", float(ratio)))
    usable = [j for j in range(n) if all(f.rotor != j for f in faults)]
    return faults + (_swapped(t, speed, command, usable) if command is not None else [])


def _swapped(t, speed, command, usable: list[int]) -> list[SpeedFault]:
    """Pairs of rotors whose speeds each follow the other's command."""
    if len(usable) < 3:
        return []
    y = np.stack(
        [np.interp(t, t[k], speed[k, j]) for j in usable for k in [np.isfinite(speed[:, j])]], axis=1
    )
    step = float(np.median(np.diff(t)))
    width = max(round(1.0 / step), 3)
    y, c = (v - smooth(v, width) for v in (y, command[:, usable]))
    y, c = (v - v.mean(axis=1, keepdims=True) for v in (y, c))  # the collective is common to all rotors
    if min(y.std(axis=0).min(), c.std(axis=0).min()) < 1e-9:
        return []
    best = np.full((len(usable), len(usable)), -1.0)
    for lag in range(max(round(_LARGEST_DELAY / step), 1) + 1):
        a, b = y[lag:], c[: len(c) - lag]
        best = np.maximum(best, (a.T @ b) / np.outer(np.linalg.norm(a, axis=0), np.linalg.norm(b, axis=0)))
    faults = []
    for i in range(len(usable)):
        k = int(np.argmax(best[i]))
        if k != i and int(np.argmax(best[k])) == i:
            own, other = max(best[i, i], best[k, k]), min(best[i, k], best[k, i])
            if other > _FOLLOWS and other > own + _MARGIN:
                faults.append(SpeedFault(usable[i], "swapped", float(usable[k])))
    return faults


def check_rotor_speeds(flight: Flight, flying: Intervals) -> Iterator[Finding]:
    """Sensors of rotor speeds that are stuck, halved, doubled or swapped, and spikes."""
    if "rotor_speed" not in flight or len(flight["rotor_speed"].times) < _LEAST_ROWS or not flying:
        return
    yield from speed_findings(flight, flying, speed_faults(flight, flying))


def speed_findings(flight: Flight, flying: Intervals, faults: list[SpeedFault]) -> Iterator[Finding]:
    """The findings on the rotor speeds of a flight with these faults."""
    signal = flight["rotor_speed"]
    in_flight = is_inside(signal.times, flying)
    is_bad = spikes(signal.times[in_flight], signal.values[in_flight])
    sound = [j for j in range(is_bad.shape[1]) if all(f.rotor != j for f in faults)]
    found = False
    for fault in faults:
        values = {"rotor": fault.rotor, "kind": fault.kind, "value": fault.value}
        if fault.kind != "swapped" or fault.rotor < fault.value:
            yield Finding("rotor_speed_fault", Severity.WARNING, values, ("rotor_speed",))
        found = True
    counts = is_bad[:, sound].sum(axis=0)
    if counts.sum():
        rotors = tuple(int(j) for j, k in zip(sound, counts, strict=True) if k)
        yield Finding(
            "rotor_speed_spikes",
            Severity.WARNING,
            {"count": int(counts.sum()), "rotors": rotors},
            ("rotor_speed",),
        )
    elif not found and len(sound):
        yield Finding("rotor_speeds_plausible", Severity.OK, {}, ("rotor_speed",))
