"""Pushes are found when, where and as strong as they were made, and none where there is none."""

from __future__ import annotations

import numpy as np
import pytest

from rotorid.estimators.base import Health
from rotorid.models.airframe.airframe import Rotor
from rotorid.workflows.wrench.contacts import find_contacts
from rotorid.workflows.wrench.line_of_action import LineOfAction, line_of_action, rotor_box
from tests.workflows.wrench.wrenches_for_tests import DT, SYSTEM, made_wrench, pulses

BOX = rotor_box(SYSTEM.rotors)
SURE = np.diag([0.01, 0.01, 0.01, 0.001, 0.001, 0.001]) ** 2
MINUTES = 60 * round(60 / DT)


def test_noise_alone_is_no_event():
    """An hour, in parts."""
    found = [find_contacts(made_wrench(np.zeros((MINUTES // 4, 6)), seed=k)).events for k in range(4)]
    assert sum(map(len, found)) <= 6


@pytest.mark.parametrize("length", [0.1, 0.4, 2.0, 20.0])
@pytest.mark.parametrize("seed", range(3))
def test_a_push_is_found_when_it_was_and_as_strong(length: float, seed: int):
    force = np.array([1.2, -0.9, 0.8]) * max(1.0, 0.4 / length)
    true = pulses(6000, (12.0, 12.0 + length, (*force, 0.02, 0.05, -0.03)))
    (event,) = find_contacts(made_wrench(true, seed=seed)).events
    assert event.start == pytest.approx(12.0, abs=0.1)
    assert event.end == pytest.approx(12.0 + length, abs=0.1)
    impulse, std = np.array(event.impulse.value), np.array(event.impulse.std)
    assert np.all(np.abs(impulse - force * length) < 4.0 * std + 0.02 * np.abs(impulse))
    assert event.direction @ force / np.linalg.norm(force) > np.cos(3.0 * event.direction_std + 0.05)
    assert event.peak.value >= 0.5 * np.linalg.norm(force)
    assert abs(event.peak.time - 12.0 - 0.5 * length) <= 0.5 * length + 0.1


def test_the_impulse_is_as_sure_as_it_says():
    true = pulses(1500, (6.0, 7.0, (1.0, 0.0, 0.0, 0.0, 0.0, 0.0)))
    errors, false = [], 0
    for seed in range(40):
        events = find_contacts(made_wrench(true, seed=seed)).events
        (event,) = [e for e in events if 5.9 < e.start < 6.1]
        false += len(events) - 1
        errors.append(event.impulse.value[1] / event.impulse.std[1])
    assert false <= 2  # in 10 minutes
    assert 0.7 < np.std(errors) < 1.4


_ORDER = ((5.0, 6.0, 1.5), (10.0, 12.0, 1.0), (12.0, 13.0, -1.0), (20.0, 21.0, -1.0))


def test_pushes_one_after_another_and_one_against_the_other():
    push = np.array([0.0, 0.0, 1.0, 0.0, 0.0, 0.0])
    true = pulses(4000, *((a, b, tuple(s * push)) for a, b, s in _ORDER))
    events = find_contacts(made_wrench(true)).events
    assert [round(e.start) for e in events] == [5, 10, 12, 20]
    assert [np.sign(e.force.value[2]) for e in events] == [1, 1, -1, -1]


def test_a_torque_alone_is_an_event_without_a_line():
    (event,) = find_contacts(made_wrench(pulses(3000, (12.0, 13.0, (0, 0, 0, 0.06, 0, 0))))).events
    assert event.torque.value[0] == pytest.approx(0.06, abs=0.01)
    assert event.line is None
    assert "too weak" in event.line_unknown


def test_what_is_steady_is_an_offset_and_no_event():
    weight = np.tile([0.0, 0.0, -0.5, 0.0, 0.0, 0.0], (3000, 1))
    errors = np.zeros((3000, 6, 1))
    errors[:, 2, 0] = 0.1
    found = find_contacts(made_wrench(weight, errors=errors, causes=("mass",)))
    assert found.events == ()
    offset = found.offsets["force_z"]
    assert offset.value == pytest.approx(-0.5, abs=0.05)
    assert offset.std == pytest.approx(0.1, rel=0.1)
    assert offset.significant
    assert offset.cause == "mass"
    errors[:, 2, 0] = 0.5
    assert (
        not find_contacts(made_wrench(weight, errors=errors, causes=("mass",))).offsets["force_z"].significant
    )
    true = weight + pulses(3000, (20.0, 21.0, (1.0, 0, 0, 0, 0, 0)))
    (event,) = find_contacts(made_wrench(true)).events
    assert event.force.value[2] == pytest.approx(0.0, abs=0.15)


def test_a_load_is_the_event_and_not_its_absence():
    """Carried for two thirds of the flight."""
    errors = np.zeros((6000, 6, 1))
    errors[:, 2, 0] = 0.1
    true = pulses(6000, (15.0, 55.0, (0.0, 0.0, -2.0, 0, 0, 0)))
    found = find_contacts(made_wrench(true, errors=errors, causes=("mass",)))
    (event,) = found.events
    assert (event.start, event.end) == pytest.approx((15.0, 55.0), abs=0.1)
    assert event.force.value[2] == pytest.approx(-2.0, abs=0.1)
    assert not found.offsets["force_z"].significant


def test_what_an_uncertain_drag_explains_is_no_event():
    """A force that goes with the speed, and a drag that may be off by as much."""
    speed = np.sin(0.5 * DT * np.arange(4000))
    true = np.zeros((4000, 6))
    true[:, 0] = -0.8 * speed
    errors = np.zeros((4000, 6, 1))
    errors[:, 0, 0] = 0.8 * speed
    assert find_contacts(made_wrench(true, errors=errors, causes=("drag",))).events == ()
    assert find_contacts(made_wrench(true)).events != ()


def test_rows_that_do_not_count_are_no_event():
    true = pulses(3000, (12.0, 14.0, (2.0, 0, 0, 0, 0, 0)))
    health = np.full(3000, int(Health.OK))
    health[1150:1450] = Health.RECOVERING
    assert find_contacts(made_wrench(true, health=health)).events == ()


def test_a_line_of_action_holds_the_point_that_was_touched():
    rng = np.random.default_rng(1)
    for _ in range(50):
        force, point = 3.0 * rng.standard_normal(3), 0.1 * rng.standard_normal(3)
        line = line_of_action(force, np.cross(point, force), SURE, BOX)
        assert isinstance(line, LineOfAction)
        nearest, direction = np.array(line.nearest), np.array(line.direction)
        apart = point - nearest
        np.testing.assert_allclose(apart - (apart @ direction) * direction, 0.0, atol=1e-12)
        assert nearest @ direction == pytest.approx(0.0, abs=1e-12)
        if line.entry is not None and line.exit is not None:
            ends = np.array([line.entry, line.exit])
            for end in ends:
                np.testing.assert_allclose(np.cross(end - nearest, direction), 0.0, atol=1e-9)
                on_a_face = np.isclose(end, BOX.low, atol=1e-9) | np.isclose(end, BOX.high, atol=1e-9)
                assert on_a_face.any()
            assert (ends[1] - ends[0]) @ direction >= 0.0


def test_its_std_is_that_of_many_draws():
    rng = np.random.default_rng(2)
    force, torque = np.array([2.0, -1.0, 0.5]), np.cross([0.05, 0.1, -0.02], [2.0, -1.0, 0.5])
    root = 0.01 * rng.standard_normal((6, 6))
    draws = np.concatenate([force, torque]) + rng.standard_normal((20000, 6)) @ root.T
    nearest = np.cross(draws[:, :3], draws[:, 3:]) / np.sum(draws[:, :3] ** 2, axis=1)[:, None]
    line = line_of_action(force, torque, root @ root.T, BOX)
    assert isinstance(line, LineOfAction)
    np.testing.assert_allclose(line.nearest_std, nearest.std(axis=0), rtol=0.05)
    along = np.sum(draws[:, :3] * draws[:, 3:], axis=1) / np.linalg.norm(draws[:, :3], axis=1)
    assert line.along_std == pytest.approx(along.std(), rel=0.05)


@pytest.mark.parametrize(
    ("force", "torque", "covariance", "words"),
    [
        ((0.04, 0.0, 0.0), (0.0, 0.0, 0.0), SURE, "too weak"),
        ((2.0, 0.0, 0.0), (0.1, 0.0, 0.0), SURE, "a torque along the force"),
        ((2.0, 0.0, 0.0), (0.0, 0.0, 0.0), SURE + np.diag([0, 0, 0, 1, 1, 1.0]), "too uncertain"),
    ],
)
def test_a_line_that_is_not_determined_says_why(force, torque, covariance, words: str):
    told = line_of_action(np.array(force), np.array(torque), covariance, BOX)
    assert isinstance(told, str)
    assert words in told


def test_the_push_enters_on_the_side_that_it_comes_from():
    line = line_of_action(np.array([1.0, 0.0, 0.0]), np.zeros(3), SURE, BOX)
    assert isinstance(line, LineOfAction)
    assert line.entry == pytest.approx((-0.16, 0.0, 0.0))
    assert line.exit == pytest.approx((0.16, 0.0, 0.0))
    past = line_of_action(np.array([1.0, 0.0, 0.0]), np.array([0.0, 0.5, 0.0]), SURE, BOX)
    assert isinstance(past, LineOfAction)
    assert past.entry is None


def test_the_box_holds_the_rotors_about_the_centre_of_mass_and_is_not_flat():
    box = rotor_box((Rotor((0.2, -0.1, 0.0), "cw"), Rotor((-0.2, 0.1, 0.02), "ccw")), (0.1, 0.0, 0.0))
    np.testing.assert_allclose(box.low, (-0.3, -0.1, -0.04))
    np.testing.assert_allclose(box.high, (0.1, 0.1, 0.06))


def test_the_line_is_in_body_axes():
    """A push eastward at the nose of a vehicle that looks north: it comes from its left side."""
    n, half = 3000, np.sqrt(0.5)
    attitude = np.tile([half, 0.0, 0.0, half], (n, 1))
    point, body = np.array([0.12, 0.0, 0.0]), np.array([0.0, -1.5, 0.0])
    true = pulses(n, (12.0, 14.0, (1.5, 0.0, 0.0, *np.cross(point, body))))
    (event,) = find_contacts(made_wrench(true, attitude=attitude)).events
    assert event.line is not None
    np.testing.assert_allclose(event.line.direction, (0.0, -1.0, 0.0), atol=0.1)
    np.testing.assert_allclose(event.line.nearest, point, atol=4.0 * max(event.line.nearest_std))
    assert event.line.entry is not None
    assert event.line.entry[1] == pytest.approx(0.16)
