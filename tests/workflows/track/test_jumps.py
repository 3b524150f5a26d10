"""A jump is told where a track bears it out: its size within its own bounds, and nothing else is called a jump."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from rotorid.estimators.base import Health
from rotorid.workflows.track.changes import SIGNIFICANT_JUMP, Jump, find_jumps
from tests.workflows.tracks_for_tests import T, made_track, quantity


def noise(seed: int, std: float = 0.003, memory: float = 0.5) -> np.ndarray:
    """What an estimate wanders by: noise of that standard deviation with a memory, s."""
    kept = np.exp(-0.02 / memory)
    white = np.random.default_rng(seed).standard_normal(len(T)) * std * np.sqrt(1 - kept**2)
    wander = np.empty(len(T))
    wander[0] = std * np.random.default_rng([seed, 1]).standard_normal()
    for k in range(1, len(T)):
        wander[k] = kept * wander[k - 1] + white[k]
    return wander


def found(mass, changes: tuple[float, ...], **more) -> tuple[Jump, ...]:
    result = find_jumps(made_track(mass, changes=changes, **more))
    assert result is not None
    return result


def test_an_estimator_that_does_not_look_for_changes_has_none_to_tell() -> None:
    assert find_jumps(made_track(np.where(T < 30.0, 1.2, 0.8))) is None
    assert found(1.0 + noise(0), ()) == ()


@pytest.mark.parametrize("seed", range(10))
def test_a_step_is_told_with_its_size(seed: int) -> None:
    rng = np.random.default_rng(seed)
    time, size = rng.uniform(10.0, 50.0), rng.choice([-1, 1]) * rng.uniform(0.1, 0.4)
    (jump,) = found(1.0 + size * (time < T) + noise(seed), (time,))
    assert jump.time == time
    assert abs(jump.size - size) < 3.0 * jump.size_std
    assert jump.size_std < 0.02
    assert (jump.before, jump.after) == pytest.approx((1.0, 1.0 + size), abs=0.02)
    assert jump.after - jump.before == pytest.approx(jump.size)


def test_a_steady_drift_is_no_part_of_a_jump() -> None:
    mass = 1.2 - 0.01 * T + 0.2 * (T > 30.0) + noise(1)
    (jump,) = found(mass, (30.0,))
    assert jump.size == pytest.approx(0.2, abs=0.02)
    assert (jump.before, jump.after) == pytest.approx((0.9, 1.1), abs=0.02)
    assert found(1.2 - 0.01 * T + noise(1), (12.0, 30.0, 41.0)) == ()


@pytest.mark.parametrize("seed", range(5))
def test_noise_bears_no_change_out(seed: int) -> None:
    times = np.sort(np.random.default_rng(seed).uniform(1.0, 59.0, 40))
    assert found(1.0 + noise(seed, 0.01), tuple(times.tolist())) == ()


def test_what_does_not_last_is_no_jump() -> None:
    contact = np.where((T > 30.0) & (T < 30.4), 1.3, 1.0) + noise(2)
    assert found(contact, (30.0, 30.4)) == ()


def test_real_jumps_stay_among_others() -> None:
    mass = 1.0 + 0.3 * (T > 20.0) - 0.2 * (T > 21.5) + noise(3)
    some = found(mass, (5.0, 19.3, 20.0, 20.15, 21.5, 22.4, 40.0))
    assert [j.time for j in some] == [20.0, 21.5]
    assert [j.size for j in some] == pytest.approx([0.3, -0.2], abs=0.03)


def test_a_change_that_was_missed_does_not_hide_the_others() -> None:
    mass = 1.0 + 0.3 * (np.floor(T / 2.0) % 2) + noise(4)
    times = tuple(t for t in np.arange(2.0, 60.0, 2.0).tolist() if t not in (20.0, 58.0))
    assert [j.time for j in found(mass, times)] == list(times)


def test_a_gap_the_start_and_the_end_make_no_jumps() -> None:
    t = np.where(T < 30.0, T, T + 20.0)
    mass = np.where(T < 30.0, 1.0, 1.5)
    assert found(quantity(mass, t=t), (0.3, 29.9, 40.0, 50.2, float(t[-1]) - 0.3), t=t) == ()
    landing = np.where(T < 29.8, 1.0, 2.0)
    assert found(quantity(landing, t=t), (29.8,), t=t) == ()


def test_what_the_log_does_not_tell_makes_no_jump() -> None:
    step = np.where(T < 30.0, 1.0, 1.5)
    assert len(found(step, (30.0,))) == 1
    assert found(quantity(step, informed=False), (30.0,)) == ()
    assert found(quantity(step, informed=T > 29.8), (30.0,)) == ()
    restart = np.where((T > 29.0) & (T < 31.0), int(Health.RECOVERING), int(Health.OK))
    assert len(found(step, (30.0,), health=restart)) == 1
    assert found(quantity(np.where(T < 30.0, 1.0, np.nan)), (30.0,)) == ()


def test_a_jump_within_the_band_is_none() -> None:
    def step(size: float) -> tuple[Jump, ...]:
        return found(quantity(1.0 + size * (T > 30.0), std=0.01), (30.0,))

    least = SIGNIFICANT_JUMP * 0.01 * np.sqrt(2.0)
    assert step(0.95 * least) == ()
    (jump,) = step(1.05 * least)
    assert jump.size_std == pytest.approx(0.01 * np.sqrt(2.0))


def test_a_common_factor_is_not_in_the_size() -> None:
    """A thrust scale that is known to 5 % makes each mass uncertain by 5 %, and a jump by 5 % of the jump."""
    mass = np.where(T < 30.0, 1.0, 1.1)
    own = quantity(mass, std=np.hypot(0.005, 0.05 * mass))
    (jump,) = found(dataclasses.replace(own, common_relative_std=0.05), (30.0,))
    assert jump.size_std == pytest.approx(np.hypot(0.005 * np.sqrt(2.0), 0.05 * 0.1), rel=1e-6)
    assert (jump.before_std, jump.after_std) == pytest.approx((np.hypot(0.005, 0.05), np.hypot(0.005, 0.055)))
    assert found(own, (30.0,)) == ()
