"""Drag is looked for where a vehicle moves through the air, and left alone where it hovers."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from rotorid.errors import ExcitationError
from rotorid.results.at_rest import speed, told_by_motion
from tests.results.made_flown import made_flight

FREE = ("mass", "drag", "inertia", "rotor_drag")


def test_a_hover_does_not_tell_drag() -> None:
    flight = made_flight()
    v = flight["velocity"]
    wander = (
        0.03 * np.sin(2.0 * v.times[:, None] + np.arange(3)) + 5.0
    )  # in a wind, as seen from a moving ship
    hover = flight.with_signals(dataclasses.replace(v, values=wander))
    parts = [[(0.0, 12.0)]]
    assert speed([hover], parts) == pytest.approx(0.03 * np.sqrt(1.5), rel=0.05)
    free, (said,) = told_by_motion(FREE, [hover], parts)
    assert free == ("mass", "inertia")
    assert "hardly moved (its velocity changed by 0.04 m/s" in said
    assert "fly legs" in said
    with pytest.raises(
        ExcitationError, match=r"made\.csv: the vehicle hardly moved .* fly legs to and fro at speed$"
    ):
        told_by_motion(("drag",), [hover], parts)
    assert told_by_motion(("mass",), [hover], parts) == (("mass",), ())
    assert told_by_motion(FREE, [hover, flight], parts * 2) == (FREE, ())
