"""The residual of a symmetric vehicle: what its mirrors leave, and training on flights of a known body."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rotorid.models.system import parameter_values
from rotorid.numerics import integrators
from rotorid.signals.samples import Samples
from rotorid.studies.benchmarks.nanodrone import prior_airframe
from rotorid.studies.benchmarks.prediction import multi_step_errors
from rotorid.studies.benchmarks.symmetric_residual import _symmetric_basis, learn_symmetric_residual
from rotorid.workflows.learn.training_rows import system_of

SYSTEM = system_of(prior_airframe(), "rotor_speed")
STEP, ROWS = 0.01, 700


def test_the_mirrors_leave_eight_numbers() -> None:
    """Torque x goes with the velocity along y, the rate about x and the roll combination of the rotors; likewise y and z."""
    basis = _symmetric_basis(SYSTEM, "body_rate", (3, 10))
    assert basis.shape == (33, 8)
    used = np.any(np.abs(basis[:30].reshape(3, 10, 8)) > 1e-9, axis=2)
    expected = np.zeros((3, 10), bool)
    expected[0, [1, 3]] = expected[1, [0, 4]] = expected[2, 5] = True
    expected[:, 6:] = True
    np.testing.assert_array_equal(used, expected)
    assert np.abs(basis[30:]).max() < 1e-9


def flight(seed: int, damping: float) -> Samples:
    """A vehicle whose rotors vary about hover; its rate is damped by `damping` (N m s) more than SYSTEM says."""
    rng = np.random.default_rng(seed)
    t = STEP * np.arange(ROWS)
    hover = np.sqrt(0.045 * 9.81 / 4 / 3.72e-8)
    phases, rates = rng.uniform(0.0, 6.28, (4, 4)), rng.uniform(3.0, 20.0, (4, 4))
    speed = hover * (1.0 + 0.004 * np.sin(t[:, None, None] * rates + phases).sum(axis=2))
    angular_drag = SYSTEM.parameter("angular_drag").values
    p = parameter_values(SYSTEM, angular_drag=tuple(k + damping for k in angular_drag))
    space = SYSTEM.states

    @jax.jit
    def step(x, u):
        inputs = SYSTEM.inputs.unpack(u)
        x = integrators.step(
            space, lambda x: space.pack_tangent(SYSTEM.dynamics(space.unpack(x), inputs, p)), x, STEP, "rk4"
        )
        return x, x

    _, x = jax.lax.scan(step, jnp.asarray(space.initial(), float), jnp.asarray(speed))
    outputs = SYSTEM.outputs
    y = np.zeros((ROWS, outputs.size))
    for name in space:
        y[:, outputs.stored[name]] = np.asarray(x)[:, space.stored[name]]
    dt = np.concatenate([[0.0], np.full(ROWS - 1, STEP)])
    is_measured = jnp.ones((ROWS, outputs.dim), bool)
    return Samples(jnp.asarray(t), jnp.asarray(dt), jnp.asarray(speed), jnp.asarray(y), is_measured)


def test_a_damping_that_the_physics_lacks_is_learned() -> None:
    """On a flight that was not used, errors fall to a tenth or less; also where the physics knows the vehicle, they stay."""
    training, test = [flight(seed, 4e-5) for seed in range(2)], [flight(9, 4e-5)]
    before = multi_step_errors(SYSTEM, parameter_values(SYSTEM), test, stride=5).mean.sum(axis=1)
    steps: list[int] = []
    learned = learn_symmetric_residual(
        SYSTEM, training, windows=20, iterations=15, step_done=lambda: steps.append(1)
    )
    after = multi_step_errors(learned, parameter_values(learned), test, stride=5).mean.sum(axis=1)
    assert before[3] > 1.0
    assert (after[2:] < 0.1 * before[2:]).all()
    assert 2 <= len(steps) <= 15
    assert float(parameter_values(learned)["thrust_coefficient"]) == pytest.approx(3.72e-8, rel=0.01)


def test_each_flight_has_the_same_weight() -> None:
    """A fast flight that contradicts two slow ones does not decide."""
    slow, fast = [flight(seed, 4e-5) for seed in range(2)], flight(5, -4e-5)
    learned = learn_symmetric_residual(SYSTEM, [*slow, fast], windows=20, iterations=15)
    errors = [
        multi_step_errors(s, parameter_values(s), slow, stride=5).mean.sum(axis=1)[3]
        for s in (SYSTEM, learned)
    ]
    assert errors[1] < 0.5 * errors[0]
