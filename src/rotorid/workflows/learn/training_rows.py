"""Flights to the rows that a model is learned from: what the rotors pulled, at times at which every state was measured.

A residual takes the rotors' thrusts, which commands do not tell at once. The motors follow each command with the airframe's
lag tau; over a row of length h in which the command is held, exactly,

    gamma(h) = gamma_c + (gamma(0) - gamma_c) e^(-h/tau),        mean = gamma_c + (gamma(0) - gamma_c) (1 - e^(-h/tau)) tau/h

The mean is what acted in the row. After a gap the rotors are taken as settled. Where a command was at its limit no thrust curve
tells what a rotor gave: these rows, and the five time constants that follow, are left out.
"""

from __future__ import annotations

import dataclasses
from typing import Final

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from rotorid.errors import ExcitationError, SignalError
from rotorid.geometry import rotations
from rotorid.identification.free_flight import keep
from rotorid.logs.flight import Flight, Signal
from rotorid.models.airframe import Airframe
from rotorid.models.rigid_multirotor import RigidMultirotor, RotorInput, rigid_multirotor
from rotorid.models.system import parameter_values
from rotorid.results.wrench import with_rotors, wrench_system
from rotorid.signals.airborne import airborne
from rotorid.signals.samples import Samples
from rotorid.signals.sampling import grid_rate, sample
from rotorid.signals.usable import check_finite, check_turning

LEAST: Final = 2.0
"""Seconds in the air, with every state measured, that a flight must have."""

_JITTER: Final = 1.5  # times the usual step: a longer one is a gap
_SETTLED: Final = 5.0  # time constants after which a rotor follows its command
_STATES: Final = ("attitude", "velocity", "body_rate")


@dataclasses.dataclass(frozen=True)
class LearningRows:
    """A flight as it is learned from. name: of its log. samples: of a System of `system_of`. rotor_input: what the log knows of
    the rotors; samples of commands hold the thrusts that these gave. seconds: in rows that follow one another. rate: Hz.
    limited: s that were left out because a command was at its limit."""

    name: str
    samples: Samples
    rotor_input: RotorInput
    seconds: float
    rate: float
    limited: float = 0.0

    def only(self, mask: Bool[np.ndarray, " n"]) -> LearningRows:
        """These rows alone."""
        (samples,) = keep([self.samples], [mask])
        return dataclasses.replace(self, samples=samples, seconds=_seconds(np.asarray(samples.dt)))


def system_of(airframe: Airframe, rotor_input: RotorInput) -> RigidMultirotor:
    """The System that learns from such rows: of commands, that of the thrusts which they gave."""
    return rigid_multirotor(airframe, "rotor_thrust" if rotor_input == "rotor_command" else rotor_input)


def learning_rows(flight: Flight, airframe: Airframe) -> LearningRows:
    """The airborne rows of a flight, as often as its rarest state was measured.

    Raises SignalError where a signal is missing, not finite, or no rotor turns, AirframeError where the airframe has other
    rotors than the log, ExcitationError where less than `LEAST` is left; each names the log.
    """
    flight = with_rotors(flight, airframe)
    logged = wrench_system(flight, airframe)
    missing = [name for name in _STATES if name not in flight]
    if missing:
        raise SignalError(
            f"{flight.source}: no {' and no '.join(missing)} in this log, which a model is learned from"
        )
    flight = _with_position(flight)
    check_finite(flight, (*logged.inputs, *_STATES, "position"))
    check_turning(flight, logged.rotor_input)
    rate = min(
        grid_rate(flight, logged.inputs, logged.outputs),
        *(flight[name].rate for name in (*_STATES, "position")),
    )
    spans = None if flight.format == "simulation" else airborne(flight)
    samples = sample(flight, logged.inputs, logged.outputs, spans=spans, rate=rate)
    limited = 0.0
    if logged.lags:
        samples, free = _thrusts(samples, logged)
        limited = float(np.sum(np.asarray(samples.dt)[~free]))
        (samples,) = keep([samples], [free])
    left = _seconds(np.asarray(samples.dt), _whole(samples, logged))
    if left < LEAST:
        raise ExcitationError(
            f"{flight.source}: {left:.2g} s in the air in which every state was measured; a flight to learn from has "
            f"{LEAST:g} s or more"
        )
    return LearningRows(flight.source.name, samples, logged.rotor_input, left, rate, limited)


def at_centre_of_mass(system: RigidMultirotor, samples: Samples, c: Float[np.ndarray, " 3"]) -> Samples:
    """Samples whose position and velocity are those of the centre of mass, c (m, body) away from where they were measured:
    p + R c and v + R (omega x c)."""
    if not np.any(c):
        return samples
    outputs, centre = system.outputs, jnp.asarray(c)

    def one(y: Float[Array, " outputs"]) -> Float[Array, " outputs"]:
        seen = outputs.unpack(y)
        q = seen["attitude"]
        moved = {
            "position": seen["position"] + rotations.rotate(q, centre),
            "velocity": seen["velocity"] + rotations.rotate(q, rotations.cross(seen["body_rate"], centre)),
        }
        return outputs.pack({**seen, **moved})

    return dataclasses.replace(samples, y=jax.vmap(one)(jnp.asarray(samples.y)))


def _with_position(flight: Flight) -> Flight:
    """A flight with the position that its velocity leads to, where none was logged. No force depends on it."""
    if "position" in flight:
        return flight
    v = flight["velocity"]
    steps = np.diff(v.times)[:, None] * 0.5 * (v.values[1:] + v.values[:-1])
    values = np.concatenate([np.zeros((1, 3)), np.cumsum(steps, axis=0)])
    return flight.with_signals(Signal("position", v.times, values, f"{v.source}, integrated"))


def _thrusts(samples: Samples, system: RigidMultirotor) -> tuple[Samples, Bool[np.ndarray, " n"]]:
    """Samples of commands as those of the thrusts that they gave, in N before the thrust scale, and the rows that count."""
    p = parameter_values(system, thrust_scale=1.0)
    lag = float(p["motor_time_constant"])
    inputs = jax.vmap(system.inputs.unpack)(jnp.asarray(samples.u))
    asked = np.asarray(jax.vmap(lambda u: system.known_thrust(u, p))(inputs))
    holds = np.asarray(jax.vmap(lambda u: jnp.asarray(system.holds(u)))(inputs))
    dt = np.asarray(samples.dt)
    usual = float(np.median(dt[dt > 0])) if np.any(dt > 0) else 0.0
    thrust, mean, free = asked[0], np.empty_like(asked), np.ones(len(dt), bool)
    since = np.inf
    for k, (target, h, held) in enumerate(zip(asked, dt, holds, strict=True)):
        if not 0.0 < h < _JITTER * usual:
            thrust = target
        left = np.exp(-h / lag)
        mean[k] = target + (thrust - target) * ((1.0 - left) * lag / h if h > 0 else 1.0)
        thrust = target + (thrust - target) * left
        since = since + h if held else 0.0
        free[k] = since > _SETTLED * lag
    return dataclasses.replace(samples, u=jnp.asarray(mean)), free


def _whole(samples: Samples, system: RigidMultirotor) -> Bool[np.ndarray, " n"]:
    places = [system.outputs.tangent[name] for name in (*_STATES, "position")]
    return np.all([np.asarray(samples.mask)[:, place].all(axis=1) for place in places], axis=0)


def _seconds(dt: Float[np.ndarray, " n"], whole: Bool[np.ndarray, " n"] | None = None) -> float:
    """Time in rows that follow one another."""
    if not np.any(dt > 0):
        return 0.0
    follows = (dt > 0) & (dt < _JITTER * np.median(dt[dt > 0]))
    return float(np.sum(dt[follows & whole] if whole is not None else dt[follows]))
