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
    shows_itself(found)


def shows_itself(found: ValidatedModel) -> None:
    """With the masses of both segments, their standard deviations and units."""
    for result in (found, found.model):
        lines = repr(result).splitlines()
        assert len(lines) < 10
        assert lines[0].startswith("Identification from 1 flight, thrust held fixed")
        assert lines[2].split("  ")[1].startswith("Mass, made.csv, ")
        assert " kg" in lines[2]
        assert "<td>" in result._repr_html_()
        table = result.to_frame().to_pydict()
        assert table["quantity"][:3] == ["mass", "mass", "drag"]
        assert table["unit"][:3] == ["kg", "kg", "N s/m"]
        assert table["value"][:2] == [part.value for part in found.model.masses]
        assert table["std"][:2] == [part.std for part in found.model.masses]
        assert table["start"][:3] == [*(part.start for part in found.model.masses), None]
        estimate = next(t for t in result.plot().data if t.name == "estimate, 95 % band")
        assert len(estimate.y) == len(found.model.fit.names)
        assert all(label.endswith(unit) for label, unit in zip(estimate.y, ("N s/m",), strict=False))
    assert repr(found).splitlines()[0].endswith("; accepted")


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
