"""Bootstrap particle filters: a step beside that of the library `particles`, with the same model, data and resampling.

Both give mean and variance at each step and resample systematically where the effective size is under a half. The scalar
model is an autoregression; the quadrotor has attitude, position, velocity and mass as ten dimensions of each particle,
moved by midpoint steps. Wall-clock time of both is taken in turns. Then 64 filters at once, and the memory that many steps
take.

The peer asks for numpy below 2, with which rotorid cannot be, but works with later ones:
`pip install --no-deps particles numba llvmlite`.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.metrics import Metric, interleaved, ratio
from rotorid import BareMultirotor, Parameter, Samples, Scalar, Space, System, bootstrap_filter, run
from rotorid.estimators.particles import final_state, moved
from rotorid.models.system import GRAVITY

ALPHA, W, V = 0.9, 1.0, 2.0
DT = 0.01
NOISE = {"attitude": 0.05, "position": 0.1, "velocity": 0.2}
WANDER = {"attitude": 0.3, "position": 0.6, "velocity": 1.2}
MASS, MASS_STD, MASS_DRIFT = 1.0, 0.3, 0.028


@dataclasses.dataclass(frozen=True)
class Autoregression(System):
    """theta' = 0.9 theta + w, y = theta + v, by an Euler step of 1 s."""

    states = Space.of(theta=Scalar(std=math.sqrt(10.0), noise=math.sqrt(W)))
    inputs = Space.of()
    outputs = Space.of(y=Scalar(noise=math.sqrt(V)))
    parameters = (Parameter("alpha", ALPHA),)

    def dynamics(self, x, u, p):
        return {"theta": (p["alpha"] - 1.0) * x["theta"]}

    def observe(self, x, u, p):
        return {"y": x["theta"]}


def benchmark(particles: int, steps: int, rounds: int, filters: int, peer: bool) -> list[Metric]:
    """Microseconds of a step of so many particles."""
    with jax.enable_x64(True):
        found = []
        scalar = bootstrap_filter(Autoregression(), particles, method="euler")
        samples = _scalar_data(steps)
        found += _beside(
            "scalar", scalar, samples, rounds, _scalar_peer(samples, particles) if peer else None
        )
        quadrotor = bootstrap_filter(
            BareMultirotor(), particles, start="measured", measurement_noise=NOISE, process_noise=WANDER
        )
        flight = _flight(max(steps // 10, 5))
        found += _beside(
            "quadrotor", quadrotor, flight, rounds, _flight_peer(flight, particles) if peer else None
        )
        found += _many(scalar, samples, filters, rounds)
        found += _memory(scalar, samples)
        return found


def _beside(
    label: str, filter_, samples: Samples, rounds: int, peer: Callable[[], float] | None
) -> list[Metric]:
    steps = samples.t.shape[0]
    calls: dict[str, Callable] = {"ours": lambda: jax.block_until_ready(run(filter_, samples, engine="jax"))}
    if peer is not None:
        calls["particles"] = peer
        ours, theirs = float(calls["ours"]().log_likelihood[-1]), peer()
        if abs(ours - theirs) > {"scalar": 0.01, "quadrotor": 0.1}[label] * abs(ours):  # Monte Carlo error
            raise AssertionError(
                f"log-likelihood of `particles` is {theirs:g}, ours {ours:g}: not the same model"
            )
    for call in calls.values():
        call()
    seconds = interleaved(calls, rounds)
    each = {name: 1e6 * min(s) / steps for name, s in seconds.items()}
    name = f"particle filter, {label}, {filter_.count} particles"
    found = [Metric(f"{name}: step", each["ours"], "us", "lower", peer=each.get("particles"))]
    if peer is not None:
        times = ratio(seconds["particles"], seconds["ours"])
        found.insert(0, Metric(f"{name}: particles / ours", times, "x", "higher", 0.5))
    return found


def _many(filter_, samples: Samples, filters: int, rounds: int) -> list[Metric]:
    """So many filters by vmap, on one core or as many as JAX takes, beside one after the other."""
    short = jax.tree.map(lambda leaf: leaf[: max(samples.t.shape[0] // 10, 5)], samples)
    keys = jax.random.split(jax.random.key(0), filters)
    together = jax.jit(jax.vmap(lambda key: final_state(filter_, short, key).watch.log_likelihood))
    calls = {
        "together": lambda: jax.block_until_ready(together(keys)),
        "in turn": lambda: [jax.block_until_ready(final_state(filter_, short, key)) for key in keys],
    }
    for call in calls.values():
        call()
    seconds = interleaved(calls, min(rounds, 3))
    each = {name: 1e6 * min(s) / (filters * short.t.shape[0]) for name, s in seconds.items()}
    label = f"particle filter, {filters} at once: step of each"
    return [Metric(label, each["together"], "us", "lower", note=f"{each['in turn']:.3g} us in turn")]


def _memory(filter_, samples: Samples) -> list[Metric]:
    """Temporary memory of a run without history, and how it grows with steps."""

    def needed(n: int) -> int:
        rows = jax.tree.map(lambda leaf: jnp.repeat(leaf[:1], n, axis=0), samples)
        program = jax.jit(lambda s, k: final_state(filter_, s, k)).lower(rows, jax.random.key(0)).compile()
        return program.memory_analysis().temp_size_in_bytes

    few, many = needed(100), needed(100_000)
    name = "particle filter, memory of 100,000 steps"
    return [
        Metric(name, many / 2**20, "MiB", "lower"),
        Metric(f"{name} / of 100", many / few, "x", "lower", 0.1),
    ]


def _scalar_data(steps: int) -> Samples:
    rng = np.random.default_rng(0)
    theta, y = math.sqrt(10.0) * rng.normal(), []
    for _ in range(steps):
        theta = ALPHA * theta + math.sqrt(W) * rng.normal()
        y.append([theta + math.sqrt(V) * rng.normal()])
    rows = (
        np.arange(1.0, steps + 1),
        np.ones(steps),
        np.zeros((steps, 0)),
        np.array(y),
        np.ones((steps, 1), bool),
    )
    return Samples(*map(jnp.asarray, rows))


def _flight(steps: int) -> Samples:
    """A hover, pushed about by its noise."""
    system, rng = BareMultirotor(), np.random.default_rng(1)
    t = DT * np.arange(steps)
    u = np.stack([9.81 + np.sin(t), 0.3 * np.sin(2 * t), 0.2 * np.cos(3 * t), 0.1 * np.sin(t)], axis=1)
    dt = np.full(steps, DT)
    dt[0] = 0.0
    p = {"mass": jnp.asarray(MASS)}
    x, y = jnp.asarray(system.states.initial()), []
    wander = np.repeat([WANDER[n] for n in system.states], 3) * math.sqrt(DT)
    noise = np.repeat([NOISE[n] for n in system.states], 3)
    filter_ = bootstrap_filter(system, 2)
    advance = jax.jit(lambda x, u, dt, d: system.states.plus(moved(filter_.joint, x, u, p, dt), d))
    for k in range(steps):
        x = advance(
            x, jnp.asarray(u[k]), jnp.asarray(dt[k]), jnp.asarray(wander * rng.normal(size=9) * (k > 0))
        )
        y.append(np.asarray(system.outputs.plus(x, jnp.asarray(noise * rng.normal(size=9)))))
    return Samples(*map(jnp.asarray, (t, dt, u, np.array(y), np.ones((steps, 9), bool))))


def _scalar_peer(samples: Samples, count: int) -> Callable[[], float]:
    import particles
    from particles import distributions as dists
    from particles import state_space_models as ssm
    from particles.collectors import Moments

    class Model(ssm.StateSpaceModel):
        def PX0(self):  # noqa: N802
            return dists.Normal(0.0, math.sqrt(10.0 * ALPHA**2 + W))

        def PX(self, t, xp):  # noqa: N802
            return dists.Normal(ALPHA * xp, math.sqrt(W))

        def PY(self, t, xp, x):  # noqa: N802
            return dists.Normal(x, math.sqrt(V))

    y = list(np.asarray(samples.y))

    def call() -> float:
        filter_ = particles.SMC(
            fk=ssm.Bootstrap(ssm=Model(), data=y), N=count, resampling="systematic", collect=[Moments()]
        )
        filter_.run()
        return float(filter_.logLt)

    return call


def _flight_peer(samples: Samples, count: int) -> Callable[[], float]:
    import particles
    from particles import distributions as dists
    from particles import state_space_models as ssm
    from particles.collectors import Moments

    u, y = np.asarray(samples.u), np.asarray(samples.y)
    noise = np.repeat(list(NOISE.values()), 3)
    wander = np.append(np.repeat(list(WANDER.values()), 3), MASS_DRIFT / MASS) * math.sqrt(DT)

    def turned(q, d):
        """q times the quaternion of a small turn d."""
        angle = np.sqrt(np.sum(d * d, axis=1, keepdims=True)) + 1e-300
        s = np.sin(0.5 * angle) / angle
        w, v = np.cos(0.5 * angle), s * d
        a, b = q[:, :1], q[:, 1:]
        return np.concatenate(
            [a * w - np.sum(b * v, 1, keepdims=True), a * v + w * b + np.cross(b, v)], axis=1
        )

    def plus(x, d):
        return np.concatenate([turned(x[:, :4], d[:, :3]), x[:, 4:] + d[:, 3:]], axis=1)

    def up(q):
        w, a, b, c = q.T
        return np.stack([2 * (a * c + w * b), 2 * (b * c - w * a), 1 - 2 * (a * a + b * b)], axis=1)

    def rate(x, now):
        d = np.zeros((len(x), 10))
        d[:, :3] = now[1:]
        d[:, 3:6] = x[:, 7:10]
        d[:, 6:9] = up(x[:, :4]) * now[0] / np.exp(x[:, 10:])
        d[:, 8] -= GRAVITY
        return d

    class Moved(dists.ProbDist):
        dim = 11

        def __init__(self, xp, t):
            self.xp, self.t = xp, t

        def rvs(self, size=None):
            x = self.xp
            after = plus(x, DT * rate(plus(x, 0.5 * DT * rate(x, u[self.t])), u[self.t]))
            return plus(after, wander * np.random.randn(len(x), 10))  # noqa: NPY002

    class First(dists.ProbDist):
        dim = 11

        def rvs(self, size=None):
            mean = np.append(y[0], math.log(MASS))
            spread = np.append(noise, MASS_STD / MASS)
            return plus(np.tile(mean, (size, 1)), spread * np.random.randn(size, 10))  # noqa: NPY002

    class Seen(dists.ProbDist):
        dim = 10

        def __init__(self, x, t):
            self.x, self.t = x, t

        def logpdf(self, seen):
            if self.t == 0:
                return np.zeros(len(self.x))
            q = self.x[:, :4] * np.array([1.0, -1.0, -1.0, -1.0])
            s = seen[:4]
            w = q[:, 0] * s[0] - q[:, 1:] @ s[1:]
            v = q[:, :1] * s[1:] + s[0] * q[:, 1:] + np.cross(q[:, 1:], s[1:])
            size = np.sqrt(np.sum(v * v, axis=1)) + 1e-300
            off = (2.0 * np.arctan2(size, np.abs(w)) / size * np.sign(w))[:, None] * v
            r = np.concatenate([off, seen[4:] - self.x[:, 4:10]], axis=1) / noise
            return -0.5 * np.sum(r * r, axis=1) - np.sum(np.log(noise)) - 4.5 * math.log(2.0 * math.pi)

    class Model(ssm.StateSpaceModel):
        def PX0(self):  # noqa: N802
            return First()

        def PX(self, t, xp):  # noqa: N802
            return Moved(xp, t)

        def PY(self, t, xp, x):  # noqa: N802
            return Seen(x, t)

    def call() -> float:
        filter_ = particles.SMC(
            fk=ssm.Bootstrap(ssm=Model(), data=list(y)), N=count, resampling="systematic", collect=[Moments()]
        )
        filter_.run()
        return float(filter_.logLt)

    return call
