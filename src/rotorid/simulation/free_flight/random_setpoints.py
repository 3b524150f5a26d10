"""Random set points of flights that excite all axes: a climb, figures in space, and excitations.

All have the same structure, so that one compiled program flies them. Sizes, periods, frequencies and phases are drawn by seed.

    part of the flight   content
    0.03 to 0.10         a climb with a horizontal move and a yaw rotation
    0.10 to 0.60         a Lissajous figure of 0.8 to 2 m with a yaw oscillation
    0.15 to 0.95         multisines on yaw rate (0.3 to 0.6 rad/s) and thrust (5 to 12 % of the weight)
    0.50 to 0.75         a chirp on the rate about x, 0.8 to 1.4 rad/s, from 0.6 Hz to 3 to 6 Hz
    0.65 to 0.90         a chirp on the rate about y, likewise
"""

from __future__ import annotations

import math

import numpy as np

from rotorid.control.setpoints import Chirp, Lissajous, Move, Multisine, Setpoints
from rotorid.errors import SettingError

_STREAM = 300  # of random numbers; the instruments use other streams
_YAW_FREQUENCIES = (0.4, 0.9, 1.7, 2.9)  # Hz
_THRUST_FREQUENCIES = (0.3, 0.7, 1.3, 2.3, 3.7)  # Hz


def draw_setpoints(seed: int, duration: float, *, excitation: float = 1.0) -> Setpoints:
    """Draw the set points of a random flight.

    Args:
        seed: seed of sizes, periods, frequencies and phases, 0 or more.
        duration: duration of the flight, s, 8 or more.
        excitation: factor on the amplitude of chirps and multisines; 0: none.
    Returns:
        Set points, for `fly`.
    Raises:
        SettingError: a duration below 8 s, or a negative seed.
    """
    if seed < 0 or duration < 8.0:
        raise SettingError(
            f"set points of {duration:g} s with seed {seed}: give 8 s or more and a seed of 0 or more"
        )
    rng = np.random.default_rng([seed, _STREAM])

    def number(low: float, high: float) -> float:
        return float(rng.uniform(low, high))

    def signed(low: float, high: float) -> float:
        return float(rng.choice([-1.0, 1.0])) * number(low, high)

    def phases(count: int) -> tuple[float, ...]:
        return tuple(rng.uniform(0.0, 2.0 * math.pi, count).tolist())

    d = duration
    climb = Move(0.03 * d, 0.07 * d, (signed(0.3, 0.8), signed(0.3, 0.8), number(0.2, 0.6)), signed(0.4, 1.2))
    figure = Lissajous(
        0.10 * d,
        0.50 * d,
        (number(0.8, 2.0), number(0.8, 2.0), number(0.2, 0.5)),
        (number(4.0, 7.0), number(2.5, 5.0), number(2.5, 6.0)),
        (0.0, number(0.0, 2.0 * math.pi), 0.0),
        ramp=0.06 * d,
        yaw_amplitude=number(0.3, 0.8),
        yaw_period=number(4.0, 8.0),
    )
    s = excitation
    excitations = (
        Chirp("rate_x", s * number(0.8, 1.4), 0.50 * d, 0.25 * d, 0.6, number(3.0, 6.0)),
        Chirp("rate_y", s * number(0.8, 1.4), 0.65 * d, 0.25 * d, 0.6, number(3.0, 6.0)),
        Multisine(
            "rate_z", s * number(0.3, 0.6), 0.15 * d, 0.8 * d, _YAW_FREQUENCIES, phases(len(_YAW_FREQUENCIES))
        ),
        Multisine(
            "thrust",
            s * number(0.05, 0.12),
            0.15 * d,
            0.8 * d,
            _THRUST_FREQUENCIES,
            phases(len(_THRUST_FREQUENCIES)),
        ),
    )
    return Setpoints(moves=(climb, figure), excitations=excitations)
