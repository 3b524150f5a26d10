"""Disagreement of parts of the data and of frequency bands: none for the right model, the size of the error for a wrong one."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rotorid.identification.fitting.disagreement import (
    Disagreement,
    add_disagreement,
    band_splits,
    disagreements,
    window_splits,
)
from rotorid.identification.fitting.estimation import Estimation
from rotorid.identification.fitting.uncertainty import block_information
from rotorid.identification.grey_box.fit import estimate_grey_box
from rotorid.signals.samples import Samples
from tests.identification.fitting.test_hidden_states import STEP, Wheel

ROWS = 3000
MODES = (2, 8)


def estimated(seed: int, gain: np.ndarray | float = 2.0, delay: float = 0.0) -> Estimation:
    """The fit of a wheel that turns with v' = gain u, u(t - delay)."""
    rng = np.random.default_rng(seed)
    t = STEP * np.arange(ROWS)
    u = np.sin(2.0 * t) + np.sin(9.0 * t + 1.0) + 4.0 * np.sin(31.0 * t + 2.0)
    late = np.interp(t - delay, t, u)
    v = np.concatenate([[0.0], np.cumsum(STEP * (gain * late)[1:])])
    y = v + 0.002 * rng.standard_normal(ROWS)
    columns = (t, np.diff(t, prepend=t[0]), u[:, None], y[:, None], np.ones((ROWS, 1), bool))
    with jax.enable_x64(True):
        return estimate_grey_box(
            Wheel(False), [Samples(*map(jnp.asarray, columns))], {"gain": 0.5}, values=None, horizon=0.5,
            noise=None, outputs=None, loss="squares", iterations=30,
        )  # fmt: skip


def halves(found: Estimation) -> list:
    start = found.problem.windows.start
    return [window_splits(found, {"halves": start > 0.5 * start.max()})]


def compared(found: Estimation, splits: list) -> tuple[Disagreement, ...]:
    with jax.enable_x64(True):
        return disagreements(found, splits)


def test_parts_of_a_right_model_agree() -> None:
    widened = []
    for seed in range(6):
        found = estimated(seed)
        with jax.enable_x64(True):
            bands = band_splits(found, MODES)
        fit = add_disagreement(found.fit, compared(found, [*halves(found), bands]))
        widened.append(fit.std["gain"] / found.fit.std["gain"])
    assert min(widened) >= 1.0
    assert np.median(widened) == pytest.approx(1.0)


def test_the_standard_deviation_holds_what_halves_differ_by() -> None:
    found = estimated(0, np.where(np.arange(ROWS) < ROWS // 2, 1.8, 2.2))
    assert found.fit.std["gain"] < 0.15
    (halves_apart,) = compared(found, halves(found))
    assert (
        0.25 < abs(halves_apart.difference[0]) < 0.42
    )  # less their noise, which the wrong model makes larger
    fit = add_disagreement(found.fit, [halves_apart])
    assert fit.std["gain"] == pytest.approx(np.hypot(found.fit.std["gain"], halves_apart.difference[0]))


def test_a_part_without_information_does_not_disagree() -> None:
    """With a prior that is wrong by many standard deviations of the estimate."""
    found = estimated(2, 4.0)
    empty = window_splits(found, {"nothing": np.zeros(len(found.problem.windows.start), bool)})
    assert compared(found, [empty])[0].difference[0] == 0.0


def test_a_delay_that_the_model_lacks_shows_between_frequency_bands() -> None:
    """cos(w delay) of a gain at the frequency w is in phase."""
    found = estimated(0, delay=0.03)
    with jax.enable_x64(True):
        bands = band_splits(found, MODES)
    (apart,) = compared(found, [bands])
    assert abs(apart.difference[0]) > 0.1
    assert apart.difference[0] > 0.0  # slow less quick


def test_bands_together_are_the_whole() -> None:
    found = estimated(1)
    hessians, gradients = block_information(found.problem, found.triangle, found.weight)
    with jax.enable_x64(True):
        few, all_modes = band_splits(found, (2, found.problem.windows.length))
    assert 0.0 < few.parts[0].hessian[0, 0] < hessians.sum()
    np.testing.assert_allclose(all_modes.parts[0].hessian, hessians.sum(axis=0), rtol=1e-6)
    np.testing.assert_allclose(
        all_modes.parts[0].gradients, gradients, rtol=1e-4, atol=1e-6 * np.abs(gradients).max()
    )
    short = dataclasses.replace(
        found, problem=dataclasses.replace(found.problem, windows=found.problem.windows.subsample(4))
    )
    assert disagreements(short, []) == ()
