"""Derivatives of windows against finite differences and JAX's; the elimination of starts against least squares in one piece."""

from __future__ import annotations

import dataclasses
import warnings
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rotorid.identification.airframe.multirotor_rules import rules_for
from rotorid.identification.fitting import gauss_newton as gauss_newton_module
from rotorid.identification.fitting import step_derivatives
from rotorid.identification.fitting.free_parameters import make_priors
from rotorid.identification.fitting.gauss_newton import gauss_newton
from rotorid.identification.fitting.multiple_shooting import WindowPrediction
from rotorid.identification.fitting.problem import EstimationProblem
from rotorid.identification.fitting.step_derivatives import (
    StepFunctions,
    StepModel,
    casadi_step_functions,
    jax_step_functions,
    step_functions,
)
from rotorid.identification.fitting.windows import compared_outputs, cut_windows, estimate_white_noise
from rotorid.models.airframe.airframe import load_airframe
from rotorid.models.multirotor.logged_body import LoggedBody
from rotorid.models.system import Parameter, parameter_values
from rotorid.signals.samples import Samples
from tests.identification.flying import NOISE, flown, hexarotor, noisy
from tests.systems import SYSTEMS

FREE = {
    "mass": 0.01, "inertia": 1e-3, "products_of_inertia": 1e-3, "centre_of_mass": 1e-3, "thrust_coefficient": 1e-5,
    "tilt_scale": 0.01, "drag": 0.03,
}  # fmt: skip


@pytest.fixture(name="problem")
def _problem() -> EstimationProblem:
    system = hexarotor()
    flights = noisy([flown(system, 0, 2.0)], system, 0)
    used = compared_outputs(system, ["specific_force"])
    windows = cut_windows(system, flights, 0.3, used)
    values = {
        "products_of_inertia": (0.003, 0.002, -0.004),
        "centre_of_mass": (0.01, 0.0, -0.01),
        "drag": 0.3,
    }
    return EstimationProblem.from_priors(
        system, make_priors(system, FREE, values, rules_for(system)), values, windows, used
    )


def _residuals(problem: EstimationProblem, X, P, sigma) -> np.ndarray:
    """Of the first window from many starts with many parameters, by the System's own functions, step by step."""
    rows, data = problem.shooting.step_model, problem.windows.rows
    u, dt, y = (jnp.asarray(v[0]) for v in (data.u, data.dt, data.y))

    def one(x, p):
        def along(x, at):
            u, dt = at
            x = rows.step(x, u, dt, p)
            return x, x

        _, path = jax.lax.scan(along, x, (u[1:], dt[1:]))
        return jax.vmap(rows.error, (0, 0, 0, None))(jnp.concatenate([x[None], path]), u, y, p) / sigma

    found = jax.jit(jax.vmap(one))(jnp.asarray(X), jnp.asarray(P))
    return np.asarray(found).reshape(len(X), -1)


def test_the_triangle_is_that_of_finite_differences(problem: EstimationProblem) -> None:
    draw = np.random.default_rng(0)
    z = 0.1 * draw.standard_normal(problem.free_size)
    sigma = draw.uniform(0.01, 0.1, len(problem.shooting.step_model.compared_indices))
    n, pushed = (
        problem.start_size,
        [i for name in ("force", "torque") for i in problem.shooting.parameter_indices[name]],
    )
    size, h = n + problem.free_size + len(pushed), 1e-5
    D = h * np.concatenate([np.zeros((1, size)), np.eye(size), -np.eye(size)])
    X = problem.shift_starts(np.tile(problem.windows.x[0], (len(D), 1)), D[:, :n])
    P = np.stack([problem.all_values(z + d[n : n + problem.free_size]) for d in D])
    P[:, pushed] += D[:, n + problem.free_size :]
    values = _residuals(problem, X, P, sigma)
    r, J = values[0], (values[1 : size + 1] - values[size + 1 :]).T / (2.0 * h)
    triangle, costs = problem.linearise(problem.windows.x, z, sigma)
    R = triangle[0]
    scale = np.linalg.norm(J, axis=0)
    gram = J.T @ J / np.outer(scale, scale)
    np.testing.assert_allclose((R.T @ R)[:size, :size] / np.outer(scale, scale), gram, atol=1e-6)
    np.testing.assert_allclose(
        (R.T @ R)[:size, size] / scale, J.T @ r / scale, atol=1e-6 * float(np.linalg.norm(r))
    )
    np.testing.assert_allclose(costs.squared_residuals[0].sum(), r @ r, rtol=1e-9)
    for mine, alone in zip(costs, problem.costs(problem.windows.x, z, sigma), strict=True):
        np.testing.assert_array_equal(mine, alone)
    residuals = problem.residuals(problem.windows.x, z, sigma)[0]
    np.testing.assert_allclose(np.nan_to_num(residuals, nan=0.0).ravel(), r, atol=1e-9)
    which = slice(1, 3)
    np.testing.assert_array_equal(
        problem.residuals(problem.windows.x, z, sigma, which)[0], residuals[:, which]
    )


def test_eliminated_starts_give_the_step_of_all_in_one_least_squares(problem: EstimationProblem) -> None:
    sigma = estimate_white_noise(
        problem.shooting.system,
        noisy([flown(hexarotor(), 0, 2.0)], hexarotor(), 0),
        problem.shooting.compared,
    )
    z = np.zeros(problem.free_size)
    triangle = problem.linearise(problem.windows.x, z, sigma).triangle
    n, free, count = problem.start_size, problem.free_size, len(problem.windows.start)
    whole = np.zeros((count * triangle.shape[1] + free, count * n + free))
    right = np.zeros(len(whole))
    for i, R in enumerate(triangle):
        rows = slice(i * len(R), (i + 1) * len(R))
        whole[rows, i * n : (i + 1) * n] = R[:, :n]
        whole[rows, count * n :] = R[:, n : n + free]
        right[rows] = R[:, -1]
    whole[-free:, count * n :] = problem.prior_jacobian(z)
    step = np.linalg.lstsq(whole, -right, rcond=None)[0]
    found = gauss_newton(problem, z, problem.windows.x, sigma, max_iterations=1)
    least = problem.coordinates.lower_bounds(problem.centre, problem.scale)
    assert np.all(step[-free:] > least)
    np.testing.assert_allclose(found.z, step[-free:], rtol=1e-5, atol=1e-8)
    moved = problem.shift_starts(problem.windows.x, step[: count * n].reshape(count, n))
    np.testing.assert_allclose(found.x, moved, atol=1e-7)


def test_a_step_to_a_bound_ends_there_to_the_last_bit(
    problem: EstimationProblem, monkeypatch: pytest.MonkeyPatch
) -> None:
    sigma, x = np.full(len(problem.shooting.step_model.compared_indices), 0.03), problem.windows.x
    place, bound = 0, -1.0 / 3.0
    lower = np.full(problem.free_size, -np.inf)
    lower[place] = bound
    monkeypatch.setattr(type(problem.coordinates), "lower_bounds", lambda *_: lower)
    starts = np.linspace(0.1, 0.2, 100)
    start = next(v for v in starts if v + (bound - v) > bound)
    z = np.zeros(problem.free_size)
    z[place] = start
    monkeypatch.setattr(
        gauss_newton_module, "_levenberg_marquardt_step", lambda *_: np.where(lower > -1.0, lower - z, 0.0)
    )
    triangle, weight = problem.linearise(x, z, sigma).triangle, np.ones(len(x))
    R = gauss_newton_module.triangular_factor(problem, z, triangle, weight)
    step = gauss_newton_module._improving_step(
        problem, triangle, R, (z, x), sigma, weight, np.inf, 0.0, (np.zeros(len(z)), 0.0)
    )
    assert step is not None
    assert step.z[place] == bound


def test_a_prior_of_initial_values_adds_its_information(problem: EstimationProblem) -> None:
    sigma, std = np.full(len(problem.shooting.step_model.compared_indices), 0.03), np.array([0.1, 0.2, 0.4])
    z, x = np.zeros(problem.free_size), problem.windows.x + 0.01
    free = problem.linearise(x, z, sigma).triangle
    with_prior = dataclasses.replace(problem, start_priors=(("velocity", std),))
    bound, costs = with_prior.linearise(x, z, sigma)
    states = problem.shooting.system.states
    start = x[:, states.stored["velocity"]]
    place = states.tangent["velocity"]
    for R, more, v, cost in zip(free, bound, start, costs.total, strict=True):
        gram = R.T @ R
        gram[place, place] += np.diag(std**-2.0)
        gram[place, -1] += v / std**2
        gram[-1, place] += v / std**2
        gram[-1, -1] += v @ (v / std**2)
        np.testing.assert_allclose(more.T @ more, gram, rtol=1e-8, atol=1e-8 * np.abs(gram).max())
        assert cost == pytest.approx(gram[-1, -1], rel=1e-9)


@pytest.mark.parametrize(("name", "driven"), [("hexarotor", True), ("pendulum", False)])
def test_both_engines_agree(name: str, driven: bool) -> None:
    system = hexarotor() if name == "hexarotor" else SYSTEMS[name]
    count = sum(len(p.values) for p in system.parameters)
    rows = StepModel(system, tuple(system.outputs), tuple(range(0, count, 3)), driven)
    draw = np.random.default_rng(1)
    n = 150  # more than JAX takes at once
    x = np.tile(system.states.initial(), (n, 1)) + 0.1 * draw.standard_normal((n, system.states.size))
    y = np.tile(system.outputs.initial(), (n, 1)) + 0.1 * draw.standard_normal((n, system.outputs.size))
    for point, space in ((x, system.states), (y, system.outputs)):
        for block, place in space.stored.items():
            if space[block].rotation:
                point[:, place] /= np.linalg.norm(point[:, place], axis=1, keepdims=True)
    u = draw.uniform(0.3, 0.9, (n, system.inputs.size))
    p = np.concatenate([np.ravel(v) for v in parameter_values(system).values()])
    dt = np.full(n, 0.01)
    one, two = casadi_step_functions(rows), jax_step_functions(rows)
    states, measured, tangent = x.shape[1], len(rows.compared_indices), system.states.dim
    weight, sigma = (draw.uniform(size=(50, 3, measured)) < 0.7) * 1.0, draw.uniform(0.5, 2.0, measured)
    windows = u.reshape(50, 3, -1), y.reshape(50, 3, -1), weight, dt.reshape(50, 3)
    predicted = {}
    for K in (None, 0.1 * draw.standard_normal((tangent, measured))):
        for engine in (one, two):
            found = tuple(np.full((50, 3, size), np.nan) for size in (states, measured, states))
            engine.predict(found, x[:50], *windows, p, sigma, K)
            predicted[engine] = found
        for a, b in zip(predicted[one], predicted[two], strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9)
        path, residuals, corrected = predicted[one]
        assert np.all((residuals == 0.0) == (weight == 0.0))
        assert (K is None) == bool(np.all(path == corrected))
        np.testing.assert_array_equal(path[:, 0], x[:50])
        np.testing.assert_array_equal(path[:, -1], corrected[:, -1])
    after = np.empty((n, 2, states))
    one.predict(
        (after, np.empty((n, 2, measured)), np.empty((n, 2, states))),
        x,
        *(np.stack([v, v], axis=1) for v in (u, y, np.ones((n, measured)), dt)),
        p,
        sigma,
        None,
    )
    after = after[:, 1]
    for a, b in zip(
        one.derivatives(x, x, after, u, y, u, dt, p),
        two.derivatives(x, x, after, u, y, u, dt, p),
        strict=True,
    ):
        np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-8)
    d = 0.1 * draw.standard_normal((n, system.states.dim))
    np.testing.assert_allclose(one.plus(x, d), two.plus(x, d), atol=1e-12)


def test_fits_with_other_priors_share_the_compiled_step() -> None:
    parameters = [
        (Parameter("torque_ratio", value, std=0.1 * value), Parameter("inertia", (value, value, 2.0 * value)))
        for value in (0.01, 0.02)
    ]
    bodies = [LoggedBody(p, load_airframe("crazyflie-2.1").rotors, False, True) for p in parameters]
    assert bodies[0] != bodies[1]
    assert bodies[0].structure == bodies[1].structure
    assert bodies[0].structure != LoggedBody(parameters[0], bodies[0].rotors[::-1], False, True).structure
    vector = (Parameter("torque_ratio", (0.01,)), parameters[0][1])
    assert bodies[0].structure != LoggedBody(vector, bodies[0].rotors, False, True).structure
    pendulum = SYSTEMS["pendulum"]
    assert pendulum.structure is pendulum
    models = [StepModel(body, ("body_rate",), (0,)) for body in bodies]
    traced = []

    def count(rows):
        traced.append(rows)
        return StepFunctions(*3 * [lambda *_: None])

    step_derivatives._step_functions.cache_clear()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(step_derivatives, "scalar_operations", lambda _: 0)
        patch.setattr(step_derivatives, "casadi_step_functions", count)
        patch.setattr(step_derivatives.jax, "make_jaxpr", lambda _: lambda *_: SimpleNamespace(jaxpr=None))
        found = [step_functions(rows) for rows in models]
    step_derivatives._step_functions.cache_clear()
    assert found[0] is found[1]
    assert len(traced) == 1


def test_a_window_that_runs_away_is_as_wrong_as_can_be_and_says_nothing() -> None:
    residuals = np.array([[[1e200], [1.0]], [[3.0], [4.0]]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        squares = WindowPrediction(
            np.zeros((2, 2, 1)), np.zeros((2, 2, 1)), residuals, np.ones((2, 2, 1)), np.zeros((2, 0))
        ).costs.squared_residuals
    assert squares.tolist() == [[np.inf], [25.0]]


def test_white_noise_is_shown_by_the_flight() -> None:
    system = hexarotor()
    flights = noisy([flown(system, k, 10.0) for k in range(2)], system, 0)
    used = compared_outputs(system, None)
    shown = estimate_white_noise(system, flights, used)
    wanted = np.concatenate([np.full(system.outputs[name].dim, NOISE[name]) for name in used])
    np.testing.assert_allclose(shown, wanted, rtol=0.1)


def test_windows_neither_overlap_nor_cross_gaps() -> None:
    system = hexarotor()
    flight = flown(system, 0, 5.0)
    dt = np.array(flight.dt)
    dt[200] = 0.3
    mask = np.array(flight.mask)
    mask[350:360, 4] = False
    broken = Samples(flight.t, jnp.asarray(dt), flight.u, flight.y, jnp.asarray(mask))
    used = compared_outputs(system, None)
    data = cut_windows(system, [flight, broken], 0.5, used).rows
    assert data.u.shape[1] == 51
    for flight_number in (0, 1):
        start, end = (v[data.flight == flight_number] for v in (data.start, data.end))
        assert np.all(start[1:] > end[:-1])
        assert np.all(np.abs(end - start - 0.5) < 1e-9)
    late = data.flight == 1
    gap = np.asarray(flight.t)[200]
    assert not np.any((data.start[late] < gap - 1e-9) & (data.end[late] > gap - 1e-9))
    assert not np.isin(np.round(data.start[late], 6), np.round(np.asarray(flight.t)[350:360], 6)).any()


def test_windows_look_their_rows_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rotorid.identification.fitting.windows._AT_ONCE", 7)
    system = hexarotor()
    flights = [flown(system, k, 2.0 + k) for k in range(3)]
    windows = cut_windows(system, flights, 0.1, compared_outputs(system, None))
    kept = np.random.default_rng(0).random(len(windows.start)) < 0.7
    kept[:9] = True
    for some in (windows, windows.take(np.flatnonzero(kept)), windows.subsample(5), windows.subsample(1)):
        parts = list(some.parts())
        assert max(len(data.start) for _, data in parts) <= 7
        assert [k for part, _ in parts for k in range(part.start, part.stop)] == list(range(len(some.start)))
        place = some.first[:, None] + np.arange(some.length)
        for name in ("u", "dt", "y", "mask"):
            own = [np.asarray(getattr(rows, name)) for rows in windows.flights]
            wanted = [own[f][rows] for f, rows in zip(some.flight, place, strict=True)]
            np.testing.assert_array_equal(np.concatenate([getattr(data, name) for _, data in parts]), wanted)
            np.testing.assert_array_equal(getattr(some.rows, name), wanted)
        for name in ("x", "flight", "start", "end"):
            found = np.concatenate([getattr(data, name) for _, data in parts])
            np.testing.assert_array_equal(found, getattr(some, name))
        np.testing.assert_array_equal(some.counts, some.rows.mask.sum(axis=1))
        np.testing.assert_array_equal(some.dt, some.rows.dt)
    for flight, rows in zip(flights, windows.flights, strict=True):
        np.testing.assert_array_equal(rows.y, flight.y)
        np.testing.assert_array_equal(rows.u, flight.u)
    first = next(windows.parts())[1]
    assert np.shares_memory(first.y, windows.flights[0].y)
