"""Thrusts of rotors that follow their commands, and their derivatives by the rotors' parameters.

    c_j = s s_i (sum_k a_k u_j^k) (V_j / V_0)^e        commanded thrust of a rotor from t_j until t_{j+1}
    T(t) = c_j + (T_j - c_j) exp(-(t - t_j) / tau)     tau_up where c_j > T_j, else tau_down

exactly, at any time t - d. The mean over a step is a difference of the integral of T, which is exact, too. The rotors of a log
start in equilibrium with their first command.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from rotorid.numerics.lag import lag_response

_BUCKET = 4096  # rows are filled up to a multiple, so that flights of like length share a compiled function
LEAST_LAG = 1e-4
"""Smallest time constant of a rotor, s."""


@dataclasses.dataclass(frozen=True)
class RotorCommands:
    """Commands of one flight to its rotors.

    Attributes:
        t: s.
        u: command, without its dead zone; N or (rad/s)^2 where the log has thrusts or speeds.
        voltage: over that of the thrust curve, 1 where it has no effect.
    """

    t: Float[np.ndarray, " n"]
    u: Float[np.ndarray, "n rotors"]
    voltage: Float[np.ndarray, " n"]

    def within(self, start: float, end: float) -> RotorCommands:
        """The commands that act between two times, s."""
        first = max(int(np.searchsorted(self.t, start, side="right")) - 1, 0)
        last = int(np.searchsorted(self.t, end, side="right"))
        return RotorCommands(self.t[first:last], self.u[first:last], self.voltage[first:last])


@dataclasses.dataclass(frozen=True)
class RotorChain:
    """Layout of the numbers of a rotor chain: the thrust curve, its scales, and the lag of the rotors.

    Attributes:
        degree: of the thrust curve.
        rotors: number of rotors.
        has_lag: whether rotors lag behind their commands.
    """

    degree: int
    rotors: int
    has_lag: bool = True

    @functools.cached_property
    def indices(self) -> dict[str, np.ndarray]:
        """Indices of each parameter's numbers."""
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

    def by_name(self, numbers: Float[Array | np.ndarray, " numbers"]) -> dict[str, Any]:
        """The numbers of each parameter, by name."""
        return {name: numbers[place] for name, place in self.indices.items()}


def commanded_thrusts(p: Mapping[str, Any], u: Any, voltage: Any) -> Any:
    """Commanded thrusts c of each row, N, which the rotors reach in steady state.

    Args:
        p: `RotorChain.by_name`.
        u, voltage: of `RotorCommands`. All arrays are NumPy's, or all are JAX's.
    """
    asked = 0.0 * u
    for coefficient in p["thrust_curve"][::-1]:
        asked = asked * u + coefficient
    return p["thrust_scale"] * p["rotor_scale"] * asked * (voltage ** p["voltage_exponent"])[:, None]


def step_thrusts(
    chain: RotorChain,
    numbers: Float[np.ndarray, " numbers"],
    commands: RotorCommands,
    end: Float[np.ndarray, " rows"],
    dt: Float[np.ndarray, " rows"],
    by: Sequence[int] = (),
) -> tuple[Float[np.ndarray, "rows k"], Float[np.ndarray, "rows k by"]]:
    """Mean thrusts over steps and thrusts at their ends, N, side by side, and their derivatives.

    Args:
        chain: layout of the numbers.
        numbers: of the rotor chain.
        commands: of one flight.
        end: end of each step, s.
        dt: length of each step, s; 0: the mean is the thrust at the end.
        by: indices of the numbers to differentiate by.
    Returns:
        Thrusts (means of all rotors, then thrusts at the end), and their derivatives.
    """
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
    """Pad with the last row up to a multiple of the bucket."""
    short = -len(v) % _BUCKET
    return np.concatenate([v, np.repeat(v[-1:], short, axis=0)])


@functools.partial(jax.jit, static_argnums=0)
def _thrusts(
    chain: RotorChain,
    last: Int[Array, ""] | int,
    numbers: Float[Array, " numbers"],
    t: Float[Array, " n"],
    u: Float[Array, "n rotors"],
    voltage: Float[Array, " n"],
    end: Float[Array, " rows"],
    dt: Float[Array, " rows"],
) -> Float[Array, "rows k"]:
    p = chain.by_name(numbers)
    asked = commanded_thrusts(p, u, voltage)
    if not chain.has_lag:
        whole = jnp.concatenate(
            [jnp.zeros((1, chain.rotors)), jnp.cumsum(asked[:-1] * jnp.diff(t)[:, None], axis=0)]
        )
        begin, lag = asked, None
    else:
        up, down = (
            jnp.maximum(p[n][0], LEAST_LAG) for n in ("motor_time_constant", "motor_time_constant_down")
        )
        lag = (up, down)

        def follow(carry, row):
            T, total = carry
            c, step = row
            after, more = lag_response(T, c, step, lag)
            return (after, total + more), carry

        steps = jnp.diff(t, append=t[-1:])
        _, (begin, whole) = jax.lax.scan(
            follow, (asked[0], jnp.zeros(chain.rotors)), (asked, steps), unroll=4
        )

    def at(s: Float[Array, " rows"]) -> tuple[Array, Array]:
        """T and its integral."""
        j = jnp.clip(jnp.searchsorted(t, s, side="right") - 1, 0, last)
        since, c = (s - t[j])[:, None], asked[j]
        if lag is None:
            return c, whole[j] + c * since
        now, more = lag_response(begin[j], c, jnp.maximum(since, 0.0), lag)
        return now, whole[j] + more + c * jnp.minimum(since, 0.0)

    late = end - p["command_delay"][0]
    now, sum_now = at(late)
    _, sum_before = at(late - dt)
    long = (dt > 0)[:, None]
    mean = jnp.where(long, (sum_now - sum_before) / jnp.where(long, dt[:, None], 1.0), now)
    return jnp.concatenate([mean, now], axis=1)


@functools.partial(jax.jit, static_argnums=(0, 1))
def _slopes(chain: RotorChain, by: tuple[int, ...], last, numbers, *columns) -> Float[Array, "rows k by"]:
    which = np.array(by)
    return jax.jacfwd(lambda v: _thrusts(chain, last, numbers.at[which].set(v), *columns))(numbers[which])
