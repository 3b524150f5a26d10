"""Manoeuvres that a plan is made of."""

from __future__ import annotations

import math

import jax
import numpy as np
import pytest

from rotorid.control.setpoints import Chirp, Lissajous, Move, Multisine, schroeder
from rotorid.errors import SettingError
from rotorid.models.airframe.airframe import load_airframe
from rotorid.simulation.free_flight.manoeuvres import (
    ACTIVE,
    SLOT,
    Limits,
    manoeuvres,
    minimise_crest_factor,
    stack_setpoints,
)


def crest(frequencies: tuple[float, ...], phases: tuple[float, ...]) -> float:
    t = np.linspace(0.0, ACTIVE, 4000, endpoint=False)[:, None]
    x = np.sin(2.0 * np.pi * np.array(frequencies) * t + np.array(phases)).sum(axis=1)
    return float(np.abs(x).max() / np.sqrt(np.mean(x * x)))


def test_multisines_stay_low() -> None:
    harmonics = tuple(k / ACTIVE for k in range(2, 10))
    phases, said = minimise_crest_factor(harmonics)
    assert crest(harmonics, phases) == pytest.approx(said, rel=0.01)
    assert said < 0.95 * crest(harmonics, schroeder(harmonics))
    assert said < 0.6 * crest(harmonics, (0.5 * math.pi,) * 8)


def test_manoeuvres_have_one_structure_and_end_where_they_begin() -> None:
    limits = Limits(speed=2.0, box=(3.0, 5.0, 1.0))
    found = manoeuvres(load_airframe("quadrotor-x"), limits)
    assert {m.kind for m in found} == {"multisine", "chirp", "doublet", "step", "circle", "turn"}
    assert len({m.name for m in found}) == len(found)
    assert len({jax.tree.structure(m.setpoints) for m in found}) == 1
    assert stack_setpoints([m.setpoints for m in found[:3]]).excitations[0].amplitude.shape == (3,)
    for m in found:
        moved = np.zeros(4)
        for move in m.scaled_setpoints().moves:
            if isinstance(move, Move):
                moved += (*np.asarray(move.by), 0.0)
                moved[3] += float(move.turn) % (2.0 * math.pi)
                assert np.all(np.abs(move.by) <= 0.5 * np.array(limits.box))
                assert 1.875 * np.linalg.norm(move.by) / float(move.duration) <= limits.speed * 1.0001
                assert float(move.start) + float(move.duration) <= SLOT
            else:
                assert isinstance(move, Lissajous)
                assert float(move.start) + float(move.duration) <= SLOT
        np.testing.assert_allclose(moved, 0.0, atol=1e-12)


def test_frequencies_stay_below_the_highest() -> None:
    for m in manoeuvres(load_airframe("quadrotor-x"), Limits(), 2.0):
        for e in m.setpoints.excitations:
            if isinstance(e, Multisine) and e.amplitude:
                assert max(np.asarray(e.frequencies)) <= 2.0 + 0.5 / ACTIVE
            if isinstance(e, Chirp) and e.amplitude:
                assert e.low < e.high <= 2.0


def test_axes_that_are_excited_together_have_harmonics_apart() -> None:
    found = manoeuvres(load_airframe("quadrotor-x"), Limits())
    for m in found:
        if "all axes" in m.name:
            sines = [e for e in m.setpoints.excitations if isinstance(e, Multisine) and e.amplitude]
            tones = [f for e in sines for f in np.asarray(e.frequencies)]
            assert len(sines) == 4
            assert len(set(tones)) == len(tones)
            np.testing.assert_allclose(
                np.array(tones) * ACTIVE, np.round(np.array(tones) * ACTIVE), atol=1e-9
            )


def test_limits_that_cannot_be() -> None:
    for settings, said in (
        ({"speed": 0.0}, "must be above 0"),
        ({"tilt": math.radians(60.0)}, "at most 45deg"),
        ({"command": (0.5, 0.2)}, "minimum and the maximum rotor command"),
    ):
        with pytest.raises(SettingError, match=said):
            Limits(**settings)
