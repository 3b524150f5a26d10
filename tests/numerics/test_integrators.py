"""Integrators: the order of convergence on a rotation that drives a vector; exact where they must be."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rotorid.geometry.spaces import Rotation, Scalar, Space, Vector
from rotorid.numerics import integrators

SPACE = Space.of(attitude=Rotation(), velocity=Vector(3, "m/s"), clock=Scalar("s"))
START = np.array([1.0, 0.0, 0.0, 0.0, 0.3, -0.2, 0.1, 0.0])
END = 1.0


def rate(x):
    """A body that tumbles by a rate depending on time, attitude and velocity, pushed along its own z axis."""
    values = SPACE.unpack(x)
    q, v, t = values["attitude"], values["velocity"], values["clock"]
    turn = jnp.stack([2.0 + jnp.sin(3.0 * t), 1.5 * jnp.cos(2.0 * t) + 0.3 * v[0], q[0] * q[3] - 1.0])
    along_z = jnp.stack(
        [
            2.0 * (q[1] * q[3] + q[0] * q[2]),
            2.0 * (q[2] * q[3] - q[0] * q[1]),
            1.0 - 2.0 * (q[1] ** 2 + q[2] ** 2),
        ]
    )
    return SPACE.pack_tangent(
        {"attitude": turn, "velocity": 4.0 * along_z - 0.1 * v * jnp.sum(v * v), "clock": jnp.ones(())}
    )


@functools.partial(jax.jit, static_argnums=(0, 1))
def integrate(method, steps):
    dt = END / steps
    return jax.lax.scan(
        lambda x, _: (integrators.step(SPACE, rate, x, dt, method), None),
        jnp.asarray(START),
        None,
        length=steps,
    )[0]


@pytest.mark.parametrize(("method", "order"), [("euler", 1), ("midpoint", 2), ("rk4", 4)])
def test_order_of_convergence(method, order):
    exact = integrate("rk4", 8192)
    steps = np.array([16, 32, 64, 128])
    errors = np.array([np.linalg.norm(SPACE.minus(integrate(method, int(n)), exact)) for n in steps])
    slope = -np.polyfit(np.log(steps), np.log(errors), 1)[0]
    assert abs(slope - order) < 0.15, (slope, errors)


def test_steps_of_the_stored_numbers_are_of_fourth_order():
    @functools.partial(jax.jit, static_argnums=0)
    def integrate_numbers(steps):
        step = lambda x, _: (integrators.step_of_numbers(SPACE, rate, x, END / steps), None)  # noqa: E731
        return jax.lax.scan(step, jnp.asarray(START), None, length=steps)[0]

    exact = integrate("rk4", 8192)
    steps = np.array([16, 32, 64, 128])
    points = [integrate_numbers(int(n)) for n in steps]
    errors = np.array([np.linalg.norm(SPACE.minus(point, exact)) for point in points])
    slope = -np.polyfit(np.log(steps), np.log(errors), 1)[0]
    assert abs(slope - 4.0) < 0.3, (slope, errors)
    for point in points:
        assert abs(np.linalg.norm(SPACE.unpack(point)["attitude"]) - 1.0) < 1e-12


@pytest.mark.parametrize("method", ["euler", "midpoint", "rk4"])
def test_constant_rates_are_integrated_exactly(method):
    constant = jnp.array([0.4, -1.2, 0.9, 1.0, 2.0, 3.0, 1.0])
    x = integrators.step(SPACE, lambda x: constant, jnp.asarray(START), 0.7, method)
    np.testing.assert_allclose(SPACE.minus(x, jnp.asarray(START)), 0.7 * constant, atol=1e-14)


@pytest.mark.parametrize("method", ["euler", "midpoint", "rk4"])
def test_quaternions_stay_units(method):
    x = integrate(method, 1000)
    assert float(jnp.linalg.norm(x[:4])) == pytest.approx(1.0, abs=1e-14)


@pytest.mark.parametrize(("method", "degree"), [("euler", 0), ("midpoint", 1), ("rk4", 3)])
def test_polynomials_of_time_are_exact(method, degree):
    space = Space.of(value=Scalar("1"), clock=Scalar("s"))
    x = integrators.step(
        space, lambda x: jnp.stack([x[1] ** degree, jnp.ones(())]), jnp.array([0.0, 0.5]), 0.8, method
    )
    np.testing.assert_allclose(x[0], (1.3 ** (degree + 1) - 0.5 ** (degree + 1)) / (degree + 1), rtol=1e-14)


@pytest.mark.parametrize("method", ["euler", "midpoint", "rk4"])
def test_derivatives_are_finite_at_rest(method):
    still = lambda x: jnp.zeros(SPACE.dim) * x[0]  # noqa: E731
    J = jax.jit(jax.jacfwd(lambda x: integrators.step(SPACE, still, x, 0.1, method)))(START)
    assert np.isfinite(J).all()
