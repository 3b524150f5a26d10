"""Training rows of flights: rotor thrusts, at times at which all states were measured.

The residual depends on rotor thrusts. Thrusts follow commands with the motor lag tau of the airframe; over a row of length h
with constant command, exactly,

    gamma(h) = gamma_c + (gamma(0) - gamma_c) e^(-h/tau),        mean = gamma_c + (gamma(0) - gamma_c) (1 - e^(-h/tau)) tau/h

The mean is the thrust of the row. After a gap, thrusts are assumed to be settled. With a command at its limit, the thrust is
unknown: these rows, and those of the following five time constants, are excluded.
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
from rotorid.identification.grey_box.free_flight import select_rows
from rotorid.logs.flight import Flight, Signal
from rotorid.models.airframe.airframe import Airframe
from rotorid.models.multirotor.rigid import RigidMultirotor, RotorInput, rigid_multirotor
from rotorid.models.system import parameter_values
from rotorid.signals.airborne import airborne_intervals
from rotorid.signals.samples import Samples
from rotorid.signals.sampling import check_finite, check_rotors_run, grid_rate, sample
from rotorid.workflows.wrench.observe import with_rotors, wrench_system

LEAST: Final = 2.0
"""Shortest airborne time with all states measured, s."""

_JITTER: Final = 1.5  # of the median step: a longer one is a gap
_SETTLED: Final = 5.0  # time constants after which a thrust is settled
_STATES: Final = ("attitude", "velocity", "body_rate")


@dataclasses.dataclass(frozen=True)
class LearningRows:
    """Training rows of a flight.

    name: of its log. samples: of a System of `system_of`. rotor_input: rotor signal of the log; for commands, samples have
    the thrusts that follow from them. seconds: of contiguous rows. rate: Hz. saturated: excluded time with a command at
    its limit, s.
    """

    name: str
    samples: Samples
    rotor_input: RotorInput
    seconds: float
    rate: float
    saturated: float = 0.0

    def only(self, mask: Bool[np.ndarray, " n"]) -> LearningRows:
        """The rows of a mask."""
        (samples,) = select_rows([self.samples], [mask])
        return dataclasses.replace(self, samples=samples, seconds=_seconds(np.asarray(samples.dt)))


def system_of(airframe: Airframe, rotor_input: RotorInput) -> RigidMultirotor:
    """The System of training rows; for commands, that with thrusts as inputs."""
    return rigid_multirotor(airframe, "rotor_thrust" if rotor_input == "rotor_command" else rotor_input)


def learning_rows(flight: Flight, airframe: Airframe) -> LearningRows:
    """Sample the airborne parts of a flight at the rate of its slowest state.

    Args:
        flight: with attitude, velocity, body rate and a rotor signal.
        airframe: its thrust curve and motor lag convert commands to thrusts.
    Raises:
        SignalError: a signal is missing or not finite, or no rotor turns.
        AirframeError: the airframe has another number of rotors than the log.
        ExcitationError: less than `LEAST` remains.
    """
    flight = with_rotors(flight, airframe)
    logged = wrench_system(flight, airframe)
    missing = [name for name in _STATES if name not in flight]
    if missing:
        raise SignalError(
            f"{flight.source}: the log has no {' and no '.join(missing)}, which learning a model needs"
        )
    flight = _with_position(flight)
    check_finite(flight, (*logged.inputs, *_STATES, "position"))
    check_rotors_run(flight, logged.rotor_input)
    rate = min(
        grid_rate(flight, logged.inputs, logged.outputs),
        *(flight[name].rate for name in (*_STATES, "position")),
    )
    spans = None if flight.format == "simulation" else airborne_intervals(flight)
    samples = sample(flight, logged.inputs, logged.outputs, spans=spans, rate=rate)
    saturated = 0.0
    if logged.lags:
        samples, free = _thrusts(samples, logged)
        saturated = float(np.sum(np.asarray(samples.dt)[~free]))
        (samples,) = select_rows([samples], [free])
    left = _seconds(np.asarray(samples.dt), _whole(samples, logged))
    if left < LEAST:
        raise ExcitationError(
            f"{flight.source}: {left:.2g} s in the air with all states measured; at least {LEAST:g} s are needed"
        )
    return LearningRows(flight.source.name, samples, logged.rotor_input, left, rate, saturated)


def at_centre_of_mass(system: RigidMultirotor, samples: Samples, c: Float[np.ndarray, " 3"]) -> Samples:
    """Move measured position and velocity to the centre of mass: p + R c and v + R (omega x c).

    Args:
        system: of the samples.
        samples: measured at the origin of the body frame.
        c: centre of mass, m, body frame.
    """
    if not np.any(c):
        return samples
    outputs, centre = system.outputs, jnp.asarray(c)

    def one(y: Float[Array, " outputs"]) -> Float[Array, " outputs"]:
        measured = outputs.unpack(y)
        q = measured["attitude"]
        at_centre = {
            "position": measured["position"] + rotations.rotate(q, centre),
            "velocity": measured["velocity"]
            + rotations.rotate(q, rotations.cross(measured["body_rate"], centre)),
        }
        return outputs.pack({**measured, **at_centre})

    return dataclasses.replace(samples, y=jax.vmap(one)(jnp.asarray(samples.y)))


def _with_position(flight: Flight) -> Flight:
    """Integrate the velocity to a position where none was logged. No force depends on it."""
    if "position" in flight:
        return flight
    v = flight["velocity"]
    steps = np.diff(v.times)[:, None] * 0.5 * (v.values[1:] + v.values[:-1])
    values = np.concatenate([np.zeros((1, 3)), np.cumsum(steps, axis=0)])
    return flight.with_signals(Signal("position", v.times, values, f"{v.source}, integrated"))


def _thrusts(samples: Samples, system: RigidMultirotor) -> tuple[Samples, Bool[np.ndarray, " n"]]:
    """Samples with commands replaced by thrusts (N, before the thrust scale), and a mask of the valid rows."""
    p = parameter_values(system, thrust_scale=1.0)
    lag = float(p["motor_time_constant"])
    inputs = jax.vmap(system.inputs.unpack)(jnp.asarray(samples.u))
    commanded = np.asarray(jax.vmap(lambda u: system.known_thrust(u, p))(inputs))
    holds = np.asarray(jax.vmap(lambda u: jnp.asarray(system.holds(u)))(inputs))
    dt = np.asarray(samples.dt)
    usual = float(np.median(dt[dt > 0])) if np.any(dt > 0) else 0.0
    thrust, mean, free = commanded[0], np.empty_like(commanded), np.ones(len(dt), bool)
    since = np.inf
    for k, (target, h, held) in enumerate(zip(commanded, dt, holds, strict=True)):
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
    """Time of contiguous rows, s."""
    if not np.any(dt > 0):
        return 0.0
    follows = (dt > 0) & (dt < _JITTER * np.median(dt[dt > 0]))
    return float(np.sum(dt[follows & whole] if whole is not None else dt[follows]))
