"""The adaptive filter: a filter for every time at which the parameters may have changed, and their mixture."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rotorid.errors import SettingError
from rotorid.estimators.adaptive import adaptive
from rotorid.estimators.base import Health
from rotorid.estimators.ekf import ekf
from rotorid.estimators.hypotheses import change_times
from rotorid.estimators.run import run
from rotorid.models.known_changepoints import KnownChangepoints, with_change_input
from tests.systems import SYSTEMS, Cart, matched


def test_without_changes_it_is_the_ekf():
    filter_ = ekf(Cart(), bias_gate=1e9)
    samples, _ = matched(filter_, seed=3, steps=400)
    steady = adaptive(Cart(), changing=(), hazard=1e-30, steady=1.0)
    a, b = run(steady, samples), run(filter_, samples)
    for field in ("value", "std", "state", "state_std", "innovation", "innovation_std"):
        np.testing.assert_allclose(getattr(a, field), getattr(b, field), rtol=1e-9, atol=1e-11, err_msg=field)
    assert float(a.change_probability.max()) < 1e-20


def naive(samples, hazard, jump, period, rate_std, rate_noise):
    """Kalman filters of a cart (position, velocity, push, its rate), one for every time at which the push may have jumped."""
    q, r = np.array([0.02, 0.05, 0.0, rate_noise]), np.array([0.1, 0.2, 0.3])
    H = np.array([[1, 0, 0, 0], [0, 1, 0, 0], [1, 0, -0.5, 0]], float)
    hypotheses = [
        (0.0, np.array([float(samples.y[0, 0]), 0, 0.5, 0]), np.diag([2.0, 1.0, 1.0, rate_std]) ** 2)
    ]
    means = []
    for k in range(len(samples.t)):
        dt, force = float(samples.dt[k]), float(samples.u[k, 0])
        if k:
            weight, x, P = hypotheses[0]
            opened = P + np.diag([0, 0, jump**2, 0])
            hypotheses.insert(1, (weight + np.log(hazard * period), x, opened))
        J = np.array([[0, 1, 0, 0], [0, 0, 0.5, 0], [0, 0, 0, 1], [0, 0, 0, 0]], float) * dt
        F = np.eye(4) + J + J @ J / 2
        after = []
        for weight, x, P in hypotheses:
            x = F @ x + np.array([dt * dt / 2, dt, 0, 0]) * force / 2.0
            P = F @ P @ F.T + np.diag(q**2) * dt
            S, e = H @ P @ H.T + np.diag(r**2), np.asarray(samples.y[k]) - H @ x
            K = P @ H.T @ np.linalg.inv(S)
            weight = weight - 0.5 * (e @ np.linalg.solve(S, e) + np.linalg.slogdet(S)[1])
            after.append((weight, x + K @ e, P - K @ S @ K.T))
        total = np.logaddexp.reduce([w for w, _, _ in after])
        hypotheses = [(w - total, x, P) for w, x, P in after]
        w, x = np.exp([h[0] for h in hypotheses]), np.stack([h[1] for h in hypotheses])
        mean = w @ x
        spread = sum(
            v * (P + np.outer(y - mean, y - mean)) for v, y, (_, _, P) in zip(w, x, hypotheses, strict=True)
        )
        means.append((mean[2], np.sqrt(spread[2, 2]), 1.0 - w[0]))
    return np.array(means)


def test_it_is_the_mixture_over_all_times_of_a_change():
    """As long as no hypothesis has been merged and none without a change is less likely than one with."""
    steps, settings = 25, {"hazard": 0.2, "jump": 0.4, "period": 0.01, "rate_std": 0.3, "rate_noise": 0.1}
    samples, _ = matched(ekf(Cart()), seed=5, steps=steps)
    found = run(adaptive(Cart(), branches=steps + 2, steady=0.0, gate=1e3, **settings), samples)
    want = naive(samples, **settings)
    got = np.stack([found.value[:, 0], found.std[:, 0], found.change_probability], axis=1)
    np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-9)
    assert want[:, 2].max() > 0.01


@pytest.fixture(scope="module")
def hovering():
    """A bare multirotor that becomes a third lighter at 6 s: the same data with the thrust asked of a heavier one."""
    with jax.enable_x64(True):
        mass = SYSTEMS["bare"].parameter("mass")
        plain = ekf(SYSTEMS["bare"], priors={"mass": dataclasses.replace(mass, drift=0.001)})
        samples, truth = matched(plain, seed=1, steps=1200)
        u = samples.u.at[600:, 0].multiply(1.5)
        true = np.exp(truth[:, 10]) * np.where(np.arange(1200) >= 600, 1.5, 1.0)
        return eqx.tree_at(lambda s: s.u, samples, u), true


def test_a_jump_is_found_and_timed(hovering):
    samples, mass = hovering
    found = run(adaptive(SYSTEMS["bare"]), samples)
    since = np.asarray(found.since_change)
    told = 600 + int(np.argmax(since[600:] < 0.5))
    assert told - 600 <= 25
    assert abs((told - 600) * 0.01 - since[told]) <= 0.05
    assert not np.any(since[200:600] < 0.5)
    assert change_times(np.asarray(samples.t), since) == pytest.approx((6.0,), abs=0.05)
    error = np.abs(np.asarray(found.value[:, 0]) / mass - 1.0)
    assert error[650:].max() < 0.08
    health = np.asarray(found.health)[100:]
    assert np.isin(health, (Health.OK, Health.NO_INFORMATION)).all()
    assert np.mean(health == Health.OK) > 0.9


def test_the_size_of_a_recent_jump_is_not_called_known(hovering):
    samples, mass = hovering
    found = run(adaptive(SYSTEMS["bare"]), samples)
    health, since = np.asarray(found.health), np.asarray(found.since_change)
    is_recent = (since < 0.14) & (np.arange(1200) > 100)
    assert 10 <= is_recent[600:640].sum() <= 20
    assert np.all(health[is_recent] == Health.NO_INFORMATION)
    is_wrong = np.abs(np.asarray(found.value[:, 0]) / mass - 1.0) > 0.09
    assert np.flatnonzero(is_wrong & (health == Health.OK) & (np.arange(1200) > 100)).tolist() in (
        [600],
        [600, 601],
        [],
    )


def test_lagged_estimates_are_more_accurate(hovering):
    samples, mass = hovering
    found = run(adaptive(SYSTEMS["bare"], lag=0.25), samples)
    late = np.arange(100, 1175)
    late = late[
        np.abs(late - 600) > 2
    ]  # the time of the jump itself is known to the period of the hypotheses
    now = np.asarray(found.value[:, 0])[late] / mass[late] - 1.0
    lagged = np.asarray(found.lagged[:, 0])[late + 25] / mass[late] - 1.0
    assert np.sqrt(np.mean(lagged**2)) < 0.7 * np.sqrt(np.mean(now**2))
    covered = np.abs(lagged * mass[late]) < 1.96 * np.asarray(found.lagged_std[:, 0])[late + 25]
    assert covered.mean() >= 0.9


def test_an_outlier_is_no_change(hovering):
    samples, _ = hovering
    filter_ = adaptive(SYSTEMS["bare"])
    velocity = filter_.joint.system.outputs.stored["velocity"]
    spoilt = eqx.tree_at(lambda s: s.y, samples, samples.y.at[400, velocity].add(20.0))
    a, b = run(filter_, spoilt), run(filter_, samples)
    assert int(a.health[400]) == Health.OUTLIER
    assert abs(float(a.value[400, 0] - b.value[400, 0])) < 0.2 * float(b.std[400, 0])
    assert float(a.since_change[450]) > 1.0


def test_a_single_sample_decides_no_change(hovering):
    """A noisy velocity as probable as a jump of the mass moves the estimate for a sample: its health is then not OK."""
    samples, mass = hovering
    filter_ = adaptive(SYSTEMS["bare"])
    space = filter_.joint.system.outputs
    vertical, noise = space.stored["velocity"].start + 2, filter_.tuning.measurement_noise
    std = float(noise[space.tangent["velocity"].start + 2])
    is_far = []
    for shift in (3.0, 3.5, 4.0, 4.5):
        y = samples.y.at[400, vertical].add(shift * std)
        found = run(filter_, eqx.tree_at(lambda s: s.y, samples, y))
        rows = np.arange(400, 420)
        far = np.abs(np.asarray(found.value)[rows, 0] / mass[rows] - 1.0) > 0.05
        assert np.all(np.asarray(found.health)[rows][far] == Health.NO_INFORMATION)
        is_far.append(far.any())
    assert any(is_far)


def test_recovery_after_a_gap_and_an_input_that_is_no_number(hovering):
    samples, mass = hovering
    filter_ = adaptive(SYSTEMS["bare"])
    gap = run(filter_, eqx.tree_at(lambda s: s.dt, samples, samples.dt.at[300].set(5.0)))
    assert int(gap.health[300]) == Health.RECOVERING
    assert abs(float(gap.value[500, 0]) / mass[500] - 1.0) < 0.05
    broken = run(filter_, eqx.tree_at(lambda s: s.u, samples, samples.u.at[300].set(jnp.nan)))
    assert int(broken.health[300]) == Health.OUT_OF_RANGE
    assert bool(jnp.all(jnp.isfinite(broken.value)))
    assert abs(float(broken.value[500, 0]) / mass[500] - 1.0) < 0.05


def test_errors_name_parameters_that_cannot_change():
    with pytest.raises(SettingError, match=r"'weight' is not tracked, so it cannot change \(tracked: push\)"):
        adaptive(Cart(), changing="weight")
    with pytest.raises(SettingError, match="0 branches are too few"):
        adaptive(Cart(), branches=0)


def test_a_known_changepoint_is_followed_at_once(hovering):
    samples, mass = hovering
    told = with_change_input(samples, [float(samples.t[600])])
    assert np.flatnonzero(np.asarray(told.u[:, -1])).tolist() == [600]
    only = run(adaptive(KnownChangepoints(SYSTEMS["bare"]), branches=0), told)
    also = run(adaptive(KnownChangepoints(SYSTEMS["bare"])), told)
    plain = run(adaptive(SYSTEMS["bare"]), samples)
    for found in (only, also):
        assert float(found.since_change[600]) <= 0.02
        error = np.abs(np.asarray(found.value[:, 0]) / mass - 1.0)
        assert error[610:].max() < 0.08
    assert float(only.std[600, 0]) > 3 * float(plain.std[599, 0])
    assert np.all(np.asarray(only.since_change)[:600] > 1e5)
    np.testing.assert_array_equal(np.asarray(also.value)[:600], np.asarray(plain.value)[:600])


def test_with_known_changepoints_no_other_changes_are_detected(hovering):
    """Nothing announced: the filter with rates alone, slow to follow the jump."""
    samples, mass = hovering
    found = run(adaptive(KnownChangepoints(SYSTEMS["bare"]), branches=0), with_change_input(samples, []))
    assert abs(float(found.value[610, 0]) / mass[610] - 1.0) > 0.1
    with pytest.raises(SettingError, match="has an input 'change' already"):
        KnownChangepoints(KnownChangepoints(SYSTEMS["bare"]))
