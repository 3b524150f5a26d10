"""Resampling: the signals of a flight, each logged on a clock of its own, on common rows of time.

`sample`: a uniform grid. Row k stands for the interval (t_{k-1}, t_k]. A command acts from its time stamp until the next one; a
rate gyroscope measures the mean rate up to its time stamp. Both are averaged over the interval, exactly. A measurement goes to
the nearest row: vectors are averaged where several fall on one row, which also filters vibration above the rate of the grid; of
attitudes the nearest is kept. A row without a measurement is masked. A row without known inputs is left out, so that the next
one has a longer dt.

`sample_at_clock`: rows at the time stamps of the gyroscope, so that none of its samples is moved in time. A gyroscope that was
logged faster than `MAX_RATE` is averaged over groups of samples. Another signal is interpolated linearly at the row nearest to
each of its samples, and is missing in all other rows: each sample counts once. A much faster signal is averaged over the rows.

`interpolate_to_slowest`: a window of a fit begins where every state was measured. Samples of an attitude at 100 Hz and of a
velocity at 50 Hz, whose clocks began at different times, may never fall on one row. The faster signals are then interpolated at
the time stamps of the slowest, between neighbours without a gap.

`command_steps`: rotor commands that were logged more slowly than given are interpolated between the rows of the log,

    c_j = u((s_j + s_{j+1}) / 2)    from s_j until s_{j+1}: steps of a fine grid

u is the cubic spline of E. Catmull and R. Rom (A class of local interpolating splines, 1974), whose slope in a row is that of
the chord between its neighbours. It keeps 94 % of the amplitude of a sine with four rows a period, and straight lines
81 %, which makes the thrust curve look steeper than it is.

A command that is held until the next row is late by half a period on average. Part of the regressor is then noise, which makes
the thrust curve look flatter than it is. With interpolation, an error of the command is an error of the thrust that follows,
which does not bias the curve (J. Berkson, Are there two regressions?, JASA 45 (1950)), as long as the rows resolve the commands
(see `command_rate`). Across gaps, commands are held. Those of a log with every command are held, too: they acted until the next
one. A log with fewer commands has at most half as many rows as the autopilot's loop has cycles. Parameters of ArduPilot and PX4
give the rate of the loop; a Crazyflie's is 500 Hz, others are at least 250 Hz. A simulated log has all commands.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Bool, Float, Int

from rotorid.errors import ExcitationError, SignalError
from rotorid.geometry.spaces import Space
from rotorid.logs.flight import KINDS, Flight, Signal
from rotorid.signals.airborne import no_flight_message
from rotorid.signals.series import Intervals

if TYPE_CHECKING:
    from rotorid.signals.samples import Samples

MAX_RATE = 250.0
"""Hz: no grid is finer than this, since no vehicle moves faster."""

_STALE_PERIODS = 5.0
_STALE_FLOOR = 0.25  # s
_GAP = 2.5  # median periods between neighbours, from which on nothing is interpolated between them
_AVERAGING_RATIO = 1.5  # rate of a signal over that of the rows, from which on samples are averaged
_COMMON_SHARE = (
    0.5  # of the rows of the slowest signal with samples of all, from which on none is interpolated
)

_LOOP_RATE_PARAMETERS = ("SCHED_LOOP_RATE", "IMU_GYRO_RATEMAX")  # of ArduPilot and PX4, Hz
_LOOP_RATES = {"crazyflie-usd": 500.0, "simulation": 50.0}  # Hz, by format
_MIN_LOOP_RATE = 250.0  # Hz, of other loops
_COMPLETE_SHARE = (
    0.6  # rate of a log with every command over the loop's; more than 1/2, since clocks are not exact
)
_COMMAND_STEP = 0.005  # s
_MAX_COMMAND_STEPS = 10  # between two rows


def grid_rate(flight: Flight, inputs: Space, outputs: Space) -> float:
    """Rate in Hz of the fastest signal that the spaces need, at most MAX_RATE."""
    rates = [flight[n].rate for n in (*inputs, *outputs) if n in flight]
    return float(min(MAX_RATE, max(rates, default=0.0)))


def grid_times(flight: Flight, inputs: Iterable[str], rate: float) -> Float[np.ndarray, " n"]:
    """Times in s of the rows of a grid of `rate` Hz, where the inputs are known."""
    signals = [flight[n] for n in inputs]
    start, end = max(s.times[0] for s in signals), min(s.times[-1] for s in signals)
    return start + (1.0 / rate) * np.arange(1, max(1, int((end - start) * rate + 1e-6)) + 1)


def sample(
    flight: Flight,
    inputs: Space,
    outputs: Space,
    *,
    spans: Sequence[tuple[float, float]] | None = None,
    rate: float | None = None,
) -> Samples:
    """Sample a flight on one grid of times.

    Args:
        flight: the log.
        inputs: blocks that must be known in each row.
        outputs: blocks to be measured; one or more must be in the log.
        spans: start and end of the parts to be sampled, s; None: the whole flight.
        rate: rate of the grid, Hz; None: that of the fastest signal, at most 250 Hz.
    Returns:
        Rows of times, steps, inputs, outputs and the mask of the measured ones.
    Raises:
        SignalError: an input is missing, no output is measured, or the signals have too few samples.
        ExcitationError: fewer than two rows in which all inputs are known.
    """
    import jax

    from rotorid.signals.samples import Samples

    missing = [n for n in inputs if n not in flight]
    if missing:
        available = ", ".join(sorted(flight.signals))
        raise SignalError(
            f"{flight.source}: no {' and no '.join(missing)} in this log, which the model needs (it has {available})"
        )
    measured = [n for n in outputs if n in flight]
    if not measured:
        raise SignalError(
            f"{flight.source}: none of {', '.join(outputs)} in this log; nothing to compare the model with"
        )
    rate = rate or grid_rate(flight, inputs, outputs)
    if rate <= 0:
        raise SignalError(f"{flight.source}: its signals have too few samples to estimate anything")
    h = 1.0 / rate
    t = grid_times(flight, inputs, rate)
    is_sampled = _is_in_spans(t, spans)

    u, is_known = zip(*(averaged_input(flight[n], t, h) for n in inputs), strict=True)
    is_sampled &= np.all(is_known, axis=0)
    y, mask = zip(
        *(_nearest_measurements(flight.signals.get(n), outputs, n, t, h) for n in outputs), strict=True
    )
    if is_sampled.sum() < 2:
        raise ExcitationError(
            no_flight_message(flight, f"the vehicle is never in the air with valid {' and '.join(inputs)}")
        )
    t = t[is_sampled]
    columns = (t, np.diff(t, prepend=t[0]), *(np.concatenate(v, axis=1)[is_sampled] for v in (u, y, mask)))
    return Samples(*map(jax.device_put, columns))


def _is_in_spans(
    t: Float[np.ndarray, " n"], spans: Sequence[tuple[float, float]] | None
) -> Bool[np.ndarray, " n"]:
    if spans is None:
        return np.ones(len(t), bool)
    return np.any([(a <= t) & (t <= b) for a, b in spans] or [np.zeros(len(t), bool)], axis=0)


def averaged_input(
    signal: Signal, t: Float[np.ndarray, " n"], h: float
) -> tuple[Float[np.ndarray, "n k"], Bool[np.ndarray, " n"]]:
    """Mean of a held signal over (t - h, t], and whether its last sample is recent enough.

    Args:
        signal: of which a body rate holds backwards from its time stamps, any other one forwards.
        t: s.
        h: s.
    """
    times, values = signal.times, signal.values
    if signal.name == "body_rate":
        knots = np.concatenate([[times[0] - 1.0], times])
        steps = np.diff(knots)[:, None] * values
    else:
        knots = np.concatenate([times, [times[-1] + 1.0]])
        steps = np.diff(knots)[:, None] * values
    integral = np.concatenate([np.zeros((1, values.shape[1])), np.cumsum(steps, axis=0)])
    edges = np.concatenate([[t[0] - h], t])

    def integral_at(times_):
        return np.stack([np.interp(times_, knots, column) for column in integral.T], axis=1)

    mean = (integral_at(t) - integral_at(t - h)) / h
    period = np.median(np.diff(times)) if len(times) > 1 else 0.0
    max_age = max(_STALE_FLOOR, _STALE_PERIODS * period)
    previous = np.clip(np.searchsorted(times, edges[1:], side="right") - 1, 0, None)
    is_known = t - times[previous] <= max_age
    return mean, is_known


def _nearest_measurements(
    signal: Signal | None, outputs: Space, name: str, t: Float[np.ndarray, " n"], h: float
) -> tuple[np.ndarray, np.ndarray]:
    block = outputs[name]
    y = np.tile(np.asarray(block.initial_value, dtype=float), (len(t), 1))
    mask = np.zeros((len(t), block.dim), bool)
    if signal is None:
        return y, mask
    row = np.rint((signal.times - t[0]) / h).astype(int)
    is_on_grid = (row >= 0) & (row < len(t))
    row, values, times = row[is_on_grid], signal.values[is_on_grid], signal.times[is_on_grid]
    if block.rotation:
        order = np.argsort(-np.abs(times - t[row]), kind="stable")
        y[row[order]] = values[order]
    else:
        count = np.bincount(row, minlength=len(t))
        has_sample = count > 0
        for j in range(values.shape[1]):
            y[has_sample, j] = np.bincount(row, values[:, j], len(t))[has_sample] / count[has_sample]
    mask[row] = True
    return y, mask


def with_reconstructed_commands(flight: Flight) -> Flight:
    """A flight whose rotor commands follow a collective command that was logged faster than they were.

    Autopilots often log the motors at 10 Hz and the collective thrust set point at 50 Hz or more. Between two motor rows all
    rotor commands change by the change of the collective, scaled by the ratio of the two in the common rows.
    """
    if "rotor_command" not in flight or "collective_command" not in flight:
        return flight
    rotors, collective = flight["rotor_command"], flight["collective_command"]
    if collective.rate < 1.5 * rotors.rate or len(rotors.times) < 10:
        return flight
    at_rotors = np.interp(rotors.times, collective.times, collective.values[:, 0])
    mean = rotors.values.mean(axis=1)
    ratio, offset = np.polyfit(at_rotors, mean, 1) if np.ptp(at_rotors) > 0.01 else (1.0, 0.0)
    residual = np.std(mean - (ratio * at_rotors + offset))
    if not 0.3 < ratio < 3.0 or residual > 0.05:
        return flight
    shape = np.stack(
        [np.interp(collective.times, rotors.times, c) for c in (rotors.values - mean[:, None]).T], axis=1
    )
    fast = ratio * collective.values + offset + shape
    is_inside_ = (collective.times >= rotors.times[0]) & (collective.times <= rotors.times[-1])
    signal = dataclasses.replace(
        rotors,
        times=collective.times[is_inside_],
        values=np.clip(fast[is_inside_], 0.0, 1.0),
        source=f"{rotors.source}, between its rows by {collective.source}",
    )
    note = f"rotor commands at {rotors.rate:.0f} Hz follow the collective command at {collective.rate:.0f} Hz between rows"
    return flight.with_signals(signal, notes=(note,))


def truth_at(flight: Flight, name: str, t: Float[np.ndarray, " n"]) -> Float[np.ndarray, "n k"] | None:
    """A true signal held at the times t, None where the flight has none."""
    if not name.startswith("true_") or name not in KINDS or name not in flight:
        return None
    signal = flight[name]
    index = np.clip(np.searchsorted(signal.times, t, side="right") - 1, 0, None)
    return signal.values[index]


def sample_at_clock(
    flight: Flight, clock: str, outputs: Space, spans: Intervals
) -> tuple[Float[np.ndarray, " n"], Float[np.ndarray, "n stored"], Bool[np.ndarray, "n tangent"]]:
    """Sample measurements at the time stamps of one signal.

    Args:
        flight: the log.
        clock: name of the signal that gives the rows, see `row_times`.
        outputs: blocks of the measurements.
        spans: start and end of the parts to be sampled, s.
    Returns:
        Times in s, measurements, and the mask of the measured ones.
    """
    t = row_times(flight[clock])
    count = len(t)
    is_sampled = np.any(
        [(start <= t) & (t <= end) for start, end in spans] or [np.zeros(count, bool)], axis=0
    )
    values, masks = [], []
    for name, block in outputs.items():
        initial = np.tile(np.asarray(block.initial_value, dtype=float), (count, 1))
        if name not in flight:
            y, mask = initial, np.zeros(count, bool)
        else:
            y, mask = _values_at_rows(flight[name], t, initial)
        values.append(y)
        masks.append(np.repeat(mask[:, None], block.dim, axis=1))
    return (
        t[is_sampled],
        np.concatenate(values, axis=1)[is_sampled],
        np.concatenate(masks, axis=1)[is_sampled],
    )


def row_times(clock: Signal) -> Float[np.ndarray, " n"]:
    """Times in s of the rows of a signal: its time stamps, or means of groups of them where it is faster than `MAX_RATE`."""
    group = max(1, int(np.ceil(clock.rate / MAX_RATE - 1e-6)))
    count = len(clock.times) // group
    return clock.times[: count * group].reshape(count, group).mean(axis=1)


def nearest_index(times: Float[np.ndarray, " n"], at: Float[np.ndarray, " m"]) -> Int[np.ndarray, " m"]:
    """Index of the element of `times` that is nearest to each element of `at`."""
    following = np.clip(np.searchsorted(times, at), 1, len(times) - 1)
    return np.where(at - times[following - 1] < times[following] - at, following - 1, following)


def interpolate_signal(
    signal: Signal, at: Float[np.ndarray, " n"]
) -> tuple[Float[np.ndarray, "n k"], Bool[np.ndarray, " n"]]:
    """Interpolate a signal linearly; quaternions the shorter way round, and normalised.

    Args:
        signal: of two samples or more.
        at: times, s.
    Returns:
        Values, and whether each time lies between two neighbours without a gap.
    """
    times, values = signal.times, signal.values
    following = np.clip(np.searchsorted(times, at), 1, len(times) - 1)
    a, b, gap = values[following - 1], values[following], times[following] - times[following - 1]
    if signal.name == "attitude":
        b = np.where(np.sum(a * b, axis=1, keepdims=True) < 0.0, -b, b)
    interpolated = a + ((at - times[following - 1]) / gap)[:, None] * (b - a)
    if signal.name == "attitude":
        interpolated = interpolated / np.linalg.norm(interpolated, axis=1, keepdims=True)
    return interpolated, (at >= times[0]) & (at <= times[-1]) & (gap <= _GAP / signal.rate)


def _values_at_rows(
    signal: Signal, t: Float[np.ndarray, " n"], initial: Float[np.ndarray, "n k"]
) -> tuple[Float[np.ndarray, "n k"], Bool[np.ndarray, " n"]]:
    """Values of a signal in the rows at t, and whether it was measured there."""
    times, values = signal.times, signal.values
    if len(times) < 2 or len(t) < 2:
        return initial, np.zeros(len(t), bool)
    step = float(np.median(np.diff(t)))
    row = nearest_index(t, times)
    is_near = np.abs(t[row] - times) <= 0.75 * step
    y, mask = initial.copy(), np.zeros(len(t), bool)
    if signal.rate * step > _AVERAGING_RATIO and signal.name != "attitude":
        rows = row[is_near]
        counts = np.bincount(rows, minlength=len(t))
        mask = counts > 0
        for j in range(values.shape[1]):
            y[mask, j] = np.bincount(rows, values[is_near, j], len(t))[mask] / counts[mask]
        return y, mask
    rows = row[is_near]
    rows = rows[np.diff(rows, prepend=-1) > 0]
    interpolated, is_valid = interpolate_signal(signal, t[rows])
    y[rows[is_valid]], mask[rows[is_valid]] = interpolated[is_valid], True
    return y, mask


def interpolate_to_slowest(flight: Flight, names: Sequence[str], rows: Float[np.ndarray, " rows"]) -> Flight:
    """A flight with these signals at the time stamps of the slowest of them.

    It is returned unchanged where one of them is missing, or where at least half of the samples of the slowest share their row
    with a sample of each other one.

    Args:
        flight: the log.
        names: of the signals.
        rows: times in s of the rows on which they will be sampled.
    """
    signals = [flight[name] for name in names if name in flight]
    if len(signals) < max(len(names), 2) or min(len(rows), *(len(s.times) for s in signals)) < 2:
        return flight
    slowest = min(signals, key=lambda s: s.rate)
    others = [s for s in signals if s is not slowest]
    slowest_rows = nearest_index(rows, slowest.times)
    is_common = np.all([np.isin(slowest_rows, nearest_index(rows, s.times)) for s in others], axis=0)
    if np.mean(is_common) >= _COMMON_SHARE:
        return flight
    interpolated = [_interpolated_signal(s, slowest.times) for s in others]
    note = f"{' and '.join(s.name for s in others)} at the stamps of {slowest.name}, which is slower"
    return flight.with_signals(*interpolated, notes=(note,))


def _interpolated_signal(signal: Signal, at: Float[np.ndarray, " m"]) -> Signal:
    """A signal at other times; across gaps only at its own samples."""
    values, is_valid = interpolate_signal(signal, at)
    is_valid |= np.isin(at, signal.times[1:])
    return dataclasses.replace(
        signal, times=at[is_valid], values=values[is_valid], source=f"{signal.source}, interpolated"
    )


def loop_rate(flight: Flight) -> float:
    """Rate at which the controller of a flight gives commands, Hz."""
    rates = [
        flight.parameters[name] for name in _LOOP_RATE_PARAMETERS if flight.parameters.get(name, 0.0) > 0.0
    ]
    return rates[0] if rates else _LOOP_RATES.get(flight.format, _MIN_LOOP_RATE)


def command_steps(
    flight: Flight, signal: Signal
) -> tuple[Float[np.ndarray, " n"], Float[np.ndarray, "n rotors"]]:
    """Times in s from which on each command acts, and the commands.

    They are as logged where the log has every command, else interpolated between its rows.

    Args:
        flight: the log.
        signal: of the commands to the rotors.
    """
    if has_every_command(flight, signal):
        return signal.times, signal.values
    return interpolate_commands(signal.times, signal.values)


def has_every_command(flight: Flight, signal: Signal) -> bool:
    """Whether a log has every command of the controller. signal: of the commands to the rotors."""
    return signal.rate >= _COMPLETE_SHARE * loop_rate(flight)


def interpolate_commands(
    t: Float[np.ndarray, " n"], u: Float[np.ndarray, "n rotors"]
) -> tuple[Float[np.ndarray, " fine"], Float[np.ndarray, "fine rotors"]]:
    """Time stamps in s and commands of a fine grid, by a Catmull-Rom spline between the rows of a log and held across gaps."""
    period = np.diff(t)
    if len(t) < 3:
        return t, u
    median_period = float(np.median(period))
    steps = min(max(math.ceil(median_period / _COMMAND_STEP - 1e-6), 1), _MAX_COMMAND_STEPS)
    is_continuous = period <= _GAP * median_period
    share = np.arange(steps) / steps
    start = t[:-1, None] + period[:, None] * share
    slope = _chord_slopes(t, u, is_continuous)
    s = (share + 0.5 / steps)[:, None]  # of a period, as a column
    h = period[:, None, None]
    interpolated = (
        (1.0 + 2.0 * s) * (1.0 - s) ** 2 * u[:-1, None]
        + s**2 * (3.0 - 2.0 * s) * u[1:, None]
        + h * s * (1.0 - s) * ((1.0 - s) * slope[:-1, None] - s * slope[1:, None])
    )
    commands = np.where(is_continuous[:, None, None], interpolated, u[:-1, None])
    return np.append(start.ravel(), t[-1]), np.concatenate([commands.reshape(-1, u.shape[1]), u[-1:]])


def _chord_slopes(
    t: Float[np.ndarray, " n"], u: Float[np.ndarray, "n rotors"], is_continuous: Bool[np.ndarray, " periods"]
) -> Float[np.ndarray, "n rotors"]:
    """Slope of the chord between the neighbours of each row; beside a gap or an end, the row itself is one of them."""
    row = np.arange(len(t))
    before = row - np.concatenate([[False], is_continuous])
    after = row + np.concatenate([is_continuous, [False]])
    duration = (t[after] - t[before])[:, None]
    return np.where(duration > 0.0, (u[after] - u[before]) / np.where(duration > 0.0, duration, 1.0), 0.0)


def check_finite(flight: Flight, names: Iterable[str]) -> None:
    """Raise SignalError where one of these signals has a number that is not finite; missing signals are skipped."""
    for name in names:
        if name not in flight:
            continue
        signal = flight[name]
        is_invalid = ~np.isfinite(signal.values).all(axis=1)
        if is_invalid.any():
            raise SignalError(
                f"{flight.source}: {name} is not finite (NaN or infinite) at t = {signal.times[np.argmax(is_invalid)]:.3f} s; "
                "remove those rows, or leave their cells empty"
            )


def check_rotors_run(flight: Flight, rotors: str) -> None:
    """Raise SignalError for a rotor that never turns. rotors: the signal of its commands, speed or thrust."""
    values = flight[rotors].values
    stopped = np.flatnonzero(~values.any(axis=0))
    if len(stopped):
        subject = "no rotor turns" if len(stopped) == values.shape[1] else f"rotor {stopped[0]} never turns"
        raise SignalError(
            f"{flight.source}: {subject} ({rotors} is 0 in all rows); give flights with all rotors turning"
        )
