"""White innovations look white."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from rotorid.workflows.track.innovations import normalise, running_consistency, standard_normal
from rotorid.workflows.track.track import Innovations
from tests.workflows.tracks_for_tests import T, made_track


def test_the_band_holds_95_percent_of_a_consistent_filter() -> None:
    nis = np.random.default_rng(0).chisquare(9, len(T))
    found = running_consistency(dataclasses.replace(made_track(1.0), nis=nis))
    inside = np.mean((found.ratio > found.lower) & (found.ratio < found.upper))
    assert inside == pytest.approx(0.95, abs=0.06)
    assert found.t[0] > T[0]
    assert found.t[-1] < T[-1] + 1.0


def test_windows_without_measurements_are_left_out() -> None:
    track = made_track(1.0)
    dof = np.where(track.t < 30, 9, 0)
    found = running_consistency(dataclasses.replace(track, nis_dof=dof, nis=np.where(dof, 9.0, 0.0)))
    assert found.t.max() < 31
    np.testing.assert_allclose(found.ratio, 1.0)


def test_normalised_innovations_of_white_noise_are_normal() -> None:
    rng = np.random.default_rng(2)
    values = 0.2 * rng.standard_normal((20000, 3))
    stds = np.full((20000, 3), 0.2)
    stds[:50] = 0.0  # not measured
    found = normalise(np.arange(20000.0), Innovations(values, stds, "m/s"))
    assert np.isnan(found.value[:50]).all()
    assert found.inside_share == pytest.approx(0.95, abs=0.01)
    np.testing.assert_allclose(found.density, standard_normal(found.centre), atol=0.02)
    assert np.sum(found.density) * 0.2 == pytest.approx(1.0, abs=0.01)
