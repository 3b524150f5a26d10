"""Flights as an identification takes them: what their logs know of rotors, attitude, velocity and body rate decides its model.

A flight without attitude and velocity is one of a body that turns, and whose specific force is that of its rotors. A flight
whose rotor commands were logged too rarely to tell torques, or which knows only what its controller asked for, is one of a body
that turns as its gyroscope says: it tells mass, thrust and drag, and neither inertia nor motor lag. Several flights are fitted
together, with what all of them know.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float

from rotorid.errors import AirframeError, ExcitationError, SignalError
from rotorid.geometry.spaces import Space, Vector
from rotorid.identification.flown_fit import Flown, body_of
from rotorid.identification.rotor_drive import Commands
from rotorid.identification.rotor_thrusts import rotors_of
from rotorid.logs.flight import Flight, Signal
from rotorid.models.airframe import MOTOR_LAG, Airframe
from rotorid.models.flown_body import FlownBody
from rotorid.models.mixing import with_asked_thrusts
from rotorid.models.multirotor_drag import SATURATED
from rotorid.signals.airborne import airborne, not_flown
from rotorid.signals.clock_rows import clock_rows, row_times
from rotorid.signals.one_clock import on_one_clock
from rotorid.signals.samples import Samples
from rotorid.signals.sampling import grid_rate, grid_times, sample, with_reconstructed_commands
from rotorid.signals.series import Intervals, between, integral
from rotorid.signals.slow_commands import given
from rotorid.signals.usable import check_finite, check_turning

FAST = 50.0
"""Hz of rotor commands from which on they tell torques."""

_BEFORE = 2.0  # s of commands before the first row, in which the rotors settle
_OFTENER = 1.5  # times
_SETTLED = 4.0  # time constants of a motor until a limited rotor counts again


@dataclasses.dataclass(frozen=True)
class Prepared:
    """Flights that are fitted together. body: what they can show. limited: share of each flight's rows in which a rotor was at
    its limit, which are left out. seconds: what is left of each."""

    flights: tuple[Flown, ...]
    body: FlownBody
    limited: tuple[float, ...]
    seconds: tuple[float, ...]


@dataclasses.dataclass(frozen=True)
class Known:
    """What logs know together. rotors: the signal that tells them. placed: attitude and velocity. turns: torques."""

    rotors: str
    placed: bool
    turns: bool

    @property
    def lags(self) -> bool:
        """Whether the rotors follow what is known of them with a lag."""
        return self.rotors != "rotor_speed"


def known_of(flights: Sequence[Flight], airframe: Airframe) -> Known:
    """What these logs know of what a model is identified from.

    Raises SignalError where a signal is missing, rotors do not fit or logs know them in different ways, AirframeError where the
    airframe lacks what the rotors need.
    """
    if not airframe.rotors:
        raise AirframeError(f"{airframe.source}: no [[rotor]]; add one for each rotor, with its position")
    found = [_knows(flight, airframe) for flight in flights]
    kinds = {kind for kind, _, _ in found}
    if len(kinds) > 1:
        raise SignalError(
            f"these logs know their rotors in different ways ({', '.join(sorted(kinds))}): identify each kind by itself"
        )
    placed, turns = all(p for _, p, _ in found), all(t for _, _, t in found)
    if not (placed or turns):
        raise SignalError(
            f"{flights[0].source}: neither attitude and velocity, nor rotor commands of {FAST:.0f} Hz with body rates, in "
            "all of these logs; log one of both"
        )
    return Known(kinds.pop(), placed, turns)


def prepared(
    flights: Sequence[Flight],
    airframe: Airframe,
    free: Sequence[str],
    known: Known,
    spans: Sequence[Intervals] | None = None,
) -> Prepared:
    """Flights of one vehicle for a fit of these parameters. spans: of each the parts to use, s; None: all its time in the air.

    Raises SignalError where a signal has numbers that cannot be, AirframeError where the airframe lacks what a body needs,
    ExcitationError where one did not fly; each names the log.
    """
    body = body_of(airframe, free, known.placed, known.turns)
    spans = [flying(flight) for flight in flights] if spans is None else spans
    found = [
        _flown(flight, airframe, body, known.rotors, part)
        for flight, part in zip(flights, spans, strict=True)
    ]
    return Prepared(
        tuple(f for f, _ in found),
        body,
        tuple(share for _, share in found),
        tuple(float(len(f.samples.t) * np.median(np.asarray(f.samples.dt))) for f, _ in found),
    )


def _knows(flight: Flight, airframe: Airframe) -> tuple[str, bool, bool]:
    """By what signal a log knows its rotors, whether it has attitude and velocity, and whether torques follow from it."""
    logged, flight = flight, with_asked_thrusts(flight, airframe, lagged=False)
    kinds = {
        "rotor_command": airframe.thrust_curve is not None,
        "rotor_thrust": True,
        "rotor_speed": airframe.get("thrust_coefficient") is not None,
    }
    there = [name for name in kinds if name in flight]
    usable = [name for name in there if kinds[name]]
    if not there:
        has = ", ".join(sorted(flight.signals)) or "nothing"
        cut = f"; {flight.cut}: copy it again" if flight.cut else ""
        raise SignalError(
            f"{flight.source}: no {', '.join(kinds)} in this log, which a model is identified from (it has {has}){cut}"
        )
    if not usable:
        needs = "[thrust_curve]" if there[0] == "rotor_command" else "[thrust_coefficient]"
        raise AirframeError(f"{airframe.source}: no {needs}, and this log gives {there[0]}; add a guess")
    if flight[usable[0]].values.shape[1] != len(airframe.rotors):
        raise SignalError(
            f"{flight.source}: {flight[usable[0]].values.shape[1]} columns of {usable[0]}, and {airframe.source} has "
            f"{len(airframe.rotors)} [[rotor]]; give one a rotor, in the log's order"
        )
    if "specific_force" not in flight or "body_rate" not in flight:
        missing = [n for n in ("body_rate", "specific_force") if n not in flight]
        if "attitude" not in flight or "velocity" not in flight or "body_rate" in missing:
            raise SignalError(f"{flight.source}: no {' and no '.join(missing)} in this log; log them")
    placed = "attitude" in flight and "velocity" in flight
    return usable[0], placed, usable[0] in logged and flight[usable[0]].rate >= FAST


def flying(flight: Flight) -> Intervals:
    """When a flight is in the air, s. Raises ExcitationError where it never is."""
    found = [(flight.start, flight.end)] if flight.format == "simulation" else airborne(flight)
    if not found:
        raise ExcitationError(not_flown(flight))
    return found


def _flown(
    flight: Flight, airframe: Airframe, body: FlownBody, rotors: str, spans: Intervals
) -> tuple[Flown, float]:
    """The rows of a flight in these parts, without those in which a rotor is or just was at its limit; and their share."""
    flight = with_asked_thrusts(flight, airframe, lagged=False)
    if rotors == "rotor_command":
        flight = with_reconstructed_commands(flight)
    signal = flight[rotors]
    n = len(airframe.rotors)
    check_finite(flight, (rotors, *body.outputs))
    check_turning(flight, rotors)
    inputs = Space.of(**{rotors: Vector(n)})
    if not body.turns:
        inputs = Space((*inputs.blocks, ("body_rate", Vector(3, "rad/s"))))
    rate = grid_rate(flight, inputs, body.outputs)
    by_clock = body.turns
    if body.placed:
        slower = max(flight["attitude"].rate, flight["velocity"].rate)
        # forces that were measured more often than the motion are not averaged to its rows: rotors change in between
        by_clock |= "specific_force" in flight and FAST >= flight["body_rate"].rate > _OFTENER * slower
        rate = rate if body.turns else min(rate, slower)
        at = row_times(flight["body_rate"]) if by_clock else grid_times(flight, inputs, rate)
        flight = on_one_clock(flight, ("attitude", "velocity"), at)
    if by_clock:
        t, y, mask = clock_rows(flight, "body_rate", body.outputs, spans)
        inside = (t > signal.times[0]) & (t <= signal.times[-1])
        t, y, mask = (v[inside] for v in (t, y, mask))
        u = np.zeros((len(t), body.inputs.size))
        if not body.turns:
            u[:, body.inputs.stored["body_rate"]] = _mean_rate(flight["body_rate"], t)
    else:
        rows = sample(flight, inputs, body.outputs, spans=spans, rate=rate)
        t, y, mask = (np.asarray(v) for v in (rows.t, rows.y, rows.mask))
        u = np.zeros((len(t), body.inputs.size))
        u[:, body.inputs.stored["body_rate"]] = np.asarray(rows.u)[:, n:]
    free = ~_limited(signal.times, signal.values, t, airframe, rotors)
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
    commands = _commands(flight, airframe, rotors).between(float(t[0]) - _BEFORE, float(t[-1]))
    return Flown(flight.source.name, samples, commands), share


def _mean_rate(rate: Signal, t: Float[np.ndarray, " n"]) -> Float[np.ndarray, "n 3"]:
    """Mean body rate between each of its own stamps and the one before, rad/s."""
    before = rate.times[np.clip(np.searchsorted(rate.times, t) - 1, 0, None)]
    turned = integral(t, rate.times, rate.values) - integral(before, rate.times, rate.values)
    step = (t - before)[:, None]
    return np.where(step > 0.0, turned / np.where(step > 0.0, step, 1.0), between(t, rate.times, rate.values))


def _commands(flight: Flight, airframe: Airframe, rotors: str) -> Commands:
    t, asked = given(flight, flight[rotors])
    if rotors == "rotor_speed":
        return Commands(t, np.abs(asked) * asked, np.ones(len(t)))
    if rotors == "rotor_thrust":
        return Commands(t, asked, np.ones(len(t)))
    voltage = None
    if "battery_voltage" in flight:
        battery = flight["battery_voltage"]
        voltage = np.interp(t, battery.times, battery.values[:, 0])
    return rotors_of(airframe).commands(t, asked, voltage)


def _limited(
    times: Float[np.ndarray, " m"],
    values: Float[np.ndarray, "m rotors"],
    t: Float[np.ndarray, " n"],
    airframe: Airframe,
    rotors: str,
) -> Bool[np.ndarray, " n"]:
    """Rows in which a rotor is commanded to its limit, or was a moment ago."""
    if rotors != "rotor_command":
        return np.zeros(len(t), bool)
    wait = _SETTLED * airframe.number("motor_time_constant", MOTOR_LAG)
    full = times[(values >= SATURATED).any(axis=1)]
    last = np.searchsorted(full, t, side="right") - 1
    return (last >= 0) & (t - full[np.maximum(last, 0)] < wait) if len(full) else np.zeros(len(t), bool)
