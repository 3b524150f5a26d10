"""A network with random weights, and samples of a flight, for the tests of the estimator."""

from __future__ import annotations

import numpy as np

from rotorid.estimators.elm.network import HeldOutErrors, HiddenLayer, MassNetwork, Readout, TrainingRange
from rotorid.estimators.elm.windows import RATIOS, TIME_CONSTANTS
from rotorid.models.airframe.airframe import load_airframe
from rotorid.models.multirotor.with_drag import Multirotor, bare_multirotor, multirotor
from rotorid.signals.samples import Samples
from rotorid.simulation.flight import simulate
from rotorid.workflows.track.track import prepare_samples

AIRFRAME = load_airframe("simulated-quad")
BARE = bare_multirotor(AIRFRAME)


def random_network(seed: int = 0, hidden: int = 7) -> MassNetwork:
    """Not trained: its mass is about that of the windows."""
    rng = np.random.default_rng(seed)
    layer = HiddenLayer(
        rng.standard_normal((hidden, RATIOS)),
        rng.standard_normal(hidden),
        np.ones(RATIOS),
        np.full(RATIOS, 0.3),
    )
    readout = Readout(np.full(hidden, 2.0 / hidden), 0.01 * rng.standard_normal((hidden, hidden)))
    short = len(TIME_CONSTANTS) - 1
    errors = HeldOutErrors(np.array(1e-4), np.array(1e-5), np.array(0.01), np.full(short, 0.05))
    limits = TrainingRange(np.full(RATIOS, 0.2), np.full(RATIOS, 1.8), np.log(np.array([5.0, 20.0])))
    return MassNetwork(layer, readout, errors, limits, np.array(0.03))


def with_lag() -> Multirotor:
    """A System with motor lag and drag, driven by the thrust."""
    return multirotor(AIRFRAME, "thrust")


def samples_of(seed: int = 1, duration: float = 6.0, profile: str = "step") -> Samples:
    """A simulated flight over the bare multirotor."""
    return prepare_samples(simulate("loop", profile, seed, duration=duration), BARE, whole=True)
