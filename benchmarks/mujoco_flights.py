"""Flights of a quadrotor in MuJoCo along set points, with a controller of its own: a second referee of plans.

The body is a free joint with the vehicle's mass and inertia tensor, integrated by MuJoCo with steps of 2 ms. Forces act on it
that are computed here from the parameters of `rotorid.studies.rotorpy.vehicles`: rotors with a lag of their speed, thrust,
torque, and forces of the air in the wind. The controller has four loops, every 4 ms: position and velocity (PID) give the
acceleration, whose direction is that of the thrust; the angle to it gives the rate (P), and the rate (PI, with the noise of the
gyroscope) the torque.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from jaxtyping import Float64
from scipy.spatial.transform import Rotation

from rotorid.models.system import GRAVITY
from rotorid.studies.rotorpy.flights import STEP, Motion
from rotorid.studies.rotorpy.manoeuvres import Reference
from rotorid.studies.rotorpy.vehicles import Parameters, hover_speed

VEHICLES = ("hummingbird", "drawn-0", "drawn-1", "drawn-2")
"""Vehicles of RotorPy whose inertia is that of a real body, which MuJoCo demands; its Crazyflie has not one."""

_SUBSTEPS = 2
_POSITION, _VELOCITY, _INTEGRAL = 1.6, 3.2, 0.6  # 1/s, 1/s, 1/s^2
_RATE_LAG, _ATTITUDE_SHARE, _YAW_SHARE = 2.2, 0.35, 0.35
_TILT = math.radians(50.0)  # largest


def _body(parameters: Parameters) -> Any:
    import mujoco

    p = parameters
    tensor = " ".join(f"{p[name]:.12g}" for name in ("Ixx", "Iyy", "Izz", "Ixy", "Ixz", "Iyz"))
    text = f"""<mujoco><option timestep="{STEP / _SUBSTEPS}" integrator="implicit" gravity="0 0 {-GRAVITY}"/><worldbody>
    <body pos="0 0 0"><freejoint/><inertial pos="0 0 0" mass="{p["mass"]:.12g}" fullinertia="{tensor}"/></body>
    </worldbody></mujoco>"""
    return mujoco.MjModel.from_xml_string(text)


class _Rotors:
    """Thrust, torque and forces of the air."""

    def __init__(self, parameters: Parameters) -> None:
        p = parameters
        self.p = p
        self.position = np.array(list(p["rotor_pos"].values()))
        self.direction = np.asarray(p["rotor_directions"], float)
        arms = np.stack(
            [
                np.ones(len(self.position)),
                self.position[:, 1],
                -self.position[:, 0],
                self.direction * p["k_m"] / p["k_eta"],
            ]
        )
        self.allocation = np.linalg.pinv(arms)

    def wrench(
        self,
        speed: Float64[np.ndarray, " rotors"],
        air: Float64[np.ndarray, " 3"],
        rate: Float64[np.ndarray, " 3"],
    ) -> tuple[Float64[np.ndarray, " 3"], Float64[np.ndarray, " 3"]]:
        """Force (N) and torque (N m), body frame. speed: rad/s. air: velocity relative to the air, m/s, body frame."""
        p = self.p
        local = air + np.cross(rate, self.position)
        across = np.linalg.norm(local[:, :2], axis=1)
        force = np.empty_like(local)
        force[:, :2] = -p["k_d"] * speed[:, None] * local[:, :2]
        force[:, 2] = p["k_eta"] * speed**2 - p["k_z"] * speed * local[:, 2] + p["k_h"] * across**2
        torque = np.cross(self.position, force).sum(axis=0)
        torque[2] += float(np.sum(self.direction * p["k_m"] * speed**2))
        drag = np.array([p["c_Dx"], p["c_Dy"], p["c_Dz"]]) * np.linalg.norm(air) * air
        return force.sum(axis=0) - drag, torque

    def commands(self, thrust: float, torque: Float64[np.ndarray, " 3"]) -> Float64[np.ndarray, " rotors"]:
        """Speeds of the rotors, rad/s, for a collective thrust (N) and a torque (N m)."""
        thrusts = self.allocation @ np.concatenate([[thrust], torque])
        speeds = np.sqrt(np.maximum(thrusts, 0.0) / self.p["k_eta"])
        return np.clip(speeds, self.p["rotor_speed_min"], self.p["rotor_speed_max"])


class _Controller:
    def __init__(self, parameters: Parameters) -> None:
        p = parameters
        self.mass = p["mass"]
        self.inertia = np.array([p["Ixx"], p["Iyy"], p["Izz"]])
        gain = 1.0 / (_RATE_LAG * (p["tau_m"] + 2.0 * STEP))
        self.rate_gain = gain * np.array([1.0, 1.0, _YAW_SHARE])
        self.attitude_gain = _ATTITUDE_SHARE * self.rate_gain
        self.position_integral, self.rate_integral = np.zeros(3), np.zeros(3)

    def __call__(
        self,
        data: Any,
        R: Float64[np.ndarray, "3 3"],
        rate: Float64[np.ndarray, " 3"],
        wanted: Reference,
        k: int,
    ) -> tuple[float, Float64[np.ndarray, " 3"]]:
        """Collective thrust, N, and torque, N m."""
        error = wanted.position[k] - data.qpos[:3]
        self.position_integral += STEP * np.clip(error, -1.0, 1.0)
        velocity = wanted.velocity[k] + _POSITION * error
        acceleration = (
            wanted.acceleration[k]
            + _VELOCITY * (velocity - data.qvel[:3])
            + _INTEGRAL * self.position_integral
        )
        force = acceleration + np.array([0.0, 0.0, GRAVITY])
        force[2] = max(force[2], 0.3 * GRAVITY)
        across = float(np.linalg.norm(force[:2]))
        force[:2] *= min(1.0, math.tan(_TILT) * force[2] / max(across, 1e-9))
        z = force / np.linalg.norm(force)
        yaw = wanted.yaw[k]
        y = np.cross(z, [math.cos(yaw), math.sin(yaw), 0.0])
        y /= np.linalg.norm(y)
        tilt = Rotation.from_matrix(R.T @ np.stack([np.cross(y, z), y, z], axis=1)).as_rotvec()
        turn = R.T @ np.array([0.0, 0.0, wanted.yaw_rate[k]])
        rate_error = self.attitude_gain * tilt + turn - rate
        self.rate_integral += STEP * rate_error
        torque = self.inertia * self.rate_gain * (rate_error + 0.5 * self.rate_integral)
        return self.mass * float(force @ R[:, 2]), torque


def fly(
    parameters: Parameters,
    reference: Reference,
    wind: Float64[np.ndarray, "n 3"],
    gyroscope_noise: Float64[np.ndarray, "n 3"],
) -> Motion:
    """Fly set points, rows 4 ms apart.

    Args:
        parameters: of the vehicle, as RotorPy has them.
        reference: set points.
        wind: m/s, world; constant from row to row.
        gyroscope_noise: of the rates that the controller has, rad/s.
    Returns:
        The true motion.
    """
    import mujoco

    model, rotors, controller = _body(parameters), _Rotors(parameters), _Controller(parameters)
    data = mujoco.MjData(model)
    data.qpos[:3] = reference.position[0]
    mujoco.mj_forward(model, data)
    n, count = len(wind), len(rotors.position)
    rows = [np.empty((n, width)) for width in (3, 3, 4, 3, 3, count, count)]
    speed = np.full(count, hover_speed(parameters))
    decay = math.exp(-STEP / _SUBSTEPS / parameters["tau_m"])
    for k in range(n):
        R = data.xmat[1].reshape(3, 3)
        rate = data.qvel[3:].copy()
        force, _ = rotors.wrench(speed, R.T @ (data.qvel[:3] - wind[k]), rate)
        command = rotors.commands(*controller(data, R, rate + gyroscope_noise[k], reference, k))
        motion = (
            data.qpos[:3],
            data.qvel[:3],
            data.qpos[3:],
            rate,
            force / parameters["mass"],
            speed,
            command,
        )
        for column, value in zip(rows, motion, strict=True):
            column[k] = value
        for _ in range(_SUBSTEPS):
            speed = command + decay * (speed - command)
            R = data.xmat[1].reshape(3, 3)
            force, torque = rotors.wrench(speed, R.T @ (data.qvel[:3] - wind[k]), data.qvel[3:])
            data.xfrc_applied[1] = np.concatenate([R @ force, R @ torque])
            mujoco.mj_step(model, data)
    return Motion(*rows, wind=wind, mass=np.full(n, parameters["mass"]))
