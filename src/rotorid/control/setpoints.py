"""Set points of a flight as functions of time: where to go, and what to add on top so that a flight tells more.

    p(t) = start + sum of moves(t),    psi(t) = yaw + sum of turns(t),    e(t) = sum of excitations(t)

Moves are rounded to a continuous acceleration, so that velocity and acceleration are their derivatives, taken exactly. An
excitation adds to one channel of the controller: to the tilt or the body rate that it asks for, or to its thrust. All
numbers are leaves of a pytree: set points of one structure map, compile once, and differentiate by what they are made of.

    name      channel                  unit
    roll      0, 1: tilt asked for     rad
    rate_x    2, 3, 4: body rate       rad/s
    thrust    5: collective            share of the weight

References: T. Flash, N. Hogan, The coordination of arm movements, J. Neurosci. 5 (1985), for the rounding; E. A. Morelli,
Multiple input design for real-time parameter estimation in the frequency domain, IFAC SYSID 2003, for multisines.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from rotorid.errors import SettingError

CHANNELS = ("roll", "pitch", "rate_x", "rate_y", "rate_z", "thrust")
"""What an excitation may add to."""

_FADE = 0.25  # s, in which an excitation begins and ends

Number = Float[Array, ""] | float
Place = Float[Array, " 3"] | tuple[float, float, float]


class Move(eqx.Module):
    """From rest to rest along a straight line, with minimum jerk: by (m, world) from time start (s) on, in duration s."""

    start: Number
    duration: Number
    by: Place
    turn: Number = 0.0
    """Yaw that is turned meanwhile, rad."""

    def __call__(self, t: Float[Array, ""]) -> tuple[Float[Array, " 3"], Float[Array, ""]]:
        share = _rounded((t - self.start) / self.duration)
        return share * jnp.asarray(self.by), share * self.turn


class Lissajous(eqx.Module):
    """Sinusoids about the place (m, world) and the yaw (rad), from time start (s) on for duration s: circles, figures of eight.

    amplitude, period (s), phase (rad): of x, y and z. ramp: s in which they grow at the start, and fade at the end.
    """

    start: Number
    duration: Number
    amplitude: Place
    period: Place
    phase: Place = (0.0, 0.0, 0.0)
    ramp: Number = 3.0
    yaw_amplitude: Number = 0.0
    yaw_period: Number = 10.0

    def __call__(self, t: Float[Array, ""]) -> tuple[Float[Array, " 3"], Float[Array, ""]]:
        s = t - self.start
        size = _rounded(s / self.ramp) * _rounded((self.duration - s) / self.ramp)
        angle = 2.0 * jnp.pi * s / jnp.asarray(self.period) + jnp.asarray(self.phase)
        yaw = self.yaw_amplitude * jnp.sin(2.0 * jnp.pi * s / self.yaw_period)
        return size * jnp.asarray(self.amplitude) * jnp.sin(angle), size * yaw


class Chirp(eqx.Module):
    """amplitude sin(phase), whose frequency goes from low to high (Hz) in duration s."""

    channel: str = eqx.field(static=True)
    amplitude: Number
    start: Number
    duration: Number
    low: Number
    high: Number

    def __call__(self, t: Float[Array, ""]) -> Float[Array, ""]:
        s = t - self.start
        phase = 2.0 * jnp.pi * (self.low * s + 0.5 * (self.high - self.low) / self.duration * s * s)
        return self.amplitude * _faded(s, self.duration) * jnp.sin(phase)


class Doublet(eqx.Module):
    """amplitude for width s from start on, then -amplitude for width s."""

    channel: str = eqx.field(static=True)
    amplitude: Number
    start: Number
    width: Number

    def __call__(self, t: Float[Array, ""]) -> Float[Array, ""]:
        s = t - self.start
        sign = jnp.where(s < self.width, 1.0, -1.0)
        return self.amplitude * jnp.where((s >= 0.0) & (s < 2.0 * self.width), sign, 0.0)


class Multisine(eqx.Module):
    """Sinusoids together: amplitude / sqrt(n) sum_k sin(2 pi f_k (t - start) + phase_k), f in Hz, for duration s."""

    channel: str = eqx.field(static=True)
    amplitude: Number
    start: Number
    duration: Number
    frequencies: Float[Array, " n"] | tuple[float, ...]
    phases: Float[Array, " n"] | tuple[float, ...]

    def __call__(self, t: Float[Array, ""]) -> Float[Array, ""]:
        s = t - self.start
        f, phase = jnp.asarray(self.frequencies), jnp.asarray(self.phases)
        total = jnp.sum(jnp.sin(2.0 * jnp.pi * f * s + phase)) / jnp.sqrt(1.0 * f.size)
        return self.amplitude * _faded(s, self.duration) * total


Excitation = Chirp | Doublet | Multisine


def schroeder(frequencies: Sequence[float]) -> tuple[float, ...]:
    """Phases in rad at which a multisine of these frequencies stays low (M. Schroeder, IEEE Trans. Inf. Theory 16, 1970)."""
    n = len(frequencies)
    return tuple(float(-np.pi * k * (k + 1) / n % (2.0 * np.pi)) for k in range(n))


class Setpoint(NamedTuple):
    """Set points at some times. position (m), velocity (m/s), acceleration (m/s^2): world. yaw: rad, yaw_rate: rad/s.
    excitation: by `CHANNELS`."""

    position: Float[Array, "*n 3"]
    velocity: Float[Array, "*n 3"]
    acceleration: Float[Array, "*n 3"]
    yaw: Float[Array, "*n"]
    yaw_rate: Float[Array, "*n"]
    excitation: Float[Array, "*n 6"]


class Setpoints(eqx.Module):
    """start: place where the flight begins and rests (m, world). yaw: rad, likewise. moves and excitations add up."""

    start: Place = (0.0, 0.0, 3.0)
    moves: tuple[Move | Lissajous, ...] = ()
    excitations: tuple[Excitation, ...] = ()
    yaw: Number = 0.0

    def __check_init__(self) -> None:
        for excitation in self.excitations:
            if excitation.channel not in CHANNELS:
                raise SettingError(
                    f"no channel {excitation.channel!r} to excite; there are {', '.join(CHANNELS)}"
                )

    def at(self, t: Float[Array, " n"]) -> Setpoint:
        """The set points at times t in s."""
        return jax.vmap(self._at)(jnp.asarray(t))

    def _at(self, t: Float[Array, ""]) -> Setpoint:
        one = jnp.ones_like(t)

        def first(t):
            return jax.jvp(self._path, (t,), (one,))

        ((position, yaw), (velocity, yaw_rate)), (_, (acceleration, _)) = jax.jvp(first, (t,), (one,))
        added = [jnp.zeros_like(t) for _ in CHANNELS]
        for excitation in self.excitations:
            added[CHANNELS.index(excitation.channel)] += excitation(t)
        return Setpoint(position, velocity, acceleration, yaw, yaw_rate, jnp.stack(added))

    def _path(self, t: Float[Array, ""]) -> tuple[Float[Array, " 3"], Float[Array, ""]]:
        position, yaw = jnp.asarray(self.start, t.dtype) + 0.0 * t, self.yaw + 0.0 * t
        for move in self.moves:
            by, turn = move(t)
            position, yaw = position + by, yaw + turn
        return position, yaw


def _rounded(s: Float[Array, ""]) -> Float[Array, ""]:
    """From 0 to 1 as s does, with minimum jerk: 10 s^3 - 15 s^4 + 6 s^5."""
    s = jnp.clip(s, 0.0, 1.0)
    return s * s * s * (10.0 + s * (6.0 * s - 15.0))


def _faded(s: Float[Array, ""], duration: Number) -> Float[Array, ""]:
    """1 from 0 to duration, rounded at both ends, 0 elsewhere."""
    return _rounded(s / _FADE) * _rounded((duration - s) / _FADE)
