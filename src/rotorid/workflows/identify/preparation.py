"""Flights prepared for an identification, once: what their logs have, when they fly, and the rows of a fit and of its checks.

Which signals all logs have decides the model. A flight without attitude and velocity gives a body that only rotates, and
whose specific force is that of its rotors. A flight whose rotor commands are logged too rarely to identify torques, or that
has only the thrust and torque that its controller commanded, gives a body whose rotation is the measured one: mass, thrust
and drag can be identified, inertia and motor lag cannot. Several flights are fitted together, with the signals that all of
them have.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float

from rotorid.errors import ExcitationError, SignalError
from rotorid.geometry.spaces import Space, Vector
from rotorid.identification.airframe.fit import FlightRecord, make_logged_body
from rotorid.identification.airframe.priors import prior_value
from rotorid.identification.airframe.rotor_thrusts import RotorCommands, rotor_command_signal, rotor_model
from rotorid.identification.rotor_geometry.torque_balance import TorqueBalance, torque_balance_rows
from rotorid.logs.flight import Flight, Signal
from rotorid.models.airframe.airframe import MOTOR_LAG, Airframe
from rotorid.models.airframe.missing import missing_error
from rotorid.models.multirotor.logged_body import LoggedBody
from rotorid.models.multirotor.rotors import with_commanded_thrusts
from rotorid.models.multirotor.thrust import averaged_commands
from rotorid.models.multirotor.with_drag import SATURATED
from rotorid.models.registry import MODEL_INPUTS, check_rotor_inputs, usable_inputs, with_rotor_signal
from rotorid.signals.airborne import intervals_in_use, no_flight_message
from rotorid.signals.command_rate import other_commands
from rotorid.signals.force_frame import with_body_force
from rotorid.signals.ground_effect import height_of_ground_effect, time_off_ground
from rotorid.signals.samples import Samples
from rotorid.signals.sampling import (
    check_finite,
    check_rotors_run,
    command_steps,
    grid_rate,
    grid_times,
    has_every_command,
    interpolate_to_slowest,
    loop_rate,
    row_times,
    sample,
    sample_at_clock,
    with_reconstructed_commands,
)
from rotorid.signals.series import Intervals, integral, interpolate_linear
from rotorid.workflows.identify.rotor_speeds import (
    MeasuredSpeeds,
    shown_torques,
    with_smoothed_speeds,
)

TORQUE_RATE = 50.0
"""Least rate of rotor commands with which torques can be identified, Hz."""

AVERAGE = 1.0
"""Time over which thrusts are averaged where the log does not resolve the commands, s."""

_BEFORE = 2.0  # s of commands before the first row, in which the rotors settle
_OFTENER = 1.5  # times
_SETTLED = 4.0  # time constants of a motor after which a saturated rotor counts again


@dataclasses.dataclass(frozen=True)
class AvailableSignals:
    """What all logs have.

    rotors: the signal of the rotors, "rotor_command", "rotor_thrust" or "rotor_speed". has_pose: attitude and velocity.
    torques_observable: rotor commands fast enough to identify torques, or speeds whose noise is less than the torques, with
    body rates. yaw_observable: whether the torques about z are among them.
    """

    rotors: str
    has_pose: bool
    torques_observable: bool
    yaw_observable: bool = True

    @property
    def has_motor_lag(self) -> bool:
        """Whether the rotors follow the logged signal with a lag."""
        return self.rotors != "rotor_speed"


@dataclasses.dataclass(frozen=True)
class PreparedFlight:
    """One flight, and what an identification needs of it.

    flight: the log, its specific force in the body frame. commanded: the same with the thrust of each rotor where it has only
    the controller's thrust and torque, with rotor commands that follow a faster collective command, with smoothed speeds where
    these are used, and without signals that would be taken in place of the used one. airframe: the prior. parts: to be used,
    start and end in s. speeds: of the rotors, where a fit takes torques from them. has_turned_force: whether the log has the
    specific force in the world frame. is_averaged: whether a fit takes averages of the commanded thrusts over `AVERAGE`, since
    the log does not resolve the commands.
    """

    flight: Flight
    commanded: Flight
    airframe: Airframe
    parts: Intervals
    speeds: MeasuredSpeeds | None = None
    has_turned_force: bool = False
    is_averaged: bool = False

    @property
    def name(self) -> str:
        """The file's name."""
        return self.flight.source.name

    @property
    def has_thrusts(self) -> bool:
        """Whether the rotors' thrusts follow from the log by the prior alone: speeds need a fit of their coefficient, and a
        thrust curve that depends on the voltage needs a logged voltage."""
        curve = self.airframe.thrust_curve
        if "rotor_command" in self.commanded and curve is not None:
            return not curve.voltage_exponent or "battery_voltage" in self.flight
        return "rotor_thrust" in self.commanded

    @functools.cached_property
    def torque_balance(self) -> TorqueBalance:
        """Its torque balance over the parts. Raises what `rotor_thrusts` does."""
        return torque_balance_rows(self.commanded, self.airframe, self.parts)


@dataclasses.dataclass(frozen=True)
class Preparation:
    """Flights of one vehicle, prepared once. Checks, fit, findings and validation use this object.

    airframe: the prior. available: what all logs have.
    """

    airframe: Airframe
    available: AvailableSignals
    flights: tuple[PreparedFlight, ...]

    @property
    def parts(self) -> list[Intervals]:
        """Of each flight the parts to be used, s."""
        return [flight.parts for flight in self.flights]

    @property
    def torque_balanced(self) -> list[PreparedFlight]:
        """The flights whose torque balance follows from the prior alone."""
        return [flight for flight in self.flights if self.available.torques_observable and flight.has_thrusts]

    @property
    def speeds(self) -> list[MeasuredSpeeds]:
        """Measured speeds of the flights whose torques come from them."""
        return [flight.speeds for flight in self.flights if flight.speeds is not None]

    @property
    def logs(self) -> list[Flight]:
        """The flights as they were read."""
        return [flight.flight for flight in self.flights]

    @property
    def command_rate(self) -> float | None:
        """Least rate of the rotor commands of logs that lack some, Hz; None where all logs have every command."""
        signals = [logged_commands(flight, self.available.rotors) for flight in self.flights]
        return min((s.rate for s in signals if s is not None), default=None)

    def within(self, parts: Sequence[Intervals]) -> Preparation:
        """The same flights, of which other parts are used, s."""
        flights = [dataclasses.replace(f, parts=p) for f, p in zip(self.flights, parts, strict=True)]
        return dataclasses.replace(self, flights=tuple(flights))


@dataclasses.dataclass(frozen=True)
class FitData:
    """The rows of a fit.

    flights: as the fit takes them. body: what the logs allow to be fitted. saturated: share of each flight's rows that are left
    out since a rotor was at its limit. other_commands: of all flights, which the logs could as well have had, with weights (see
    `command_rate`); empty where the logs have every command.
    """

    flights: tuple[FlightRecord, ...]
    body: LoggedBody
    saturated: tuple[float, ...]
    other_commands: tuple[tuple[float, tuple[RotorCommands, ...]], ...] = ()


def prepare_flights(
    flights: Sequence[Flight], airframe: Airframe, parts: Sequence[Intervals] | None = None
) -> Preparation:
    """Prepare flights of one vehicle for an identification.

    Args:
        flights: logs of one vehicle.
        airframe: the prior; its rotors are in the log's order.
        parts: of each flight the parts to use, start and end in s; None: all of its time in the air and not near the ground.
    Returns:
        The prepared flights, which every later step uses.
    Raises:
        SignalError: a signal is missing, the rotors do not fit, or the logs have different signals of their rotors.
        AirframeError: the airframe lacks what the logged signal of the rotors needs.
        ExcitationError: a log has no part in the air.
    """
    if not airframe.rotors:
        rotor_input = next((n for n in ("rotor_command", "rotor_speed") if n in flights[0]), "")
        raise missing_error(airframe, rotor_input, flights[0].rotors)
    commanded = [with_commanded_thrusts(flight, airframe, lagged=False) for flight in flights]
    available = _available_in_all(
        flights, [_available(*both, airframe) for both in zip(flights, commanded, strict=True)]
    )
    height = height_of_ground_effect(np.array([rotor.position for rotor in airframe.rotors]))
    used_parts = [time_off_ground(f, time_in_air(f), height) for f in flights] if parts is None else parts
    prepared = []
    for logged, with_commands, flight_parts in zip(flights, commanded, used_parts, strict=True):
        flight, is_turned = with_body_force(logged)
        if is_turned:
            with_commands = with_commands.with_signals(flight["specific_force"])
        if available.rotors == "rotor_command":
            with_commands = with_reconstructed_commands(with_commands)
        speeds = None
        if available.rotors == "rotor_speed" and available.torques_observable:
            with_commands, speeds = with_smoothed_speeds(with_commands, airframe, flight_parts)
        if rotor_command_signal(with_commands).name != available.rotors:
            with_commands = with_rotor_signal(with_commands, available.rotors)
        prepared.append(PreparedFlight(flight, with_commands, airframe, flight_parts, speeds, is_turned))
    is_shown, is_yaw_shown = shown_torques([p.speeds for p in prepared if p.speeds is not None])
    if available.has_pose and not is_shown:
        available = dataclasses.replace(available, torques_observable=False)
    available = dataclasses.replace(available, yaw_observable=is_yaw_shown)
    return Preparation(airframe, available, tuple(prepared))


def time_in_air(flight: Flight) -> Intervals:
    """The time in the air, start and end in s. Raises ExcitationError where the log has none."""
    intervals = intervals_in_use(flight)
    if not intervals:
        raise ExcitationError(no_flight_message(flight))
    return intervals


def fit_data(preparation: Preparation, free: Sequence[str]) -> FitData:
    """The rows of a fit of these parameters.

    Raises SignalError where a signal is not finite, AirframeError where the airframe lacks what the body needs, ExcitationError
    where a rotor is at its limit all the time; each names the log.
    """
    available = preparation.available
    body = make_logged_body(preparation.airframe, free, available.has_pose, available.torques_observable)
    rows = [_rows(flight, body, available.rotors) for flight in preparation.flights]
    records = tuple(f for f, _ in rows)
    variations = [
        _other_commands(flight, record, available.rotors)
        for flight, record in zip(preparation.flights, records, strict=True)
    ]
    count = max(len(v) for v in variations)
    others = []
    for k in range(count):
        weight = next(v[k][0] for v in variations if v)
        commands = (v[k][1] if v else r.commands for v, r in zip(variations, records, strict=True))
        others.append((weight, tuple(commands)))
    return FitData(records, body, tuple(share for _, share in rows), tuple(others))


def logged_commands(prepared: PreparedFlight, rotors: str) -> Signal | None:
    """The commands of a flight, between whose rows a fit interpolates; None where its log has every command, or where the
    rotors' signal is no command. rotors: its name."""
    if rotors == "rotor_speed":
        return None
    signal = prepared.commanded[rotors]
    return None if has_every_command(prepared.flight, signal) else signal


def _other_commands(
    prepared: PreparedFlight, record: FlightRecord, rotors: str
) -> list[tuple[float, RotorCommands]]:
    """Commands that a log could as well have had, with weights; none where it has every command."""
    signal = logged_commands(prepared, rotors)
    if signal is None:
        return []
    start, end = float(record.commands.t[0]), float(record.samples.t[-1])
    return [
        (weight, _commands(prepared, other).within(start, end))
        for weight, other in other_commands(signal, 1.0 / loop_rate(prepared.flight))
    ]


def _available_in_all(flights: Sequence[Flight], signals: Sequence[AvailableSignals]) -> AvailableSignals:
    kinds = {available.rotors for available in signals}
    if len(kinds) > 1:
        raise SignalError(
            f"these logs have different signals of their rotors ({', '.join(sorted(kinds))}): identify each kind by itself"
        )
    has_pose = all(available.has_pose for available in signals)
    torques_observable = all(available.torques_observable for available in signals)
    if not (has_pose or torques_observable):
        cut = "".join(
            f"; {flight.source.name}: {flight.cut}: copy it again" for flight in flights if flight.cut
        )
        raise SignalError(
            f"{flights[0].source}: neither attitude and velocity, nor rotor commands of {TORQUE_RATE:.0f} Hz with body rates, "
            f"in all of these logs; log one of both{cut}"
        )
    return AvailableSignals(kinds.pop(), has_pose, torques_observable)


def _available(flight: Flight, commanded: Flight, airframe: Airframe) -> AvailableSignals:
    """What one log has. commanded: with the thrust of each rotor."""
    check_rotor_inputs(commanded, MODEL_INPUTS, "rotorid identify")
    usable = usable_inputs(commanded, airframe)
    if not usable:
        logged = next(name for name in MODEL_INPUTS if name in commanded)
        raise missing_error(airframe, logged, commanded[logged].values.shape[1])
    signal = commanded[usable[0]]
    if signal.values.shape[1] != len(airframe.rotors):
        raise SignalError(
            f"{flight.source}: {signal.values.shape[1]} columns of {usable[0]}, and {airframe.source} has "
            f"{len(airframe.rotors)} [[rotor]]; give one a rotor, in the log's order"
        )
    if "specific_force" not in flight or "body_rate" not in flight:
        missing = [n for n in ("body_rate", "specific_force") if n not in flight]
        if "attitude" not in flight or "velocity" not in flight or "body_rate" in missing:
            raise SignalError(f"{flight.source}: no {' and no '.join(missing)} in this log; log them")
    has_pose = "attitude" in flight and "velocity" in flight
    return AvailableSignals(usable[0], has_pose, usable[0] in flight and signal.rate >= TORQUE_RATE)


def _rows(prepared: PreparedFlight, body: LoggedBody, rotors: str) -> tuple[FlightRecord, float]:
    """The rows of a flight without those in which a rotor is or just was at its limit; and the share of these."""
    flight, airframe = prepared.commanded, prepared.airframe
    signal = flight[rotors]
    n = len(airframe.rotors)
    check_finite(flight, (rotors, *body.outputs))
    check_rotors_run(flight, rotors)
    inputs = Space.of(**{rotors: Vector(n)})
    if not body.torques_observable:
        inputs = Space((*inputs.blocks, ("body_rate", Vector(3, "rad/s"))))
    rate = grid_rate(flight, inputs, body.outputs)
    at_gyro_clock = body.torques_observable
    if body.has_pose:
        pose_rate = max(flight["attitude"].rate, flight["velocity"].rate)
        # specific forces logged more often than the motion are not averaged to its rows: rotors change in between
        at_gyro_clock |= (
            "specific_force" in flight and TORQUE_RATE >= flight["body_rate"].rate > _OFTENER * pose_rate
        )
        rate = rate if body.torques_observable else min(rate, pose_rate)
        times = row_times(flight["body_rate"]) if at_gyro_clock else grid_times(flight, inputs, rate)
        flight = interpolate_to_slowest(flight, ("attitude", "velocity"), times)
    if at_gyro_clock:
        t, y, mask = sample_at_clock(flight, "body_rate", body.outputs, prepared.parts)
        is_inside = (t > signal.times[0]) & (t <= signal.times[-1])
        t, y, mask = (v[is_inside] for v in (t, y, mask))
        u = np.zeros((len(t), body.inputs.size))
        if not body.torques_observable:
            u[:, body.inputs.stored["body_rate"]] = _mean_rate(flight["body_rate"], t)
    else:
        rows = sample(flight, inputs, body.outputs, spans=prepared.parts, rate=rate)
        t, y, mask = (np.asarray(v) for v in (rows.t, rows.y, rows.mask))
        u = np.zeros((len(t), body.inputs.size))
        u[:, body.inputs.stored["body_rate"]] = np.asarray(rows.u)[:, n:]
    free = ~_is_saturated(signal, t, airframe)
    if free.sum() < 2:
        raise ExcitationError(
            f"{flight.source}: a rotor was at its limit in all of the time in the air; fly more gently"
        )
    samples = Samples(
        *(
            jnp.asarray(v)
            for v in (t[free], np.diff(t[free], prepend=t[free][0]), u[free], y[free], mask[free])
        )
    )
    share = 1.0 - float(free.mean())
    commands = _commands(prepared, signal).within(float(t[0]) - _BEFORE, float(t[-1]))
    return FlightRecord(prepared.name, samples, commands), share


def _mean_rate(rate: Signal, t: Float[np.ndarray, " n"]) -> Float[np.ndarray, "n 3"]:
    """Mean body rate between each of its own stamps and the one before, rad/s."""
    previous = rate.times[np.clip(np.searchsorted(rate.times, t) - 1, 0, None)]
    angle = integral(t, rate.times, rate.values) - integral(previous, rate.times, rate.values)
    step = (t - previous)[:, None]
    return np.where(
        step > 0.0, angle / np.where(step > 0.0, step, 1.0), interpolate_linear(t, rate.times, rate.values)
    )


def _commands(prepared: PreparedFlight, signal: Signal) -> RotorCommands:
    """Commands of the rotors, as the fit takes them. signal: as logged; smoothed speeds hold, each until the next."""
    flight, airframe = prepared.commanded, prepared.airframe
    if prepared.is_averaged:
        curve = airframe.thrust_curve if signal.name == "rotor_command" else None
        signal = averaged_commands(signal, curve, 2 * round(0.5 * AVERAGE * signal.rate) + 1)
    if signal.name == "rotor_speed" and prepared.speeds is not None:
        t, values = signal.times, signal.values
    else:
        t, values = command_steps(flight, signal)
    if signal.name == "rotor_speed":
        return RotorCommands(t, np.abs(values) * values, np.ones(len(t)))
    if signal.name == "rotor_thrust":
        return RotorCommands(t, values, np.ones(len(t)))
    voltage = None
    if "battery_voltage" in flight:
        battery = flight["battery_voltage"]
        # a command meets the voltage of the time at which it acts
        acting = t + prior_value(airframe, "command_delay")[0]
        voltage = np.interp(acting, battery.times, battery.values[:, 0])
    return rotor_model(airframe).commands(t, values, voltage)


def _is_saturated(signal: Signal, t: Float[np.ndarray, " n"], airframe: Airframe) -> Bool[np.ndarray, " n"]:
    """Rows in which a rotor is commanded to its limit, or was a moment ago."""
    if signal.name != "rotor_command":
        return np.zeros(len(t), bool)
    delay = _SETTLED * airframe.number("motor_time_constant", MOTOR_LAG)
    saturated_times = signal.times[(signal.values >= SATURATED).any(axis=1)]
    last = np.searchsorted(saturated_times, t, side="right") - 1
    return (
        (last >= 0) & (t - saturated_times[np.maximum(last, 0)] < delay)
        if len(saturated_times)
        else np.zeros(len(t), bool)
    )
