"""Flights that RotorPy simulates: closed loop with its SE(3) controller, and the log of consumer sensors.

Rows are 4 ms apart. The commands of a row act from it until the next one; the motors follow them with RotorPy's lag. The
states of a row are those at its time. The controller has the true position, velocity and attitude, and the body rates of the
gyroscope without their bias. `Multirotor.step` integrates a row with one step of the classical Runge-Kutta method of order 4.
Over 6 s of the quickest vehicle, whose motor lag is 5 ms, the motion differs from the exact one by less than 1e-4 rad/s and
0.002 m/s^2.

    body_rate, specific_force   250 Hz, white noise of 0.01 rad/s and 0.15 m/s^2, constant biases of 0.01 rad/s and 0.1 m/s^2
    attitude, velocity          100 Hz, 0.005 rad and 0.03 m/s
    position                    100 Hz, 0.01 m
    rotor_command               250 Hz, commanded speed over the largest speed: the thrust curve is quadratic
    rotor_speed                 250 Hz, 1 % noise, steps of 0.2 % of the largest speed, one row late

A flight is a pure function of its task.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from jaxtyping import Float64
from scipy.integrate import DenseOutput, OdeSolver
from scipy.spatial.transform import Rotation

from rotorid.logs.flight import Flight, Signal
from rotorid.simulation.wind import draw_wind, dryden_gusts
from rotorid.studies.rotorpy.manoeuvres import Reference, draw_multisines, draw_reference
from rotorid.studies.rotorpy.vehicles import Parameters, check_rotorpy, hover_speed, parameters_of

STEP: Final = 0.004
"""Time between rows, s."""

WINDS: Final = ("still", "gusts", "steady")
"""Kinds of wind."""

PAYLOAD: Final = 0.2
"""Added mass over that of the vehicle, in the second half of a flight with payload."""

_WIND_STREAM, _SENSOR_STREAM = 520, 521  # of random numbers
_HEIGHT = 20.0  # m, for the gusts
_GYROSCOPE_NOISE, _GYROSCOPE_BIAS = 0.01, 0.01  # rad/s
_ACCELEROMETER_NOISE, _ACCELEROMETER_BIAS = 0.15, 0.1  # m/s^2
_POSE_STEP = 0.01  # s
_ATTITUDE_NOISE, _VELOCITY_NOISE, _POSITION_NOISE = 0.005, 0.03, 0.01  # rad, m/s, m
_SPEED_NOISE, _SPEED_STEP = 0.01, 0.002  # of the speed, of the largest speed
_RATE_GAIN, _RATE_GAIN_LAG = 40.0, 1.45  # 1/s: the largest one, and that times the motor lag
_POSITION_GAINS = (3.0, 3.0, 8.0), (2.8, 2.8, 5.0)  # 1/s^2, 1/s


class Task(NamedTuple):
    """A flight. vehicle: one of `VEHICLES`. wind: one of `WINDS`. rotors: the logged signal, "rotor_command" or "rotor_speed".
    duration: s."""

    vehicle: str
    is_excited: bool
    wind: str
    rotors: str
    seed: int
    duration: float = 40.0
    has_payload: bool = False

    @property
    def name(self) -> str:
        """A name that no other task has."""
        parts = (
            self.vehicle,
            "excited" if self.is_excited else "ordinary",
            self.wind,
            self.rotors.removeprefix("rotor_"),
            *(["payload"] if self.has_payload else []),
            str(self.seed),
        )
        return "-".join(parts)


class Motion(NamedTuple):
    """The true motion, one row a time. position: m, velocity: m/s, world. attitude: quaternion w x y z, body to world.
    body_rate: rad/s, specific_force: m/s^2, body. speed, command: of the rotors, rad/s. wind: m/s, world. mass: kg."""

    position: Float64[np.ndarray, "n 3"]
    velocity: Float64[np.ndarray, "n 3"]
    attitude: Float64[np.ndarray, "n 4"]
    body_rate: Float64[np.ndarray, "n 3"]
    specific_force: Float64[np.ndarray, "n 3"]
    speed: Float64[np.ndarray, "n rotors"]
    command: Float64[np.ndarray, "n rotors"]
    wind: Float64[np.ndarray, "n 3"]
    mass: Float64[np.ndarray, " n"]


class RungeKutta4(OdeSolver):
    """The classical Runge-Kutta method of order 4, one step over the whole interval; for `scipy.integrate.solve_ivp`."""

    def __init__(self, fun: Any, t0: float, y0: Any, t_bound: float, vectorized: bool, **_: Any) -> None:
        super().__init__(fun, t0, y0, t_bound, vectorized)

    def _step_impl(self) -> tuple[bool, str | None]:
        h = self.t_bound - self.t
        k1 = self.fun(self.t, self.y)
        k2 = self.fun(self.t + h / 2, self.y + h / 2 * k1)
        k3 = self.fun(self.t + h / 2, self.y + h / 2 * k2)
        k4 = self.fun(self.t + h, self.y + h * k3)
        self.y = self.y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        self.t = self.t_bound
        return True, None

    def _dense_output_impl(self) -> DenseOutput:
        raise NotImplementedError("one step from end to end has no values between")


def simulate_task(task: Task) -> Flight:
    """The log of the flight of a task, with true_mass and true_wind.

    Raises:
        SettingError: RotorPy is not installed; the message has the line that installs it.
    """
    parameters = parameters_of(task.vehicle)
    times = STEP * np.arange(round(task.duration / STEP) + 1)
    gyroscope = _GYROSCOPE_NOISE * _random(task, 0).standard_normal((len(times), 3))
    motion = fly(
        parameters,
        draw_reference(times, task.seed, task.is_excited),
        draw_multisines(times, task.seed, parameters) if task.is_excited else np.zeros((len(times), 4)),
        wind_of(task, len(times)),
        _masses(task, parameters, times),
        gyroscope,
    )
    return to_log(task, parameters, times, motion, gyroscope)


def wind_of(task: Task, rows: int) -> Float64[np.ndarray, "rows 3"]:
    """The wind of a flight, m/s, world: none, 2 to 5 m/s with gusts of the Dryden model, or 2 to 5 m/s without."""
    if task.wind == "still":
        return np.zeros((rows, 3))
    rng = np.random.default_rng([task.seed, _WIND_STREAM])
    speed, direction = rng.uniform(2.0, 4.0 if task.wind == "gusts" else 5.0), rng.uniform(0.0, math.tau)
    mean = (speed * math.cos(direction), speed * math.sin(direction), 0.0)
    if task.wind == "steady":
        return np.tile(mean, (rows, 1))
    sigma, times = dryden_gusts(speed, _HEIGHT)
    return draw_wind(mean, sigma, times, rows, STEP, [task.seed, _WIND_STREAM, 1])


def _masses(
    task: Task, parameters: Parameters, times: Float64[np.ndarray, " n"]
) -> Float64[np.ndarray, " n"]:
    is_loaded = task.has_payload & (times >= 0.5 * task.duration)
    return parameters["mass"] * (1.0 + PAYLOAD * is_loaded)


def _random(task: Task, sensor: int) -> np.random.Generator:
    return np.random.default_rng([task.seed, _SENSOR_STREAM, sensor])


def fly(
    parameters: Parameters,
    reference: Reference,
    multisines: Float64[np.ndarray, "n 4"],
    wind: Float64[np.ndarray, "n 3"],
    mass: Float64[np.ndarray, " n"],
    gyroscope_noise: Float64[np.ndarray, "n 3"],
) -> Motion:
    """Fly set points with RotorPy.

    Args:
        parameters: of the vehicle.
        reference: set points, rows 4 ms apart.
        multisines: thrust (N) and torques (N m) added to the controller's.
        wind: m/s, world; constant from row to row.
        mass: true mass, kg, acting at the centre of mass; the controller has that of `parameters`.
        gyroscope_noise: of the rates that the controller has, rad/s.
    Returns:
        The true motion.
    """
    check_rotorpy()
    from rotorpy.controllers.quadrotor_control import SE3Control
    from rotorpy.vehicles.multirotor import Multirotor

    parameters = {**parameters, **_attitude_gains(parameters["tau_m"])}
    vehicle: Any = Multirotor(
        parameters, aero=True, enable_ground=False, integrator_kwargs={"method": RungeKutta4}
    )
    controller: Any = SE3Control(parameters)
    controller.kp_pos, controller.kd_pos = map(np.array, _POSITION_GAINS)
    n, rotors = len(mass), parameters["num_rotors"]
    rows = [np.empty((n, width)) for width in (3, 3, 4, 3, 3, rotors, rotors)]
    state = {
        "x": reference.position[0],
        "v": np.zeros(3),
        "q": np.array([0.0, 0.0, 0.0, 1.0]),
        "w": np.zeros(3),
        "wind": wind[0],
        "rotor_speeds": np.full(rotors, hover_speed(parameters)),
    }
    for k in range(n):
        state["wind"] = wind[k]
        vehicle.mass, vehicle.weight = mass[k], np.array([0.0, 0.0, -mass[k] * vehicle.g])
        command = _command(
            controller, {**state, "w": state["w"] + gyroscope_noise[k]}, reference, multisines, k
        )
        command = np.clip(command, vehicle.rotor_speed_min, vehicle.rotor_speed_max)
        for column, value in zip(rows, (*_row(vehicle, state), command), strict=True):
            column[k] = value
        state = vehicle.step(state, {"cmd_motor_speeds": command}, STEP)
    return Motion(*rows, wind=wind, mass=mass)


def _attitude_gains(lag: float) -> dict[str, float]:
    """Gains of the attitude, rad/s^2 per rad and per rad/s, that leave a damped loop behind a motor lag (s)."""
    gain = min(_RATE_GAIN, _RATE_GAIN_LAG / lag)
    return {"kp_att": 0.25 * gain**2, "kd_att": gain}


def _command(
    controller: Any,
    state: dict[str, Any],
    reference: Reference,
    multisines: Float64[np.ndarray, "n 4"],
    k: int,
) -> Float64[np.ndarray, " rotors"]:
    """Commanded speeds of the rotors in row k, rad/s."""
    desired = {
        "x": reference.position[k],
        "x_dot": reference.velocity[k],
        "x_ddot": reference.acceleration[k],
        "yaw": reference.yaw[k],
        "yaw_dot": reference.yaw_rate[k],
    }
    control = controller.update(k * STEP, state, desired)
    wrench = np.array([control["cmd_thrust"], *control["cmd_moment"]]) + multisines[k]
    thrusts = controller.TM_to_f @ wrench
    return np.sqrt(np.maximum(thrusts, 0.0) / controller.k_eta)


def _row(vehicle: Any, state: dict[str, Any]) -> tuple[Any, ...]:
    """Position, velocity, attitude, body rate, specific force and rotor speeds of a state."""
    w = state["w"]
    q = np.roll(state["q"], 1)  # w x y z
    x, y, z = q[1:]
    R = np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - q[0] * z), 2 * (x * z + q[0] * y)],
            [2 * (x * y + q[0] * z), 1 - 2 * (x * x + z * z), 2 * (y * z - q[0] * x)],
            [2 * (x * z - q[0] * y), 2 * (y * z + q[0] * x), 1 - 2 * (x * x + y * y)],
        ]
    )
    force, _ = vehicle.compute_body_wrench(w, state["rotor_speeds"], R.T @ (state["v"] - state["wind"]))
    return state["x"], state["v"], q, w, force / vehicle.mass, state["rotor_speeds"]


def to_log(
    task: Task,
    parameters: Parameters,
    times: Float64[np.ndarray, " n"],
    motion: Motion,
    gyroscope_noise: Float64[np.ndarray, "n 3"],
) -> Flight:
    """The log of a motion. times: of its rows, s. gyroscope_noise: rad/s."""
    source = "RotorPy"
    rng = _random(task, 1)
    pose_times = _POSE_STEP * np.arange(int(times[-1] / _POSE_STEP + 1e-9) + 1)
    gyroscope_bias = _GYROSCOPE_BIAS * rng.standard_normal(3)
    accelerometer_bias = _ACCELEROMETER_BIAS * rng.standard_normal(3)

    def noise(std: float, like: Float64[np.ndarray, "rows _"]) -> Float64[np.ndarray, "rows 3"]:
        return std * rng.standard_normal((len(like), 3))

    def at_pose_times(values: Float64[np.ndarray, "_ k"]) -> Float64[np.ndarray, "rows k"]:
        return np.stack([np.interp(pose_times, times, column) for column in values.T], axis=1)

    attitude = at_pose_times(_continuous(motion.attitude))
    position, velocity = at_pose_times(motion.position), at_pose_times(motion.velocity)
    signals = {
        "body_rate": (times, motion.body_rate + gyroscope_bias + gyroscope_noise),
        "specific_force": (
            times,
            motion.specific_force + accelerometer_bias + noise(_ACCELEROMETER_NOISE, motion.specific_force),
        ),
        "attitude": (pose_times, _with_attitude_noise(attitude, noise(_ATTITUDE_NOISE, attitude))),
        "velocity": (pose_times, velocity + noise(_VELOCITY_NOISE, velocity)),
        "position": (pose_times, position + noise(_POSITION_NOISE, position)),
        "true_mass": (times, motion.mass[:, None]),
        "true_wind": (times, motion.wind),
    }
    largest = parameters["rotor_speed_max"]
    if task.rotors == "rotor_command":
        signals["rotor_command"] = (times, motion.command / largest)
    else:
        measured = motion.speed * (1.0 + _SPEED_NOISE * _random(task, 2).standard_normal(motion.speed.shape))
        step = _SPEED_STEP * largest
        late = np.concatenate([measured[:1], measured[:-1]])
        signals["rotor_speed"] = (times, step * np.round(late / step))
    return Flight(
        {name: Signal(name, t, np.ascontiguousarray(v), source) for name, (t, v) in signals.items()},
        Path(task.name),
        "simulation",
        vehicle=task.vehicle,
    )


def _continuous(quaternions: Float64[np.ndarray, "n 4"]) -> Float64[np.ndarray, "n 4"]:
    """The same rotations, without changes of sign from row to row."""
    flips = np.cumprod(np.sign(np.sum(quaternions[1:] * quaternions[:-1], axis=1)))
    return quaternions * np.concatenate([[1.0], flips])[:, None]


def _with_attitude_noise(
    attitude: Float64[np.ndarray, "n 4"], noise: Float64[np.ndarray, "n 3"]
) -> Float64[np.ndarray, "n 4"]:
    """Attitudes turned by small angles, rad, body frame."""
    turned = Rotation.from_quat(attitude[:, [1, 2, 3, 0]]) * Rotation.from_rotvec(noise)
    return turned.as_quat()[:, [3, 0, 1, 2]]
