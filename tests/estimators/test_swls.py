"""Sliding-window least squares is the smoother on a linear System, and its pre-integration is the integrator."""

import inspect
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rotorid.errors import SettingError
from rotorid.estimators.preintegration import Linearised, ThrustAndRate, preintegration
from rotorid.estimators.run import run
from rotorid.estimators.swls import swls
from rotorid.models.joint import Joint
from rotorid.models.multirotor import BareMultirotor
from rotorid.numerics.tridiagonal import Link, minimum
from rotorid.signals.samples import Samples
from tests.estimators.test_msckf import LAWS
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


@pytest.mark.parametrize("window", [1, 7, 60])
def test_on_a_linear_system_it_is_the_smoother(window):
    """The newest state is the Kalman filter's, and the whole window the smoother's, also where rows measure nothing."""
    filter_ = swls(Cart(), window=window, **OPEN)
    steps = 50
    samples, _ = matched(filter_, seed=2, steps=steps, dt=0.05)
    mask = np.repeat(np.random.default_rng(0).random((steps, 2)) < 0.7, [1, 2], axis=1)
    mask[[0, -1]] = True
    samples = Samples(samples.t, samples.dt, samples.u, samples.y, jnp.asarray(mask))

    def step(state, sample):
        state = filter_.update(filter_.predict(state, sample.u, sample.dt), sample)
        return state, (state.z, state.spread.P)

    first = jax.tree.map(lambda leaf: leaf[0], samples)
    last, (z, P) = jax.lax.scan(step, filter_.init(first), samples)
    filtered, covariances, found = smoothed(samples)
    np.testing.assert_allclose(z, filtered, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(P, covariances, rtol=1e-9, atol=1e-12)
    measured = np.flatnonzero(mask.any(axis=1))
    assert len(measured) < steps - 2
    nodes = min(window + 1, len(measured))
    assert np.sum(last.spread.valid) == nodes
    np.testing.assert_allclose(last.spread.x[-nodes:], found[measured[-nodes:]], rtol=1e-10, atol=1e-10)


def test_a_chain_is_solved_as_its_normal_equations_are():
    rng = np.random.default_rng(3)
    blocks, n, m = 6, 4, 3

    def spd(size):
        root = rng.normal(size=(size, size))
        return jnp.asarray(root @ root.T + np.eye(size))

    def draw(*shape):
        return jnp.asarray(rng.normal(size=shape))

    noises = jnp.asarray(rng.uniform(0.5, 2.0, (blocks, m)))
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
    found = minimum(prior, P, jax.tree.map(lambda *x: jnp.stack(x), *links))
    np.testing.assert_allclose(found.d, d[1:], rtol=1e-9)
    np.testing.assert_allclose(found.last, np.linalg.inv(normal)[-n:, -n:], rtol=1e-9)


def test_a_block_that_is_known_and_does_not_move_is_nothing_special():
    steps, F = 5, jnp.array([[1.0, 0.1], [0.0, 1.0]])
    zero, P = jnp.zeros((2, 2)), jnp.diag(jnp.array([1.0, 0.0]))
    rows = Link(F, jnp.zeros(2), zero, jnp.array([[1.0, 0.0]]), jnp.ones(1), jnp.ones(1))
    rows = jax.tree.map(lambda leaf: jnp.stack([leaf] * steps), rows)
    found = minimum(jnp.zeros(2), P, rows)
    np.testing.assert_allclose(found.d, np.outer(np.full(steps, steps / (steps + 1)), [1.0, 0.0]), rtol=1e-12)


@partial(jax.jit, static_argnums=0)
def integrated(way, rows, dt, start):
    """An interval over rows of inputs, each held for dt."""
    keep, noise = jnp.ones(way.joint.space.dim), 0.01 * jnp.ones(way.joint.space.dim)

    def extend(interval, u):
        return way.extended(interval, u, jnp.asarray(way.joint.values()), dt, keep, noise)[0], None

    return jax.lax.scan(extend, way.opened(start), rows)[0]


@partial(jax.jit, static_argnums=0)
def direct(joint, rows, dt, start):
    return jax.lax.scan(lambda z, u: (joint.step(z, u, jnp.asarray(joint.values()), dt), None), start, rows)[
        0
    ]


@partial(jax.jit, static_argnums=0)
def flow(way, interval, z):
    return way.flow(interval, z, jnp.asarray(way.joint.values()))


@pytest.fixture
def flying():
    """A joint model, a point of it, and five rows of inputs."""
    rng = np.random.default_rng(4)
    joint = Joint(BareMultirotor(), "rk4")
    rest = jnp.concatenate([jnp.asarray(joint.system.states.initial()), jnp.zeros(1)])
    u = np.concatenate([rng.uniform(5.0, 15.0, (5, 1)), rng.normal(size=(5, 3)) * 2.0], axis=1)
    return joint, joint.space.plus(rest, jnp.asarray(rng.normal(size=10))), jnp.asarray(u)


def test_pre_integration_is_direct_integration_at_any_state_and_mass(flying):
    """Of thrust and body rate: the same interval serves everywhere; the inputs change every 20 ms."""
    joint, start, u = flying
    way = preintegration(joint)
    assert isinstance(way, ThrustAndRate)
    interval = integrated(way, u, 0.02, start)
    for seed in range(3):
        z = joint.space.plus(start, jnp.asarray(np.random.default_rng(seed).normal(size=10)))
        there, F = flow(way, interval, z)
        reference = direct(joint, jnp.repeat(u, 10, axis=0), 0.002, z)
        np.testing.assert_allclose(joint.space.minus(there, reference), 0.0, atol=1e-9)
        step = 1e-6

        def moved(d, z=z, there=there):
            return joint.space.minus(flow(way, interval, joint.space.plus(z, d))[0], there)

        columns = [(moved(step * e) - moved(-step * e)) / (2 * step) for e in jnp.eye(10)]
        np.testing.assert_allclose(F, jnp.stack(columns, axis=1), atol=1e-8)


@pytest.mark.parametrize(("method", "order"), [("midpoint", 2), ("rk4", 4)])
def test_pre_integration_has_the_order_of_the_integrator(flying, method, order):
    """Linearised, against the exact one, over 0.4 s of one input."""
    joint, start, u = flying
    joint = Joint(joint.system, method)
    errors = []
    for count in (4, 8, 16):
        rows = jnp.repeat(u[:1], count, axis=0)
        ends = [integrated(way(joint), rows, 0.4 / count, start).end for way in (ThrustAndRate, Linearised)]
        errors.append(float(jnp.linalg.norm(joint.space.minus(*ends))))
    slopes = np.diff(np.log(errors)) / np.log(0.5)
    assert np.all(np.abs(slopes - order) < 0.35), slopes


def test_both_ways_agree_to_second_order_in_the_distance_from_the_start(flying):
    joint, start, u = flying
    ways = ThrustAndRate(joint), Linearised(joint)
    rows = jnp.repeat(u, 10, axis=0)
    exact, linear = (integrated(way, rows, 0.002, start) for way in ways)
    np.testing.assert_allclose(exact.F, linear.F, atol=1e-6)
    np.testing.assert_allclose(exact.Q, linear.Q, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(flow(ways[0], exact, start)[1], linear.F, rtol=1e-4, atol=1e-5)
    direction = jnp.asarray(np.random.default_rng(0).normal(size=10))
    errors = []
    for size in (0.2, 0.1, 0.05, 0.0):
        z = joint.space.plus(start, size * direction)
        ends = [flow(way, i, z)[0] for way, i in zip(ways, (exact, linear), strict=True)]
        errors.append(float(jnp.linalg.norm(joint.space.minus(*ends))))
    assert np.all(np.diff(np.log(errors[:3])) / np.log(0.5) > 1.8), errors
    assert errors[3] < 1e-9


def test_what_is_forgotten_no_longer_depends_on_the_start(flying):
    joint, start, u = flying
    way, values = preintegration(joint), jnp.asarray(joint.values())
    interval = integrated(way, u, 0.02, start)
    keep = jnp.ones(10).at[:9].set(0.0)
    interval, _ = way.extended(interval, u[2], values, 0.02, keep, jnp.zeros(10))
    there, F = flow(way, interval, joint.space.plus(start, 0.1 * jnp.ones(10)))
    np.testing.assert_allclose(F[:9], 0.0)
    np.testing.assert_allclose(there[:10], interval.end[:10], rtol=1e-12)
    np.testing.assert_allclose(there[10], start[10] + 0.1, rtol=1e-12)


def _fitted(loss, y, **settings):
    """Last state of a cart at rest whose positions are y."""
    filter_ = swls(Cart(), window=10, loss=loss, iterations=2, gate=1e6, bias_gate=1e6, **settings)
    n = len(y)
    dt = jnp.full(n, 0.05).at[0].set(0.0)
    outputs = jnp.zeros((n, 3)).at[:, 0].set(jnp.asarray(y))
    mask = jnp.zeros((n, 3), bool).at[:, 0].set(True)
    return run(filter_, Samples(jnp.cumsum(dt), dt, jnp.full((n, 1), -0.5), outputs, mask)).state


@pytest.mark.parametrize("loss", ["huber", "cauchy"])
def test_a_wild_block_is_weighed_down(loss):
    y = 0.1 * np.random.default_rng(0).normal(size=15)
    spoilt = y.copy()
    spoilt[12] += 5.0
    pulled = {
        kind: abs(float(_fitted(kind, spoilt)[-1, 0] - _fitted(kind, y)[-1, 0])) for kind in ("squares", loss)
    }
    assert pulled[loss] < 0.2 * pulled["squares"]
    assert pulled["squares"] > 0.3


@pytest.mark.parametrize("loss", ["huber", "cauchy"])
def test_within_the_threshold_a_robust_loss_is_squares(loss):
    y = 0.01 * np.random.default_rng(0).normal(size=15)
    robust, squares = _fitted(loss, y, threshold=1e3), _fitted("squares", y)
    np.testing.assert_allclose(robust, squares, rtol=1e-6, atol=1e-9)


def test_it_converges_to_the_minimum_of_what_it_says_it_minimises():
    """On the multirotor, from a mass 30 % wrong: against plain Gauss-Newton steps over the whole (short) flight."""
    system = BareMultirotor()
    heavy = system.mass.with_prior(1.3)
    filter_ = swls(
        system, window=8, iterations=3, loss="squares", gate=1e6, bias_gate=1e6, priors={"mass": heavy}
    )
    samples, _ = matched(swls(system), seed=6, steps=8, dt=0.05)
    joint, tuning = filter_.joint, filter_.tuning
    _, window = _last(filter_, samples)

    noise = jnp.concatenate([tuning.process_noise, tuning.drift]) * jnp.sqrt(0.05)
    prior = jnp.concatenate([samples.y[0], tuning.coordinate])
    prior_std = jnp.concatenate([tuning.initial_std, tuning.coordinate_std])

    @jax.jit
    def residuals(deltas):
        x = jax.vmap(joint.space.plus)(window.x[-8:], deltas.reshape(8, 10))
        end = jax.vmap(lambda z, i: filter_.preintegration.flow(i, z, tuning.values)[0])(
            x[:-1], jax.tree.map(lambda leaf: leaf[-7:], window.interval)
        )
        seen = jax.vmap(lambda z, u: joint.observe(z, u, tuning.values))(x, samples.u)
        return jnp.concatenate(
            [
                joint.space.minus(x[0], prior) / prior_std,
                (jax.vmap(joint.space.minus)(x[1:], end) / noise).ravel(),
                (jax.vmap(system.outputs.minus)(samples.y, seen) / tuning.measurement_noise).ravel(),
            ]
        )

    jacobian, best = jax.jit(jax.jacfwd(residuals)), np.zeros(80)
    for _ in range(10):
        J = np.asarray(jacobian(best))
        best = best - np.linalg.lstsq(J, np.asarray(residuals(best)), rcond=None)[0]
    J = np.asarray(jacobian(best))
    std = np.sqrt(np.linalg.inv(J.T @ J)[-1, -1])
    assert abs(best[-1]) < 0.01 * std
    np.testing.assert_allclose(np.sqrt(window.P[-1, -1]), std, rtol=0.01)


def _last(filter_, samples):
    def step(state, sample):
        return filter_.update(filter_.predict(state, sample.u, sample.dt), sample), None

    first = jax.tree.map(lambda leaf: leaf[0], samples)
    state = jax.jit(lambda s: jax.lax.scan(step, filter_.init(first), s)[0])(samples)
    return state.z, state.spread


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__)
def test_what_holds_for_filters_holds_for_it(law):
    law(lambda system, **settings: swls(system, window=5, **settings))


def test_rows_of_padding_change_nothing():
    filter_ = swls(SYSTEMS["bare"], window=5)
    samples, _ = matched(filter_, seed=1, steps=40)
    past = jnp.arange(40) >= 30
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
def test_settings_that_cannot_be_are_refused(settings, why):
    with pytest.raises(SettingError, match=why):
        inspect.unwrap(swls)(Cart(), **settings)
