"""Tracks of recorded flights, each made once."""

from __future__ import annotations

import functools
from pathlib import Path

import jax
import numpy as np

from rotorid.logs.flight import Flight
from rotorid.logs.read import read
from rotorid.logs.truth import attach_truth
from rotorid.models.airframe.airframe import load_airframe
from rotorid.results.metrics import rmspe
from rotorid.workflows.track.track import Track, track


@functools.cache
def flight_of(log: Path, truth: Path | None = None) -> Flight:
    """A recorded flight, with truth where there is some."""
    flight = read(log)
    return flight if truth is None else attach_truth(flight, truth)


@functools.cache
def tracked(
    log: Path, airframe: str, estimator: str, system: str = "multirotor", truth: Path | None = None
) -> Track:
    """A recorded flight as the command tracks it, in float64."""
    with jax.enable_x64(True):
        return track(flight_of(log, truth), load_airframe(airframe), estimator, system)  # pyright: ignore


def window(flight: Flight, t: np.ndarray, start: float, end: float) -> np.ndarray:
    """The rows between two times of the log's own clock, s."""
    clock = t + flight.time_origin
    return (clock >= start) & (clock <= end)


def mass_error(found: Track, rows: np.ndarray) -> float:
    """RMSPE of the mass over some rows, %."""
    return rmspe(found.quantities["mass"].value[rows], found.truth["mass"][rows])
