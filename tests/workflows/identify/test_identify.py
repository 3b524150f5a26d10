"""Validation of an identified model on held-out parts of flights, where the mass changes."""

from __future__ import annotations

import pytest

from rotorid.workflows.identify.identify import ValidatedModel, identify_and_validate
from tests.workflows.flights_for_tests import TRUTH, made_flight

DROPPED = 21.0
"""s, in the quarter that is held out."""


def validated(*masses: tuple[float, float]) -> ValidatedModel:
    """Of a flight of 24 s, whose last 6 s are held out."""
    return identify_and_validate([made_flight(masses, 24.0)], TRUTH, ("mass", "drag"))


def test_the_mass_may_change_in_what_was_fitted_and_in_what_was_held_out() -> None:
    found = validated((0.0, 1.0), (8.0, 1.25), (DROPPED, 1.0))
    assert [part.value for part in found.model.masses] == pytest.approx([1.0, 1.25], rel=0.01)
    assert found.is_accepted
    assert [note.code for note in found.notes] == ["masses_estimated_for_validation"]
    by = found.model.airframe.fly_back
    assert by is not None
    assert abs(next(gain.value for gain in by.gains if gain.name == "thrust") - 1.0) < 0.02


def test_a_mass_that_changes_only_in_what_was_held_out_is_named() -> None:
    found = validated((0.0, 1.0), (DROPPED, 1.25))
    assert [part.value for part in found.model.masses] == pytest.approx([1.0], rel=0.01)
    assert not found.is_accepted
    (note,) = found.notes
    assert note.code == "held_out_mass_changed"
    assert note.values["flight"] == "made.csv"
    first, second = note.values["masses"]
    assert (first.value, second.value) == pytest.approx((1.0, 1.25), rel=0.01)
    assert second.start == pytest.approx(DROPPED, abs=0.05)
