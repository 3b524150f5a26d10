"""Thrusts of an airframe's rotors along a flight, from their commands alone, and their derivatives by the rotors' parameters.

    c_j = s s_i (sum_k a_k u_j^k) (V_j / V_0)^e        commanded thrust of a rotor from t_j until t_{j+1}
    T(t) = c_j + (T_j - c_j) exp(-(t - t_j) / tau)     tau_up where c_j > T_j, else tau_down

or, where the speed of a rotor follows its command, the same of the roots of T and c, exactly, at any time t - d. The mean over
a step is a difference of the integral of T, which is exact, too. The rotors of a log start in equilibrium with their first
command.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from rotorid.errors import AirframeError, SignalError
from rotorid.identification.airframe.priors import prior_value
from rotorid.logs.flight import Flight, Signal
from rotorid.models.airframe.airframe import Airframe
from rotorid.models.airframe.missing import missing_error
from rotorid.models.multirotor.rotors import allocation, torque_ratio_of
from rotorid.models.multirotor.thrust import ThrustCurve
from rotorid.numerics.lag import lag_response, speed_lag_response
from rotorid.signals.sampling import command_steps
from rotorid.signals.series import hold

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


@dataclasses.dataclass(frozen=True)
class RotorModel:
    """Rotors of an airframe as commands drive them.

    Attributes:
        chain: layout of the numbers.
        numbers: of the rotor chain.
        dead_zone: commands at which the thrust curve begins and ends.
        voltage: V at which it holds; NaN where it is unknown.
    """

    chain: RotorChain
    numbers: Float[np.ndarray, " numbers"]
    dead_zone: tuple[float, float] = (0.0, 1.0)
    voltage: float = math.nan

    @property
    def lag(self) -> tuple[float, float]:
        """Time constants of rising and of falling thrust, s."""
        names = ("motor_time_constant", "motor_time_constant_down")
        up, down = (max(float(self.chain.by_name(self.numbers)[n][0]), LEAST_LAG) for n in names)
        return up, down

    def commands(
        self,
        t: Float[np.ndarray, " n"],
        command: Float[np.ndarray, "n rotors"],
        voltage: Float[np.ndarray, " n"] | None = None,
    ) -> RotorCommands:
        """Commands from these times on.

        Args:
            t: s.
            command: of each rotor, 0 to 1.
            voltage: of the battery, V; None: that of the curve.
        """
        zero, full = self.dead_zone
        u = np.clip((command - zero) / (full - zero), 0.0, 1.0)
        if voltage is None or not math.isfinite(self.voltage):
            return RotorCommands(t, u, np.ones(len(t)))
        return RotorCommands(t, u, voltage / self.voltage)

    def commanded_thrust(self, command: Float[np.ndarray, " rotors"]) -> Float[np.ndarray, " rotors"]:
        """Thrust of each rotor in steady state at a command, N, at the voltage of the curve."""
        command_steps = self.commands(np.zeros(1), command[None])
        return commanded_thrusts(self.chain.by_name(self.numbers), command_steps.u, command_steps.voltage)[0]

    def follow(
        self, thrust: Float[np.ndarray, " rotors"], commanded: Float[np.ndarray, " rotors"], h: float
    ) -> tuple[Float[np.ndarray, " rotors"], Float[np.ndarray, " rotors"]]:
        """Mean thrust over the next h seconds, and thrust at their end, N."""
        end, impulse = self.chain.response(thrust, commanded, h, self.lag, np)
        return impulse / h, end


def as_logged(airframe: Airframe, signal: str) -> Airframe:
    """An airframe whose thrust curve, or coefficient, is of what a log tells of its rotors: "rotor_command", "rotor_speed", or
    thrusts in N, which are what they are."""
    if signal == "rotor_command":
        return airframe
    curve = None if signal == "rotor_speed" else ThrustCurve((0.0, 1.0))
    return dataclasses.replace(airframe, thrust_curve=curve)


def rotor_model(airframe: Airframe, *, lags: bool = True) -> RotorModel:
    """The rotors of an airframe. lags: whether they lag behind their commands."""
    curve = airframe.thrust_curve
    chain = RotorChain(
        len(prior_value(airframe, "thrust_curve")) - 1, len(airframe.rotors), lags, airframe.has_speed_lag
    )
    numbers = np.zeros(chain.size)
    for name, place in chain.indices.items():
        numbers[place] = prior_value(airframe, name)
    if curve is None:
        return RotorModel(chain, numbers)
    return RotorModel(chain, numbers, (curve.zero, curve.full), curve.voltage)


def rotor_thrusts(
    airframe: Airframe, flight: Flight, t: Float[np.ndarray, " n"]
) -> tuple[Float[np.ndarray, "n rotors"], Float[np.ndarray, "n rotors"]]:
    """Mean thrust of each rotor over the step that ends at each time of a grid, and thrust at that time.

    Args:
        airframe: its rotors and thrust curve.
        flight: its commands.
        t: grid, s.
    Returns:
        Mean thrusts and thrusts, N.
    Raises:
        AirframeError: no thrust curve for commands, no thrust coefficient for speeds, or not the rotors of the log.
        SignalError: no commands, or no battery voltage that the curve needs.
    """
    rotors, commands = _rotor_commands(airframe, flight)
    thrusts, _ = step_thrusts(rotors.chain, rotors.numbers, commands, t, np.full(len(t), t[1] - t[0]))
    return thrusts[:, : rotors.chain.rotors], thrusts[:, rotors.chain.rotors :]


def rotor_command_signal(flight: Flight) -> Signal:
    """The signal of the commands to the rotors: commands, thrusts in N, the collective thrust with torques, or, where none of
    these is logged, the measured speeds.

    Raises:
        SignalError: there is none.
    """
    for name in ("rotor_command", "rotor_thrust"):
        if name in flight:
            return flight[name]
    if "thrust" in flight and "control_torque" in flight:
        return flight["thrust"]
    if "rotor_speed" in flight:
        return flight["rotor_speed"]
    available = ", ".join(sorted(flight.signals)) or "nothing"
    raise SignalError(
        f"{flight.source}: no rotor_command in this log, and no rotor_thrust, thrust with control_torque or rotor_speed in "
        f"place of it; without one nothing can be predicted (it has {available})"
    )


def _rotor_commands(airframe: Airframe, flight: Flight) -> tuple[RotorModel, RotorCommands]:
    """The rotors that a flight's commands drive, and the commands; raises as `rotor_thrusts`."""
    signal = rotor_command_signal(flight)
    values = signal.values
    if signal.name == "thrust":
        torque = hold(signal.times, flight["control_torque"].times, flight["control_torque"].values)
        with jax.enable_x64(True):
            G = allocation(airframe.rotors, torque_ratio_of(airframe), airframe.vector("centre_of_mass"))
        values = np.concatenate([values, torque], axis=1) @ np.linalg.pinv(np.asarray(G)[2:]).T
    elif values.shape[1] != len(airframe.rotors):
        raise AirframeError(
            f"{airframe.source}: {len(airframe.rotors)} rotors, but {flight.source} has {values.shape[1]} rotor commands"
        )
    if signal.name == "rotor_speed":
        if airframe.get("thrust_coefficient") is None:
            raise missing_error(airframe, signal.name, values.shape[1])
        speeds = RotorCommands(signal.times, np.abs(values) * values, np.ones(len(values)))
        return rotor_model(as_logged(airframe, signal.name), lags=False), speeds
    t, values = command_steps(flight, dataclasses.replace(signal, values=values))
    if signal.name != "rotor_command":
        return rotor_model(as_logged(airframe, signal.name)), RotorCommands(t, values, np.ones(len(t)))
    curve = airframe.thrust_curve
    if curve is None:
        raise missing_error(airframe, signal.name, values.shape[1])
    voltage = None
    if curve.voltage_exponent:
        battery = flight["battery_voltage"]
        voltage = hold(t, battery.times, battery.values[:, 0])
    rotors = rotor_model(airframe)
    return rotors, rotors.commands(t, values, voltage)
