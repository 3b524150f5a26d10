"""Compile ahead the code of `rotorid track` and `rotorid live`, into the cache that they take it from.

The code depends on what a vehicle's model consists of (number of rotors, form of the thrust curve, which parameters are
tracked), not on most of its numbers. For an airframe, the estimators of a log with rotor commands, velocity and specific force,
and a live session are compiled. For a log, it is tracked, so that all that its `track` needs is kept, plots included.
"""

from __future__ import annotations

import dataclasses
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from rotorid.estimators.registry import TRACK_ESTIMATORS, EstimatorName
from rotorid.estimators.run import run
from rotorid.live.session import Session
from rotorid.live.settings import SessionSettings
from rotorid.logs.flight import Flight
from rotorid.models.airframe.airframe import Airframe
from rotorid.models.registry import SYSTEMS
from rotorid.models.system import System
from rotorid.signals.samples import Samples
from rotorid.workflows.track.command import track_and_write
from rotorid.workflows.track.estimates import derived_numbers, explained_shares
from rotorid.workflows.track.summary import Settings

_SYSTEM = "multirotor"
_FAST, _SLOW = (
    0.004,
    0.01,
)  # s, between rows: of commands that are fast enough to track the motor lag, and of others
_DURATION = 8.0  # s


@dataclasses.dataclass(frozen=True)
class Step:
    """name: what is compiled, for a progress line. run: compiles it."""

    name: str
    run: Callable[[], object]


def airframe_steps(airframe: Airframe, estimators: Sequence[EstimatorName]) -> list[Step]:
    """The steps of an airframe.

    Args:
        airframe: with or without a thrust curve; a live session needs one.
        estimators: of `rotorid track`.
    """
    has_curve = airframe.thrust_curve is not None
    signal, rotors = ("rotor_command", len(airframe.rotors)) if has_curve else ("thrust", None)
    steps = []
    for period, command_period in ((_FAST, _FAST), (_SLOW, None)):
        log = {"command_period": command_period}
        system = SYSTEMS[_SYSTEM].build(airframe, signal, rotors=rotors, log=log)
        steps += [
            Step(
                f"{airframe.name}: {name}, {1.0 / period:.0f} Hz",
                partial(compile_estimator, system, name, period),
            )
            for name in estimators
        ]
    if has_curve:
        steps.append(Step(f"{airframe.name}: live", partial(compile_session, airframe)))
    return steps


def log_steps(flight: Flight, airframe: Airframe, estimators: Sequence[EstimatorName]) -> list[Step]:
    """The steps of a log.

    Args:
        flight: the log.
        airframe: of its vehicle, as `rotorid track` uses it.
        estimators: of `rotorid track`.
    """
    name = Path(flight.source).name
    steps = [Step(f"{name}: track", partial(_track, flight, airframe, estimators))]
    if airframe.thrust_curve is not None:
        steps.append(Step(f"{name}: live", partial(compile_session, airframe)))
    return steps


def compile_estimator(system: System, estimator: EstimatorName, period: float) -> None:
    """Compile an estimator over a System, and what `track` computes from its estimates.

    period: s, between rows.
    """
    t = np.arange(0.0, _DURATION, period)
    inputs, y = np.zeros((len(t), system.inputs.size)), np.zeros((len(t), system.outputs.size))
    is_measured = np.zeros((len(t), system.outputs.dim), bool)
    samples = Samples(*map(jnp.asarray, (t, np.full(len(t), period), inputs, y, is_measured)))
    filter_ = TRACK_ESTIMATORS[estimator].build(system)
    estimates = jax.tree.map(np.asarray, run(filter_, samples))
    derived_numbers(estimates, filter_)
    explained_shares(filter_, estimates, samples)


def compile_session(airframe: Airframe) -> None:
    """Compile the estimators of a live session."""
    Session(airframe, SessionSettings()).prepare()


def _track(flight: Flight, airframe: Airframe, estimators: Sequence[EstimatorName]) -> None:
    settings = Settings("track", tuple(estimators), _SYSTEM, airframe.name, None)
    with tempfile.TemporaryDirectory() as folder:
        track_and_write(flight, airframe, settings, Path(folder) / "track")
