"""Mass features compared with a naive fit and a known mass; predictions of trained regressors and their variance."""

from __future__ import annotations

import dataclasses

import jax.numpy as jnp
import numpy as np
import pytest

from rotorid import Samples
from rotorid.errors import ExcitationError, SettingError
from rotorid.learning import ELMRegressor, OSELMRegressor
from rotorid.learning.features import (
    WINDOWS,
    fit_variance_model,
    mass_features,
    mass_training_set,
    predict_mass,
)
from rotorid.models.multirotor import BareMultirotor
from rotorid.models.multirotor.bare import MASS
from rotorid.signals import sample
from rotorid.signals.sampling import truth_at
from rotorid.simulation import simulate

SYSTEM = BareMultirotor()
FINE = 50  # steps of the true motion in a row


@dataclasses.dataclass
class Rows:
    """Samples in numpy."""

    t: np.ndarray
    dt: np.ndarray
    u: np.ndarray
    y: np.ndarray
    mask: np.ndarray

    def __getitem__(self, which) -> Rows:
        return Rows(*(leaf[which] for leaf in vars(self).values()))

    def samples(self) -> Samples:
        return Samples(**{name: jnp.asarray(leaf) for name, leaf in vars(self).items()})


def features(made, *arguments, **options):
    return mass_features(made.samples(), *arguments, **options)


def quaternion(roll, pitch, yaw):
    (cr, sr), (cp, sp), (cy, sy) = ((np.cos(a / 2), np.sin(a / 2)) for a in (roll, pitch, yaw))
    return np.stack(
        [
            cr * cp * cy + sr * sp * sy,
            sr * cp * cy - cr * sp * sy,
            cr * sp * cy + sr * cp * sy,
            cr * cp * sy - sr * sp * cy,
        ],
        axis=-1,
    )


def flight(seconds=4.0, mass=1.3, rate=100.0, noise=0.0, seed=0, heading=0.0, thrust=None):
    """Rolling, pitching and turning, under a thrust held over each row; mass: kg, or one per row."""
    rng = np.random.default_rng(seed)
    n = round(seconds * rate) + 1
    t = np.arange(n) / rate
    fine = np.arange((n - 1) * FINE + 1) / rate / FINE
    a, b, c = rng.uniform(1.0, 4.0, 3)

    def angles(t):
        return 0.5 * np.sin(a * t), 0.4 * np.cos(b * t), heading + 0.3 * c * t

    roll, pitch, yaw = angles(fine)
    up = np.stack(
        [
            np.cos(roll) * np.sin(pitch) * np.cos(yaw) + np.sin(roll) * np.sin(yaw),
            np.cos(roll) * np.sin(pitch) * np.sin(yaw) - np.sin(roll) * np.cos(yaw),
            np.cos(roll) * np.cos(pitch),
        ],
        axis=1,
    )
    masses = np.broadcast_to(mass, n)
    held = 12.0 + 3.0 * np.sin(5.0 * t) if thrust is None else np.full(n, thrust)
    acceleration = 0.5 * (up[1:] + up[:-1]) * np.repeat(held[1:] / masses[1:], FINE)[:, None]
    acceleration[:, 2] -= 9.81
    steps = np.add.reduceat(acceleration, np.arange(0, (n - 1) * FINE, FINE)) / rate / FINE
    velocity = np.concatenate([np.zeros((1, 3)), np.cumsum(steps, axis=0)])
    pitch_rate, roll_rate, yaw_rate = -0.4 * b * np.sin(b * t), 0.5 * a * np.cos(a * t), 0.3 * c
    roll, pitch, yaw = angles(t)
    body_rate = np.stack(
        [
            roll_rate - yaw_rate * np.sin(pitch),
            pitch_rate * np.cos(roll) + yaw_rate * np.cos(pitch) * np.sin(roll),
            -pitch_rate * np.sin(roll) + yaw_rate * np.cos(pitch) * np.cos(roll),
        ],
        axis=1,
    )
    velocity += noise * rng.normal(size=velocity.shape)
    return Rows(
        t=t,
        dt=np.diff(t, prepend=t[0]),
        u=np.column_stack([held, body_rate]),
        y=np.column_stack([quaternion(roll, pitch, yaw), np.zeros((n, 3)), velocity]),
        mask=np.ones((n, 9), bool),
    )


def sharp(noise=1e-6):
    """A model with a small velocity noise, so that the prior has no effect."""
    outputs = dict(SYSTEM.outputs)
    outputs["velocity"] = dataclasses.replace(outputs["velocity"], noise=noise)
    return type("Sharp", (BareMultirotor,), {"outputs": type(SYSTEM.outputs).of(**outputs)})()


@pytest.mark.parametrize("mass", [0.2, 1.3, 40.0])
def test_inverse_of_a_steady_mass(mass):
    found, informed = features(flight(mass=mass), sharp(1e-9))
    assert not informed[3]
    assert informed[4:].all()
    np.testing.assert_allclose(found[informed], 1.0 / mass, rtol=1e-3)


@pytest.mark.parametrize("k", [4, 30, 399])
def test_each_feature_is_the_least_squares_estimate_of_its_window(k):
    """The prior of the inverse mass is an additional row of the least squares."""
    samples = flight(noise=0.03)
    found, _ = features(samples)
    kappa = (0.03 / MASS.std) ** 2
    q = samples.y[:, :4]
    w, x, y, z = q.T
    up = np.stack([2 * (x * z + w * y), 2 * (y * z - w * x), 1 - 2 * (x * x + y * y)], axis=1)
    impulse = np.concatenate([np.zeros((1, 3)), 0.5 * (up[1:] + up[:-1]) * samples.u[1:, :1] * 0.01])
    J, V = np.cumsum(impulse, axis=0), samples.y[:, 7:] + samples.t[:, None] * [0.0, 0.0, 9.81]
    for j, window in enumerate(WINDOWS):
        part = slice(max(0, k - round(100 * window)), k + 1)
        n = len(J[part])
        A = np.column_stack([J[part].ravel(), np.tile(np.eye(3), (n, 1))])
        A = np.vstack([A, [np.sqrt(kappa), 0.0, 0.0, 0.0]])
        b = np.append(V[part].ravel(), np.sqrt(kappa) / MASS.value)
        np.testing.assert_allclose(found[k, j], np.linalg.lstsq(A, b)[0][0], rtol=1e-6)


def test_causal():
    samples = flight(noise=0.03)
    whole, informed = features(samples)
    for end in (10, 150, 333):
        part, full = features(samples[:end])
        np.testing.assert_allclose(part, whole[:end], rtol=1e-9)
        assert np.array_equal(full, informed[:end])
    buffer, _ = features(samples[399 - 162 : 400])
    np.testing.assert_allclose(buffer[-1], whole[399], rtol=1e-6)


def test_features_are_invariant_to_time_position_velocity_and_heading():
    samples = flight(noise=0.0)
    moved = flight(heading=2.0)
    moved.t += 1e5
    moved.y[:, 4:] += [1e3, -50.0, 7.0, 20.0, -3.0, 1.0]
    np.testing.assert_allclose(features(moved)[0], features(samples)[0], rtol=1e-5)


def test_a_long_flight_has_no_loss_of_precision():
    samples = flight(seconds=300.0)
    found, _ = features(samples)
    tail, _ = features(samples[-1000:])
    np.testing.assert_allclose(found[-500:], tail[-500:], rtol=1e-6)


def test_missing_measurements():
    samples = flight(seconds=6.0)
    rng = np.random.default_rng(0)
    samples.mask[:, :3] = (np.arange(len(samples.t)) % 4 == 0)[:, None]
    samples.mask[:7, :3] = False
    samples.mask[:, 6:] = (rng.random(len(samples.t)) < 0.7)[:, None]
    samples.y[:, :4][~samples.mask[:, 0]] = [1.0, 0.0, 0.0, 0.0]
    samples.y[:, 7:][~samples.mask[:, 6]] = 0.0
    found, informed = features(samples, sharp())
    assert 0.5 < informed.mean() < 0.95
    np.testing.assert_allclose(found[informed], 1.0 / 1.3, rtol=0.03)


def test_windows_do_not_reach_across_a_gap():
    samples = flight(seconds=6.0)
    gapped = samples[np.r_[0:200, 300:601]]
    gapped.dt = np.diff(gapped.t, prepend=0.0)
    found, informed = features(gapped, sharp())
    assert not informed[200:204].any()
    assert informed[204:].all()
    np.testing.assert_allclose(found[informed], 1.0 / 1.3, rtol=1e-3)


def test_features_without_thrust_equal_the_prior():
    found, _ = features(flight(thrust=0.0, noise=0.03))
    np.testing.assert_allclose(found, 1.0 / MASS.value, atol=1e-9)


def test_invalid_windows_and_priors_are_rejected():
    samples = flight()
    with pytest.raises(ExcitationError, match="2 rows"):
        features(samples[:2])
    with pytest.raises(SettingError, match="the shortest must contain 3 rows"):
        features(samples, windows=(0.5, 0.01))
    with pytest.raises(SettingError, match="prior mass 1 ± 0 kg"):
        features(samples, BareMultirotor(mass=MASS.with_prior(1.0, 0.0, 0.0)))


# --- the mass -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def simulated():
    """Simulated flights of 8 s and their mass: noise of 0.01 rad, 0.01 m, 0.03 m/s at 100 Hz."""
    found = []
    for seed, (trajectory, profile) in enumerate(
        [(t, p) for p in ("linear", "steps", "sine") for t in ("random", "loop", "lemniscate")]
    ):
        made = simulate(trajectory, profile, seed=seed, duration=8.0)
        samples = sample(made, SYSTEM.inputs, SYSTEM.outputs)
        found.append((samples, truth_at(made, "true_mass", np.asarray(samples.t))[:, 0]))
    return found


@pytest.mark.parametrize(
    "regressor",
    [ELMRegressor(100, alpha=1e-2, random_state=0), OSELMRegressor(100, alpha=1e-2, random_state=0)],
    ids=["ELM", "OS-ELM"],
)
def test_mass_of_flights_outside_the_training_set(simulated, regressor):
    new = [simulated[0], simulated[4], simulated[8]]
    train = [pair for i, pair in enumerate(simulated) if i not in (0, 4, 8)]
    X, y = mass_training_set(*zip(*train, strict=True), every=2)
    regressor.fit(X, y)
    errors, within = [], []
    for samples, mass in new:
        found = predict_mass(regressor, samples)
        ok = found.informed
        assert np.array_equal(found.t, np.asarray(samples.t))
        assert set(found.value[~ok]) == {MASS.value}
        assert set(found.std[~ok]) == {MASS.std}
        assert (~ok).sum() == 4
        errors.append(np.mean((found.value[ok] / mass[ok] - 1.0) ** 2))
        within.append(np.mean(np.abs(found.value[ok] - mass[ok]) < 1.96 * found.std[ok]))
    assert np.sqrt(np.mean(errors)) < 0.03
    assert np.mean(within) > 0.93


def test_training_set(simulated):
    X, y = mass_training_set(*zip(*simulated[:2], strict=True))
    assert X.shape == (2 * (len(simulated[0][1]) - 4), len(WINDOWS))
    half, masses = mass_training_set(*zip(*simulated[:1], strict=True), every=2)
    assert np.array_equal(half, X[: len(simulated[0][1]) - 4 : 2])
    assert np.array_equal(masses, y[: len(simulated[0][1]) - 4 : 2])


# --- standard deviation -------------------------------------------------------------------------------------


def windows_of(rng, n):
    """Features with random differences of the two shortest windows, errors that depend on them, and their true standard
    deviation."""
    sizes = 0.001 * 10.0 ** rng.uniform(-1.0, 2.0, n)
    X = 1.0 + 0.001 * rng.normal(size=(n, 5))
    X[:, 0] = X[:, 1] + sizes * rng.choice([-1.0, 1.0], n)
    std = 0.02 * np.sqrt(1.0 + (sizes / 0.005) ** 2)
    return X, std * rng.normal(size=n), std


def test_std_of_errors_that_grow_with_the_differences_of_windows():
    """The standard deviation is estimated over a range of 1 to 20."""
    rng = np.random.default_rng(0)
    X, y, _ = windows_of(rng, 10000)
    regressor = ELMRegressor(10, alpha=1.0, random_state=0).fit(X, y)
    found = fit_variance_model(regressor, X, y)
    new, _, std = windows_of(rng, 1000)
    value, spread = found.predict(new, return_std=True)
    assert np.array_equal(value, regressor.predict(new))
    assert np.array_equal(value, found.predict(new))
    assert std.max() > 15.0 * std.min()
    assert np.quantile(np.abs(spread / std - 1.0), 0.9) < 0.2


def test_std_is_that_of_rows_outside_the_training_set():
    """With many nodes the training errors are smaller than those of new rows."""
    rng = np.random.default_rng(1)

    def noise(n):
        return 1.0 + 0.01 * rng.normal(size=(n, 5)), rng.normal(size=n)

    (X, y), (new, of_new) = noise(1000), noise(1000)
    regressor = ELMRegressor(300, alpha=1e-2, random_state=0).fit(X, y)
    value, std = fit_variance_model(regressor, X, y, hidden=5).predict(new, return_std=True)
    error = np.median(np.abs(value - of_new)) / 0.6745
    assert np.median(np.abs(y - regressor.predict(X))) / 0.6745 < 0.8 * error
    np.testing.assert_allclose(np.median(std), error, rtol=0.3)


def test_std_grows_outside_the_training_range():
    rng = np.random.default_rng(2)
    X, error, _ = windows_of(rng, 3000)
    found = fit_variance_model(ELMRegressor(10, alpha=1.0, random_state=0).fit(X, error), X, error, hidden=30)
    assert not found.extrapolation(X).any()
    std = [
        np.median(found.predict(X + shift * np.std(X, axis=0), return_std=True)[1])
        for shift in (0.0, 10.0, 100.0)
    ]
    assert std[0] < 0.1 * std[1] < 0.1 * std[2]


def test_a_mass_beyond_those_of_the_training_is_reported(simulated):
    X, y = mass_training_set(*zip(*simulated[1:], strict=True), every=2)
    regressor = fit_variance_model(ELMRegressor(100, alpha=1e-2, random_state=0).fit(X, y), X, y)
    samples, mass = simulated[0]
    inside = predict_mass(regressor, samples)
    assert np.mean(inside.extrapolation > 0.0) < 0.02
    factor = 2.5  # thrust and mass of a larger vehicle with the same motion
    place = SYSTEM.inputs.stored["thrust"]
    large = dataclasses.replace(samples, u=samples.u.at[:, place].multiply(factor))
    outside = predict_mass(regressor, large)
    rows = outside.informed & (outside.t > 2.0)
    assert np.all(outside.extrapolation[rows] > 0.0)
    assert np.mean(np.abs(outside.value - factor * mass)[rows] < 1.96 * outside.std[rows]) > 0.9


def test_std_without_errors_and_with_equal_windows():
    """Constant mass and equal windows: the standard deviation is small and finite."""
    X = np.repeat(np.linspace(0.5, 2.0, 100)[:, None], 4, axis=1)
    X[0] = 0.0
    regressor = ELMRegressor(5, alpha=1e-3, random_state=0).fit(X, np.ones(100))
    _, std = fit_variance_model(regressor, X, np.ones(100), hidden=5).predict(X, return_std=True)
    assert np.isfinite(std).all()
    assert np.all(std < 0.1)


def test_coverage_after_steps_of_the_mass(simulated):
    """The variance model has a higher coverage after a step than the standard deviation of the regressor."""
    held = {"own": ([], []), "spread": ([], [])}
    for i in (3, 4, 5):
        samples, mass = simulated[i]
        steps = np.flatnonzero(np.abs(np.diff(mass)) > 0.05) + 1
        since = np.min(
            [np.where(np.arange(len(mass)) < k, 999, np.arange(len(mass)) - k) for k in steps], axis=0
        )
        others = [pair for j, pair in enumerate(simulated) if j != i]
        X, y = mass_training_set(*zip(*others, strict=True), every=2)
        regressor = ELMRegressor(100, alpha=1e-2, random_state=0).fit(X, y)
        for name, of in (("own", regressor), ("spread", fit_variance_model(regressor, X, y))):
            found = predict_mass(of, samples)
            inside = np.abs(found.value - mass) < 1.96 * found.std
            held[name][0].extend(inside[(since >= 5) & (since < 30)])
            held[name][1].extend(inside[since >= 30])
    own = np.mean(held["own"][0])
    after, elsewhere = (np.mean(part) for part in held["spread"])
    assert len(held["own"][0]) > 150
    assert after > own + 0.1
    assert after > 0.85
    assert elsewhere > 0.9


def test_invalid_variance_models_are_rejected():
    X, y = np.ones((40, 3)), np.ones(40)
    regressor = ELMRegressor(5, alpha=1.0).fit(X, y)
    with pytest.raises(SettingError, match="two or more windows"):
        fit_variance_model(regressor, X[:, :1], y)
    with pytest.raises(SettingError, match="folds=1 of 40 rows"):
        fit_variance_model(regressor, X, y, folds=1)
    with pytest.raises(SettingError, match="folds=5 of 40 rows"):
        fit_variance_model(regressor, X, y, folds=5)
