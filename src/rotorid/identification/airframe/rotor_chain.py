"""Thrusts of an airframe's rotors along a flight, from their commands alone, and their derivatives by the rotors' parameters.

    c_j = s s_i (sum_k a_k u_j^k) (V_j / V_0)^e        commanded thrust of a rotor from t_j until t_{j+1}
    T(t) = c_j + (T_j - c_j) exp(-(t - t_j) / tau)     tau_up where c_j > T_j, else tau_down

or, where the speed of a rotor follows its command, the same of the roots of T and c, exactly, at any time t - d. The mean over
a step is a difference of the integral of T, which is exact, too. The rotors of a log start in equilibrium with their first
command. Lagging rotors are computed in C, or in JAX where there is no C compiler; the results agree to rounding.
"""

from __future__ import annotations

import ctypes
import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from rotorid.codegen.native import kernel, pointer
from rotorid.numerics.lag import LEAST_THRUST, lag_response, speed_lag_response

_BUCKET = 4096  # rows are filled up to a multiple, so that flights of like length share a compiled function
LEAST_LAG = 1e-4
"""Smallest time constant of a rotor, s."""

_MEMORY = 40.0  # time constants after which nothing is left of an earlier thrust, to rounding

_LAGS = ("motor_time_constant", "motor_time_constant_down")


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
        has_speed_lag: whether the lag is one of the rotor speeds, and not of the thrusts.
    """

    degree: int
    rotors: int
    has_lag: bool = True
    has_speed_lag: bool = False

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
        indices, start = {}, 0
        for name, size in sizes.items():
            indices[name] = np.arange(start, start + size)
            start += size
        return indices

    @property
    def size(self) -> int:
        return self.degree + 6 + self.rotors

    @property
    def response(self) -> Callable[..., tuple[Any, Any]]:
        """Thrust after a step, and its integral (see `lag_response`)."""
        return speed_lag_response if self.has_speed_lag else lag_response

    def by_name(self, numbers: Float[Array | np.ndarray, " numbers"]) -> dict[str, Any]:
        """The numbers of each parameter, by name."""
        return {name: numbers[place] for name, place in self.indices.items()}


def commanded_thrusts(p: Mapping[str, Any], u: Any, voltage: Any) -> Any:
    """Commanded thrusts c of each row, N, which the rotors reach in steady state.

    Args:
        p: `RotorChain.by_name`.
        u, voltage: of `RotorCommands`. All arrays are NumPy's, or all are JAX's.
    """
    commanded = 0.0 * u
    for coefficient in p["thrust_curve"][::-1]:
        commanded = commanded * u + coefficient
    return p["thrust_scale"] * p["rotor_scale"] * commanded * (voltage ** p["voltage_exponent"])[:, None]


def step_thrusts(
    chain: RotorChain,
    numbers: Float[np.ndarray, " numbers"],
    commands: RotorCommands,
    end: Float[np.ndarray, " rows"],
    dt: Float[np.ndarray, " rows"],
    parameters: Sequence[int] = (),
) -> tuple[Float[np.ndarray, "rows k"], Float[np.ndarray, "rows k by"]]:
    """Mean thrusts over steps and thrusts at their ends, N, side by side, and their derivatives.

    Args:
        chain: layout of the numbers.
        numbers: of the rotor chain.
        commands: of one flight.
        end: end of each step, s.
        dt: length of each step, s; 0: the mean is the thrust at the end.
        parameters: indices of the numbers to differentiate by.
    Returns:
        Thrusts (means of all rotors, then thrusts at the end), and their derivatives.
    """
    if not chain.has_lag:
        return _thrusts_without_lag(chain, numbers, commands, end, dt, parameters)
    library = _library()
    if library is None:
        return _step_thrusts_in_jax(chain, numbers, commands, end, dt, parameters)
    p, count = chain.by_name(numbers), len(parameters)
    end, dt = (np.asarray(v, dtype=float) for v in (end, dt))
    delayed_end = end - p["command_delay"][0]
    lags = np.array([p[name][0] for name in _LAGS])
    commands = _acting(commands, delayed_end - dt - _MEMORY * max(*lags, LEAST_LAG), delayed_end)
    t = np.asarray(commands.t, dtype=float)
    first, last = (
        np.clip(np.searchsorted(t, s, side="right") - 1, 0, len(t) - 1)
        for s in (delayed_end - dt, delayed_end)
    )
    by_lags = np.array([[float(i == chain.indices[name][0]) for i in parameters] for name in _LAGS])
    by_lags *= np.heaviside(lags - LEAST_LAG, 0.5)[:, None]
    of_commands = (
        t,
        commanded_thrusts(p, commands.u, commands.voltage),
        _commanded_slopes(chain, p, commands, parameters),
        np.maximum(lags, LEAST_LAG),
        by_lags,
    )
    by_end = [-float(i == chain.indices["command_delay"][0]) for i in parameters]
    of_commands, of_steps, commands_at, by_end = (
        [np.ascontiguousarray(v, dtype=kind) for v in arrays]
        for arrays, kind in (
            (of_commands, float),
            ((delayed_end, dt), float),
            ((first, last), np.int64),
            ([by_end], float),
        )
    )
    value = np.empty((len(end), 2 * chain.rotors))
    slopes = np.empty((*value.shape, count))
    pointers = [*map(pointer, (*of_commands, *of_steps, *commands_at, *by_end, value, slopes))]
    done = library.rotor_lag(
        *map(ctypes.c_int64, (len(t), chain.rotors, count, int(chain.has_speed_lag))),
        ctypes.c_double(LEAST_THRUST),
        *pointers[: len(of_commands)],
        ctypes.c_int64(len(end)),
        *pointers[len(of_commands) :],
    )
    if not done:
        raise MemoryError
    return value, slopes


def _library() -> ctypes.CDLL | None:
    return kernel("rotor_lag.c")


def _acting(
    commands: RotorCommands, start: Float[np.ndarray, " rows"], end: Float[np.ndarray, " rows"]
) -> RotorCommands:
    """The commands that act at some time between start and end of a row, s; where these are most, all from the first to the
    last of them."""
    first = np.maximum(np.searchsorted(commands.t, start, side="right") - 1, 0)
    last = np.maximum(np.searchsorted(commands.t, end, side="right"), 1)
    begin, n = int(first.min()), int(last.max() - first.min())
    t, u, voltage = (v[begin : begin + n] for v in (commands.t, commands.u, commands.voltage))
    begun, ended = np.bincount(first - begin, minlength=n + 1), np.bincount(last - begin, minlength=n + 1)
    is_acting = np.cumsum(begun - ended)[:n] > 0
    if np.mean(is_acting) > 0.5:
        return RotorCommands(t, u, voltage)
    return RotorCommands(t[is_acting], u[is_acting], voltage[is_acting])


def _commanded_slopes(
    chain: RotorChain, p: Mapping[str, np.ndarray], commands: RotorCommands, parameters: Sequence[int]
) -> Float[np.ndarray, "n rotors by"]:
    """Derivatives of the commanded thrusts, N."""
    slopes = np.zeros((*commands.u.shape, len(parameters)))
    power = (commands.voltage ** p["voltage_exponent"])[:, None]
    by_scale = commanded_thrusts({**p, "thrust_scale": np.ones(1)}, commands.u, commands.voltage)
    for k, i in enumerate(parameters):
        if i in chain.indices["thrust_curve"]:
            exponent = i - chain.indices["thrust_curve"][0]
            slopes[..., k] = p["thrust_scale"] * p["rotor_scale"] * commands.u**exponent * power
        elif i in chain.indices["thrust_scale"]:
            slopes[..., k] = by_scale
        elif i in chain.indices["voltage_exponent"]:
            slopes[..., k] = p["thrust_scale"] * by_scale * np.log(commands.voltage)[:, None]
        elif i in chain.indices["rotor_scale"]:
            rotor = i - chain.indices["rotor_scale"][0]
            common = commanded_thrusts({**p, "rotor_scale": np.ones(1)}, commands.u, commands.voltage)
            slopes[:, rotor, k] = common[:, rotor]
    return slopes


def _step_thrusts_in_jax(
    chain: RotorChain,
    numbers: Float[np.ndarray, " numbers"],
    commands: RotorCommands,
    end: Float[np.ndarray, " rows"],
    dt: Float[np.ndarray, " rows"],
    parameters: Sequence[int],
) -> tuple[Float[np.ndarray, "rows k"], Float[np.ndarray, "rows k by"]]:
    """`step_thrusts` of lagging rotors where there is no C compiler."""
    t, u, voltage = commands.t, commands.u, commands.voltage
    t, u, voltage = (_filled(v) for v in (t, u, voltage))
    full_end, full_dt = _filled(end), _filled(dt)
    last = len(commands.t) - 1
    with jax.enable_x64(True):
        columns = tuple(map(jnp.asarray, (numbers, t, u, voltage, full_end, full_dt)))
        if not parameters:
            value = np.asarray(_thrusts(chain, last, *columns))[: len(end)]
            return value, np.zeros((*value.shape, 0))
        slopes, value = _slopes_and_thrusts(chain, tuple(parameters), last, *columns)
        return np.asarray(value)[: len(end)], np.asarray(slopes)[: len(end)]


def _thrusts_without_lag(
    chain: RotorChain,
    numbers: Float[np.ndarray, " numbers"],
    commands: RotorCommands,
    end: Float[np.ndarray, " rows"],
    dt: Float[np.ndarray, " rows"],
    parameters: Sequence[int],
) -> tuple[Float[np.ndarray, "rows k"], Float[np.ndarray, "rows k by"]]:
    """`step_thrusts` of rotors without lag: s s_i sum_k a_k P_k, P_k the mean over a step, or the value at its end, of
    u^k (V / V_0)^e. With the delay the mean changes by the value at the beginning less that at the end, over the step."""
    p, n = chain.by_name(numbers), chain.rotors
    powers = commands.u[:, None, :] ** np.arange(chain.degree + 1)[:, None]
    powers = powers * (commands.voltage ** p["voltage_exponent"])[:, None, None]
    delayed_end, has_duration = end - p["command_delay"][0], (dt > 0)[:, None, None]
    duration = np.where(dt > 0, dt, 1.0)[:, None, None]

    def value_at(steps: Float[np.ndarray, "n degree rotors"], s: Float[np.ndarray, " rows"]) -> np.ndarray:
        return steps[np.clip(np.searchsorted(commands.t, s, side="right") - 1, 0, len(commands.t) - 1)]

    def means_and_values(steps: Float[np.ndarray, "n degree rotors"]) -> np.ndarray:
        total = np.zeros_like(steps)
        np.cumsum(steps[:-1] * np.diff(commands.t)[:, None, None], axis=0, out=total[1:])

        def sum_at(s: Float[np.ndarray, " rows"]) -> np.ndarray:
            j = np.clip(np.searchsorted(commands.t, s, side="right") - 1, 0, len(commands.t) - 1)
            return total[j] + steps[j] * (s - commands.t[j])[:, None, None]

        at_end = value_at(steps, delayed_end)
        mean = (sum_at(delayed_end) - sum_at(delayed_end - dt)) / duration
        return np.concatenate([np.where(has_duration, mean, at_end), at_end], axis=2)

    P = means_and_values(powers)  # rows, powers, mean thrusts and thrusts at the end
    curve, scale = p["thrust_curve"], np.tile(p["rotor_scale"], 2)
    common = np.einsum("k,rkj->rj", curve, P)
    value = p["thrust_scale"] * scale * common
    slopes = np.zeros((*value.shape, len(parameters)))
    for k, i in enumerate(parameters):
        if i in chain.indices["thrust_curve"]:
            slopes[..., k] = p["thrust_scale"] * scale * P[:, i - chain.indices["thrust_curve"][0]]
        elif i in chain.indices["thrust_scale"]:
            slopes[..., k] = scale * common
        elif i in chain.indices["rotor_scale"]:
            rotor = i - chain.indices["rotor_scale"][0]
            slopes[:, rotor::n, k] = p["thrust_scale"] * common[:, rotor::n]
        elif i in chain.indices["voltage_exponent"]:
            by_exponent = means_and_values(powers * np.log(commands.voltage)[:, None, None])
            slopes[..., k] = p["thrust_scale"] * scale * np.einsum("k,rkj->rj", curve, by_exponent)
        elif i in chain.indices["command_delay"]:
            step = value_at(powers, delayed_end - dt) - value_at(powers, delayed_end)
            by_delay = np.einsum("k,rkj->rj", curve, np.where(has_duration, step / duration, 0.0))
            slopes[:, :n, k] = p["thrust_scale"] * p["rotor_scale"] * by_delay
    return value, slopes


def _filled(v: np.ndarray) -> np.ndarray:
    """Pad with the last row up to a multiple of the bucket."""
    missing = -len(v) % _BUCKET
    return np.concatenate([v, np.repeat(v[-1:], missing, axis=0)])


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
    commanded = commanded_thrusts(p, u, voltage)
    up, down = (jnp.maximum(p[n][0], LEAST_LAG) for n in ("motor_time_constant", "motor_time_constant_down"))
    lag = (up, down)

    def follow(carry, row):
        T, total = carry
        c, step = row
        next_thrust, impulse_part = chain.response(T, c, step, lag)
        return (next_thrust, total + impulse_part), carry

    steps = jnp.diff(t, append=t[-1:])
    _, (start_thrust, impulse) = jax.lax.scan(
        follow, (commanded[0], jnp.zeros(chain.rotors)), (commanded, steps), unroll=4
    )

    def thrust_and_sum_at(s: Float[Array, " rows"]) -> tuple[Array, Array]:
        """T and its integral."""
        j = jnp.clip(jnp.searchsorted(t, s, side="right") - 1, 0, last)
        elapsed, c = (s - t[j])[:, None], commanded[j]
        end_thrust, impulse_part = chain.response(start_thrust[j], c, jnp.maximum(elapsed, 0.0), lag)
        return end_thrust, impulse[j] + impulse_part + c * jnp.minimum(elapsed, 0.0)

    delayed_end = end - p["command_delay"][0]
    end_thrust, end_sum = thrust_and_sum_at(delayed_end)
    _, sum_before = thrust_and_sum_at(delayed_end - dt)
    has_duration = (dt > 0)[:, None]
    mean = jnp.where(
        has_duration, (end_sum - sum_before) / jnp.where(has_duration, dt[:, None], 1.0), end_thrust
    )
    return jnp.concatenate([mean, end_thrust], axis=1)


@functools.partial(jax.jit, static_argnums=(0, 1))
def _slopes_and_thrusts(
    chain: RotorChain, parameters: tuple[int, ...], last, numbers, *columns
) -> tuple[Float[Array, "rows k by"], Float[Array, "rows k"]]:
    indices = np.array(parameters)

    def thrusts(v: Float[Array, " by"]) -> tuple[Array, Array]:
        value = _thrusts(chain, last, numbers.at[indices].set(v), *columns)
        return value, value

    return jax.jacfwd(thrusts, has_aux=True)(numbers[indices])
