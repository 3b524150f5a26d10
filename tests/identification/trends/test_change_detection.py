"""Changes in histories of estimates: found where they were planted, by their cause, and not where there are none."""

from __future__ import annotations

import numpy as np
import pytest

from rotorid.identification.trends.change_detection import ChangeReport, detect_changes

ARM, RATIO = 0.1, 0.02
SCALES = np.array([1.0, ARM, ARM, RATIO])
"""Sizes of (log mass, centre of mass x and y, yaw trim) for a weak rotor, each over its share of the thrust."""

LEVERS = np.array([[1, 1, 1, 1], [1, -1, -1, 1], [-1, -1, 1, 1], [1, -1, 1, -1]]) * SCALES[:, None]
DIRECTIONS = {name: np.eye(4)[i] for i, name in enumerate(("mass", "x", "y", "yaw"))} | {
    f"rotor_{i}": -0.25 * LEVERS[:, i] for i in range(4)
}


def history(
    seed: int,
    flights: int = 60,
    own: float = 0.003,
    between: float = 0.004,
    colour: float = 0.0,
    heavy: bool = False,
) -> tuple[np.ndarray, np.ndarray]:
    """Estimates and covariances of an unchanged vehicle: errors of a flight's own, and what flights differ by."""
    rng = np.random.default_rng(seed)
    std = own * SCALES * rng.uniform(0.7, 1.5, (flights, 1))
    scatter = rng.standard_t(4, (flights, 4)) / np.sqrt(2.0) if heavy else rng.standard_normal((flights, 4))
    for k in range(1, flights):
        scatter[k] = colour * scatter[k - 1] + np.sqrt(1.0 - colour**2) * scatter[k]
    y = between * SCALES * scatter + std * rng.standard_normal((flights, 4))
    return y, np.stack([np.diag(s**2) for s in std])


def found(y: np.ndarray, R: np.ndarray) -> ChangeReport:
    return detect_changes(y, R, DIRECTIONS)


@pytest.mark.parametrize(("flights", "seeds"), [(8, 30), (25, 30), (60, 40)])
def test_an_unchanged_history_has_no_change(flights: int, seeds: int) -> None:
    false = [bool(found(*history(seed, flights)).changes) for seed in range(seeds)]
    assert sum(false) <= 1


def test_heavy_tails_odd_flights_and_weather_are_no_changes() -> None:
    assert sum(bool(found(*history(seed, heavy=True)).changes) for seed in range(15)) <= 2
    assert sum(bool(found(*history(seed, colour=0.4)).changes) for seed in range(15)) <= 3
    for seed in range(10):
        y, R = history(seed)
        y[[20, 41]] += 0.2 * SCALES
        assert not found(y, R).changes


@pytest.mark.parametrize("rotor", range(4))
def test_a_weak_rotor_is_found_within_three_flights_and_named(rotor: int) -> None:
    named = 0
    for seed in range(8):
        y, R = history(seed)
        y[30:] += -0.05 * DIRECTIONS[f"rotor_{rotor}"]
        (step,) = found(y, R).changes
        assert step.kind == "step"
        assert abs(step.first - 30) <= 3
        assert step.earliest <= step.first <= step.latest
        part = step.causes[0]
        if len(step.causes) == 1 and part.direction == f"rotor_{rotor}":
            named += 1
            assert part.size == pytest.approx(-0.05, abs=5.0 * part.std)
    assert named >= 7


def test_three_flights_after_it_happened_are_enough() -> None:
    steps = []
    for seed in range(20):
        y, R = history(seed, flights=33, own=0.002, between=0.003)
        y[30:] += -0.05 * DIRECTIONS["rotor_1"]
        steps.append([s.first for s in found(y, R).changes])
    assert sum(bool(s) and abs(s[-1] - 30) <= 3 for s in steps) >= 19


def test_sizes_are_as_certain_as_they_say() -> None:
    errors = []
    for seed in range(25):
        y, R = history(seed)
        y[25:] += 0.08 * DIRECTIONS["mass"]
        (step,) = found(y, R).changes
        errors += [(p.size - 0.08) / p.std for p in step.causes if p.direction == "mass"]
    assert len(errors) >= 24
    assert 0.65 < np.sqrt(np.mean(np.square(errors))) < 1.4


def test_causes_are_told_apart_and_several_changes_are_found() -> None:
    y, R = history(3)
    y[15:] += 0.06 * DIRECTIONS["mass"]
    y[38:] += 0.05 * ARM * DIRECTIONS["x"]
    first, second = found(y, R).changes
    assert (first.first, [p.direction for p in first.causes]) == (15, ["mass"])
    assert (second.first, [p.direction for p in second.causes]) == (38, ["x"])
    y, R = history(4)
    y[30:] += 0.05 * DIRECTIONS["mass"] - 0.06 * DIRECTIONS["rotor_2"]
    (both,) = found(y, R).changes
    assert {p.direction for p in both.causes} == {"mass", "rotor_2"}


def test_a_drift_is_no_staircase() -> None:
    y, R = history(5)
    y += np.linspace(0.0, -0.08, 60)[:, None] * DIRECTIONS["rotor_0"]
    (drift,) = found(y, R).changes
    assert (drift.kind, [p.direction for p in drift.causes]) == ("drift", ["rotor_0"])
    assert drift.causes[0].size == pytest.approx(-0.08, abs=4.0 * drift.causes[0].std)


def test_what_cannot_be_told_apart_is_said() -> None:
    rng = np.random.default_rng(0)
    y = 0.01 * rng.standard_normal((40, 1))
    y[20:] += 0.1
    (step,) = detect_changes(
        y, np.full((40, 1, 1), 1e-6), {"load": np.ones(1), "battery": np.ones(1)}
    ).changes
    assert {*step.alternatives, *(p.direction for p in step.causes)} == {"load", "battery"}


def test_a_rotor_is_found_in_few_flights_since_it_changes_several_trims() -> None:
    """One trim alone would need a change twice as large: its scatter is known from eight flights only."""
    named = by_mass = 0
    for seed in range(10):
        y, R = history(seed, flights=8)
        weak, heavy = y.copy(), y.copy()
        weak[4:] += -0.08 * DIRECTIONS["rotor_0"]
        heavy[4:] += 0.08 * 0.25 * DIRECTIONS["mass"]
        named += [c.direction for s in found(weak, R).changes for c in s.causes[:1]] == ["rotor_0"]
        by_mass += bool(found(heavy, R).changes)
    assert named >= 9
    assert by_mass < named


def test_a_large_step_is_found_in_six_flights_and_named_within_the_usual_scatter() -> None:
    """The few flights scatter less than usual, by chance: then the mass looks far too certain to be changed by a rotor."""
    named = 0
    for seed in range(5):
        y, R = history(seed, flights=6, between=0.002)
        y[4:] += -0.25 * DIRECTIONS["rotor_0"] + 0.04 * DIRECTIONS["mass"]
        (step,) = detect_changes(y, R, DIRECTIONS, usual_scatter=0.04 * SCALES).changes
        named += step.first == 4 and step.causes[0].direction == "rotor_0" and len(step.causes) == 1
    assert named >= 4


def test_a_few_flights_tell_nothing() -> None:
    y, R = history(0, flights=4)
    y[2:] += 0.5 * DIRECTIONS["mass"]
    assert found(y, R).changes == ()
    assert found(y, R).threshold == np.inf


def test_flights_that_claim_too_much_do_not_outweigh_the_others() -> None:
    false = 0
    for seed in range(20):
        y, _ = history(seed, own=0.0, between=0.01)
        claimed = 0.02 * np.random.default_rng([seed, 1]).choice([0.05, 1.0], 60, p=[0.2, 0.8])
        false += bool(found(y, np.stack([np.diag((c * SCALES) ** 2) for c in claimed])).changes)
    assert false <= 1
