"""Flight -> Samples: every signal on one grid of times.

Row k stands for the interval (t_{k-1}, t_k]. A command acts from its stamp until the next one; a rate gyro tells the mean
rate up to its stamp. Either is averaged over the interval, exactly. A measurement goes to the row whose time is
nearest: vectors are averaged where several fall on one row (which also filters vibration above the grid's rate), of
attitudes the nearest is kept. A row without a measurement is masked there, and a row without known inputs is left out, so
that the next one has a longer dt.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence

import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float

from rotorid.errors import ExcitationError, SignalError
from rotorid.geometry.spaces import Space
from rotorid.logs.flight import KINDS, Flight, Signal
from rotorid.signals.airborne import no_flight_message
from rotorid.signals.samples import Samples

MAX_RATE = 250.0
"""Hz: no grid is finer than this, since no vehicle moves faster."""

_STALE_PERIODS = 5.0
_STALE_FLOOR = 0.25  # s


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
        rate: of the grid, Hz; None: that of the fastest signal, at most `MAX_RATE`.
    Returns:
        Rows of times, steps, inputs, outputs and the mask of the measured ones.
    Raises:
        SignalError: an input is missing, no output is measured, or the signals have too few samples.
        ExcitationError: fewer than two rows in which all inputs are known.
    """
    missing = [n for n in inputs if n not in flight]
    if missing:
        has = ", ".join(sorted(flight.signals))
        raise SignalError(
            f"{flight.source}: no {' and no '.join(missing)} in this log, which the model needs (it has {has})"
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
    inside = _inside(t, spans)

    u, known = zip(*(_held(flight[n], t, h) for n in inputs), strict=True)
    inside &= np.all(known, axis=0)
    y, mask = zip(*(_measured(flight.signals.get(n), outputs, n, t, h) for n in outputs), strict=True)
    if inside.sum() < 2:
        raise ExcitationError(
            no_flight_message(
                flight, f"no part of this log is in the air with all of {', '.join(inputs)} known"
            )
        )
    t = t[inside]
    return Samples(
        jnp.asarray(t),
        jnp.asarray(np.diff(t, prepend=t[0])),
        jnp.asarray(np.concatenate(u, axis=1)[inside]),
        jnp.asarray(np.concatenate(y, axis=1)[inside]),
        jnp.asarray(np.concatenate(mask, axis=1)[inside]),
    )


def _inside(
    t: Float[np.ndarray, " n"], spans: Sequence[tuple[float, float]] | None
) -> Bool[np.ndarray, " n"]:
    if spans is None:
        return np.ones(len(t), bool)
    return np.any([(a <= t) & (t <= b) for a, b in spans] or [np.zeros(len(t), bool)], axis=0)


def _held(signal: Signal, t: Float[np.ndarray, " n"], h: float) -> tuple[np.ndarray, np.ndarray]:
    """Mean of a held signal over (t - h, t], and whether it is fresh enough to be known."""
    times, values = signal.times, signal.values
    if signal.name == "body_rate":
        knots = np.concatenate([[times[0] - 1.0], times])
        steps = np.diff(knots)[:, None] * values
    else:
        knots = np.concatenate([times, [times[-1] + 1.0]])
        steps = np.diff(knots)[:, None] * values
    integral = np.concatenate([np.zeros((1, values.shape[1])), np.cumsum(steps, axis=0)])
    edges = np.concatenate([[t[0] - h], t])

    def at(times_):
        return np.stack([np.interp(times_, knots, column) for column in integral.T], axis=1)

    mean = (at(t) - at(t - h)) / h
    period = np.median(np.diff(times)) if len(times) > 1 else 0.0
    stale = max(_STALE_FLOOR, _STALE_PERIODS * period)
    before = np.clip(np.searchsorted(times, edges[1:], side="right") - 1, 0, None)
    known = t - times[before] <= stale
    return mean, known


def _measured(
    signal: Signal | None, outputs: Space, name: str, t: Float[np.ndarray, " n"], h: float
) -> tuple[np.ndarray, np.ndarray]:
    block = outputs[name]
    y = np.tile(np.asarray(block.initial_value, dtype=float), (len(t), 1))
    mask = np.zeros((len(t), block.dim), bool)
    if signal is None:
        return y, mask
    row = np.rint((signal.times - t[0]) / h).astype(int)
    good = (row >= 0) & (row < len(t))
    row, values, times = row[good], signal.values[good], signal.times[good]
    if block.rotation:
        order = np.argsort(-np.abs(times - t[row]), kind="stable")
        y[row[order]] = values[order]
    else:
        count = np.bincount(row, minlength=len(t))
        seen = count > 0
        for j in range(values.shape[1]):
            y[seen, j] = np.bincount(row, values[:, j], len(t))[seen] / count[seen]
    mask[row] = True
    return y, mask


def with_reconstructed_commands(flight: Flight) -> Flight:
    """A flight whose rotor commands follow a collective command that was logged faster than they were.

    Autopilots often log the motors at 10 Hz and the collective thrust set point at 50 Hz or more. Between two motor rows the
    rotors are moved together by what the collective has changed since, scaled by the ratio of the two where both are known.
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
    inside = (collective.times >= rotors.times[0]) & (collective.times <= rotors.times[-1])
    signal = dataclasses.replace(
        rotors,
        times=collective.times[inside],
        values=np.clip(fast[inside], 0.0, 1.0),
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
