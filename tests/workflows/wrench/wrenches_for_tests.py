"""Wrenches made of given numbers, without any estimator."""

from __future__ import annotations

import numpy as np

from rotorid.estimators.base import Health
from rotorid.models.airframe.airframe import load_airframe
from rotorid.models.multirotor.rigid import rigid_multirotor
from rotorid.workflows.track.track import Innovations, Quantity, Track
from rotorid.workflows.wrench.covariance_scale import usable_rows
from rotorid.workflows.wrench.observe import COMPONENTS, WrenchTrack
from rotorid.workflows.wrench.parameter_uncertainty import ParameterErrors

SYSTEM = rigid_multirotor(load_airframe("quadrotor-x"))
GAIN = 10.0
DT = 0.01
STD = np.array([0.1, 0.1, 0.1, 0.005, 0.005, 0.005])


def lagged(true: np.ndarray, dt: float = DT) -> np.ndarray:
    """What an observer without noise makes of a wrench that is held over each step."""
    found, now = np.empty_like(true), np.zeros(6)
    for k, w in enumerate(true):
        now = now + -np.expm1(-GAIN * dt) * (w - now)
        found[k] = now
    return found


def made_wrench(
    true: np.ndarray, *, seed: int = 0, noise: float = 1.0, errors=None, causes=(), health=None, attitude=None
) -> WrenchTrack:
    """The observed wrench of a true one, with noise of standard deviation noise * STD that is correlated over 1/GAIN."""
    n = len(true)
    t = DT * np.arange(1, n + 1)
    rng = np.random.default_rng(seed)
    d = np.exp(-GAIN * DT)
    white = np.sqrt(1.0 - d * d) * rng.standard_normal((n, 6))
    white[0] /= np.sqrt(1.0 - d * d)
    colour, now = np.empty((n, 6)), np.zeros(6)
    for k in range(n):
        now = d * now + white[k]
        colour[k] = now
    value = lagged(true) + noise * STD * colour
    covariance = np.tile(np.diag(STD**2), (n, 1, 1))
    spread = ParameterErrors(tuple(causes), np.zeros((n, 6, 0)) if errors is None else errors)
    health = np.full(n, int(Health.OK)) if health is None else health
    std = np.hypot(STD, spread.std)
    track = Track(
        "mo",
        "rigid-multirotor",
        t,
        {
            name: Quantity(value[:, k], std[:, k] * np.ones(n), "N" if k < 3 else "N m", np.ones(n, bool))
            for k, name in enumerate(COMPONENTS)
        },
        health,
        {"velocity": Innovations(rng.standard_normal((n, 3)), np.ones((n, 3)), "m/s")},
        np.full(n, 6.0),
        np.full(n, 6),
        {},
    )
    q = np.tile([1.0, 0.0, 0.0, 0.0], (n, 1)) if attitude is None else attitude
    rows = usable_rows(t, value, health, GAIN)
    return WrenchTrack(track, covariance, (1.0, 1.0), spread, rows, q, GAIN, SYSTEM)


def pulses(n: int, *pushes: tuple[float, float, tuple[float, ...]]) -> np.ndarray:
    """A wrench of n rows that is as told from each start to each end, s."""
    t = DT * np.arange(1, n + 1)
    true = np.zeros((n, 6))
    for start, end, wrench in pushes:
        true[(t > start + 1e-9) & (t <= end + 1e-9)] = wrench
    return true
