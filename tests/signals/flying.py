"""A flight whose every property is known: ground, take-off, figures, landing, at 100 Hz.

The vehicle weighs 1 kg and has four rotors of 5 N each, linear in the command, 40 ms late. It flies a
Lissajous figure with drag 0.3 N/(m/s); tilt follows from the acceleration, yaw swings, so that all signals
agree exactly but for noise.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from rotorid.logs.flight import Flight, Signal

GRAVITY = 9.81
LIFT_OFF, TOUCH_DOWN, END = 5.0, 45.0, 50.0
DELAY = 0.04


def make_flight(seed: int = 0, leave_out: tuple[str, ...] = (), rate: float = 100.0) -> Flight:
    """The flight, without the signals named in `leave_out`."""
    rng = np.random.default_rng(seed)
    t = np.arange(0.0, END, 1.0 / rate)
    fine = np.arange(-1.0, END + 1.0, 1e-3)
    p, v, a = _path(fine)
    force = a + np.array([0.0, 0.0, GRAVITY]) + 0.3 * v
    thrust = np.linalg.norm(force, axis=1)
    z = force / thrust[:, None]
    q = np.stack([1.0 + z[:, 2], -z[:, 1], z[:, 0], np.zeros(len(z))], axis=1)
    q /= np.linalg.norm(q, axis=1, keepdims=True)
    q = _turned_about_z(q, 0.8 * np.sin(1.7 * fine) * _cruise(fine))
    turn = 2.0 * _vector_product(q[:-1], q[1:]) / 1e-3
    w = np.vstack([turn, turn[-1]])
    specific = _to_body(q, a + np.array([0.0, 0.0, GRAVITY]))
    motors = (fine > LIFT_OFF - 1.5) & (fine < TOUCH_DOWN + 0.5)
    command = np.where(motors, thrust / 20.0, 0.0)
    spool = (fine > LIFT_OFF - 1.5) & (fine < LIFT_OFF - 0.2)
    command[spool] *= 0.5

    def at(times: np.ndarray, x: np.ndarray) -> np.ndarray:
        return np.stack([np.interp(times, fine, c) for c in x.reshape(len(fine), -1).T], axis=1)

    def noisy(x: np.ndarray, sigma: float) -> np.ndarray:
        return x + sigma * rng.standard_normal(x.shape)

    q_t = noisy(at(t, q), 5e-4)
    quad = 1.0 + 0.02 * np.sin(3.0 * t[:, None]) * np.array([1.0, -1.0, 1.0, -1.0])
    signals = {
        "position": noisy(at(t, p), 0.005),
        "velocity": noisy(at(t, v), 0.01),
        "attitude": q_t / np.linalg.norm(q_t, axis=1, keepdims=True),
        "body_rate": noisy(at(t, w), 0.005),
        "specific_force": noisy(at(t, specific), 0.05),
        "rotor_command": np.clip(noisy(at(t + DELAY, command) * quad, 0.001), 0.0, 1.0),
        "battery_voltage": 16.0 - 0.02 * t[:, None],
    }
    return Flight(
        signals={n: Signal(n, t.copy(), x, "made") for n, x in signals.items() if n not in leave_out},
        source=Path("made.csv"),
        format="table-csv",
    )


def change(flight: Flight, name: str, values: np.ndarray, times: np.ndarray | None = None) -> Flight:
    """The flight with other values, and times, of one signal."""
    signal = flight[name]
    return flight.with_signals(Signal(name, signal.times if times is None else times, values, signal.source))


def cut(flight: Flight, start: float, end: float) -> Flight:
    """The part of a flight from start to end, s."""
    signals = []
    for s in flight.signals.values():
        keep = (s.times >= start) & (s.times <= end)
        signals.append(Signal(s.name, s.times[keep], s.values[keep], s.source))
    return flight.with_signals(*signals)


def without(flight: Flight, start: float, end: float, *names: str) -> Flight:
    """The flight with a gap from start to end, s, in the named signals, or in all."""
    signals = []
    for s in flight.signals.values():
        if names and s.name not in names:
            continue
        keep = (s.times <= start) | (s.times >= end)
        signals.append(Signal(s.name, s.times[keep], s.values[keep], s.source))
    return flight.with_signals(*signals)


def _path(t: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Position, velocity, acceleration: up to 10 m, figures of changing phase, and down again."""
    up = 10.0 * (_step((t - LIFT_OFF) / 5.0) - _step((t - TOUCH_DOWN + 5.0) / 5.0))
    inside = _cruise(t)
    east = 5.0 * np.sin(0.8 * t) * inside
    north = 4.0 * np.sin(1.1 * t) * inside
    bounce = (0.5 * np.sin(2.3 * t) + 0.02 * np.sin(9.0 * t)) * inside
    p = np.stack([east, north, up + bounce], axis=1)
    v = np.gradient(p, t, axis=0)
    return p, v, np.gradient(v, t, axis=0)


def _cruise(t: np.ndarray) -> np.ndarray:
    """1 between take-off and landing."""
    return _step((t - LIFT_OFF - 4.0) / 3.0) * (1.0 - _step((t - TOUCH_DOWN + 7.0) / 3.0))


def _step(x: np.ndarray) -> np.ndarray:
    """From 0 to 1 with three continuous derivatives."""
    x = np.clip(x, 0.0, 1.0)
    return x**4 * (35.0 - 84.0 * x + 70.0 * x**2 - 20.0 * x**3)


def _turned_about_z(q: np.ndarray, angle: np.ndarray) -> np.ndarray:
    w, x, y, z = q.T
    c, s = np.cos(angle / 2), np.sin(angle / 2)
    return np.stack([w * c - z * s, x * c + y * s, y * c - x * s, z * c + w * s], axis=1)


def _vector_product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Vector part of a^-1 b."""
    return a[:, :1] * b[:, 1:] - b[:, :1] * a[:, 1:] - np.cross(a[:, 1:], b[:, 1:])


def _to_body(q: np.ndarray, v: np.ndarray) -> np.ndarray:
    axis = -q[:, 1:]
    t = 2.0 * np.cross(axis, v)
    return v + q[:, :1] * t + np.cross(axis, t)
