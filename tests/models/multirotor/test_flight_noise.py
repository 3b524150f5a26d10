"""Gusts and vibration in the noise of a flight."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.signal import lfilter

from rotorid.estimators.ekf import ekf
from rotorid.models.airframe.airframe import load_airframe
from rotorid.models.multirotor.flight_noise import FlightNoise, flight_noise
from rotorid.models.multirotor.with_drag import Multirotor, multirotor
from rotorid.models.system import GRAVITY, Parameter
from rotorid.signals.measurement_noise import LONGEST_CORRELATION, correlated_noise, moving_share
from rotorid.signals.samples import Samples

STEP = 0.02  # s


def first_order(
    size: float, time: float, rows: int, rng: np.random.Generator, step: float = STEP
) -> np.ndarray:
    kept = np.exp(-step / time)
    return lfilter([np.sqrt(1.0 - kept**2) * size], [1.0, -kept], rng.normal(size=rows))


def hover(system: Multirotor, size: float, time: float, *, moves: bool) -> FlightNoise:
    """The noise of a hover with vertical forces. size: m/s^2. time: of their correlation, s. moves: whether they move it."""
    rng = np.random.default_rng(3)
    t = np.arange(0.0, 60.0, STEP)
    gust = first_order(size, time, len(t), rng)
    u = np.tile([system.weight, 0.0, 0.0, 0.0], (len(t), 1))
    force = np.column_stack([0.0 * t, 0.0 * t, GRAVITY + gust]) + rng.normal(0.0, 0.1, (len(t), 3))
    attitude = np.tile([1.0, 0.0, 0.0, 0.0], (len(t), 1))
    velocity = rng.normal(0.0, 0.05, (len(t), 3)) + moves * STEP * np.cumsum(gust)[:, None]
    y = np.column_stack([attitude, velocity, force])
    columns = (t, np.full_like(t, STEP), u, y, np.ones((len(t), 9), bool))
    return flight_noise(Samples(*(jnp.asarray(column) for column in columns)), system)


@pytest.fixture(scope="module")
def system() -> Multirotor:
    return multirotor(load_airframe("px4-sih-quad"), "thrust")


def test_brief_gusts_are_a_state_of_their_correlation_time(system: Multirotor) -> None:
    noise = hover(system, 0.8, 0.04, moves=True)
    assert noise.gust_time == pytest.approx(0.04, rel=0.35)
    variance = (noise.process["gust"] * GRAVITY / system.weight) ** 2 * STEP
    assert variance == pytest.approx(0.8**2 * (1.0 - np.exp(-2.0 * STEP / 0.04)), rel=0.3)
    assert noise.tuning["priors"]["gust_time"].values == (noise.gust_time,)


def test_brief_gusts_have_their_density_along_all_axes(system: Multirotor) -> None:
    """Process noise sigma (2 tau)^(1/2) across, and as much white noise of the specific force per square root of s."""
    noise = hover(system, 0.8, 0.04, moves=True)
    density = 0.8 * np.sqrt(2.0 * 0.04)
    np.testing.assert_allclose(noise.process["velocity"][:2], density, rtol=0.2)
    assert noise.process["velocity"][2] == system.states["velocity"].noise_vector[2]
    np.testing.assert_allclose(noise.measurement["specific_force"], density / np.sqrt(STEP), rtol=0.2)


def test_in_brief_gusts_the_mass_drifts_less_between_resets(system: Multirotor) -> None:
    gusty = ekf(system, **hover(system, 0.8, 0.04, moves=True).tuning).tuning
    calm = ekf(system).tuning
    share = gusty.drift_std(jnp.asarray(0.01), jnp.asarray(60.0)) / calm.drift_std(
        jnp.asarray(0.01), jnp.asarray(60.0)
    )
    reset = gusty.drift_std(jnp.asarray(0.0), jnp.asarray(60.0), 15.0) / calm.drift_std(
        jnp.asarray(0.0), jnp.asarray(60.0), 15.0
    )
    assert float(share[0]) == pytest.approx(0.3)
    np.testing.assert_allclose(share[1:][np.isfinite(share[1:])], 1.0)
    np.testing.assert_allclose(reset[np.isfinite(reset)], 1.0)
    assert float(gusty.thresholds.least_bias) < 1.0


@pytest.mark.parametrize("seed", range(5))
def test_gusts_of_two_seconds_are_not_taken_for_vibration(seed: int) -> None:
    """The first estimate in flight: 8 to 10 means over 0.2 s, and a velocity with slow errors."""
    rng = np.random.default_rng(seed)
    t = np.arange(0.0, 2.0, STEP)
    gust = first_order(1.0, 0.04, len(t), rng)
    velocity = STEP * np.cumsum(gust) + first_order(0.05, 0.5, len(t), rng)
    assert moving_share(t, gust, velocity, np.zeros(len(t))) > 0.5


def test_vibration_of_half_a_minute_is_not_taken_for_gusts() -> None:
    rng = np.random.default_rng(5)
    t = np.arange(0.0, 30.0, STEP)
    velocity = rng.normal(0.0, 0.03, len(t))
    assert moving_share(t, first_order(1.0, 0.04, len(t), rng), velocity, np.zeros(len(t))) < 0.3


def test_slower_gusts_are_process_noise_of_the_velocity(system: Multirotor) -> None:
    """Three times the noise (2 T)^(1/2) sigma of their part that shows within a second, per square root of s."""
    noise = hover(system, 0.8, 0.2, moves=True)
    assert noise.gust_time is None
    assert 0.3 < noise.process["velocity"] / (3.0 * np.sqrt(2.0 * 0.2) * 0.8) < 1.0
    assert noise.measurement["specific_force"][2] > 0.5


def test_vibration_is_noise_of_the_specific_force(system: Multirotor) -> None:
    noise = hover(system, 0.8, 0.04, moves=False)
    assert noise.measurement["specific_force"][2] > 0.5
    assert noise.gust_time is None
    assert noise.process.get("velocity", 0.0) < 0.1


def test_without_gusts_nothing_changes(system: Multirotor) -> None:
    noise = hover(system, 0.0, 0.04, moves=False)
    assert noise.tuning == {"measurement_noise": noise.measurement}
    assert noise.measurement["specific_force"] == system.outputs["specific_force"].noise


def test_priors_are_joined_with_the_time_of_the_gusts() -> None:
    mass = Parameter("mass", 2.0, std=0.1)
    assert FlightNoise({}, {}).tuning_with({"mass": mass}) == {
        "measurement_noise": {},
        "priors": {"mass": mass},
    }
    assert set(FlightNoise({}, {}, 0.05).tuning_with({"mass": mass})["priors"]) == {"mass", "gust_time"}


@pytest.mark.parametrize("time", [0.03, 0.06, 0.1])
@pytest.mark.parametrize("step", [0.004, 0.02])
def test_correlation_time_beside_white_noise_and_a_step(time: float, step: float) -> None:
    found = []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        t = np.arange(0.0, 100.0, step)
        y = first_order(1.0, time, len(t), rng, step) + rng.normal(0.0, 0.3, len(t)) + 3.0 * (t > 40.0)
        found.append(correlated_noise(t, y))
    sigma, tau = np.median(found, axis=0)
    assert tau == pytest.approx(time, rel=0.25)
    assert sigma == pytest.approx(1.0, rel=0.1)


def test_correlated_noise_of_few_rows_is_none() -> None:
    t = np.arange(0.0, 0.8, 0.02)
    assert correlated_noise(t, np.sin(t)) == (0.0, LONGEST_CORRELATION)
