"""A vehicle that takes off, hovers, gains or loses a payload, and lands, in one dimension at 50 Hz, with known contacts."""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from rotorid.signals.phases.phase import PhaseRow

STEP = 0.02  # s
CHANGE = 12.0  # s, of the payload
DESCENT = 20.0  # s
END = 44.0  # s
_G, _LAG, _FINE = 9.81, 0.05, 10


@dataclasses.dataclass(frozen=True)
class VerticalFlight:
    """Rows, and true times of lift-off, first touch-down and last touch-down, s."""

    rows: list[PhaseRow]
    lift_off: float
    touch_down: float
    last_touch_down: float


def fly(
    seed: int,
    *,
    payload: float = 0.0,
    restitution: float = 0.0,
    descent: float = 0.5,
    noise: float = 0.3,
    drift: float = 1.0,
    nominal: float = 1.0,
    has_velocity: bool = True,
    drag: float = 0.0,
) -> VerticalFlight:
    """Fly.

    Args:
        seed: of the noise.
        payload: added at `CHANGE`, over the mass of the vehicle.
        restitution: of the ground.
        descent: speed, m/s.
        noise: of the specific force, m/s^2.
        drift: of the measured height from take-off to landing, m.
        nominal: nominal over true weight.
        has_velocity: whether the climb rate is measured.
        drag: over the weight of the vehicle, s/m.
    """
    rng = np.random.default_rng(seed)
    z = v = thrust = integral = 0.0  # over the weight without payload
    mass, low_since, is_armed = 1.0, math.inf, True
    rows, contacts, lift_off = [], [], math.nan
    for k in range(round(END / STEP)):
        t = k * STEP
        if t >= CHANGE:
            mass = 1.0 + payload
        wanted = _set_point(t, z, descent)
        integral = min(max(integral + 0.4 * STEP * (wanted - v), -1.2), 0.8)
        command = min(max(1.0 + 0.6 * (wanted - v) + integral, 0.08), 1.8) if t > 2.0 else 0.08
        if t < 4.0:
            command, integral = min(command, 0.08 + 0.45 * max(t - 2.0, 0.0)), 0.0
        low_since = min(low_since, t) if t > DESCENT and command < 0.3 else math.inf
        is_armed = is_armed and t < low_since + 1.0
        command = command if is_armed else 0.0
        support = 0.0
        for _ in range(_FINE):
            h = STEP / _FINE
            thrust += h / _LAG * (command - thrust)
            a = _G * ((thrust - drag * v) / mass - 1.0)
            if z <= 0.0 and a <= 0.0 and v <= 0.01:
                support, v, z = support - a / _FINE, 0.0, 0.0
                continue
            if math.isnan(lift_off):
                lift_off = t
            v, z = v + h * a, z + h * v
            if z <= 0.0 and v < 0.0:
                contacts.append(t)
                support += (1.0 + restitution) * -v / STEP
                v, z = -restitution * v if v < -0.05 else 0.0, 0.0
        force = _G * (thrust - drag * v) / mass + support + noise * rng.standard_normal()
        rows.append(
            PhaseRow(
                t,
                tuple(command / nominal * share for share in (0.26, 0.24, 0.25, 0.25)),
                (0.05 * rng.standard_normal(), 0.05 * rng.standard_normal(), force),
                abs(0.02 * rng.standard_normal()),
                z + drift * min(t / END, 1.0) + 0.02 * rng.standard_normal(),
                v + 0.05 * rng.standard_normal() if has_velocity else math.nan,
                abs(0.05 * rng.standard_normal()),
            )
        )
    landed = [t for t in contacts if t > DESCENT]
    return VerticalFlight(rows, lift_off, landed[0], landed[-1])


def _set_point(t: float, z: float, descent: float) -> float:
    """Climb rate, m/s."""
    if t < 4.0:
        return 1.0
    return -descent if t > DESCENT else min(max(1.0 * (4.0 - z), -1.0), 1.0)
