"""Set points of a flight as functions of time, and excitations for identification.

    p(t) = start + sum of moves(t),    psi(t) = yaw + sum of turns(t),    e(t) = sum of excitations(t)

Moves have a continuous acceleration; velocity and acceleration are their exact derivatives. An excitation is added to one
channel of the controller: to the tilt or the body rate set point, or to the thrust. All numbers are leaves of a pytree: set
points of one structure are compiled once, can be mapped, and can be differentiated with respect to their parameters.

    channels           index      excitation of            unit
    roll, pitch        0, 1       tilt set point           rad
    rate_x to rate_z   2, 3, 4    body rate set point      rad/s
    thrust             5          collective thrust        share of the weight

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
"""Channels of the controller that can be excited."""

_FADE = 0.25  # duration of the fade at the start and the end of an excitation, s

Number = Float[Array, ""] | float
Place = Float[Array, " 3"] | tuple[float, float, float]


class Move(eqx.Module):
    """A straight line from rest to rest, with minimum jerk.

    start: time, s. duration: s. by: displacement, m, world frame.
    """

    start: Number
    duration: Number
    by: Place
    turn: Number = 0.0
    """Change of the yaw during the move, rad."""

    def __call__(self, t: Float[Array, ""]) -> tuple[Float[Array, " 3"], Float[Array, ""]]:
        share = _minimum_jerk((t - self.start) / self.duration)
        return share * jnp.asarray(self.by), share * self.turn


class Lissajous(eqx.Module):
    """Sinusoids of position and yaw: circles and figures of eight.

    start: time, s. duration: s. amplitude: of x, y and z, m, world frame. period: of x, y and z, s. phase: of x, y and z,
    rad. ramp: duration of the increase at the start and of the decrease at the end, s. yaw_amplitude: rad. yaw_period: s.
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
        size = _minimum_jerk(s / self.ramp) * _minimum_jerk((self.duration - s) / self.ramp)
        angle = 2.0 * jnp.pi * s / jnp.asarray(self.period) + jnp.asarray(self.phase)
        yaw = self.yaw_amplitude * jnp.sin(2.0 * jnp.pi * s / self.yaw_period)
        return size * jnp.asarray(self.amplitude) * jnp.sin(angle), size * yaw


class Chirp(eqx.Module):
    """A sinusoid whose frequency increases linearly.

    channel: "roll" or "pitch" (tilt, rad), "rate_x", "rate_y" or "rate_z" (body rate, rad/s), or "thrust" (share of the
    weight). amplitude: in the unit of the channel. start: time, s. duration: s. low: frequency at the start, Hz. high:
    frequency at the end, Hz.
    """

    channel: str = eqx.field(static=True)
    amplitude: Number
    start: Number
    duration: Number
    low: Number
    high: Number

    def __call__(self, t: Float[Array, ""]) -> Float[Array, ""]:
        s = t - self.start
        phase = 2.0 * jnp.pi * (self.low * s + 0.5 * (self.high - self.low) / self.duration * s * s)
        return self.amplitude * _fade(s, self.duration) * jnp.sin(phase)


class Doublet(eqx.Module):
    """A pulse of `amplitude`, then one of `-amplitude`.

    channel: "roll" or "pitch" (tilt, rad), "rate_x", "rate_y" or "rate_z" (body rate, rad/s), or "thrust" (share of the
    weight). amplitude: in the unit of the channel. start: time, s. width: duration of each pulse, s.
    """

    channel: str = eqx.field(static=True)
    amplitude: Number
    start: Number
    width: Number

    def __call__(self, t: Float[Array, ""]) -> Float[Array, ""]:
        s = t - self.start
        sign = jnp.where(s < self.width, 1.0, -1.0)
        return self.amplitude * jnp.where((s >= 0.0) & (s < 2.0 * self.width), sign, 0.0)


class Multisine(eqx.Module):
    """A sum of n sinusoids: `a / sqrt(n) sum_k sin(2 pi f_k (t - t_0) + phi_k)`.

    channel: "roll" or "pitch" (tilt, rad), "rate_x", "rate_y" or "rate_z" (body rate, rad/s), or "thrust" (share of the
    weight). amplitude: a, in the unit of the channel. start: t_0, s. duration: s. frequencies: f_k, Hz. phases: phi_k, rad.
    """

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
        return self.amplitude * _fade(s, self.duration) * total


Excitation = Chirp | Doublet | Multisine


def schroeder(frequencies: Sequence[float]) -> tuple[float, ...]:
    """Phases in rad of a multisine with a low peak factor (M. Schroeder, IEEE Trans. Inf. Theory 16, 1970)."""
    n = len(frequencies)
    return tuple(float(-np.pi * k * (k + 1) / n % (2.0 * np.pi)) for k in range(n))


class Setpoint(NamedTuple):
    """Set points at n times.

    position (m), velocity (m/s), acceleration (m/s^2): world frame. yaw: rad. yaw_rate: rad/s. excitation: by `CHANNELS`.
    """

    position: Float[Array, "*n 3"]
    velocity: Float[Array, "*n 3"]
    acceleration: Float[Array, "*n 3"]
    yaw: Float[Array, "*n"]
    yaw_rate: Float[Array, "*n"]
    excitation: Float[Array, "*n 6"]


class Setpoints(eqx.Module):
    """The set points of a flight: the sum of all moves and of all excitations.

    start: initial position, m, world frame. moves: of position and yaw. excitations: of any channel. yaw: initial yaw, rad.
    """

    start: Place = (0.0, 0.0, 3.0)
    moves: tuple[Move | Lissajous, ...] = ()
    excitations: tuple[Excitation, ...] = ()
    yaw: Number = 0.0

    def __check_init__(self) -> None:
        for excitation in self.excitations:
            if excitation.channel not in CHANNELS:
                raise SettingError(
                    f"no channel {excitation.channel!r} to excite; choose from {', '.join(CHANNELS)}"
                )

    def at(self, t: Float[Array, " n"]) -> Setpoint:
        """The set points at times t in s."""
        return jax.vmap(self._at)(jnp.asarray(t))

    def _at(self, t: Float[Array, ""]) -> Setpoint:
        one = jnp.ones_like(t)

        def path_and_rate(t):
            return jax.jvp(self._path, (t,), (one,))

        ((position, yaw), (velocity, yaw_rate)), (_, (acceleration, _)) = jax.jvp(path_and_rate, (t,), (one,))
        channels = [jnp.zeros_like(t) for _ in CHANNELS]
        for excitation in self.excitations:
            channels[CHANNELS.index(excitation.channel)] += excitation(t)
        return Setpoint(position, velocity, acceleration, yaw, yaw_rate, jnp.stack(channels))

    def _path(self, t: Float[Array, ""]) -> tuple[Float[Array, " 3"], Float[Array, ""]]:
        position, yaw = jnp.asarray(self.start, t.dtype) + 0.0 * t, self.yaw + 0.0 * t
        for move in self.moves:
            by, turn = move(t)
            position, yaw = position + by, yaw + turn
        return position, yaw


def _minimum_jerk(s: Float[Array, ""]) -> Float[Array, ""]:
    """A step from 0 to 1 over s = 0 to 1 with minimum jerk: 10 s^3 - 15 s^4 + 6 s^5."""
    s = jnp.clip(s, 0.0, 1.0)
    return s * s * s * (10.0 + s * (6.0 * s - 15.0))


def _fade(s: Float[Array, ""], duration: Number) -> Float[Array, ""]:
    """Window from 0 to duration: 1, with a smooth increase and decrease at the ends."""
    return _minimum_jerk(s / _FADE) * _minimum_jerk((duration - s) / _FADE)
