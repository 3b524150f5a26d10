"""No surer than the thrust: what a flight tells of forces holds as far as the rotors pull alike in the next one.

    cov <- cov + (s^2 + b^2 / F) v v^T

b: by how much the thrust of a vehicle at the same commands differs from one flight to the next, with its battery, the air and
its propellers, which nothing in one flight shows: 0.8 %, as in eleven flights of Crazyflies of known mass (0.6, 1.2 and 0.5 %
among those of one vehicle and mass, several times what each flight by itself is sure of). F: how many flights were fitted. v:
the numbers that go with the thrust: its own where the mass is known; else mass, inertia and drag, which are as wrong,
together, as the scale of the thrust that was taken as known is, s. A simulated vehicle is the same in every flight.

A mass m that is taken as known is known as far as its own standard deviation goes. Were it another, a flight would look the
same with every force, and so every moment of inertia, larger by the same factor:

    d theta / d log m = v - P Q^-1 v,    v: thrust, inertia and drag        P, Q: covariance after and before the flights

What the flights do not tell stays where the prior holds it, and does not go with the mass.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Final

import numpy as np
from jaxtyping import Float

from rotorid.identification.coordinates import INERTIA, PRODUCTS
from rotorid.identification.fit import Fit
from rotorid.logs.flight import Flight
from rotorid.models.airframe import Airframe, Quantity

BETWEEN: Final = 0.008
"""b."""

_THRUST: Final = ("thrust_scale", "thrust_curve")
_FORCES: Final = ("mass", INERTIA, PRODUCTS, "drag", "rotor_drag", "angular_drag")


def of_thrust(quantity: str) -> bool:
    """Whether a quantity is as large as the thrust, or goes with it where that is taken as known."""
    return quantity.startswith((*_THRUST, *_FORCES))


def surety(prior: Airframe, free: Sequence[str], flights: Sequence[Flight]) -> float:
    """Standard deviation of the thrust that these flights leave, over the thrust, beside what a fit says of it."""
    scale, real = prior.get("thrust_scale"), [f for f in flights if f.format != "simulation"]
    share = BETWEEN / len(flights) ** 0.5 if real else 0.0
    if scale is None or scale.std is None or set(_THRUST) & set(free):
        return share
    return float(np.hypot(share, scale.std[0] / scale.number))


def as_sure_as_thrust(fit: Fit, free: Sequence[str], share: float) -> Fit:
    """The fit, no surer than the thrust is (see `surety`)."""
    if share == 0.0:
        return fit
    with_it = _THRUST if set(_THRUST) & set(free) else _FORCES
    moved = np.array([fit.values[n] if n.startswith(with_it) else 0.0 for n in fit.names])
    covariance = fit.covariance + share**2 * np.outer(moved, moved)
    std = dict(zip(fit.names, map(float, np.sqrt(np.diag(covariance))), strict=True))
    return dataclasses.replace(fit, covariance=covariance, std=std)


def as_sure_as_mass(fit: Fit, free: Sequence[str], mass: Quantity) -> tuple[Fit, Float[np.ndarray, " n"]]:
    """The fit, no surer than a mass that was taken as known; and the covariance of its numbers with that mass."""
    zero = np.zeros(len(fit.names))
    thrust = tuple(n for n in _THRUST if n in free) or (("rotor_scale",) if "rotor_scale" in free else ())
    std = mass.std[0] if mass.std else 0.0
    if not thrust or std == 0.0:
        return fit, zero
    v = np.array([fit.values[n] if n.startswith((*thrust, *_FORCES)) else 0.0 for n in fit.names])
    held = np.array([fit.prior_std[n] ** -2 if fit.prior_std[n] > 0.0 else 0.0 for n in fit.names])
    moved = v - fit.covariance @ (held * v)
    covariance = fit.covariance + (std / mass.number) ** 2 * np.outer(moved, moved)
    each = dict(zip(fit.names, map(float, np.sqrt(np.diag(covariance))), strict=True))
    return dataclasses.replace(fit, covariance=covariance, std=each), std**2 / mass.number * moved
