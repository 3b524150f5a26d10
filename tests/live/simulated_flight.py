"""A quadrotor that PX4 flies, as MAVLink frames written with pymavlink: take-off, circles with the nose north, landing."""

from __future__ import annotations

import math
import random
import struct
from collections.abc import Callable, Iterator
from typing import Final

import numpy as np
from pymavlink.dialects.v20 import ardupilotmega as dialect

EPOCH: Final = 1_800_000_000_000_000_000
"""Arrival of the first message, ns since 1970."""

MASS: Final = 1.2
"""kg; the airframe px4-sih-quad says 1.0 +- 0.3."""

DRAG: Final = 0.5
"""N s/m."""

MAX_THRUST: Final = 20.0  # of four rotors, N
STEP: Final = 0.02  # s
TAKE_OFF, CRUISE = 3.0, 5.0  # s
_G: Final = 9.81
_RADIUS, _TURN = 4.0, 1.2  # m, rad/s

Piece = tuple[int, bytes]


class Sender:
    """Packs messages of one component as they are on the wire."""

    def __init__(self, system: int = 1, component: int = 1) -> None:
        self.mav = dialect.MAVLink(None, srcSystem=system, srcComponent=component)

    def __call__(self, name: str, *fields) -> bytes:
        packed = bytes(getattr(dialect, f"MAVLink_{name.lower()}_message")(*fields).pack(self.mav))
        self.mav.seq = (self.mav.seq + 1) % 256
        return packed


def heartbeat(send: Sender, kind: int = 2, autopilot: int = 12) -> bytes:
    return send("HEARTBEAT", kind, autopilot, 128, 0, 4, 3)


def motion(t: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Position, velocity and acceleration in NED at t, s: on the ground, up by 5 m, then circles that begin smoothly."""
    if t < TAKE_OFF:
        return np.zeros(3), np.zeros(3), np.zeros(3)
    s = min((t - TAKE_OFF) / (CRUISE - TAKE_OFF), 1.0)
    rise = np.array(
        [
            10 * s**3 - 15 * s**4 + 6 * s**5,
            30 * s**2 - 60 * s**3 + 30 * s**4,
            60 * s - 180 * s**2 + 120 * s**3,
        ]
    )
    rise *= -5.0 / (CRUISE - TAKE_OFF) ** np.arange(3)
    share, slope, a = _onset(t - CRUISE)
    angle = _TURN * (t - CRUISE)
    c, d = (
        np.array([1.0 - math.cos(angle), math.sin(angle)]),
        np.array([math.sin(angle), math.cos(angle)]) * _TURN,
    )
    e = np.array([math.cos(angle), -math.sin(angle)]) * _TURN**2
    level = _RADIUS * np.array([share * c, slope * c + share * d, a * c + 2 * slope * d + share * e])
    return tuple(np.array([*level[k], rise[k]]) for k in range(3))  # pyright: ignore[reportReturnType]


def _onset(t: float) -> tuple[float, float, float]:
    s = min(max(t / 2.0, 0.0), 1.0)
    return s**3 * (10 - 15 * s + 6 * s * s), 15 * s * s * (1 - s) ** 2, 15 * s * (1 - s) * (1 - 2 * s)


def flight(
    seconds: float,
    *,
    boot: float = 20.0,
    arrival: float = 0.0,
    start: float = 0.0,
    system: int = 1,
    seed: int = 0,
    push: Callable[[float], np.ndarray] = lambda t: np.zeros(3),
    motors: int = 1,
    left: Callable[[float], np.ndarray] = lambda t: np.ones(4),
    spin: Callable[[float], np.ndarray] = lambda t: np.zeros(3),
    mixer: np.ndarray | None = None,
    cause: str = "",
) -> Iterator[Piece]:
    """Frames from `start` to `seconds` of the motion, that first arrive at `arrival` s. boot: the vehicle's clock at motion
    time 0, s. push: a force from outside at a time of the motion, N, NED.
    motors: every so many steps rotor commands are sent; beyond 1, the collective command is sent at every step.
    left: share of its thrust that each rotor has at a time of the motion; its command is larger by as much.
    spin: body rate beside that of the motion at a time of the motion, rad/s, FRD.
    mixer: command of each rotor per angular acceleration, s^2, FRD; which also brake
    the spin; None: the motors do not turn the vehicle.
    cause: why rotors have less left, "motor" or "propeller"; the speeds of the rotors are then sent at 10 Hz."""
    rng, send = np.random.default_rng(seed), Sender(system)
    previous, last_rate = None, np.zeros(3)
    for k in range(round(start / STEP), round(seconds / STEP)):
        t = k * STEP
        at = EPOCH + round((arrival + t - start) * 1e9)
        p, v, a = motion(t)
        force = MASS * (a - np.array([0, 0, _G])) + DRAG * v - push(t)  # of the rotors, NED
        flying = t >= TAKE_OFF
        q = _attitude(force if flying else np.array([0, 0, -1.0]))
        rate = np.zeros(3) if previous is None else _rate(previous, q) / STEP
        previous = q
        turning = np.zeros(4) if mixer is None else mixer @ ((rate - last_rate) / STEP - 12.0 * spin(t))
        last_rate = rate
        rate = rate + 0.005 * rng.normal(size=3) + spin(t)
        # the thrust lags by 0.05 s behind the command: what is sent is ahead by as much
        later = motion(t + 0.05)
        ahead = MASS * (later[2] - np.array([0, 0, _G])) + DRAG * later[1] - push(t + 0.05)
        ahead = float(np.linalg.norm(ahead))
        command = (ahead if t + 0.05 >= TAKE_OFF else 1.0) / MAX_THRUST
        felt = _turned(q, a - np.array([0, 0, _G]))
        felt = felt + 0.1 * rng.normal(size=3)
        us, ms = round((boot + t) * 1e6), round((boot + t) * 1e3)
        if k % 50 == 0 or k == round(start / STEP):
            yield at, heartbeat(send)
        if k % 10 == 0:
            yield at, send("EXTENDED_SYS_STATE", 0, 2 if flying else 1)
        if k % motors == 0:
            yield (
                at,
                send(
                    "ACTUATOR_OUTPUT_STATUS",
                    us,
                    16,
                    [*(1000.0 + 1000.0 * np.clip((command + turning) / left(t), 0.0, 1.0)), *[0.0] * 28],
                ),
            )
        if cause and k % 5 == 0:
            thrust = np.linalg.norm(force) / MAX_THRUST / (1.0 if cause == "motor" else left(t))
            rpm = np.round(8000.0 * np.sqrt(thrust) * (1.0 + 0.005 * rng.normal(size=4))).astype(int).tolist()
            zeros = [0] * 4
            yield at, send("ESC_TELEMETRY_1_TO_4", zeros, zeros, zeros, zeros, rpm, zeros)
        if motors > 1:
            yield at, send("ATTITUDE_TARGET", ms, 0, [1.0, 0.0, 0.0, 0.0], 0.0, 0.0, 0.0, command)
        yield at, send("HIGHRES_IMU", us, *felt, *rate, 0, 0, 0, 0, 0, 0, 0, 63)
        yield at, send("ATTITUDE_QUATERNION", ms, *q, *rate)
        noisy = v + 0.03 * rng.normal(size=3)
        yield at + 1_000_000, send("LOCAL_POSITION_NED", ms, *p, *noisy)


def _attitude(force: np.ndarray) -> np.ndarray:
    """FRD to NED, nose north, whose down axis is against the force."""
    down = -force / np.linalg.norm(force)
    pitch = math.atan2(down[0], down[2])
    roll = math.asin(-down[1])
    (cr, sr), (cp, sp) = ((math.cos(x / 2), math.sin(x / 2)) for x in (roll, pitch))
    return np.array([cr * cp, sr * cp, cr * sp, -sr * sp])


def _multiply(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    return np.concatenate(
        [[p[0] * q[0] - p[1:] @ q[1:]], p[0] * q[1:] + q[0] * p[1:] + np.cross(p[1:], q[1:])]
    )


def _turned(q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """A vector of the world in the body."""
    inverse = q * np.array([1, -1, -1, -1])
    return _multiply(_multiply(inverse, np.array([0.0, *v])), q)[1:]


def _rate(before: np.ndarray, q: np.ndarray) -> np.ndarray:
    """The turn from one attitude to the next, rad, body."""
    turn = _multiply(before * np.array([1, -1, -1, -1]), q)
    return 2.0 * turn[1:] * math.copysign(1.0, turn[0])


def tlog(pieces: list[Piece]) -> bytes:
    """The file that a ground station writes."""
    return b"".join(struct.pack(">Q", at // 1000) + data for at, data in pieces)


def disturbed(pieces: list[Piece], *, loss: float, jitter: float, seed: int = 1) -> list[Piece]:
    """The same over a link that loses a share of them and delays each by up to `jitter` s."""
    rng = random.Random(seed)
    kept = [(at + round(rng.uniform(0.0, jitter) * 1e9), data) for at, data in pieces if rng.random() >= loss]
    return sorted(kept, key=lambda piece: piece[0])
