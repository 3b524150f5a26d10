"""From rotor commands to the thrusts that act on a body, and how these grow with what is not known of the rotors.

    c_j = s s_i (sum_k a_k u_j^k) (V_j / V_0)^e        what a rotor is asked for from t_j on, until t_{j+1}
    T(t) = c_j + (T_j - c_j) exp(-(t - t_j) / tau)     tau_up where c_j > T_j, else tau_down

exactly, at any time t - d. The mean over a step is the difference of the integral of T, which is as simple. The rotors of a log
begin in balance with their first command.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

_BUCKET = 4096  # rows are filled up to a multiple, so that flights of like length share a compiled function
_LEAST_LAG = 1e-4  # s


@dataclasses.dataclass(frozen=True)
class Commands:
    """What one flight asks of its rotors. t: s. u: the command, its dead zone taken off; N, or (rad/s)^2, where the log has
    thrusts or speeds. voltage: over that of the thrust curve, 1 where it does not count."""

    t: Float[np.ndarray, " n"]
    u: Float[np.ndarray, "n rotors"]
    voltage: Float[np.ndarray, " n"]

    def between(self, start: float, end: float) -> Commands:
        """Those that act between two times, s."""
        first = max(int(np.searchsorted(self.t, start, side="right")) - 1, 0)
        last = int(np.searchsorted(self.t, end, side="right"))
        return Commands(self.t[first:last], self.u[first:last], self.voltage[first:last])


@dataclasses.dataclass(frozen=True)
class Chain:
    """The numbers of a rotor chain, one after the other: what `thrusts` takes. degree: of the thrust curve. rotors: how many.
    lags: whether rotors lag behind."""

    degree: int
    rotors: int
    lags: bool = True

    @functools.cached_property
    def places(self) -> dict[str, np.ndarray]:
        """Where each lies."""
        sizes = {
            "thrust_curve": self.degree + 1,
            "voltage_exponent": 1,
            "thrust_scale": 1,
            "motor_time_constant": 1,
            "motor_time_constant_down": 1,
            "command_delay": 1,
            "rotor_scale": self.rotors,
        }
        found, start = {}, 0
        for name, size in sizes.items():
            found[name] = np.arange(start, start + size)
            start += size
        return found

    @property
    def size(self) -> int:
        return self.degree + 6 + self.rotors


def thrusts(
    chain: Chain,
    numbers: Float[np.ndarray, " numbers"],
    commands: Commands,
    end: Float[np.ndarray, " rows"],
    dt: Float[np.ndarray, " rows"],
    by: Sequence[int] = (),
) -> tuple[Float[np.ndarray, "rows k"], Float[np.ndarray, "rows k by"]]:
    """Mean thrusts over the dt seconds before each time and thrusts at it, N, side by side; and their slopes by numbers."""
    t, u, voltage = commands.t, commands.u, commands.voltage
    t, u, voltage = (_filled(v) for v in (t, u, voltage))
    full_end, full_dt = _filled(end), _filled(dt)
    last = len(commands.t) - 1
    with jax.enable_x64(True):
        columns = tuple(map(jnp.asarray, (numbers, t, u, voltage, full_end, full_dt)))
        value = np.asarray(_thrusts(chain, last, *columns))[: len(end)]
        if not by:
            return value, np.zeros((*value.shape, 0))
        return value, np.asarray(_slopes(chain, tuple(by), last, *columns))[: len(end)]


def _filled(v: np.ndarray) -> np.ndarray:
    """With the last row repeated up to a multiple."""
    short = -len(v) % _BUCKET
    return np.concatenate([v, np.repeat(v[-1:], short, axis=0)])


@functools.partial(jax.jit, static_argnums=0)
def _thrusts(
    chain: Chain,
    last: Int[Array, ""] | int,
    numbers: Float[Array, " numbers"],
    t: Float[Array, " n"],
    u: Float[Array, "n rotors"],
    voltage: Float[Array, " n"],
    end: Float[Array, " rows"],
    dt: Float[Array, " rows"],
) -> Float[Array, "rows k"]:
    p = {name: numbers[place] for name, place in chain.places.items()}
    asked = jnp.zeros_like(u)
    for k in reversed(range(chain.degree + 1)):
        asked = asked * u + p["thrust_curve"][k]
    asked = p["thrust_scale"] * p["rotor_scale"] * asked
    asked = asked * (voltage ** p["voltage_exponent"])[:, None]
    if not chain.lags:
        whole = jnp.concatenate(
            [jnp.zeros((1, chain.rotors)), jnp.cumsum(asked[:-1] * jnp.diff(t)[:, None], axis=0)]
        )
        begin, lag = asked, None
    else:
        up, down = (
            jnp.maximum(p[n][0], _LEAST_LAG) for n in ("motor_time_constant", "motor_time_constant_down")
        )

        def follow(carry, row):
            T, total = carry
            c, step = row
            tau = jnp.where(c > T, up, down)
            fall = jnp.exp(-step / tau)
            return (c + (T - c) * fall, total + c * step + (T - c) * tau * (1.0 - fall)), (T, total)

        steps = jnp.diff(t, append=t[-1:])
        _, (begin, whole) = jax.lax.scan(
            follow, (asked[0], jnp.zeros(chain.rotors)), (asked, steps), unroll=4
        )
        lag = (up, down)

    def at(s: Float[Array, " rows"]) -> tuple[Array, Array]:
        """T and its integral."""
        j = jnp.clip(jnp.searchsorted(t, s, side="right") - 1, 0, last)
        since, c, T = jnp.maximum(s - t[j], 0.0)[:, None], asked[j], begin[j]
        if lag is None:
            return c, whole[j] + c * since
        tau = jnp.where(c > T, *lag)
        fall = jnp.exp(-since / tau)
        return c + (T - c) * fall, whole[j] + c * since + (T - c) * tau * (1.0 - fall)

    late = end - p["command_delay"][0]
    now, sum_now = at(late)
    _, sum_before = at(late - dt)
    long = (dt > 0)[:, None]
    mean = jnp.where(long, (sum_now - sum_before) / jnp.where(long, dt[:, None], 1.0), now)
    return jnp.concatenate([mean, now], axis=1)


@functools.partial(jax.jit, static_argnums=(0, 1))
def _slopes(chain: Chain, by: tuple[int, ...], last, numbers, *columns) -> Float[Array, "rows k by"]:
    which = np.array(by)
    return jax.jacfwd(lambda v: _thrusts(chain, last, numbers.at[which].set(v), *columns))(numbers[which])
