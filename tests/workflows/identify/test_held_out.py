"""Parts of flights that are held out for validation: every excitation has its share on both sides."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest

from rotorid.errors import ExcitationError
from rotorid.logs.flight import Flight, Signal
from rotorid.workflows.identify.held_out import held_out_parts, split, without
from rotorid.workflows.identify.preparation import prepare_flights
from tests.workflows.flights_for_tests import TRUTH, made_flight

SLOT = 6.0
ORDER = (3, 0, 1, 2)
"""One manoeuvre after the other, as a plan has them: thrust, roll, pitch, yaw."""

MARGIN = 0.25


def planned(rounds: int = 1) -> Flight:
    """A flight of manoeuvres that excite one axis each."""
    seconds = 2.0 * SLOT * len(ORDER) * rounds
    t = np.arange(0.0, seconds, 0.004)
    wave = np.sin(9.0 * t) + np.sin(23.0 * t)
    axis = np.array(ORDER)[(t // (2.0 * SLOT)).astype(int) // rounds % len(ORDER)]
    rate = 0.01 * np.random.default_rng(0).standard_normal((len(t), 3))
    rate += wave[:, None] * (axis[:, None] == np.arange(3))
    force = np.zeros((len(t), 3))
    force[:, 2] = 9.81 + wave * (axis == 3)
    signals = (Signal("body_rate", t, rate, "made"), Signal("specific_force", t, force, "made"))
    return Flight({s.name: s for s in signals}, Path("planned.csv"), "simulation")


def shares(flight: Flight, held: list[tuple[float, float]]) -> np.ndarray:
    """Share of the excitation of roll, pitch, yaw and thrust in these parts."""
    t, rate = flight["body_rate"].times, flight["body_rate"].values
    force = flight["specific_force"].values[:, 2:]
    is_held = np.any([(t >= a) & (t < b) for a, b in held], axis=0)
    energy = np.square(np.hstack([rate, force - force.mean()]))
    return energy[is_held].sum(axis=0) / energy.sum(axis=0)


@pytest.mark.parametrize("rounds", [1, 2])
def test_every_manoeuvre_is_fitted_and_held_out(rounds: int) -> None:
    flight = planned(rounds)
    end = float(flight["body_rate"].times[-1])
    parts = [(0.0, end)]
    held = held_out_parts(flight, parts)
    assert sum(b - a for a, b in held) == pytest.approx(0.25 * end)
    assert min(b - a for a, b in held) >= 2.5
    assert np.all(shares(flight, held) > 0.15)
    assert np.all(shares(flight, held) < 0.4)
    assert shares(flight, [(0.75 * end, end)])[:2].max() < 0.05, "the last quarter has a yaw manoeuvre only"
    assert held == held_out_parts(flight, parts), "the same flight, the same parts"


def test_no_row_is_near_both_sides() -> None:
    flight = made_flight(seconds=24.0)
    preparation = prepare_flights([flight], TRUTH)
    (fitted,), (held,) = split(preparation)
    edges = sorted([*fitted, *held])
    gaps = [b[0] - a[1] for a, b in itertools.pairwise(edges)]
    assert gaps
    assert min(gaps) == pytest.approx(MARGIN)
    (start, end), *_ = preparation.flights[0].parts
    assert sum(b - a for a, b in [*fitted, *held]) == pytest.approx(end - start - MARGIN * len(gaps))


def test_parts_between_landings_are_all_cut() -> None:
    flight = planned()
    parts = [(1.0, 21.0), (25.0, 30.0), (33.0, 45.0)]
    held = held_out_parts(flight, parts)
    assert sum(b - a for a, b in held) == pytest.approx(0.25 * 37.0)
    for a, b in held:
        assert any(s <= a and b <= e for s, e in parts)
    assert without([(0.0, 10.0)], [(2.0, 3.0), (9.5, 11.0)]) == [(0.0, 2.0), (3.0, 9.5)]
    assert without([(0.0, 1.0), (4.0, 5.0)], [(0.5, 4.5)]) == [(0.0, 0.5), (4.5, 5.0)]


def test_a_flight_of_less_than_12_seconds_is_too_short() -> None:
    with pytest.raises(ExcitationError, match=r"11\.\d s in the air are too few"):
        split(prepare_flights([made_flight(seconds=11.5)], TRUTH))
