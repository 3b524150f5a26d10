"""A sprayer over a field: rows flown to and fro, with the valve open along them and shut in the turns.

The mass falls at a constant rate while the valve is open, from a full tank to an empty one.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Float64

from rotorid.errors import SettingError
from rotorid.logs.flight import Flight
from rotorid.simulation.flight import STEPS, flight_wind, horizon_length, to_log, track_reference
from rotorid.simulation.plant import Plant
from rotorid.simulation.profiles import NOMINAL_MASS
from rotorid.simulation.sensors import Sensors, draw_noise
from rotorid.simulation.trajectories import RATE, reference_along, straight_legs

_STREAM = 200  # of random numbers, apart from those of the other flights
_HEIGHT = 3.0  # m


def simulate_spraying(
    seed: int = 0,
    *,
    duration: float = 40.0,
    sensors: Sensors = Sensors(),  # noqa: B008
    plant: Plant = Plant(),  # noqa: B008
) -> Flight:
    """A flight of a sprayer, as a log with the same signals as `simulate` gives.

    Drawn by seed: rows of 8 to 12 m, 1.5 to 2.5 m apart, flown at 2.5 to 3.5 m/s; 1.2 to 1.3 kg with a full
    tank, 0.75 to 0.85 kg with an empty one. duration: s.
    """
    if duration <= 0 or seed < 0:
        raise SettingError(
            f"a flight of {duration:g} s with seed {seed}: the duration must be positive, the seed 0 or more"
        )
    rng = np.random.default_rng([seed, _STREAM])
    length, apart, speed = rng.uniform(8.0, 12.0), rng.uniform(1.5, 2.5), rng.uniform(2.5, 3.5)
    full, empty = rng.uniform(1.2, 1.3), rng.uniform(0.75, 0.85)
    i = np.arange(2 * int(speed * (duration + 5.0) / length) + 4)
    corners = np.column_stack([length * ((i + 1) // 2 % 2), apart * (i // 2), np.full(len(i), _HEIGHT)])
    wanted = reference_along(
        *straight_legs(corners, np.full(len(i) - 1, speed)),
        duration=duration + horizon_length(),
        mass=NOMINAL_MASS,
    )
    n = round(duration * RATE) + 1
    mass = _mass(np.abs(wanted.velocity[: n + 1, 0]) > 0.9 * speed, full, empty)
    fine = np.linspace(mass[:-1], mass[1:], 2 * STEPS + 1, axis=1)[:, 1::2]
    noise = draw_noise(sensors, n, [seed, _STREAM])
    flown = track_reference(wanted, mass[:n], fine, noise, plant, flight_wind(plant, n, [seed, _STREAM]))
    return to_log(flown, noise, sensors, plant, name=f"spraying-{seed}")


def _mass(open_valve: Bool[np.ndarray, " n"], full: float, empty: float) -> Float64[np.ndarray, " n"]:
    """Mass in kg: what is left after the part of the open time that has passed."""
    passed = np.concatenate([[0.0], np.cumsum(open_valve[:-1])])
    return full - (full - empty) * passed / max(passed[-1], 1.0)
