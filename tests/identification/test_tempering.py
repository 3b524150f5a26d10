"""Flights that say little, but in many rows whose noise hangs together: the prior stands where they tell nothing."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.signal import lfilter

from rotorid.identification.grey_box import solve
from rotorid.identification.priors import priors_of
from rotorid.identification.tempering import tempered
from rotorid.signals.samples import Samples
from tests.identification.test_hidden_states import STEP, Wheel

PRIOR = {"gain": 0.5}


def flight(seed: int, size: float, colour: float) -> Samples:
    """A wheel of gain 1.5 under commands of this size, with noise of 0.02 that hangs together by this much from row to row."""
    rng, n = np.random.default_rng(seed), 2000
    t, u = STEP * np.arange(n), size * np.sign(np.sin(4.0 * STEP * np.arange(n)))
    noise = np.asarray(lfilter([np.sqrt(1.0 - colour**2)], [1.0, -colour], rng.standard_normal(n)))
    y = 1.5 * STEP * np.cumsum(u) + 0.02 * noise
    columns = (t, np.diff(t, prepend=t[0]), u[:, None], y[:, None], np.ones((n, 1), bool))
    return Samples(*map(jnp.asarray, columns))


def fits(*flown: Samples):
    """The fit, and the same tempered."""
    with jax.enable_x64(True):
        system = Wheel(False)
        how = {"values": None, "horizon": 0.5, "noise": None, "outputs": None, "iterations": 20}
        plain = solve(system, list(flown), PRIOR, loss="squares", **how)
        return plain, tempered(plain, priors_of(system, PRIOR, {}), "squares", 20)


def test_coloured_noise_does_not_move_what_a_flight_does_not_tell() -> None:
    plain, found = (s.fit for s in fits(flight(0, 0.005, 0.98)))
    assert abs(plain.values["gain"] - 1.0) > 2 * PRIOR["gain"]
    assert abs(found.values["gain"] - 1.0) < PRIOR["gain"]
    assert found.std["gain"] > 0.5 * PRIOR["gain"]
    assert found.told["gain"] < 0.5 * plain.told["gain"]


@pytest.mark.parametrize(("size", "colour"), [(0.005, 0.0), (1.0, 0.98)])
def test_white_noise_and_flights_that_tell_are_believed(size: float, colour: float) -> None:
    plain, found = fits(flight(1, size, colour))
    assert found is plain
    assert found.fit.values["gain"] == pytest.approx(1.5, abs=3 * found.fit.std["gain"])
