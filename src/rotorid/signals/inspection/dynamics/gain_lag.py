"""Acceleration per unit of motor command, motor lag and delay, from commands, gyro and accelerometer.

The commands of the rotors are turned into the commands of the three axes (`axes.py`) and their mean. About each axis, an
autoregression of the body rate on these four inputs gives the response of the angular acceleration to the axis command; along
body z, one of the specific force the response to the mean command. All four inputs are in the model, since a pilot or a
controller moves them together. `lag_model.py` is fitted to the response.

At low frequencies, aerodynamic moments that depend on the velocity, and trim, change the response. The fit begins at the lowest
frequency from which on the model describes the response within its standard deviations. Lag and delay are those of the logged
signal: they contain its filters.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from jaxtyping import Float64

from rotorid.findings import Finding, Severity
from rotorid.logs.flight import Flight
from rotorid.signals.inspection.dynamics.axes import mixer_rows
from rotorid.signals.inspection.dynamics.blocks import Record, record
from rotorid.signals.inspection.dynamics.estimate import Estimate, Group, not_identified
from rotorid.signals.inspection.dynamics.feedback import independent_share
from rotorid.signals.inspection.dynamics.filters import logged_filter
from rotorid.signals.inspection.dynamics.lag_model import (
    DELAY,
    GAIN,
    LAG,
    LagFit,
    Prior,
    default_prior,
    fit_lag,
    with_lag,
)
from rotorid.signals.inspection.dynamics.response import Blocks, Response, autoregression
from rotorid.signals.series import Intervals

_RATE: Final = 125.0  # Hz
_LEAST_RATE: Final = 45.0  # Hz
_LEAST_TIME: Final = 8.0  # s
_MEMORY: Final = 0.35  # s
_ROWS_PER_LAG: Final = 60  # at least
_SHORT: Final = (
    6.0  # s of a flight at which the variance doubles, since its blocks are not much longer than the memory
)
_FEEDBACK_MEMORY: Final = 0.2  # s
_LEAST_SHARE: Final = 0.02  # of a command that is not feedback
_BANDS: Final = 24
_LOWEST, _HIGHEST = 0.3, 35.0  # Hz
_HIGHEST_SHARE: Final = 0.17  # of the rate
_STARTS: Final = (0.3, 0.6, 1.0, 1.6, 2.5)  # Hz, lowest frequencies that are tried
_FILTER_DELAY: Final = 0.01  # s, by which the filters of gyro and accelerometer may differ
_LEAST_CUTOFF: Final = 20.0  # Hz, of the filter of a signal that shows the lag
_LARGEST_MISFIT: Final = 1.5
_WORST_MISFIT: Final = 12.0
_LARGEST_STD: Final = {"gain": 0.3, "total_lag": 0.25, "motor_lag": 0.4}  # of the value
_MODEL_STD: Final = {"gain": 0.02, "lag": 0.02}  # of the value, for what the model leaves out
_TIMING_STD: Final = 0.25  # of a sample of the log, for the time stamps

ANGULAR, LINEAR = "angular_acceleration_per_command", "specific_force_per_command"


@dataclasses.dataclass(frozen=True)
class _Axis:
    """name: "x", "y", "z", or "thrust" for the force along body z. gain: name of its gain. unit: of the gain."""

    name: str
    gain: str
    unit: str


_AXES: Final = (
    _Axis("x", ANGULAR, "rad/s^2"),
    _Axis("y", ANGULAR, "rad/s^2"),
    _Axis("z", ANGULAR, "rad/s^2"),
    _Axis("thrust", LINEAR, "m/s^2"),
)


def gain_and_lag_estimates(flight: Flight, flying: Intervals) -> list[Estimate]:
    """Gains of the three axes and of the thrust, and lag and delay of those that show them.

    Args:
        flight: the log.
        flying: start and end of each airborne interval, s.
    """
    reason = _obstacle(flight, ("rotor_command", "body_rate"))
    if reason is not None:
        return _ordered([e for axis in _AXES for e in _none(axis, *reason)])
    force_reason = _obstacle(flight, ("specific_force",))
    names = ["rotor_command", "body_rate", *(["specific_force"] if force_reason is None else [])]
    data = record(flight, names, flying, _RATE)
    if data.duration < _LEAST_TIME:
        reason = ("flight_short", {"duration": data.duration, "required": _LEAST_TIME})
        return _ordered([e for axis in _AXES for e in _none(axis, *reason)])
    blocks = data.blocks(5.0, 8)
    rows = mixer_rows(data, blocks)
    gyro_filter = logged_filter(flight, flight["body_rate"])
    force_filter = logged_filter(flight, flight["specific_force"]) if force_reason is None else gyro_filter
    return _ordered(_estimates(data, blocks, rows, force_reason, gyro_filter, force_filter))


def _obstacle(flight: Flight, names: tuple[str, ...]) -> tuple[str, dict[str, object]] | None:
    """Code and values of the reason why signals cannot be used."""
    for name in names:
        if name not in flight:
            return "signal_missing", {"signal": name}
        rate = flight[name].rate
        if rate < _LEAST_RATE:
            return "signal_slow", {"signal": name, "rate": rate, "required": _LEAST_RATE}
    return None


def _ordered(estimates: list[Estimate]) -> list[Estimate]:
    """Gains first, each quantity with its axes together."""
    places = (ANGULAR, LINEAR, "total_lag", "motor_lag", "command_delay")
    return sorted(estimates, key=lambda e: places.index(e.quantity))


def _none(axis: _Axis, code: str, values: Mapping[str, Any]) -> list[Estimate]:
    gain = not_identified("gain", axis.gain, axis.name, axis.unit, code, values)
    if axis.name == "z":
        return [gain]
    return [gain, *(not_identified("lag", q, axis.name, "s", code, values) for q in _LAGS)]


_LAGS: Final = ("total_lag", "motor_lag", "command_delay")


def _estimates(
    data: Record,
    blocks: Blocks,
    rows: list[Float64[np.ndarray, " rotors"] | None],
    force_reason: tuple[str, dict[str, object]] | None,
    gyro_filter: Finding,
    force_filter: Finding,
) -> list[Estimate]:
    known = [row for row in rows if row is not None]
    estimates: list[Estimate] = []
    best: LagFit | None = None
    for axis, row in zip(_AXES[:3], rows, strict=True):
        if row is None:
            estimates += _none(axis, "axis_unknown", {})
            continue
        others = [other for other in known if other is not row]
        inputs = {id(s): _inputs(s.values["rotor_command"], [row, *others]) for s in data.segments}
        number = "xyz".index(axis.name)
        output = {id(s): s.values["body_rate"][:, number] for s in data.segments}
        if (share := _independent_share(data, output, inputs)) < _LEAST_SHARE:
            estimates += _none(axis, "command_is_feedback", {"share": share})
            continue
        response = _response(data, blocks, output, inputs, is_rate=True)
        prior = default_prior(has_lead=axis.name == "z")
        if axis.name == "z" and best is not None:
            prior = with_lag(prior, best)
        fit, lowest = _fit(response, prior)
        estimates += _of_fit(axis, fit, lowest, data, gyro_filter)
        if axis.name != "z" and (best is None or _lag_std(fit) < _lag_std(best)):
            best = fit
    thrust = _AXES[3]
    if force_reason is not None:
        return [*_with_disagreement(estimates), *_none(thrust, *force_reason)]
    inputs = {
        id(s): _inputs(s.values["rotor_command"], known)[:, [-1, *range(len(known))]] for s in data.segments
    }
    output = {id(s): s.values["specific_force"][:, 2] for s in data.segments}
    if (share := _independent_share(data, output, inputs)) < _LEAST_SHARE:
        return [*_with_disagreement(estimates), *_none(thrust, "command_is_feedback", {"share": share})]
    response = _response(data, blocks, output, inputs, is_rate=False)
    fit, lowest = _fit(response, default_prior(has_lead=False))
    estimates = _with_disagreement(estimates)
    if best is None or _cutoff(force_filter) < _LEAST_CUTOFF or _lags_agree(fit, best):
        return [*estimates, *_of_fit(thrust, fit, lowest, data, force_filter)]
    lag, about_axes = (float(f.parameters[[LAG, DELAY]].sum()) for f in (fit, best))
    return [*estimates, *_none(thrust, "lag_disagrees", {"lag": lag, "about_axes": about_axes})]


def _cutoff(filtered: Finding) -> float:
    """Lowest cut-off frequency of a filter, Hz."""
    return min(filtered.values.get("low_pass") or [math.inf])


def _lags_agree(fit: LagFit, other: LagFit) -> bool:
    """Whether lag and delay of two axes agree, since the motors are the same; their filters may differ."""
    (a, a_std), (b, b_std) = (f.combination(_weights(LAG, DELAY)) for f in (fit, other))
    return abs(a - b) < 2.0 * math.hypot(a_std, b_std) + _FILTER_DELAY


def _with_disagreement(estimates: list[Estimate]) -> list[Estimate]:
    """Lags about x and y, whose standard deviations are at least half of a significant difference between them."""
    result = list(estimates)
    for quantity in _LAGS:
        pair = [i for i, e in enumerate(result) if e.quantity == quantity and e.is_identified]
        if len(pair) == 2:
            a, b = (result[i] for i in pair)
            difference = abs(a.value - b.value)
            if difference > 2.0 * math.hypot(a.std, b.std):
                for i in pair:
                    std = max(result[i].std, 0.5 * difference)
                    result[i] = dataclasses.replace(result[i], std=std)
    return result


def _independent_share(
    data: Record, output: dict[int, Float64[np.ndarray, " n"]], inputs: dict[int, Float64[np.ndarray, "n m"]]
) -> float:
    """Share of the first input that is not feedback of the output, in the longest segment."""
    key = id(max(data.segments, key=len))
    return independent_share(output[key], inputs[key][:, 0], round(_FEEDBACK_MEMORY / data.dt))


def _inputs(
    commands: Float64[np.ndarray, "n rotors"], rows: list[Float64[np.ndarray, " rotors"]]
) -> Float64[np.ndarray, "n m"]:
    """Commands of the axes, and the mean command."""
    return np.stack([*(commands @ row / (row @ row) for row in rows), commands.mean(axis=1)], axis=1)


def _response(
    data: Record,
    blocks: Blocks,
    output: dict[int, Float64[np.ndarray, " n"]],
    inputs: dict[int, Float64[np.ndarray, "n m"]],
    *,
    is_rate: bool,
) -> Response:
    """Response of the acceleration to the first input. is_rate: whether the output is the integral of the acceleration."""
    frequencies = np.geomspace(_LOWEST, min(_HIGHEST, _HIGHEST_SHARE / data.dt), _BANDS)
    memory = min(_MEMORY, data.duration / _ROWS_PER_LAG)
    whole, deleted = autoregression(data, blocks, output, inputs, memory, frequencies)
    deleted = whole + math.sqrt(1.0 + _SHORT / data.duration) * (deleted - whole)
    factor = 2j * np.pi * frequencies if is_rate else np.ones_like(frequencies)
    return Response(frequencies, factor * whole[:, 0], factor * deleted[:, :, 0])


def _fit(response: Response, prior: Prior) -> tuple[LagFit, float]:
    """The fit from the lowest frequency from which on the model describes the response, and this frequency, Hz."""
    fits = []
    for start in _STARTS:
        is_used = response.frequencies >= 0.99 * start
        part = Response(response.frequencies[is_used], response.values[is_used], response.deleted[:, is_used])
        fit = fit_lag(part, prior)
        if fit.misfit < _LARGEST_MISFIT:
            return fit, start
        fits.append((fit, start))
    return min(fits, key=lambda pair: pair[0].misfit)


def _lag_std(fit: LagFit) -> float:
    return fit.combination(_weights(LAG, DELAY))[1]


def _weights(*places: int) -> Float64[np.ndarray, " p"]:
    weights = np.zeros(5)
    weights[list(places)] = 1.0
    return weights


def _of_fit(axis: _Axis, fit: LagFit, lowest: float, data: Record, filtered: Finding) -> list[Estimate]:
    """The estimates of a fit. lowest: its lowest frequency, Hz. filtered: the filter of the logged signal."""
    if fit.misfit > _WORST_MISFIT:
        return _none(axis, "model_fails", {"misfit": fit.misfit})
    log_gain, gain_std = fit.combination(_weights(GAIN))
    gain = math.exp(min(log_gain, 50.0))
    gain_std = gain * math.hypot(gain_std, _MODEL_STD["gain"])
    notes = (Finding("from_frequency", Severity.OK, {"low": lowest}),) if lowest > _STARTS[0] else ()
    estimates = [_checked("gain", axis.gain, axis, gain, gain_std, axis.unit, _LARGEST_STD["gain"], notes)]
    if axis.name == "z":
        return estimates
    cutoff = _cutoff(filtered)
    if cutoff < _LEAST_CUTOFF:
        values = {"cutoff": cutoff, "required": _LEAST_CUTOFF}
        return [*estimates, *(not_identified("lag", q, axis.name, "s", "filter_slow", values) for q in _LAGS)]
    if filtered.code == "filter_known":
        notes = (*notes, filtered)
    timing = _TIMING_STD * data.sample
    total, total_std = fit.combination(_weights(LAG, DELAY))
    total_std = math.hypot(total_std, timing, _MODEL_STD["lag"] * total)
    limit = _LARGEST_STD["total_lag"]
    estimates.append(_checked("lag", "total_lag", axis, total, total_std, "s", limit, notes))
    lag, lag_std = fit.combination(_weights(LAG))
    lag_std = math.hypot(lag_std, timing, _MODEL_STD["lag"] * lag)
    limit = _LARGEST_STD["motor_lag"] if estimates[-1].is_identified else 0.0
    estimates.append(_checked("lag", "motor_lag", axis, lag, lag_std, "s", limit, notes))
    delay, delay_std = fit.combination(_weights(DELAY))
    is_separable = estimates[-1].is_identified
    delay_std = math.hypot(delay_std, timing, _MODEL_STD["lag"] * lag)
    if is_separable:
        estimates.append(Estimate("lag", "command_delay", axis.name, delay, delay_std, "s", None, notes))
    else:
        estimates.append(not_identified("lag", "command_delay", axis.name, "s", "lag_not_separable"))
    return estimates


def _checked(
    group: Group,
    quantity: str,
    axis: _Axis,
    value: float,
    std: float,
    unit: str,
    limit: float,
    notes: tuple[Finding, ...],
) -> Estimate:
    """The estimate, if its standard deviation is below a share of its value."""
    if not std < limit * value:
        values = {"value": value, "std": std, "unit": unit}
        return not_identified(group, quantity, axis.name, unit, "uncertain", values)
    return Estimate(group, quantity, axis.name, value, std, unit, None, notes)
