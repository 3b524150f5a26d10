"""A simulated sprayer: parallel rows over a field, with an open valve along the rows and a closed one in the turns.

The mass decreases at a constant rate while the valve is open, from a full to an empty tank.
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

_STREAM = 200  # of random numbers; other flights use other streams
_HEIGHT = 3.0  # m


def simulate_spraying(
    seed: int = 0,
    *,
    duration: float = 40.0,
    sensors: Sensors = Sensors(),  # noqa: B008
    plant: Plant = Plant(),  # noqa: B008
) -> Flight:
    """Simulate a flight of a sprayer. The log has the same signals as that of `simulate`.

    Drawn by seed: rows of 8 to 12 m length at a distance of 1.5 to 2.5 m, a speed of 2.5 to 3.5 m/s, 1.2 to 1.3 kg with a
    full tank, and 0.75 to 0.85 kg with an empty one.

    Args:
        seed: 0 or more.
        duration: s.
        sensors: of the vehicle.
        plant: motor lag, drag, wind and thrust limits.
    Raises:
        SettingError: a negative seed, or a duration that is not positive.
    """
    if duration <= 0 or seed < 0:
        raise SettingError(
            f"a flight of {duration:g} s with seed {seed}: the duration must be positive, the seed 0 or more"
        )
    rng = np.random.default_rng([seed, _STREAM])
    length, distance, speed = rng.uniform(8.0, 12.0), rng.uniform(1.5, 2.5), rng.uniform(2.5, 3.5)
    full, empty = rng.uniform(1.2, 1.3), rng.uniform(0.75, 0.85)
    i = np.arange(2 * int(speed * (duration + 5.0) / length) + 4)
    corners = np.column_stack([length * ((i + 1) // 2 % 2), distance * (i // 2), np.full(len(i), _HEIGHT)])
    wanted = reference_along(
        *straight_legs(corners, np.full(len(i) - 1, speed)),
        duration=duration + horizon_length(),
        mass=NOMINAL_MASS,
    )
    n = round(duration * RATE) + 1
    mass = _mass(np.abs(wanted.velocity[: n + 1, 0]) > 0.9 * speed, full, empty)
    step_masses = np.linspace(mass[:-1], mass[1:], 2 * STEPS + 1, axis=1)[:, 1::2]
    noise = draw_noise(sensors, n, [seed, _STREAM])
    truth = track_reference(
        wanted, mass[:n], step_masses, noise, plant, flight_wind(plant, n, [seed, _STREAM])
    )
    return to_log(truth, noise, sensors, plant, name=f"spraying-{seed}")


def _mass(open_valve: Bool[np.ndarray, " n"], full: float, empty: float) -> Float64[np.ndarray, " n"]:
    """Mass in each row, kg: it decreases from full to empty while the valve is open."""
    open_rows = np.concatenate([[0.0], np.cumsum(open_valve[:-1])])
    return full - (full - empty) * open_rows / max(open_rows[-1], 1.0)
