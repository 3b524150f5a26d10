"""Errors of the model that a flight shows, and the bands that contain them.

*Thrust*. With T the commanded thrust after the motor lag, a the specific force along the rotor axis, v_z and v_p the velocity
along and across it, and bars for means over 2 s,

    a / a_ - 1 = gamma (T / T_ - 1) + c_z v_z + c_p |v_p|^2        in means of 0.1 s, without what is slower than 2 s

gamma is 1 where the slope of the thrust curve and the lag are right. As in `plausibility`, it lies between the slopes of both
regressions. Where these exclude 1, the curve is taken to hold at the weight m g of the airframe, which its standard deviation
refers to. Elsewhere it is off by the factor (T / m g)^(gamma - 1), so that the mass gets the relative standard deviation
|gamma - 1| (|ln(T / m g)| + s), with s half the relative standard deviation of m, at least 0.05. An error of the response
also shifts the mass at any thrust, since a steady vertical force of the air explains it as well: by |gamma - 1| / 2, at most
by 5 %, what such forces amount to.

*Drag*. With k the tracked drag, f_p the force across the rotor axis by accelerometer and mass,

    f_p = -kappa k v_p                                             without what is slower than 5 s

kappa is 1 where the drag is right: a steady wind does not enter. A drag of kappa k shifts the wind w that is tracked with k by
(1 - kappa) / kappa (v - w), the wind force by (1 - kappa) k v, and the force along the rotor axis by (1 - kappa) r k v_z,
with r the axial drag ratio.

*Drag at low speed*. Forces of 0.05 m/s^2 that vary with the velocity and are not drag (gusts that the autopilot answers, the
accelerometer away from the centre of mass) give the drag a standard deviation of 0.05 m (1 / v_rms - 1 / v_1), with v_rms the
velocity across the rotor axis until then, below v_1 = 1 m/s, at most the drag itself; the wind w = f_w / k has the same
relative one, and the force along the rotor axis r v_z times that of k.

*Gusts*. A gust acts up and down as well as across: with sigma_w the standard deviation of the tracked wind over 20 s,
beyond that of its estimates, the force along the rotor axis varies by r k sigma_w. Its slow part looks like mass.

*Mass*. Where the thrust of the first seconds carries another mass than that of the airframe, by more than both uncertainties,
one of them is wrong, and the flight does not show which. The band then contains both.

*Voltage and warm motors*. See `models.multirotor.thrust_uncertainty`.

Each of the others is added as far as it exceeds what its own uncertainty explains.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

import numpy as np
from jaxtyping import Float

from rotorid.findings import Finding, Severity
from rotorid.geometry.rotation_rows import inverse, rotate
from rotorid.logs.flight import Flight
from rotorid.models.airframe.airframe import Airframe
from rotorid.models.airframe.mass import mass_relative_std
from rotorid.models.multirotor.rotors import thrust_lag
from rotorid.models.multirotor.thrust_uncertainty import (
    CALIBRATION_TIME,
    is_weighed,
    voltage_relative_std,
)
from rotorid.models.registry import SYSTEMS
from rotorid.models.system import GRAVITY
from rotorid.signals.series import Intervals, hold, interpolate_linear, smooth
from rotorid.workflows.track.plausibility import (
    SIGMAS,
    HoverConflict,
    hover_conflict,
    is_linear,
    lagged,
    parts_of,
    tracked_thrusts,
)

if TYPE_CHECKING:
    from rotorid.workflows.track.track import Quantity, Track

_STEP: Final = 0.01  # s, of the grid
_STRETCH: Final = 0.1  # s
_SLOW_THRUST, _SLOW_DRAG = 2.0, 5.0  # s; what is slower is left out
_LEAST_ROWS: Final = 50
_LEAST_CORRELATION: Final = 0.4
_RAMP: Final = 0.05  # of ln gamma, from the first sign of an error to its whole effect
_MODEL_STD: Final = 0.1  # of ln gamma
_LEAST_REFERENCE_STD: Final = 0.05  # of ln(T / m g)
_VERTICAL_SHARE, _MOST_VERTICAL = 0.5, 0.05  # of the error of the response, of the weight
_BAND: Final = (
    1.6  # standard deviations: a band of 95 % then contains both masses of a conflict with some margin
)
_DRAG_MODEL_STD: Final = 0.05  # of ln kappa
_COLOURED: Final = 3.0  # standard error over that of white residuals
_LEAST_GAIN: Final = 0.2
_LONGEST: Final = 2.0  # s, over which the tracked wind averages
_UNMODELLED, _LOW_SPEED = 0.05, 1.0  # m/s^2 in phase with the velocity; m/s
_GUSTS: Final = 20.0  # s, over which gusts are averaged
_BRIEF: Final = 0.5  # s, over which the tracked mass averages
_LEAST_THRUST: Final = 0.01  # of the weight


@dataclasses.dataclass(frozen=True)
class ThrustResponse:
    """gamma, as the range of ln gamma between both regressions. std: of each of them."""

    low: float
    high: float
    std: float

    @property
    def log(self) -> float:
        """ln gamma, the middle of the range."""
        return 0.5 * (self.low + self.high)

    @property
    def log_std(self) -> float:
        """Standard deviation of ln gamma, uniform within the range."""
        return math.hypot((self.high - self.low) / math.sqrt(12.0), self.std)

    @property
    def sigmas(self) -> float:
        """Distance of gamma from 1, in standard deviations with those of the model."""
        return abs(self.log) / math.hypot(self.log_std, _MODEL_STD)

    @property
    def error(self) -> float:
        """|gamma - 1| where errors of commands and accelerometer do not explain it, else 0."""
        outside = max(self.low - 2.0 * self.std, -self.high - 2.0 * self.std, 0.0)
        return min(outside / _RAMP, 1.0) * abs(math.expm1(self.log))


@dataclasses.dataclass(frozen=True)
class DragGain:
    """kappa. std: standard deviation of its logarithm, with those of the tracked drag and of the model."""

    value: float
    std: float

    @property
    def sigmas(self) -> float:
        """Distance from 1, in standard deviations."""
        return abs(math.log(self.value)) / self.std

    @property
    def weight(self) -> float:
        """Share of the error 1 - kappa that the standard deviation does not explain."""
        return min(max(self.sigmas - 1.0, 0.0), 1.0)


@dataclasses.dataclass(frozen=True)
class BodyVelocity:
    """Velocity in the body frame, m/s, at times in s, every `_STEP` s of the parts in the air."""

    times: Float[np.ndarray, " n"]
    values: Float[np.ndarray, "n 3"]

    def at(self, t: Float[np.ndarray, " m"]) -> Float[np.ndarray, "m 3"]:
        """At other times, s."""
        return interpolate_linear(t, self.times, self.values)


@dataclasses.dataclass(frozen=True)
class ModelErrors:
    """The errors that flight and airframe show before anything is tracked; None where they show nothing.

    thrust: commanded, N, at the rows that are tracked. weight: of the vehicle, N, by the airframe or the known mass.
    weight_std: relative to it. voltage: relative standard deviation of the thrust at the rows by the exponent of the voltage
    and by motors that warm up. velocity: of the body, None where the log lacks it.
    """

    conflict: HoverConflict | None
    response: ThrustResponse | None
    thrust: Float[np.ndarray, " n"] | None
    weight: float
    weight_std: float
    voltage: Float[np.ndarray, " n"] | None = None
    velocity: BodyVelocity | None = None

    def findings(self, airframe: str) -> tuple[Finding, ...]:
        """The error of the thrust's response as a finding, from `SIGMAS` standard deviations on. airframe: its name."""
        response = self.response
        if response is None or response.sigmas <= SIGMAS:
            return ()
        values = {
            "gain": math.exp(response.log),
            "log_std": response.log_std,
            "sigmas": response.sigmas,
            "airframe": airframe,
        }
        signals = ("rotor_command", "specific_force")
        return (Finding("thrust_response_implausible", Severity.WARNING, values, signals),)


def model_errors(
    flight: Flight, airframe: Airframe, t: Float[np.ndarray, " n"], known_mass: float | None = None
) -> ModelErrors:
    """The errors of thrust and mass that a flight shows.

    Args:
        flight: prepared, see `PreparedFlight`.
        airframe: of its vehicle.
        t: times of the rows that are tracked, s.
        known_mass: kg, where the thrust scale is tracked.
    """
    parts = parts_of(t)
    thrusts = tracked_thrusts(flight, airframe)
    thrust = None
    if thrusts is not None:
        thrust = _mean_over(t, interpolate_linear(t, thrusts.times, thrusts.values).sum(axis=1), _BRIEF)
    velocity = body_velocity(flight, parts)
    return ModelErrors(
        conflict=None if known_mass else hover_conflict(flight, airframe, parts),
        response=thrust_response(flight, airframe, parts, velocity),
        thrust=thrust,
        weight=(known_mass or airframe.mass.number) * GRAVITY,
        weight_std=0.0 if known_mass else mass_relative_std(airframe),
        voltage=_voltage_error(flight, airframe, t, known_mass),
        velocity=velocity,
    )


def _voltage_error(
    flight: Flight, airframe: Airframe, t: Float[np.ndarray, " n"], known_mass: float | None
) -> Float[np.ndarray, " n"] | None:
    """See `voltage_relative_std`; None where the curve has no standard deviation of the exponent."""
    curve, battery = airframe.thrust_curve, flight.signals.get("battery_voltage")
    if curve is None or not curve.voltage_exponent_std or "rotor_command" not in flight or not len(t):
        return None
    is_calibrated = known_mass is not None or is_weighed(airframe)
    elapsed = t - t[0]
    if battery is None:
        return voltage_relative_std(curve, elapsed, None, math.nan, is_calibrated=is_calibrated)
    volts = hold(t, battery.times, battery.values)[:, 0]
    first = float(np.median(volts[elapsed < CALIBRATION_TIME]))
    return voltage_relative_std(curve, elapsed, volts, first, is_calibrated=is_calibrated)


def with_model_errors(track: Track, flight: Flight, errors: ModelErrors) -> Track:
    """A track whose bands contain the errors of the model.

    Args:
        track: of the flight.
        flight: prepared, see `PreparedFlight`.
        errors: of flight and airframe.
    """
    main, quantities = track.main_quantity, dict(track.quantities)
    if main not in ("mass", "thrust_scale"):
        return track
    if (conflict := errors.conflict) is not None:
        quantities[main] = _with_common(quantities[main], abs(conflict.log) * conflict.weight / _BAND)
    if errors.response is not None and errors.thrust is not None:
        departure = np.abs(np.log(np.maximum(errors.thrust / errors.weight, _LEAST_THRUST)))
        reference = max(0.5 * errors.weight_std, _LEAST_REFERENCE_STD)
        error = errors.response.error
        relative = error * (departure + reference) + min(_VERTICAL_SHARE * error, _MOST_VERTICAL)
        quantities[main] = _with_std(quantities[main], relative * np.abs(quantities[main].value))
    if errors.voltage is not None:
        quantities[main] = _with_std(quantities[main], errors.voltage * np.abs(quantities[main].value))
    if errors.velocity is not None:
        v = errors.velocity.at(track.t)
        gain = drag_gain(flight, track, errors.velocity)
        if gain is not None:
            quantities |= _with_drag_error(track.t, quantities, main, flight, v, gain, errors.weight)
        quantities |= _with_unmodelled_forces(track.t, quantities, main, v, errors.weight)
    relative = _gust_force(track) / errors.weight
    quantities[main] = _with_std(quantities[main], relative * np.abs(quantities[main].value))
    return dataclasses.replace(track, quantities=quantities)


def thrust_response(
    flight: Flight, airframe: Airframe, parts: Intervals, velocity: BodyVelocity | None
) -> ThrustResponse | None:
    """Measured over expected response of the specific force to the commanded thrust.

    Args:
        flight: with the commands of the rotors (or the thrust) and the specific force.
        airframe: its thrust curve and lag are used.
        parts: of the flight in the air, start and end in s.
        velocity: in these parts, see `body_velocity`; None where the log lacks it.
    Returns:
        The response; None where log or airframe lack what it needs, or the flight does not excite it.
    """
    thrusts = tracked_thrusts(flight, airframe)
    if thrusts is None or "specific_force" not in flight:
        return None
    force = flight["specific_force"]
    lag = thrust_lag(flight, airframe, SYSTEMS["multirotor"].rotor_inputs)
    size = max(round(max(_STRETCH, 1.0 / thrusts.rate, 1.0 / force.rate) / _STEP), 1)
    slow = max(round(_SLOW_THRUST / (size * _STEP)), 3)
    rows = [np.zeros((0, 4))]
    for start, end in parts:
        t = _grid(start, end)
        count = len(t) // size
        if count < slow:
            continue
        T = lagged(interpolate_linear(t, thrusts.times, thrusts.values), lag).sum(axis=1)
        a = interpolate_linear(t, force.times, force.values)[:, 2]
        motion = np.zeros((len(t), 2))
        if velocity is not None:
            v = velocity.at(t)
            motion = np.stack([v[:, 2], v[:, 0] ** 2 + v[:, 1] ** 2], 1)
        columns = np.column_stack([a, T, motion, is_linear(flight, t)])
        columns = columns[: count * size].reshape(count, size, 5).mean(axis=1)
        columns[:, :2] /= np.maximum(smooth(columns[:, :2], slow), 1e-9)
        usable = (columns[:, 4] == 1.0) & np.isfinite(columns).all(axis=1)
        rows.append((columns - smooth(columns, slow))[usable, :4])
    data = np.concatenate(rows)
    if len(data) < _LEAST_ROWS:
        return None
    y, x = (_residual(data[:, k], data[:, 2:]) for k in (0, 1))
    xx, yy, xy = x @ x, y @ y, x @ y
    if xy <= _LEAST_CORRELATION * math.sqrt(xx * yy):
        return None
    low, high = float(xy / xx), float(yy / xy)
    std = math.sqrt(max(yy - low * xy, 0.0) / xx / len(data)) / low
    return ThrustResponse(math.log(low), math.log(high), float(std))


def drag_gain(flight: Flight, track: Track, velocity: BodyVelocity) -> DragGain | None:
    """Measured over tracked drag across the rotor axis; None where log or track lack it, or the flight does not excite it.

    Args:
        flight: with specific force.
        track: of mass and drag.
        velocity: of the body in the parts that are tracked.
    """
    if not {"mass", "drag"} <= set(track.quantities) or "specific_force" not in flight:
        return None
    mass, drag, force = track.quantities["mass"], track.quantities["drag"], flight["specific_force"]
    measured, expected = [np.zeros(0)], [np.zeros(0)]
    slow = round(_SLOW_DRAG / _STEP)
    for start, end in parts_of(track.t):
        t = _grid(start, end)
        if len(t) < slow:
            continue
        f = np.interp(t, track.t, mass.value)[:, None] * interpolate_linear(t, force.times, force.values)
        kv = np.interp(t, track.t, drag.value)[:, None] * velocity.at(t)
        measured.append((smooth(f, slow) - f)[:, :2].ravel())
        expected.append((kv - smooth(kv, slow))[:, :2].ravel())
    y, x = np.concatenate(measured), np.concatenate(expected)
    if len(x) < 2 * slow or (xy := x @ y) <= _LEAST_CORRELATION * math.sqrt((xx := x @ x) * (y @ y)):
        return None
    gain = float(xy / xx)
    sampling = _COLOURED * math.sqrt(max(y @ y - gain * xy, 0.0) / xx / len(x)) / gain
    tracked = float(np.median(drag.std / np.maximum(np.abs(drag.value), 1e-12)))
    return DragGain(gain, float(math.sqrt(sampling**2 + tracked**2 + _DRAG_MODEL_STD**2)))


def _mean_over(
    t: Float[np.ndarray, " n"], values: Float[np.ndarray, " n"], width: float
) -> Float[np.ndarray, " n"]:
    """Moving average over `width` s of rows at times t, s."""
    step = float(np.median(np.diff(t))) if len(t) > 1 else width
    return smooth(values, round(width / max(step, 1e-6)))


def _with_drag_error(
    t: Float[np.ndarray, " n"],
    quantities: dict[str, Quantity],
    main: str,
    flight: Flight,
    v_body: Float[np.ndarray, "n 3"],
    gain: DragGain,
    weight: float,
) -> dict[str, Quantity]:
    """Main quantity, drag, wind and wind force with the error of the drag. v_body: m/s. weight: of the vehicle, N."""
    error, drag, widened = gain.weight * abs(1.0 - gain.value), quantities["drag"], {}
    widened["drag"] = _with_std(drag, error * np.abs(drag.value))
    velocity = flight["velocity"]
    v = interpolate_linear(t, velocity.times, velocity.values)
    for k, axis in enumerate("xy"):
        wind, force = quantities.get(f"wind_{axis}"), quantities.get(f"wind_force_{axis}")
        if wind is not None:
            through_air = np.sqrt(_mean_over(t, (v[:, k] - wind.value) ** 2, _LONGEST))
            shift = error / max(gain.value, _LEAST_GAIN) * through_air
            widened[f"wind_{axis}"] = _with_std(wind, shift)
        if force is not None:
            moved = np.sqrt(_mean_over(t, v[:, k] ** 2, _LONGEST))
            widened[f"wind_force_{axis}"] = _with_std(force, error * np.abs(drag.value) * moved)
    along = np.sqrt(_mean_over(t, v_body[:, 2] ** 2, _BRIEF))
    relative = error * _axial_ratio(quantities) * np.abs(drag.value) * along / weight
    widened[main] = _with_std(quantities[main], relative * np.abs(quantities[main].value))
    return widened


def _with_unmodelled_forces(
    t: Float[np.ndarray, " n"],
    quantities: dict[str, Quantity],
    main: str,
    v: Float[np.ndarray, "n 3"],
    weight: float,
) -> dict[str, Quantity]:
    """Drag, wind and main quantity with the effect of forces that vary with the velocity. v: in the body frame, m/s."""
    if "drag" not in quantities:
        return {}
    drag = quantities["drag"]
    v_rms = np.sqrt(np.cumsum(v[:, 0] ** 2 + v[:, 1] ** 2) / np.arange(1, len(t) + 1))
    size = np.maximum(np.abs(drag.value), 1e-12)
    per_speed = np.maximum(1.0 / np.maximum(v_rms, 1e-6) - 1.0 / _LOW_SPEED, 0.0)
    std = np.minimum(_UNMODELLED * weight / GRAVITY * per_speed, size)
    along = np.sqrt(_mean_over(t, v[:, 2] ** 2, _BRIEF))
    relative = _axial_ratio(quantities) * std * along / weight
    widened = {"drag": _with_std(drag, std)}
    widened[main] = _with_std(quantities[main], relative * np.abs(quantities[main].value))
    winds = {n: quantities[n] for n in ("wind_x", "wind_y") if n in quantities}
    return widened | {n: _with_std(w, std / size * np.abs(w.value)) for n, w in winds.items()}


def _gust_force(track: Track) -> Float[np.ndarray, " n"] | float:
    """r k sigma_w, N; 0 where no wind is tracked."""
    if not {"wind_x", "wind_y", "drag"} <= set(track.quantities):
        return 0.0
    variance = np.zeros(len(track.t))
    for name in ("wind_x", "wind_y"):
        wind = track.quantities[name]
        departure = np.where(wind.informed, wind.value - _mean_over(track.t, wind.value, _GUSTS), 0.0)
        variance += 0.5 * np.maximum(_mean_over(track.t, departure**2 - wind.std**2, _GUSTS), 0.0)
    sigma = np.sqrt(variance)
    return _axial_ratio(track.quantities) * np.abs(track.quantities["drag"].value) * sigma


def _axial_ratio(quantities: Mapping[str, Quantity]) -> Float[np.ndarray, " n"] | float:
    return quantities["axial_drag_ratio"].value if "axial_drag_ratio" in quantities else 1.0


def body_velocity(flight: Flight, parts: Intervals) -> BodyVelocity | None:
    """Velocity in the body frame in these parts of a flight, start and end in s; None without velocity or attitude."""
    if "velocity" not in flight or "attitude" not in flight:
        return None
    velocity, attitude = flight["velocity"], flight["attitude"]
    t = np.concatenate([np.zeros(0), *(_grid(start, end) for start, end in parts)])
    if not len(t):
        return None
    q = attitude.values[np.clip(np.searchsorted(attitude.times, t), 0, len(attitude.times) - 1)]
    v = interpolate_linear(t, velocity.times, velocity.values)
    return BodyVelocity(t, rotate(inverse(q / np.linalg.norm(q, axis=1, keepdims=True)), v))


def _grid(start: float, end: float) -> Float[np.ndarray, " n"]:
    return start + _STEP * np.arange(int((end - start) / _STEP))


def _residual(y: Float[np.ndarray, " n"], columns: Float[np.ndarray, "n k"]) -> Float[np.ndarray, " n"]:
    """What a linear regression on the columns leaves."""
    return y - columns @ np.linalg.lstsq(columns, y, rcond=None)[0]


def _with_std(quantity: Quantity, std: Float[np.ndarray, " n"]) -> Quantity:
    """A quantity with an independent standard deviation added, in its unit."""
    return dataclasses.replace(quantity, std=np.hypot(quantity.std, std))


def _with_common(quantity: Quantity, relative: float) -> Quantity:
    """A quantity with a relative standard deviation added that scales all its values together."""
    common = math.hypot(quantity.common_relative_std, relative)
    std = np.hypot(quantity.std, relative * quantity.value)
    return dataclasses.replace(quantity, std=std, common_relative_std=common)
