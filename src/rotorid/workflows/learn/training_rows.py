"""Training rows of flights: rotor thrusts, at times at which all states were measured.

The residual depends on rotor thrusts. Thrusts follow commands with the motor lag tau of the airframe; over a row of
length h with constant command, exactly,

    gamma(h) = gamma_c + (gamma(0) - gamma_c) e^(-h/tau),        mean = gamma_c + (gamma(0) - gamma_c) (1 - e^(-h/tau)) tau/h

The mean is the thrust of the row. After a gap, thrusts are assumed to be settled. The thrust is unknown while a command
is at its limit: these rows, and those of the following five time constants, are excluded.
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
from rotorid.models.system import System, parameter_values
from rotorid.signals.airborne import airborne_intervals
from rotorid.signals.samples import Samples
from rotorid.signals.sampling import check_finite, check_rotors_run, grid_rate, sample
from rotorid.workflows.wrench.observe import with_rotors, wrench_system

MIN_DURATION: Final = 2.0
"""Shortest airborne time with all states measured, s."""

_MAX_STEP: Final = 1.5  # median steps; a longer step is a gap
_SETTLING: Final = 5.0  # time constants after which a thrust is settled
_STATES: Final = ("attitude", "velocity", "body_rate")


@dataclasses.dataclass(frozen=True)
class LearningRows:
    """Training rows of a flight.

    name: of its log. samples: of a System of `system_of`. rotor_input: rotor signal of the log; commands are converted
    to thrusts in the samples. duration: of contiguous rows, s. rate: Hz. saturation_duration: excluded time with a
    command at its limit, s.
    """

    name: str
    samples: Samples
    rotor_input: RotorInput
    duration: float
    rate: float
    saturation_duration: float = 0.0

    def select(self, mask: Bool[np.ndarray, " n"]) -> LearningRows:
        """The rows of a mask."""
        (samples,) = select_rows([self.samples], [mask])
        return dataclasses.replace(self, samples=samples, duration=duration_of_rows(np.asarray(samples.dt)))


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
        ExcitationError: less than `MIN_DURATION` remains.
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
    saturation_duration = 0.0
    if logged.lags:
        samples, is_valid = _thrusts(samples, logged)
        saturation_duration = float(np.sum(np.asarray(samples.dt)[~is_valid]))
        (samples,) = select_rows([samples], [is_valid])
    duration = duration_of_rows(np.asarray(samples.dt), _is_fully_measured(samples, logged))
    if duration < MIN_DURATION:
        raise ExcitationError(
            f"{flight.source}: {duration:.2g} s in the air with all states measured; at least {MIN_DURATION:g} s are needed"
        )
    return LearningRows(flight.source.name, samples, logged.rotor_input, duration, rate, saturation_duration)


def at_centre_of_mass(system: System, samples: Samples, c: Float[np.ndarray, " 3"]) -> Samples:
    """Transform measured position and velocity to the centre of mass: p + R c and v + R (omega x c).

    Args:
        system: of the samples.
        samples: measured at the origin of the body frame.
        c: centre of mass, m, body frame.
    """
    if not np.any(c):
        return samples
    outputs, centre = system.outputs, jnp.asarray(c)

    def transform(y: Float[Array, " outputs"]) -> Float[Array, " outputs"]:
        measured = outputs.unpack(y)
        q = measured["attitude"]
        at_centre = {
            "position": measured["position"] + rotations.rotate(q, centre),
            "velocity": measured["velocity"]
            + rotations.rotate(q, rotations.cross(measured["body_rate"], centre)),
        }
        return outputs.pack({**measured, **at_centre})

    return dataclasses.replace(samples, y=jax.vmap(transform)(jnp.asarray(samples.y)))


def _with_position(flight: Flight) -> Flight:
    """Integrate the velocity if no position was logged. No force depends on the position."""
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
    median_step = float(np.median(dt[dt > 0])) if np.any(dt > 0) else 0.0
    thrust, mean, is_valid = commanded[0], np.empty_like(commanded), np.ones(len(dt), bool)
    time_since_limit = np.inf
    for k, (target, h, is_below_limit) in enumerate(zip(commanded, dt, holds, strict=True)):
        if not 0.0 < h < _MAX_STEP * median_step:
            thrust = target
        decay = np.exp(-h / lag)
        mean[k] = target + (thrust - target) * ((1.0 - decay) * lag / h if h > 0 else 1.0)
        thrust = target + (thrust - target) * decay
        time_since_limit = time_since_limit + h if is_below_limit else 0.0
        is_valid[k] = time_since_limit > _SETTLING * lag
    return dataclasses.replace(samples, u=jnp.asarray(mean)), is_valid


def _is_fully_measured(samples: Samples, system: RigidMultirotor) -> Bool[np.ndarray, " n"]:
    """Rows in which position and all states of `_STATES` are measured."""
    blocks = [system.outputs.tangent[name] for name in (*_STATES, "position")]
    return np.all([np.asarray(samples.mask)[:, block].all(axis=1) for block in blocks], axis=0)


def duration_of_rows(dt: Float[np.ndarray, " n"], is_measured: Bool[np.ndarray, " n"] | None = None) -> float:
    """Duration of contiguous rows, s. is_measured: mask of the rows to count, None for all."""
    if not np.any(dt > 0):
        return 0.0
    follows = (dt > 0) & (dt < _MAX_STEP * np.median(dt[dt > 0]))
    return float(np.sum(dt[follows & is_measured] if is_measured is not None else dt[follows]))
