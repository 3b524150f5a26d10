"""Reference trajectories of a multirotor (SESAME D2.2, figure 5).

Each trajectory is a raw path over time, drawn by seed and smoothed by a cascade of four moving averages of width w. The result
has a continuous jerk; a change of velocity by dv needs an acceleration of at most 2 dv / (3 w). Attitude, thrust and body rate
follow by differential flatness. All trajectories begin with a hover of 1 s at a height of 3 m, heading along +x.

    name        drawn for each seed                                              acceleration
    random      corners in a box of 10 x 10 x 3 m, each leg at 2 to 4 m/s        below 7 m/s^2
    loop        radius 2 to 4 m, height +- 0.3 to 1 m, heading along the path    3 to 6 m/s^2 towards the centre
    lemniscate  half length 2.5 to 4 m, height +- 0.3 to 0.8 m                   at most 11 to 14 m/s^2
    zigzag      legs of 4 to 7 m, 1 to 2 m apart, height +- 0.5 m, 2 to 3.5 m/s  below 7 m/s^2
    square      sides of 3 to 6 m, height +- 0.5 m, 2 to 4 m/s                   below 7 m/s^2

The lemniscate is aggressive: with a mass above the nominal one, the thrust reaches its limit.

Reference: D. Mellinger, V. Kumar, Minimum snap trajectory generation and control for quadrotors, ICRA 2011.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np
from jaxtyping import Float64

from rotorid.errors import SettingError
from rotorid.models.system import GRAVITY

RATE = 100
"""Rows per second of a reference."""

HOVER = 1.0
"""Duration of the hover at the start, s."""

HEIGHT = 3.0
"""Height of the hover at the start, m."""

_FINE = 10  # steps of the raw path per row
_STEP = 1.0 / (RATE * _FINE)
_MAX_ACCELERATION = 7.0  # m/s^2, at corners
_RAMP = 3.0  # s until a curve is flown at full speed

Path = tuple[Float64[np.ndarray, "n 3"], Float64[np.ndarray, " n"]]
"""Position in m (world) and yaw in rad at given times."""


@dataclasses.dataclass(frozen=True)
class Reference:
    """A trajectory with the inputs that fly it, one row every 1 / RATE s from t = 0.

    position (m), velocity (m/s), acceleration (m/s^2): world. attitude: quaternion, body to world. body_rate: rad/s, body.
    thrust: N, for the mass of the reference.
    """

    times: Float64[np.ndarray, " n"]
    position: Float64[np.ndarray, "n 3"]
    velocity: Float64[np.ndarray, "n 3"]
    acceleration: Float64[np.ndarray, "n 3"]
    attitude: Float64[np.ndarray, "n 4"]
    body_rate: Float64[np.ndarray, "n 3"]
    thrust: Float64[np.ndarray, " n"]


def reference(name: str, seed: int, duration: float, *, mass: float = 1.0) -> Reference:
    """Make a reference trajectory.

    Args:
        name: one of `TRAJECTORIES`.
        seed: of sizes and speeds.
        duration: s; the reference has one row more.
        mass: for the thrust, kg.
    Raises:
        SettingError: an unknown name.
    """
    if name not in _PATHS:
        raise SettingError(f"no trajectory {name!r}; there are {', '.join(TRAJECTORIES)}")
    rng = np.random.default_rng([seed, TRAJECTORIES.index(name)])
    return reference_along(*_PATHS[name](rng, duration), duration=duration, mass=mass)


def reference_along(
    raw: Callable[[Float64[np.ndarray, " n"]], Path], width: float, *, duration: float, mass: float
) -> Reference:
    """Make a reference along a raw path.

    Args:
        raw: path over the time since the end of the hover, s (negative before it).
        width: of the moving averages, s.
        duration: s; the reference has one row more.
        mass: for the thrust, kg.
    """
    half = max(1, round(0.5 * width / _STEP))
    margin = 4 * half + 1  # samples on each side for the averages and the differences
    count = round(duration * RATE) * _FINE + 1
    t = _STEP * np.arange(-margin, count + margin)
    position, yaw = raw(t - HOVER - _STEP * 4 * half)
    smooth = _average(np.column_stack([position, yaw]), 2 * half + 1)
    first = (smooth[2:] - smooth[:-2]) / (2.0 * _STEP)
    second = (smooth[2:] - 2.0 * smooth[1:-1] + smooth[:-2]) / _STEP**2
    acceleration, yaw = second[:, :3], smooth[1:-1, 3]
    force = acceleration + np.array([0.0, 0.0, GRAVITY])
    attitude = _attitude(force, yaw)
    rows = slice(None, None, _FINE)
    return Reference(
        times=np.arange(count // _FINE + 1) / RATE,
        position=smooth[1:-1][rows, :3],
        velocity=first[rows, :3],
        acceleration=acceleration[rows],
        attitude=attitude[rows],
        body_rate=_body_rate(attitude)[rows],
        thrust=mass * np.linalg.norm(force, axis=1)[rows],
    )


def _average(x: Float64[np.ndarray, "n k"], width: int) -> Float64[np.ndarray, "m k"]:
    """A cascade of four moving averages; the result is 4 (width - 1) samples shorter."""
    for _ in range(4):
        total = np.cumsum(np.vstack([np.zeros((1, x.shape[1])), x - x[:1]]), axis=0)
        x = (total[width:] - total[:-width]) / width + x[:1]
    return x


def _attitude(
    force: Float64[np.ndarray, "n 3"], yaw: Float64[np.ndarray, " n"]
) -> Float64[np.ndarray, "n 4"]:
    """The attitude with this yaw and the body z axis along the force: yaw, followed by the smallest tilt."""
    c, s = np.cos(yaw), np.sin(yaw)
    z = force / np.linalg.norm(force, axis=1, keepdims=True)
    forward, left = c * z[:, 0] + s * z[:, 1], c * z[:, 1] - s * z[:, 0]
    w = np.sqrt(0.5 * (1.0 + z[:, 2]))
    x, y = -0.5 * left / w, 0.5 * forward / w
    c, s = np.cos(0.5 * yaw), np.sin(0.5 * yaw)
    return np.column_stack([c * w, c * x - s * y, c * y + s * x, s * w])


def _body_rate(q: Float64[np.ndarray, "n 4"]) -> Float64[np.ndarray, "n 3"]:
    """Body rate, the vector part of 2 q^-1 (x) q', rad/s."""
    r = np.gradient(q, _STEP, axis=0)
    w, v, rw, rv = q[:, :1], q[:, 1:], r[:, :1], r[:, 1:]
    return 2.0 * (w * rv - rw * v - np.cross(v, rv))


# --- raw paths: path over time, and width of the averages -----------------------------------------------


def straight_legs(points: np.ndarray, speeds: np.ndarray) -> tuple[Callable[[np.ndarray], Path], float]:
    """Straight legs between points, each at its speed (m/s). The averages are as wide as the sharpest corner requires."""
    leg = np.diff(points, axis=0)
    length = np.linalg.norm(leg, axis=1)
    arrival = np.concatenate([[0.0], np.cumsum(length / speeds)])
    velocity = leg * (speeds / length)[:, None]
    change = np.linalg.norm(np.diff(velocity, axis=0, prepend=np.zeros((1, 3))), axis=1).max()

    def path(t: np.ndarray) -> Path:
        return np.column_stack([np.interp(t, arrival, axis) for axis in points.T]), np.zeros_like(t)

    return path, 2.0 * change / (3.0 * _MAX_ACCELERATION)


def _phase(t: np.ndarray, rate: float) -> np.ndarray:
    """An angle whose rate increases from 0 at t = 0 to `rate` (rad/s) at the end of the ramp."""
    t = np.maximum(t, 0.0)
    return rate * np.where(t < _RAMP, 0.5 * t * t / _RAMP, t - 0.5 * _RAMP)


def _random(rng: np.random.Generator, duration: float):
    points, time, speeds = [np.array([0.0, 0.0, HEIGHT])], 0.0, []
    while time < duration + 5.0:
        corner = rng.uniform([-5.0, -5.0, 1.5], [5.0, 5.0, 4.5])
        if np.linalg.norm(corner - points[-1]) < 2.5:
            continue
        speeds.append(rng.uniform(2.0, 4.0))
        time += np.linalg.norm(corner - points[-1]) / speeds[-1]
        points.append(corner)
    return straight_legs(np.array(points), np.array(speeds))


def _loop(rng: np.random.Generator, duration: float):
    radius, acceleration, rise = rng.uniform(2.0, 4.0), rng.uniform(3.0, 6.0), rng.uniform(0.3, 1.0)
    side = rng.choice([-1.0, 1.0])

    def path(t: np.ndarray) -> Path:
        angle = _phase(t, np.sqrt(acceleration / radius))
        x, y = radius * np.sin(angle), side * radius * (1.0 - np.cos(angle))
        return np.column_stack([x, y, HEIGHT + rise * np.sin(angle)]), side * angle

    return path, 0.1


def _lemniscate(rng: np.random.Generator, duration: float):
    length, rise, max_acceleration = rng.uniform(2.5, 4.0), rng.uniform(0.3, 0.8), rng.uniform(11.0, 14.0)
    angle = np.linspace(0.0, 2.0 * np.pi, 1000)
    unit = np.column_stack([length * np.sin(angle), 2.0 * length * np.sin(2.0 * angle), rise * np.sin(angle)])
    rate = np.sqrt(max_acceleration / np.linalg.norm(unit, axis=1).max())

    def path(t: np.ndarray) -> Path:
        a = _phase(t, rate)
        xyz = np.column_stack([length * np.sin(a), 0.5 * length * np.sin(2.0 * a), HEIGHT + rise * np.sin(a)])
        return xyz, np.zeros_like(t)

    return path, 0.1


def _zigzag(rng: np.random.Generator, duration: float):
    across, advance, speed = rng.uniform(4.0, 7.0), rng.uniform(1.0, 2.0), rng.uniform(2.0, 3.5)
    count = int(speed * (duration + 5.0) / across) + 2
    i = np.arange(count)
    points = np.column_stack(
        [advance * i, across * (i % 2), HEIGHT + 0.5 * (i % 2) * np.where(i % 4 == 1, 1.0, -1.0)]
    )
    return straight_legs(points, np.full(count - 1, speed))


def _square(rng: np.random.Generator, duration: float):
    side, speed = rng.uniform(3.0, 6.0), rng.uniform(2.0, 4.0)
    count = int(speed * (duration + 5.0) / side) + 2
    i = np.arange(count)
    corners = side * np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]])[i % 4]
    height = HEIGHT + 0.5 * (i % 2) * np.where(i % 4 == 1, 1.0, -1.0)
    return straight_legs(np.column_stack([corners, height]), np.full(count - 1, speed))


_PATHS = {
    "random": _random,
    "loop": _loop,
    "lemniscate": _lemniscate,
    "zigzag": _zigzag,
    "square": _square,
}

TRAJECTORIES = tuple(_PATHS)
"""Names of the trajectories."""
