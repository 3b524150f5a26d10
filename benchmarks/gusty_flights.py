"""Flights of ArduPilot's simulated quadrotor in turbulence, written without code of the package: a referee of estimates in
gusts.

Body, rotors, air and turbulence are those of ArduPilot's software-in-the-loop simulation (`SIM_Frame.cpp`, `SIM_Motor.cpp` and
`Aircraft::update_wind` of `SIM_Aircraft.cpp`) with its default quadrotor X, at 1200 Hz. The turbulence is filtered noise: its
vertical part has a correlation time of 41 ms; its horizontal part has one too, but turns to a random azimuth in each step.

The controller is ArduCopter's cascade with its default gains, at 400 Hz: position (P), velocity (PI), attitude (P) and body
rate (PID); along z position (P), velocity (P) and acceleration (PI) with its filter of the throttle at 2 Hz. It flies from rest
on the ground to 12 m, hovers, and goes around squares of drawn corners at changing heights.

Telemetry has 50 rows a second by default. Rates and specific forces pass the low-pass filter of 20 Hz of the autopilot;
velocity and attitude have small errors that change slowly, as those of its estimator.

Units are SI, the world is ENU, the body FLU.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Final, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

MASS: Final = 3.0
"""kg."""

RATE: Final = 50
"""Rows of the telemetry by default, Hz."""

_CONTROL_RATE, _PHYSICS = 400, 3  # Hz; steps of the body per step of the control
_STEP: Final = 1.0 / (_CONTROL_RATE * _PHYSICS)
_G: Final = 9.80665
# Frame::Model
_ARM: Final = 0.35 * math.sqrt(0.5)
_X, _Y = np.array([1.0, -1.0, 1.0, -1.0]) * _ARM, np.array([-1.0, 1.0, 1.0, -1.0]) * _ARM
_TURN: Final = np.array([1.0, 1.0, -1.0, -1.0])  # counter-clockwise seen from above
_INERTIA: Final = np.array([0.25, 0.25, 0.5]) * MASS * 0.175**2
_RHO: Final = 1.157
_HOVER_OUT, _EXPO = 0.39, 0.65
_OUTFLOW: Final = 2.0 * 29.3 * 12.09 / (MASS * _G)  # m/s, in hover
_PROPELLER_AREA: Final = MASS * _G / (0.5 * _RHO * _OUTFLOW**2) / 4.0
_FULL_THRUST: Final = MASS * _G / _HOVER_OUT / 4.0  # N, of a rotor
_DISC_AREA, _MOMENTUM = 0.385, 0.2
_REFERENCE_SPEED: Final = 15.08  # m/s, at 45 degrees
_COS: Final = math.sqrt(0.5)
_MOMENTUM_DRAG: Final = (
    _COS * _MOMENTUM * _REFERENCE_SPEED * _COS * math.sqrt(MASS * _G / _COS * _RHO * _DISC_AREA)
)
_DRAG_AREA: Final = (MASS * _G - _MOMENTUM_DRAG) / (0.5 * _RHO * _REFERENCE_SPEED**2)
_ROTOR_DRAG: Final = _MOMENTUM * math.sqrt(_RHO * _DISC_AREA / 4.0)
_SPIN_DAMPING: Final = math.radians(400.0) / 120.0
_YAW_TORQUE: Final = 0.05 * 0.35  # m, times the command
_MEMORY: Final = 0.98  # of the turbulence, per step
# ArduCopter
_POSITION_P, _VELOCITY_P, _VELOCITY_I = 1.0, 2.0, 1.0
_CLIMB_P, _LIFT_P, _LIFT_I = 5.0, 0.05, 0.1
_THROTTLE_CUTOFF, _SENSOR_CUTOFF = 2.0, 20.0  # Hz
_ANGLE_P: Final = 4.5
_RATE_P: Final = np.array([0.135, 0.135, 0.18])
_RATE_I: Final = np.array([0.135, 0.135, 0.018])
_RATE_D: Final = np.array([0.0036, 0.0036, 0.0])
_START, _CLIMB, _ALTITUDE = 4.0, 6.0, 12.0  # s, s, m
_LEG, _HOVER, _SIDE = 7.0, 12.0, 15.0  # s, s, m


class Wind(NamedTuple):
    """mean: m/s, where it blows to. turbulence: SIM_WIND_TURB, m/s."""

    mean: Float[np.ndarray, " 3"]
    turbulence: float


class Telemetry(NamedTuple):
    """Rows of flights: time, s; attitude (w, x, y, z), velocity, position, body rate, specific force and commands of the
    rotors, 0 to 1; wind and true velocity."""

    t: Float[np.ndarray, " n"]
    attitude: Float[np.ndarray, "flights n 4"]
    velocity: Float[np.ndarray, "flights n 3"]
    position: Float[np.ndarray, "flights n 3"]
    body_rate: Float[np.ndarray, "flights n 3"]
    specific_force: Float[np.ndarray, "flights n 3"]
    rotor_command: Float[np.ndarray, "flights n 4"]
    wind: Float[np.ndarray, "flights n 3"]
    true_velocity: Float[np.ndarray, "flights n 3"]


class _Body(NamedTuple):
    attitude: Array
    velocity: Array
    position: Array
    rate: Array
    force: Array  # specific
    gust: Array  # horizontal, vertical
    wind: Array
    filtered: Array  # two poles, rate and specific force
    errors: Array  # of attitude and velocity in the telemetry


class _Control(NamedTuple):
    velocity: Array  # integral
    lift: Array  # integral
    rate: Array  # integral
    last: Array  # rate
    derivative: Array
    throttle: Array
    command: Array


def _rotation(q: Array) -> Array:
    w, x, y, z = q
    return jnp.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )


def _turned(q: Array, angle: Array) -> Array:
    """A quaternion after a small rotation about body axes, rad."""
    w, v = q[0], q[1:]
    half = 0.5 * angle
    turned = jnp.concatenate([(w - v @ half)[None], v + w * half + jnp.cross(v, half)])
    return turned / jnp.linalg.norm(turned)


def thrust(command: Float[np.ndarray, "*n 4"] | Array) -> Float[np.ndarray, "*n 4"] | Array:
    """Thrust of the rotors without inflow, N."""
    return _FULL_THRUST * ((1.0 - _EXPO) * command + _EXPO * command**2)


def _forces(body: _Body, command: Array, mass: Array) -> tuple[Array, Array]:
    """Specific force and angular acceleration, body."""
    R = _rotation(body.attitude)
    air = R.T @ (body.velocity - body.wind)
    places = jnp.stack([_X, _Y, 0.0 * _X], axis=1)
    local = air + jnp.cross(body.rate, places)
    inflow = jnp.maximum(local[:, 2], 0.0)
    lift = thrust(command) - 0.5 * _RHO * _PROPELLER_AREA * inflow**2
    f = -_ROTOR_DRAG * jnp.sqrt(jnp.abs(lift))[:, None] * local
    f = f.at[:, 2].add(lift)
    torque = jnp.cross(places, f.at[:, :2].set(0.0)).sum(axis=0)
    torque = torque.at[2].add(-jnp.sum(_TURN * _YAW_TORQUE * command * lift))
    body_drag = 0.5 * _RHO * _DRAG_AREA * jnp.abs(air) * air
    return (f.sum(axis=0) - body_drag) / mass, torque / _INERTIA - _SPIN_DAMPING * body.rate


def _move(body: _Body, command: Array, mass: Array, wind: tuple[Array, Array], key: Array) -> _Body:
    """One step of the body."""
    mean, turbulence = wind
    noise = jax.random.normal(key, (2,))
    azimuth = jax.random.uniform(jax.random.fold_in(key, 1), maxval=2.0 * math.pi)
    is_on_ground = body.position[2] <= 0.0
    gust = _MEMORY * body.gust + 10.0 * turbulence * (1.0 - _MEMORY) * noise
    gust = jnp.where(is_on_ground, 0.0, gust)
    wind_now = mean + jnp.stack([jnp.cos(azimuth) * gust[0], jnp.sin(azimuth) * gust[0], gust[1]])
    body = body._replace(gust=gust, wind=wind_now)
    force, turning = _forces(body, command, mass)
    rate = body.rate + _STEP * turning
    attitude = _turned(body.attitude, _STEP * rate)
    R = _rotation(attitude)
    acceleration = R @ force - jnp.array([0.0, 0.0, _G])
    is_held = is_on_ground & (acceleration[2] < 0.0)
    acceleration = jnp.where(is_held, 0.0, acceleration)
    velocity = jnp.where(is_held, 0.0, body.velocity + _STEP * acceleration)
    force = R.T @ (acceleration + jnp.array([0.0, 0.0, _G]))
    pole = math.exp(-2.0 * math.pi * _SENSOR_CUTOFF * 1.55 * _STEP)  # two equal ones: -3 dB at the cutoff
    first = pole * body.filtered[0] + (1.0 - pole) * jnp.concatenate([rate, force])
    second = pole * body.filtered[1] + (1.0 - pole) * first
    return body._replace(
        attitude=jnp.where(is_held, body.attitude, attitude),
        velocity=velocity,
        position=body.position + _STEP * velocity,
        rate=jnp.where(is_held, 0.0, rate),
        force=force,
        filtered=jnp.stack([first, second]),
    )


def _control(body: _Body, control: _Control, wanted: tuple[Array, Array, Array], is_armed: Array) -> _Control:
    """One step of the controller. wanted: position, velocity and acceleration."""
    dt = _STEP * _PHYSICS
    R = _rotation(body.attitude)
    position_error = wanted[0] - body.position
    velocity_error = wanted[1] + _POSITION_P * position_error - body.velocity
    integral = jnp.clip(control.velocity + dt * _VELOCITY_I * velocity_error[:2], -8.0, 8.0)
    integral = jnp.where(is_armed, integral, 0.0)
    across = wanted[2][:2] + _VELOCITY_P * velocity_error[:2] + integral
    across *= jnp.minimum(1.0, _G * math.tan(math.radians(30.0)) / jnp.maximum(jnp.linalg.norm(across), 1e-6))
    measured = (R @ body.filtered[1, 3:])[2] - _G
    error = wanted[2][2] + _CLIMB_P * velocity_error[2] - measured
    lift = jnp.where(is_armed, jnp.clip(control.lift + dt * _LIFT_I * error, -0.3, 0.3), 0.0)
    wanted_throttle = jnp.clip(_HOVER_OUT + _LIFT_P * error + lift, 0.0, 0.9)
    share = 1.0 - math.exp(-2.0 * math.pi * _THROTTLE_CUTOFF * dt)
    throttle = control.throttle + share * (jnp.where(is_armed, wanted_throttle, 0.0) - control.throttle)
    z = jnp.concatenate([across, jnp.array([_G])])
    z /= jnp.linalg.norm(z)
    y = jnp.cross(z, jnp.array([1.0, 0.0, 0.0]))
    y /= jnp.linalg.norm(y)
    target = R.T @ jnp.stack([jnp.cross(y, z), y, z], axis=1)
    tilt = 0.5 * jnp.stack(
        [target[2, 1] - target[1, 2], target[0, 2] - target[2, 0], target[1, 0] - target[0, 1]]
    )
    rate = body.filtered[1, :3]
    rate_error = _ANGLE_P * tilt - rate
    rate_integral = jnp.where(is_armed, jnp.clip(control.rate + dt * _RATE_I * rate_error, -0.5, 0.5), 0.0)
    share = 1.0 - math.exp(-2.0 * math.pi * _SENSOR_CUTOFF * dt)
    derivative = control.derivative + share * ((control.last - rate) / dt - control.derivative)
    turn = _RATE_P * rate_error + rate_integral + _RATE_D * derivative
    total = throttle / jnp.maximum(R[2, 2], 0.5)
    wanted_thrust = (
        total + 0.5 * jnp.sign(_Y) * turn[0] - 0.5 * jnp.sign(_X) * turn[1] - 0.5 * _TURN * turn[2]
    )
    wanted_thrust = jnp.clip(wanted_thrust, 0.0, 1.0)
    root = jnp.sqrt((1.0 - _EXPO) ** 2 + 4.0 * _EXPO * wanted_thrust)
    command = jnp.where(is_armed, (root - (1.0 - _EXPO)) / (2.0 * _EXPO), 0.0)
    return _Control(integral, lift, rate_integral, rate, derivative, throttle, command)


def _path(t: Float[np.ndarray, " n"], seed: int) -> Float[np.ndarray, "n 3 3"]:
    """Position, velocity and acceleration: a climb, hovers, and squares in between."""
    rng = np.random.default_rng([seed, 11])
    rows = np.zeros((len(t), 3, 3))
    place, start = np.zeros(3), _START
    moves = [(_CLIMB, np.array([0.0, 0.0, _ALTITUDE])), (_HOVER, np.array([0.0, 0.0, _ALTITUDE]))]
    while sum(duration for duration, _ in moves) < t[-1]:
        side = _SIDE * rng.uniform(0.5, 1.0)
        for corner in ((1, 0), (1, 1), (0, 1), (0, 0)):
            height = _ALTITUDE + rng.uniform(-3.0, 3.0)
            moves.append((_LEG, np.array([side * corner[0], side * corner[1], height])))
        moves.append((_HOVER, moves[-1][1]))
    for duration, target in moves:
        s = np.clip((t - start) / duration, 0.0, 1.0)[:, None]
        shape = s**3 * (10 - 15 * s + 6 * s * s)
        speed, bend = 30 * s**2 * (1 - s) ** 2 / duration, 60 * s * (1 - s) * (1 - 2 * s) / duration**2
        for k, share in enumerate((shape, speed, bend)):
            rows[:, k] += share * (target - place)
        place, start = target, start + duration
    return rows


@partial(jax.jit, static_argnames=("rows", "rate"))
def _fly(path: Array, mass: Array, mean: Array, turbulence: Array, key: Array, rows: int, rate: int) -> tuple:
    zero = jnp.zeros
    body = _Body(
        jnp.array([1.0, 0.0, 0.0, 0.0]), zero(3), zero(3), zero(3), jnp.array([0.0, 0.0, _G]), zero(2), mean,
        jnp.tile(jnp.array([0.0, 0.0, 0.0, 0.0, 0.0, _G]), (2, 1)), zero(6),
    )  # fmt: skip
    control = _Control(zero(2), zero(()), zero(3), zero(3), zero(3), zero(()), zero(4))
    memory = np.exp(-1.0 / rate / np.array([10.0] * 3 + [2.0] * 3))  # s
    spread = np.array([0.003] * 3 + [0.03] * 3)  # rad, m/s

    def row(carry, inputs):
        body, control = carry
        wanted, m, number = inputs
        row_key = jax.random.fold_in(key, number)
        is_armed = number >= (_START - 0.5) * rate

        def step(carry, k):
            body, control = carry
            control = _control(body, control, (wanted[0], wanted[1], wanted[2]), is_armed)

            def move(body, j):
                return _move(
                    body,
                    control.command,
                    m,
                    (mean, turbulence),
                    jax.random.fold_in(row_key, k * _PHYSICS + j),
                ), None

            body, _ = jax.lax.scan(move, body, jnp.arange(_PHYSICS))
            return (body, control), None

        (body, control), _ = jax.lax.scan(step, (body, control), jnp.arange(_CONTROL_RATE // rate))
        drawn = jax.random.normal(jax.random.fold_in(row_key, 99), (12,))
        errors = memory * body.errors + spread * np.sqrt(1.0 - memory**2) * drawn[:6]
        body = body._replace(errors=errors)
        measured = (
            _turned(body.attitude, errors[:3]),
            body.velocity + errors[3:] + 0.005 * drawn[6:9],
            body.position,
            body.filtered[1, :3],
            body.filtered[1, 3:] + 0.01 * drawn[9:],
            control.command,
            body.wind,
            body.velocity,
        )
        return (body, control), measured

    return jax.lax.scan(row, (body, control), (path, mass, jnp.arange(rows)))[1]


def fly(
    seeds: list[int],
    wind: Wind,
    seconds: float,
    mass: Float[np.ndarray, " n"] | float = MASS,
    rate: int = RATE,
) -> Telemetry:
    """Fly one flight for each seed.

    Args:
        seeds: of the path and of all noise.
        wind: same for all flights.
        seconds: of each flight.
        mass: kg, or of each row.
        rate: rows of the telemetry, Hz, a divisor of 400.
    """
    rows = round(seconds * rate)
    t = np.arange(1, rows + 1) / rate
    paths = np.stack([_path(t, seed) for seed in seeds])
    keys = jnp.stack([jax.random.PRNGKey(seed) for seed in seeds])
    masses = jnp.broadcast_to(jnp.asarray(mass, float), rows)
    run = jax.vmap(
        lambda path, key: _fly(
            path, masses, jnp.asarray(wind.mean), jnp.asarray(wind.turbulence), key, rows, rate
        )
    )
    return Telemetry(t, *(np.asarray(column, float) for column in run(jnp.asarray(paths), keys)))
