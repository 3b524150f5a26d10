"""Sliding-window least squares is the smoother on a linear System, and its pre-integration is the integrator."""

import inspect
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rotorid.errors import SettingError
from rotorid.estimators.preintegration import Linearised, ThrustAndRate, preintegration
from rotorid.estimators.run import run
from rotorid.estimators.swls import swls
from rotorid.models.joint import Joint
from rotorid.models.multirotor.bare import BareMultirotor
from rotorid.numerics.tridiagonal import Link, solve_chain
from rotorid.signals.samples import Samples
from tests.estimators.test_msckf import LAWS, stepped
from tests.systems import SYSTEMS, Cart, matched

OPEN = {"loss": "squares", "iterations": 1, "gate": 1e6, "bias_gate": 1e6}


def smoothed(samples):
    """The textbook filter and the Rauch-Tung-Striebel smoother on the cart: x = (position, velocity, push)."""
    m, H = 2.0, np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [1.0, 0.0, -0.5]])
    x, P = np.array([float(samples.y[0, 0]), 0.0, 0.5]), np.diag([2.0, 1.0, 1.0]) ** 2
    ahead, filtered = [], []
    for k in range(len(samples.t)):
        dt, u = float(samples.dt[k]), float(samples.u[k, 0])
        F = np.array([[1.0, dt, dt**2 / 2 / m], [0.0, 1.0, dt / m], [0.0, 0.0, 1.0]])
        if k > 0:
            x = F @ x + np.array([dt**2 / 2, dt, 0.0]) * u / m
            P = F @ P @ F.T + np.diag([0.02, 0.05, 0.1]) ** 2 * dt
        ahead.append((F, x, P))
        keep = np.asarray(samples.mask[k])
        S = H[keep] @ P @ H[keep].T + np.diag(np.array([0.1, 0.2, 0.3])[keep] ** 2)
        K = P @ H[keep].T @ np.linalg.inv(S)
        x, P = x + K @ (np.asarray(samples.y[k])[keep] - H[keep] @ x), P - K @ S @ K.T
        filtered.append((x, P))
    found = [filtered[-1][0]]
    for (F, x_ahead, P_ahead), (x, P) in zip(ahead[:0:-1], filtered[-2::-1], strict=True):
        found.append(x + P @ F.T @ np.linalg.solve(P_ahead, found[-1] - x_ahead))
    return np.array([x for x, _ in filtered]), np.array([P for _, P in filtered]), np.array(found[::-1])


@pytest.mark.parametrize(("window", "steps"), [(1, 50), (20, 50), (20, 18)])
def test_on_a_linear_system_it_is_the_smoother(window, steps):
    """The newest state is the Kalman filter's, and the whole window the smoother's, also where rows measure nothing."""
    filter_ = swls(Cart(), window=window, **OPEN)
    samples, _ = matched(filter_, seed=2, steps=50, dt=0.05)
    mask = np.repeat(np.random.default_rng(0).random((50, 2)) < 0.7, [1, 2], axis=1)
    mask[[0, steps - 1]] = True
    samples = eqx.tree_at(lambda s: s.mask, samples, mask)
    samples = jax.tree.map(lambda leaf: np.asarray(leaf[:steps]), samples)
    states = stepped(filter_, samples)
    filtered, covariances, found = smoothed(samples)
    np.testing.assert_allclose([s.z for s in states], filtered, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose([s.uncertainty.P for s in states], covariances, rtol=1e-9, atol=1e-12)
    measured = np.flatnonzero(mask[:steps].any(axis=1))
    assert len(measured) < steps
    nodes, last = min(window + 1, len(measured)), states[-1].uncertainty
    assert np.sum(last.valid) == nodes
    np.testing.assert_allclose(last.x[-nodes:], found[measured[-nodes:]], rtol=1e-10, atol=1e-10)


def test_a_chain_has_the_solution_of_its_normal_equations():
    rng = np.random.default_rng(3)
    blocks, n, m = 6, 4, 3

    def spd(size):
        root = rng.normal(size=(size, size))
        return root @ root.T + np.eye(size)

    def draw(*shape):
        return rng.normal(size=shape)

    noises = rng.uniform(0.5, 2.0, (blocks, m))
    links = [Link(draw(n, n), draw(n), spd(n), draw(m, n), draw(m), R) for R in noises]
    prior, P = draw(n), spd(n)
    # The first link leads from a block in front of the first, on which the prior is.
    A, b, W = [np.eye(n, n * (blocks + 1))], [prior], [np.linalg.inv(P)]
    for k, link in enumerate(links):
        tie, sees = np.zeros((n, n * (blocks + 1))), np.zeros((m, n * (blocks + 1)))
        here = slice(n * (k + 1), n * (k + 2))
        tie[:, here], tie[:, n * k : n * (k + 1)], sees[:, here] = np.eye(n), -link.F, link.H
        A, b = [*A, tie, sees], [*b, link.c, link.r]
        W += [np.linalg.inv(link.Q), np.diag(1.0 / link.R)]
    A, b = np.concatenate(A), np.concatenate(b)
    weight = np.zeros((len(b), len(b)))
    at = 0
    for w in W:
        weight[at : at + len(w), at : at + len(w)] = w
        at += len(w)
    normal = A.T @ weight @ A
    d = np.linalg.solve(normal, A.T @ weight @ b).reshape(blocks + 1, n)
    rows = jax.tree.map(lambda *x: np.stack(x), *links)
    found = jax.jit(lambda *chain: solve_chain(*chain))(prior, P, rows)
    np.testing.assert_allclose(found.d, d[1:], rtol=1e-9)
    np.testing.assert_allclose(found.last, np.linalg.inv(normal)[-n:, -n:], rtol=1e-9)


def test_a_constant_block_without_variance_is_solved():
    steps, F = 5, np.array([[1.0, 0.1], [0.0, 1.0]])
    rows = Link(F, np.zeros(2), np.zeros((2, 2)), np.array([[1.0, 0.0]]), np.ones(1), np.ones(1))
    rows = jax.tree.map(lambda leaf: np.stack([leaf] * steps), rows)
    found = jax.jit(lambda *chain: solve_chain(*chain))(np.zeros(2), np.diag([1.0, 0.0]), rows)
    np.testing.assert_allclose(found.d, np.outer(np.full(steps, steps / (steps + 1)), [1.0, 0.0]), rtol=1e-12)


LONGEST = 50


def integrated(way, rows, dt, start):
    """An interval over rows of inputs, each held for dt."""
    none = LONGEST - len(rows)
    dts = np.concatenate([np.full(len(rows), dt), np.zeros(none)])
    return _integrated(way, np.concatenate([rows, np.zeros((none, 4))]), dts, start)


@partial(jax.jit, static_argnums=0)
def _integrated(way, rows, dts, start):
    values, keep = jnp.asarray(way.joint.values()), jnp.ones(way.joint.space.dim)

    def extend(interval, row):
        return way.extend(interval, row[0], values, row[1], keep, 0.01 * keep)[0], None

    return jax.lax.scan(extend, way.empty_interval(start), (rows, dts))[0]


@partial(jax.jit, static_argnums=0)
def direct(joint, rows, dt, start):
    values = jnp.asarray(joint.values())
    return jax.lax.scan(lambda z, u: (joint.step(z, u, values, dt), None), start, rows)[0]


@partial(jax.jit, static_argnums=0)
def flow(way, interval, z):
    return way.flow(interval, z, jnp.asarray(way.joint.values()))


@partial(jax.jit, static_argnums=0)
def plus(joint, z, d):
    return joint.space.plus(z, d)


@partial(jax.jit, static_argnums=0)
def minus(joint, a, b):
    return joint.space.minus(a, b)


def flying():
    """A joint model, a point of it, and five rows of inputs."""
    rng = np.random.default_rng(4)
    u = np.concatenate([rng.uniform(5.0, 15.0, (5, 1)), rng.normal(size=(5, 3)) * 2.0], axis=1)
    attitude = rng.normal(size=4)
    start = np.concatenate([attitude / np.linalg.norm(attitude), rng.normal(size=7)])
    return Joint(BareMultirotor(), "rk4"), start, u


def test_pre_integration_is_direct_integration_at_any_state_and_mass():
    """Of thrust and body rate: the same interval serves everywhere; the inputs change every 20 ms."""
    joint, start, u = flying()
    way = preintegration(joint)
    assert isinstance(way, ThrustAndRate)
    interval = integrated(way, u, 0.02, start)
    for seed in range(3):
        z = plus(joint, start, np.random.default_rng(seed).normal(size=10))
        there, F = flow(way, interval, z)
        reference = direct(joint, np.repeat(u, 10, axis=0), 0.002, z)
        np.testing.assert_allclose(minus(joint, there, reference), 0.0, atol=1e-9)
        step = 1e-6

        def moved(d, z=z, there=there):
            return np.asarray(minus(joint, flow(way, interval, plus(joint, z, d))[0], there))

        columns = [(moved(step * e) - moved(-step * e)) / (2 * step) for e in np.eye(10)]
        np.testing.assert_allclose(F, np.stack(columns, axis=1), atol=1e-8)


@pytest.mark.parametrize(("method", "order"), [("midpoint", 2), ("rk4", 4)])
def test_pre_integration_has_the_order_of_the_integrator(method, order):
    """Linearised, against the exact one, over 0.4 s of one input."""
    joint, start, u = flying()
    exact, way = integrated(ThrustAndRate(joint), u[:1], 0.4, start), Linearised(Joint(joint.system, method))
    errors = []
    for count in (4, 8, 16):
        end = integrated(way, np.tile(u[0], (count, 1)), 0.4 / count, start).end
        errors.append(np.linalg.norm(minus(joint, end, exact.end)))
    slopes = np.diff(np.log(errors)) / np.log(0.5)
    assert np.all(np.abs(slopes - order) < 0.35), slopes


def test_both_methods_agree_to_second_order_in_the_distance_from_the_start():
    joint, start, u = flying()
    ways = ThrustAndRate(joint), Linearised(joint)
    exact, linear = (integrated(way, np.repeat(u, 10, axis=0), 0.002, start) for way in ways)
    np.testing.assert_allclose(exact.F, linear.F, atol=1e-6)
    np.testing.assert_allclose(exact.Q, linear.Q, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(flow(ways[0], exact, start)[1], linear.F, rtol=1e-4, atol=1e-5)
    direction, errors = np.random.default_rng(0).normal(size=10), []
    for size in (0.2, 0.1, 0.05, 0.0):
        z = plus(joint, start, size * direction)
        ends = [flow(way, i, z)[0] for way, i in zip(ways, (exact, linear), strict=True)]
        errors.append(np.linalg.norm(minus(joint, *ends)))
    assert np.all(np.diff(np.log(errors[:3])) / np.log(0.5) > 1.8), errors
    assert errors[3] < 1e-9


def test_reset_states_do_not_depend_on_the_start():
    joint, start, u = flying()
    way = preintegration(joint)
    interval = integrated(way, u, 0.02, start)
    keep = np.where(np.arange(10) < 9, 0.0, 1.0)
    interval, _ = jax.jit(way.extend)(interval, u[2], np.ones(1), 0.02, keep, np.zeros(10))
    there, F = flow(way, interval, plus(joint, start, np.full(10, 0.1)))
    np.testing.assert_allclose(F[:9], 0.0)
    np.testing.assert_allclose(there[:10], interval.end[:10], rtol=1e-12)
    np.testing.assert_allclose(there[10], start[10] + 0.1, rtol=1e-12)


def _fitted(loss, y, **settings):
    """Last state of a cart at rest whose positions are y."""
    filter_ = swls(Cart(), loss=loss, gate=1e6, bias_gate=1e6, **settings)
    n = len(y)
    dt = jnp.full(n, 0.05).at[0].set(0.0)
    outputs = jnp.zeros((n, 3)).at[:, 0].set(jnp.asarray(y))
    mask = jnp.zeros((n, 3), bool).at[:, 0].set(True)
    return run(filter_, Samples(jnp.cumsum(dt), dt, jnp.full((n, 1), -0.5), outputs, mask)).state


@pytest.mark.parametrize("loss", ["huber", "cauchy"])
def test_a_robust_loss_reduces_the_weight_of_an_outlier(loss):
    y = 0.1 * np.random.default_rng(0).normal(size=15)
    spoilt = y.copy()
    spoilt[12] += 5.0
    pulled = {
        kind: abs(float(_fitted(kind, spoilt)[-1, 0] - _fitted(kind, y)[-1, 0])) for kind in ("squares", loss)
    }
    assert pulled[loss] < 0.2 * pulled["squares"]
    assert pulled["squares"] > 0.3


@pytest.mark.parametrize("loss", ["huber", "cauchy"])
def test_within_the_threshold_a_robust_loss_equals_squares(loss):
    y = 0.01 * np.random.default_rng(0).normal(size=15)
    robust, squares = _fitted(loss, y, threshold=1e3), _fitted("squares", y)
    np.testing.assert_allclose(robust, squares, rtol=1e-6, atol=1e-9)


HARD = {  # what is measured, s between samples, how far attitude (rad) and logarithm of the mass are from the prior
    "position": ("p", 0.1, 1.0, 0.35),
    "position, upside down": ("p", 0.1, 2.0, 0.35),
    "velocity": ("v", 0.1, 1.0, -0.35),
    "two fifths of the mass": ("pv", 0.1, 1.0, -0.9),
}


def hard(case, seed):
    """A flight of 21 samples far from the prior, and the true joint points."""
    measured, dt, angle, mass = HARD[case]
    filter_ = swls(SYSTEMS["bare"], gate=1e6, bias_gate=1e6)
    rng = np.random.default_rng(seed)
    axis = rng.normal(size=3)
    away = np.concatenate([angle * axis / np.linalg.norm(axis), rng.normal(size=6), [mass]])
    joint, std = filter_.joint, filter_.tuning.initial_std.at[:3].set(1.0)
    prior = np.concatenate([filter_.tuning.initial, filter_.tuning.coordinate])
    start = plus(joint, prior, away)
    certain = eqx.tree_at(
        lambda f: (f.tuning.initial, f.tuning.coordinate, f.tuning.initial_std, f.tuning.coordinate_std),
        filter_,
        (start[:10], start[10:], jnp.zeros(9), jnp.zeros(1)),
    )
    samples, truth = matched(certain, seed, steps=21, dt=dt)
    mask = np.repeat([block in measured for block in "apv"], 3)
    samples = eqx.tree_at(lambda s: s.mask, samples, samples.mask & mask)
    return eqx.tree_at(lambda f: f.tuning.initial_std, filter_, std), samples, truth


@eqx.filter_jit
def residuals(filter_, window, x, deltas):
    return jax.vmap(lambda d: filter_.residuals(eqx.tree_at(lambda w: w.x, window, x), d))(deltas)


def squares(filter_, window, x):
    """The residuals of a window at x, and their Jacobian."""
    size, step = len(x) * window.P.shape[0], 1e-5
    directions = np.concatenate([np.zeros((1, size)), np.eye(size), -np.eye(size)])
    found = residuals(filter_, window, x, step * directions.reshape(2 * size + 1, len(x), -1))
    return np.asarray(found[0]), np.asarray(found[1 : size + 1] - found[size + 1 :]).T / (2 * step)


@eqx.filter_jit
def solved(filter_, window):
    return filter_._solve(window)


def least(filter_, window, x):
    """Where the sum of squares is least, by Levenberg and Marquardt's method from x, and the standard deviations there."""
    (r, J), damping = squares(filter_, window, x), 1e-6
    for _ in range(12):
        A = J.T @ J
        d = np.linalg.solve(A + damping * np.diag(np.diag(A)), -J.T @ r)
        moved = np.stack([plus(filter_.joint, *pair) for pair in zip(x, d.reshape(len(x), -1), strict=True)])
        r_moved, J_moved = squares(filter_, window, moved)
        better = r_moved @ r_moved <= r @ r
        x, r, J = (moved, r_moved, J_moved) if better else (x, r, J)
        damping *= 0.1 if better else 10.0
    return x, np.sqrt(np.diag(np.linalg.inv(J.T @ J)))


@pytest.mark.parametrize("case", HARD)
def test_convergence_to_the_minimum_from_a_distant_start(case):
    """One step a sample ends near it, and further ones at it, with the standard deviations that the residuals give."""
    filter_, samples, truth = hard(case, seed=5)
    window = jax.tree.map(jnp.asarray, stepped(filter_, samples)[-1].uncertainty)
    assert bool(jnp.all(window.valid))
    x, std = least(filter_, window, truth)

    def off(window):
        return np.abs(minus(filter_.joint, window.x[-1], x[-1])) / std[-10:]

    assert off(window)[-1] < 0.05
    for _ in range(4):
        window = solved(filter_, window)
    assert np.max(off(window)) < 1e-6
    np.testing.assert_allclose(np.sqrt(np.diag(window.P)), std[-10:], rtol=0.01)


def test_the_residuals_are_those_of_prior_model_and_measurements():
    """Written down once more, on a flight that the window holds as a whole."""
    filter_, samples, truth = hard("position", seed=6)
    joint, tuning, outputs = filter_.joint, filter_.tuning, filter_.joint.system.outputs
    found, _ = squares(filter_, stepped(filter_, samples)[-1].uncertainty, truth)

    prior = np.concatenate([tuning.initial, tuning.coordinate])
    prior[joint.space.stored["position"]] = samples.y[0, outputs.stored["position"]]
    held = minus(joint, truth[0], prior) / np.concatenate([tuning.initial_std, tuning.coordinate_std])
    noise = np.concatenate([tuning.process_noise, tuning.drift]) * np.sqrt(0.1)
    moved = []
    for k in range(1, 21):
        end = direct(
            Joint(joint.system, "rk4"), np.tile(samples.u[k], (LONGEST, 1)), 0.1 / LONGEST, truth[k - 1]
        )
        moved.append(minus(joint, truth[k], end) / noise)
    seen = (samples.y[:, 4:7] - truth[:, 4:7]) / tuning.measurement_noise[outputs.tangent["position"]]
    np.testing.assert_allclose(found[:10], held, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(found[10:20], 0.0)
    np.testing.assert_allclose(found[20:220].reshape(20, 10), moved, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(found[220:].reshape(21, 9)[:, 3:6], seen, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(found[220:].reshape(21, 9)[:, [0, 1, 2, 6, 7, 8]], 0.0)


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__)
def test_laws_of_filters(law):
    law(swls)


def test_padding_leaves_the_estimate_unchanged():
    filter_ = swls(SYSTEMS["bare"])
    samples, _ = matched(filter_, seed=1, steps=100)
    past = jnp.arange(100) >= 30
    padded = Samples(
        samples.t, jnp.where(past, 0.0, samples.dt), samples.u, samples.y, samples.mask & ~past[:, None]
    )
    found = run(filter_, padded)
    for field in (found.value, found.std, found.state, found.state_std):
        np.testing.assert_allclose(field[29:], jnp.broadcast_to(field[29], field[29:].shape), rtol=1e-12)


def test_a_system_without_a_closed_form_is_linearised():
    assert isinstance(swls(SYSTEMS["multirotor"]).preintegration, Linearised)
    assert isinstance(swls(SYSTEMS["bare"]).preintegration, ThrustAndRate)


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"window": 0}, "a window of 0 spans no interval"),
        ({"iterations": 0}, "0 iterations solve nothing"),
        ({"loss": "tukey"}, "no loss 'tukey'; there are huber, cauchy, squares"),
        ({"threshold": 0.0}, "must be above 0"),
    ],
)
def test_invalid_settings_raise(settings, why):
    with pytest.raises(SettingError, match=why):
        inspect.unwrap(swls)(Cart(), **settings)
