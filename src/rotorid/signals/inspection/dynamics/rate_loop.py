"""Response of the closed rate loop, from the set point of the body rate to the gyro.

The set point is known without noise, so that S_yr / S_rr has no bias from the noise of the gyro (Bendat and Piersol,
"Random data", 2010, section 6.1). Where an outer loop makes the set point of the motion, it is correlated with
disturbances; S_yy / S_ry, which has the opposite bias, then differs. Half of their difference is part of the standard
deviation of the bandwidth.

The bandwidth is the frequency at which the gain falls by 3 dB below that at low frequencies; the delay is the slope of the
phase below it. The step response is the sum of the impulse response h in y_k = sum_i h_i r_(k-i), estimated by least
squares with the stable prior covariance c min(l^i, l^j) of h (Chen, Ohlsson and Ljung, "On the estimation of transfer
functions, regularizations and Gaussian processes - Revisited", Automatica 48, 2012), whose c and l maximise the marginal
likelihood.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from jaxtyping import Complex128, Float64

from rotorid.logs.flight import Flight
from rotorid.signals.inspection.dynamics.blocks import Record, jackknife_std, record
from rotorid.signals.inspection.dynamics.estimate import Estimate, not_identified
from rotorid.signals.inspection.dynamics.response import Blocks, cross_spectra
from rotorid.signals.series import Intervals

QUANTITIES: Final = {
    "bandwidth": "Hz",
    "response_delay": "s",
    "rise_time": "s",
    "overshoot": "1",
}
"""Quantities of the loop and their units."""

_RATE: Final = 250.0  # Hz
_LEAST_RATE: Final = 40.0  # Hz
_LEAST_TIME: Final = 8.0  # s
_LEAST_COHERENCE: Final = 0.3
_LONGEST_STEP: Final = 0.5  # s
_FINAL: Final = 0.2  # share of the step response whose mean is its final value
_LEAST_MOTION: Final = 0.02  # rad/s, standard deviation of a set point that moves
_LARGEST_STD: Final = {"bandwidth": 0.3, "response_delay": 0.5, "rise_time": 0.4}  # of the value
_LARGEST_OVERSHOOT_STD: Final = 0.15
_RISE_TIMES_BANDWIDTH: Final = 0.35  # of a first-order response
_HALF_POWER: Final = 1.0 / math.sqrt(2.0)


def rate_loop_estimates(flight: Flight, flying: Intervals) -> list[Estimate]:
    """Bandwidth, delay, rise time and overshoot about each axis.

    Args:
        flight: the log.
        flying: start and end of each airborne interval, s.
    """
    names = ("body_rate_setpoint", "body_rate")
    for name in names:
        if name not in flight:
            return _none("signal_missing", signal=name)
        if flight[name].rate < _LEAST_RATE:
            return _none("signal_slow", signal=name, rate=flight[name].rate, required=_LEAST_RATE)
    data = record(flight, names, flying, _RATE)
    if data.duration < _LEAST_TIME:
        return _none("flight_short", duration=data.duration, required=_LEAST_TIME)
    blocks = data.blocks(5.0, 8)
    is_stick = "rcCommand" in flight["body_rate_setpoint"].source
    estimates = [e for axis in range(3) for e in _of_axis(data, blocks, axis, is_stick=is_stick)]
    return sorted(estimates, key=lambda e: list(QUANTITIES).index(e.quantity))


def _none(code: str, axes: str = "xyz", **values: object) -> list[Estimate]:
    return [
        not_identified("rate_loop", q, axis, unit, code, values)
        for axis in axes
        for q, unit in QUANTITIES.items()
    ]


def _of_axis(data: Record, blocks: Blocks, axis: int, *, is_stick: bool) -> list[Estimate]:
    pairs = {
        id(s): np.stack([s.values[n][:, axis] for n in ("body_rate_setpoint", "body_rate")], axis=1)
        for s in data.segments
    }
    name = "xyz"[axis]
    motion = math.sqrt(float(np.mean([np.var(pairs[id(s)][part, 0]) for s, part in blocks])))
    if motion < _LEAST_MOTION:
        return _none("set_point_still", name, motion=motion, required=_LEAST_MOTION)
    limit, response = _frequency_estimates(data, blocks, pairs, name, is_stick=is_stick)
    return [*response, *(_step_estimates(data, blocks, pairs, name, limit) if limit else [])]


def _frequency_estimates(
    data: Record, blocks: Blocks, pairs: dict[int, Float64[np.ndarray, "n 2"]], axis: str, *, is_stick: bool
) -> tuple[float, list[Estimate]]:
    """Frequency up to which the set point excites the loop, Hz, bandwidth and delay."""
    window = 2.0 if data.duration > 20.0 else 1.0
    highest = 0.35 / data.dt
    edges = np.concatenate([(np.arange(1, 9) - 0.5) / window, np.geomspace(8.5 / window, highest, 24)])
    spectra = cross_spectra(data, blocks, pairs, window, edges)
    total, deleted = spectra.totals()
    frequencies = spectra.frequencies
    gain, other, coherence = _gains(total)
    bandwidth = _bandwidth(frequencies, gain)
    limit = _coherent_up_to(frequencies, coherence)
    if not limit:
        return 0.0, _none("set_point_incoherent", axis, coherence=float(coherence.max()))
    if bandwidth is None or bandwidth > limit:
        estimates = _none_of(("bandwidth",), axis, "bandwidth_above", limit=limit)
        up_to = limit
    else:
        replicates = [_bandwidth(frequencies, _gains(d)[0]) for d in deleted]
        reverse = bandwidth if is_stick else _bandwidth(frequencies, other)
        bias = 0.5 * abs(reverse - bandwidth) if reverse is not None else bandwidth
        values = np.array([bandwidth if r is None else r for r in replicates])
        std = math.hypot(float(jackknife_std(values)), bias)
        estimates = [_checked("bandwidth", axis, bandwidth, std)]
        up_to = bandwidth
    is_used = (frequencies < up_to) & (coherence > _LEAST_COHERENCE)
    if is_used.sum() < 3:
        return limit, [*estimates, *_none_of(("response_delay",), axis, "bands_too_few", limit=up_to)]
    delays = [_delay(frequencies[is_used], h[is_used, 0, 1], coherence[is_used]) for h in (total, *deleted)]
    half = is_used & (frequencies < 0.6 * up_to)
    curvature = 0.0
    if half.sum() >= 2:
        curvature = 0.5 * abs(_delay(frequencies[half], total[half, 0, 1], coherence[half]) - delays[0])
    std = math.hypot(float(jackknife_std(np.array(delays[1:]))), curvature)
    return limit, [*estimates, _checked("response_delay", axis, delays[0], std)]


def _none_of(quantities: tuple[str, ...], axis: str, code: str, **values: object) -> list[Estimate]:
    return [not_identified("rate_loop", q, axis, QUANTITIES[q], code, values) for q in quantities]


def _checked(quantity: str, axis: str, value: float, std: float) -> Estimate:
    """The estimate, if it is certain enough to be of use."""
    unit = QUANTITIES[quantity]
    limit = _LARGEST_STD[quantity] * abs(value) if quantity in _LARGEST_STD else _LARGEST_OVERSHOOT_STD
    if not std < limit:
        return not_identified(
            "rate_loop", quantity, axis, unit, "uncertain", {"value": value, "std": std, "unit": unit}
        )
    return Estimate("rate_loop", quantity, axis, value, std, unit)


def _gains(products: Complex128[np.ndarray, "f 2 2"]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Gain by regression on the set point and on the gyro, and coherence."""
    r, y, cross = np.real(products[:, 0, 0]), np.real(products[:, 1, 1]), np.abs(products[:, 0, 1])
    return cross / np.maximum(r, 1e-300), y / np.maximum(cross, 1e-300), cross**2 / np.maximum(r * y, 1e-300)


def _bandwidth(frequencies: Float64[np.ndarray, " f"], gain: Float64[np.ndarray, " f"]) -> float | None:
    """Frequency at which the gain falls 3 dB below that of the lowest three bands, Hz; None where it does not."""
    level = np.log(np.maximum(gain / np.mean(gain[:3]), 1e-12))
    below = np.flatnonzero(level < math.log(_HALF_POWER))
    below = below[below > 0]
    if not len(below):
        return None
    k = int(below[0])
    share = (math.log(_HALF_POWER) - level[k - 1]) / min(level[k] - level[k - 1], -1e-12)
    low, high = np.log(frequencies[k - 1 : k + 1])
    return float(np.exp(low + np.clip(share, 0.0, 1.0) * (high - low)))


def _coherent_up_to(frequencies: Float64[np.ndarray, " f"], coherence: Float64[np.ndarray, " f"]) -> float:
    """Highest frequency up to which the coherence is sufficient, bands of the lowest frequencies aside, Hz; 0: none."""
    is_poor = np.flatnonzero((coherence < _LEAST_COHERENCE) & (np.arange(len(coherence)) > 2))
    last = (int(is_poor[0]) if len(is_poor) else len(coherence)) - 1
    return float(frequencies[last]) if (coherence[: last + 1] > _LEAST_COHERENCE).sum() >= 3 else 0.0


def _delay(
    frequencies: Float64[np.ndarray, " f"],
    cross: Complex128[np.ndarray, " f"],
    coherence: Float64[np.ndarray, " f"],
) -> float:
    """Delay whose phase fits that of the cross spectrum, s."""
    phase = np.unwrap(np.angle(cross))
    weight = coherence / np.maximum(1.0 - coherence, 1e-3)
    w = 2.0 * np.pi * frequencies
    return -float(weight @ (w * phase)) / float(weight @ w**2)


def _step_estimates(
    data: Record, blocks: Blocks, pairs: dict[int, Float64[np.ndarray, "n 2"]], axis: str, limit: float
) -> list[Estimate]:
    """Rise time and overshoot. limit: frequency up to which the set point excites the loop, Hz."""
    count = round(_LONGEST_STEP / data.dt)
    grams = []
    lagged: dict[int, np.ndarray] = {}
    for segment, part in blocks:
        key = id(segment)
        if key not in lagged:
            lagged[key] = _lagged(pairs[key], count)
        block = lagged[key][max(part.start - count, 0) : max(part.stop - count, 0)]
        block = block - block.mean(axis=0) if len(block) else block
        grams.append(block.T @ block)
    rows = sum(max(part.stop - max(part.start, count), 0) for _, part in blocks)
    total = np.sum(grams, axis=0)
    factor, noise = _regularisation(total, rows, data.dt)
    impulses = _impulse(np.stack([total, *(total - g for g in grams)]), factor, noise)
    steps = np.cumsum(impulses, axis=1)
    measures = np.array([_step_measures(step, data.dt) for step in steps])
    if not np.isfinite(measures).all():
        return _none_of(("rise_time", "overshoot"), axis, "step_not_settled")
    if limit * measures[0, 0] < _RISE_TIMES_BANDWIDTH:
        return _none_of(("rise_time", "overshoot"), axis, "rise_too_fast", limit=limit)
    stds = jackknife_std(measures[1:])
    rise = math.hypot(float(stds[0]), 0.5 * data.dt)
    return [
        _checked("rise_time", axis, float(measures[0, 0]), rise),
        _checked("overshoot", axis, float(measures[0, 1]), float(stds[1])),
    ]


def _lagged(pair: Float64[np.ndarray, "n 2"], count: int) -> Float64[np.ndarray, "k p"]:
    """Rows of set points, the latest first, and the gyro."""
    if len(pair) <= count:
        return np.empty((0, count + 1))
    windows = np.lib.stride_tricks.sliding_window_view(pair[:, 0], count)[1:, ::-1]
    return np.hstack([windows, pair[count:, 1:]])


def _regularisation(
    gram: Float64[np.ndarray, "p p"], rows: int, dt: float
) -> tuple[Float64[np.ndarray, "h h"], float]:
    """Factor of the prior covariance of the impulse response with the largest marginal likelihood, and noise variance."""
    r, y = gram[:-1, :-1], gram[:-1, -1]
    count = len(r)
    ridge = 1e-6 * np.trace(r) / count * np.eye(count)
    noise = max(float(gram[-1, -1] - y @ np.linalg.solve(r + ridge, y)), 1e-12) / max(rows - count, 1)
    best, chosen = -np.inf, np.eye(count)
    k = np.arange(1, count + 1)
    for decay in (0.03, 0.06, 0.12):
        powers = np.exp(-k * dt / decay)
        shape = np.linalg.cholesky(np.minimum.outer(powers, powers) + 1e-12 * np.eye(count))
        inner, right = shape.T @ r @ shape, shape.T @ y
        values, vectors = np.linalg.eigh(inner)
        projected = (vectors.T @ right) ** 2
        for size in np.geomspace(1e-6, 1.0, 7):
            scaled = np.maximum(size * values, 0.0) + noise
            evidence = size * float(projected @ (1.0 / scaled)) / noise - float(np.log(scaled / noise).sum())
            if evidence > best:
                best, chosen = evidence, math.sqrt(size) * shape
    return chosen, noise


def _impulse(
    grams: Float64[np.ndarray, "b p p"], factor: Float64[np.ndarray, "h h"], noise: float
) -> Float64[np.ndarray, "b h"]:
    left = factor.T @ grams[:, :-1, :-1] @ factor + noise * np.eye(len(factor))
    right = grams[:, :-1, -1] @ factor
    return np.linalg.solve(left, right[..., None])[..., 0] @ factor.T


def _step_measures(step: Float64[np.ndarray, " h"], dt: float) -> tuple[float, float]:
    """Rise time from 10 to 90 % of the final value, s, and overshoot over it; NaN where it is not positive."""
    final = float(step[-max(1, int(_FINAL * len(step))) :].mean())
    if final <= 0.2:
        return math.nan, math.nan
    shape = np.concatenate([[0.0], step / final])
    reached = []
    for level in (0.1, 0.9):
        above = np.flatnonzero(shape >= level)
        if not len(above) or above[0] == 0:
            return math.nan, math.nan
        k = int(above[0])
        reached.append(k - 1 + (level - shape[k - 1]) / (shape[k] - shape[k - 1]))
    return (reached[1] - reached[0]) * dt, max(float(shape.max()) - 1.0, 0.0)
