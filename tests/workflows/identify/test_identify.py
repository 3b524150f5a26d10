"""Validation of an identified model on held-out parts of flights, where the mass changes."""

from __future__ import annotations

import pytest

from rotorid.workflows.identify.identify import ValidatedModel, identify_and_validate
from tests.workflows.flights_for_tests import TRUTH, made_flight

PICKED_UP, DROPPED = 14.0, 16.0
"""s, in the block that is held out, 12 to 18 s."""


def validated(*masses: tuple[float, float]) -> ValidatedModel:
    """Of a flight of 24 s, of which 6 s are held out."""
    return identify_and_validate([made_flight(masses, 24.0)], TRUTH, ("mass", "drag"))


def test_the_mass_may_change_in_what_was_fitted_and_in_what_was_held_out() -> None:
    found = validated((0.0, 1.0), (8.0, 1.25), (DROPPED, 1.0))
    assert [part.value for part in found.model.masses] == pytest.approx([1.0, 1.25, 1.0], rel=0.01)
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
        assert table["quantity"][:4] == ["mass", "mass", "mass", "drag"]
        assert table["unit"][:4] == ["kg", "kg", "kg", "N s/m"]
        assert table["value"][:3] == [part.value for part in found.model.masses]
        assert table["std"][:3] == [part.std for part in found.model.masses]
        assert table["start"][:4] == [*(part.start for part in found.model.masses), None]
        estimate = next(t for t in result.plot().data if t.name == "estimate, 95 % band")
        assert len(estimate.y) == len(found.model.fit.names)
        assert all(label.endswith(unit) for label, unit in zip(estimate.y, ("N s/m",), strict=False))
    assert repr(found).splitlines()[0].endswith("; accepted")


def test_a_mass_that_changes_only_in_what_was_held_out_is_named() -> None:
    found = validated((0.0, 1.0), (PICKED_UP, 1.25), (DROPPED, 1.0))
    assert [part.value for part in found.model.masses] == pytest.approx([1.0], rel=0.01)
    assert not found.is_accepted
    (note,) = found.notes
    assert note.code == "held_out_mass_changed"
    assert note.values["flight"] == "made.csv"
    masses = note.values["masses"]
    assert [m.value for m in masses] == pytest.approx([1.0, 1.25, 1.0], rel=0.01)
    assert [m.start for m in masses[1:]] == pytest.approx([PICKED_UP, DROPPED], abs=0.05)
