"""Mass profiles: the mass over a flight, within 30 % of a nominal mass of 1 kg (SESAME D2.2, figure 5).

In the order of types 0 to 4 of the paper. For each seed, a and b are drawn from 0.1 to 0.3, and c from the given range:

    linear        from 1 + a to 1 - b at a constant rate
    exponential   from 1 + a towards 1 - b, with a time constant of c = 0.15 to 0.4 of the flight
    step          1 + a, then 1 - b from c = 0.3 to 0.7 of the flight on
    sine          1 + a sin(2 pi t / c + phase), c = 0.4 to 1 of the flight
    steps         4 to 6 levels within 30 %; neighbours differ by 0.1 or more, and each lasts 0.08 of the flight or longer
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float64

from rotorid.errors import SettingError

NOMINAL_MASS = 1.0
"""Nominal mass, kg, which the controller assumes."""


def mass_profile(
    name: str, seed: int, times: Float64[np.ndarray, " n"], duration: float, *, nominal: float = NOMINAL_MASS
) -> Float64[np.ndarray, " n"]:
    """Mass over a flight.

    Args:
        name: one of `MASS_PROFILES`.
        seed: of the profile's parameters.
        times: s.
        duration: of the flight, s.
        nominal: nominal mass, kg.
    Returns:
        Mass at the times, kg.
    Raises:
        SettingError: an unknown profile.
    """
    if name not in _PROFILES:
        raise SettingError(f"no mass profile {name!r}; there are {', '.join(MASS_PROFILES)}")
    rng = np.random.default_rng([seed, 100 + MASS_PROFILES.index(name)])
    return nominal * _PROFILES[name](rng, np.asarray(times) / duration)


def _linear(rng: np.random.Generator, s: np.ndarray) -> np.ndarray:
    above, below = rng.uniform(0.1, 0.3, size=2)
    return 1.0 + above - (above + below) * np.clip(s, 0.0, 1.0)


def _exponential(rng: np.random.Generator, s: np.ndarray) -> np.ndarray:
    above, below = rng.uniform(0.1, 0.3, size=2)
    return 1.0 - below + (above + below) * np.exp(-s / rng.uniform(0.15, 0.4))


def _step(rng: np.random.Generator, s: np.ndarray) -> np.ndarray:
    above, below = rng.uniform(0.1, 0.3, size=2)
    return np.where(s < rng.uniform(0.3, 0.7), 1.0 + above, 1.0 - below)


def _sine(rng: np.random.Generator, s: np.ndarray) -> np.ndarray:
    size, period, phase = rng.uniform(0.1, 0.3), rng.uniform(0.4, 1.0), rng.uniform(0.0, 2.0 * np.pi)
    return 1.0 + size * np.sin(2.0 * np.pi * s / period + phase)


def _steps(rng: np.random.Generator, s: np.ndarray) -> np.ndarray:
    count = rng.integers(4, 7)
    gaps = rng.dirichlet(np.ones(count)) * (1.0 - 0.08 * count) + 0.08
    levels = [rng.uniform(0.7, 1.3)]
    while len(levels) < count:
        level = rng.uniform(0.7, 1.3)
        if abs(level - levels[-1]) >= 0.1:
            levels.append(level)
    return np.array(levels)[np.searchsorted(np.cumsum(gaps)[:-1], s, side="right")]


_PROFILES = {"linear": _linear, "exponential": _exponential, "step": _step, "sine": _sine, "steps": _steps}

MASS_PROFILES = tuple(_PROFILES)
"""Names of the profiles, in the order of the paper's types."""
