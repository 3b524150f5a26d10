"""The momentum observer with a learned residual: what it makes of wrong physics, and what it says outside its training."""

from __future__ import annotations

import jax
import numpy as np
import pytest

from rotorid.estimators.base import Health
from rotorid.estimators.run import run
from rotorid.estimators.wrench.observers import acceleration_observer, momentum_observer
from rotorid.learning.architectures import multirotor_heads
from rotorid.models.airframe.airframe import load_airframe
from rotorid.models.hybrid import with_residual
from rotorid.models.multirotor.rigid import rigid_multirotor
from rotorid.models.multirotor.rotors import allocation
from rotorid.models.residual import Residual, initial_weights, scaled_to
from rotorid.models.system import parameter_values
from rotorid.signals.samples import Samples
from tests.estimators.flown import flown

SYSTEM = rigid_multirotor(load_airframe("fully-actuated-hexarotor"), "rotor_speed")
WRONG = {"thrust_coefficient": 1.2 * 11.75e-4, "torque_ratio": 0.8 * 0.0203, "mass": 0.975 * 2.81}
HEADS = multirotor_heads(hidden=4)
PUSH = np.array([1.0, -0.5, 0.8, 0.05, 0.02, -0.03])


def priors(**values: float) -> dict:
    return {name: SYSTEM.parameter(name).with_prior(value) for name, value in values.items()}


@pytest.fixture
def residual() -> Residual:
    """All that the wrong physics misses in free flight, which is linear in the thrusts that it believes in."""
    true, wrong = parameter_values(SYSTEM), parameter_values(SYSTEM, **WRONG)
    G, believed = (np.asarray(allocation(SYSTEM.rotors, p["torque_ratio"])) for p in (true, wrong))
    J = np.asarray(true["inertia"])[:, None]
    linear = {
        "velocity": G[:3] / 1.2 / float(true["mass"]) - believed[:3] / float(wrong["mass"]),
        "body_rate": (G[3:] / 1.2 - believed[3:]) / J,
    }
    rng = np.random.default_rng(0)
    hover = 1.2 * 2.81 * 9.81 / np.sum(G[2])
    inputs = rng.normal(size=(2000, 12)) * ([0.5] * 6 + [2.5] * 6) + ([0.0] * 6 + [hover] * 6)
    weights = []
    for head in HEADS:
        w = {n: np.asarray(v) for n, v in initial_weights(head, 12, 3, jax.random.key(0)).items()}
        w |= scaled_to(inputs, np.ones(3))
        L = np.hstack([np.zeros((3, 6)), linear[head.output]])
        w |= {"L": L * w["scale"], "b_2": L @ w["mean"], "typical": np.full(3, 2.0)}
        weights.append(w)
    return Residual(HEADS, tuple(weights))


def pushed() -> Samples:
    wrench = np.zeros((600, 6))
    wrench[200:] = PUSH
    return flown(SYSTEM, wrench, sway=0.3)


@pytest.mark.parametrize("observer", [momentum_observer, acceleration_observer])
def test_a_residual_compensates_wrong_physics(observer, residual: Residual) -> None:
    """What is left is what free flight cannot tell: the force is as wrong as the mass, 2.5 %."""
    samples = pushed()
    alone = np.asarray(run(observer(SYSTEM, priors=priors(**WRONG)), samples).value)
    hybrid = with_residual(SYSTEM, residual)
    found = run(observer(hybrid, priors=priors(**WRONG)), samples)
    value = np.asarray(found.value)
    assert np.abs(alone[100:200, 2]).min() > 4.0
    np.testing.assert_allclose(value[100:200], 0.0, atol=2e-3)
    np.testing.assert_allclose(value[-1], PUSH * np.repeat([0.975, 1.0], 3), atol=2e-3)


def test_far_from_the_training_data_health_and_band_show_it(residual: Residual) -> None:
    hybrid = with_residual(SYSTEM, residual)
    observer = momentum_observer(hybrid, priors=priors(**WRONG))
    inside = run(observer, flown(SYSTEM, np.zeros((300, 6)), sway=0.3))
    wrench = np.zeros((300, 6))
    wrench[:] = [0.0, 0.0, -60.0, 0.0, 0.0, 0.0]
    outside = run(observer, flown(SYSTEM, wrench, sway=0.3))
    assert np.mean(np.asarray(inside.health[100:]) == Health.OUT_OF_RANGE) < 0.05
    assert np.mean(np.asarray(outside.health[100:]) == Health.OUT_OF_RANGE) > 0.9
    assert np.all(np.asarray(outside.std)[150:, 2] > 3.0 * np.asarray(inside.std)[150:, 2])
    assert np.abs(np.asarray(outside.value)[-1, 2] + 60.0) < 1.96 * float(outside.std[-1, 2])


def test_c_and_jax_agree(residual: Residual) -> None:
    observer = momentum_observer(with_residual(SYSTEM, residual), priors=priors(**WRONG))
    samples = pushed()
    by_c, by_jax = (run(observer, samples, engine=engine) for engine in ("c", "jax"))
    for one, other in zip(jax.tree.leaves(by_c), jax.tree.leaves(by_jax), strict=True):
        np.testing.assert_allclose(np.asarray(one), np.asarray(other), rtol=1e-9, atol=1e-9)
