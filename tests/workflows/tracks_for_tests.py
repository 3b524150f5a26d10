"""Tracks made of given numbers, without any estimator."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from rotorid.estimators.base import Health
from rotorid.logs.flight import Flight, Signal
from rotorid.workflows.track.motion import HORIZONTAL_SPEED, Curve, Motion
from rotorid.workflows.track.track import Innovations, Quantity, Track

T = np.arange(0.0, 60.0, 0.02)


def quantity(value, std=0.01, unit="kg", informed=True, t=T) -> Quantity:
    """A quantity over the times t from numbers or arrays."""
    ones = np.ones(len(t))
    return Quantity(value * ones, std * ones, unit, np.asarray(informed & (ones > 0)))


def made_track(
    mass, *, estimator="ekf", t=T, health=Health.OK, nis=9.0, truth=None, seed=0, changes=None, **others
) -> Track:
    """A track of this mass (kg; a Quantity or numbers) and other quantities, with white innovations."""
    rng = np.random.default_rng(seed)
    n = len(t)
    mass = mass if isinstance(mass, Quantity) else quantity(mass, t=t)
    innovations = {
        name: Innovations(rng.standard_normal((n, 3)) * 0.1, np.full((n, 3), 0.1), unit)
        for name, unit in (("attitude", "rad"), ("velocity", "m/s"), ("specific_force", "m/s^2"))
    }
    return Track(
        estimator=estimator,
        system="multirotor",
        t=t,
        quantities={"mass": mass, **others},
        health=np.full(n, int(health)) if isinstance(health, Health) else health,
        innovations=innovations,
        nis=np.full(n, float(nis)),
        nis_dof=np.full(n, 9),
        truth={} if truth is None else {"mass": truth * np.ones(n)},
        detected_changes=changes,
    )


def made_flight() -> Flight:
    """A circle at 2 m height and 3 m/s, with velocity, thrust and notes that need escaping in HTML."""
    circle = np.stack([3.0 * np.cos(T), 3.0 * np.sin(T), np.full(len(T), 2.0)], axis=1)
    velocity = np.stack([-3.0 * np.sin(T), 3.0 * np.cos(T), np.zeros(len(T))], axis=1)
    signals = {
        "position": Signal("position", T, circle, "made"),
        "velocity": Signal("velocity", T, velocity, "made <of> numbers"),
        "thrust": Signal("thrust", T, np.full((len(T), 1), 9.81), "made"),
    }
    return Flight(
        signals, Path("made & <flown>.csv"), "table-csv", 12.5, "a <vehicle>", ("a note with <tags>",)
    )


def made_motion() -> Motion:
    """What that flight did."""
    flight = made_flight()
    speed = Curve(T, np.full(len(T), 3.0), "m/s", HORIZONTAL_SPEED)
    return Motion((speed,), T, flight["position"].values)
