"""What the benchmark of particle filters runs on: a scalar autoregression and the 12-state quadrotor, with data of each, and
both as the library `particles` takes them.

The peer's model is written as its documentation has it, vectorised over particles in numpy, with numpy's quicker generator of
normal numbers (`numpy.random.default_rng`) in place of the older one that the library draws from.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from rotorid import Parameter, Samples, Scalar, Space, System
from rotorid.estimators.particle import bootstrap_filter
from rotorid.estimators.particle.base import propagate
from rotorid.models.quadrotor.quadrotor import ANGLES, RATES, Quadrotor, hover_speed, quadrotor
from rotorid.models.system import GRAVITY

ALPHA, W, V = 0.9, 1.0, 2.0
DT = 0.01
MASS_STD, MASS_DRIFT = 0.1, 0.05
NOISE = {
    **dict.fromkeys(ANGLES, 0.05), **dict.fromkeys(RATES, 0.1),
    **{f"position_{axis}": 0.1 for axis in "xyz"}, **{f"velocity_{axis}": 0.2 for axis in "xyz"},
}  # fmt: skip
WANDER = {name: 3.0 * std for name, std in NOISE.items()}


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


def scalar_filter(count: int):
    return bootstrap_filter(Autoregression(), count, method="euler")


def scalar_data(steps: int) -> Samples:
    rng = np.random.default_rng(0)
    theta, y = math.sqrt(10.0) * rng.normal(), []
    for _ in range(steps):
        theta = ALPHA * theta + math.sqrt(W) * rng.normal()
        y.append([theta + math.sqrt(V) * rng.normal()])
    rows = (
        np.arange(1.0, steps + 1), np.ones(steps), np.zeros((steps, 0)), np.array(y), np.ones((steps, 1), bool),
    )  # fmt: skip
    return Samples(*map(jnp.asarray, rows))


def tracked_quadrotor() -> Quadrotor:
    """The seed's quadrotor, whose mass is to be found."""
    plain = quadrotor()
    parameters = tuple(
        dataclasses.replace(p, std=MASS_STD, drift=MASS_DRIFT) if p.name == "mass" else p
        for p in plain.parameters
    )
    return dataclasses.replace(plain, parameters=parameters)


def quadrotor_filter(count: int):
    return bootstrap_filter(
        tracked_quadrotor(), count, start="measured", measurement_noise=NOISE, process_noise=WANDER
    )


def quadrotor_data(steps: int) -> Samples:
    """A hover with rotors that speed up and down, pushed about by its noise."""
    filter_, rng = quadrotor_filter(2), np.random.default_rng(1)
    joint, tuning, system = filter_.joint, filter_.tuning, filter_.joint.system
    t = DT * np.arange(1, steps + 1)
    u = hover_speed(tracked_quadrotor()) + 5.0 * np.stack([np.sin(3.0 * t + k) for k in range(4)], axis=1)
    p = joint.with_tracked(jnp.asarray([system.parameter("mass").values[0]]), tuning.values)
    advance = jax.jit(lambda x, u, d: propagate(joint, x, u, p, jnp.asarray(DT)) + d)
    wander, noise = np.asarray(tuning.process_noise) * math.sqrt(DT), np.asarray(tuning.measurement_noise)
    x, y = jnp.asarray(system.states.initial()), []
    for k in range(steps):
        if k:
            x = advance(x, jnp.asarray(u[k]), jnp.asarray(wander * rng.normal(size=12)))
        y.append(np.asarray(x) + noise * rng.normal(size=12))
    dt = np.where(np.arange(steps) == 0, 0.0, DT)
    return Samples(*map(jnp.asarray, (t, dt, u, np.array(y), np.ones((steps, 12), bool))))


def scalar_peer(samples: Samples, count: int) -> Callable[[], float]:
    """A run by `particles`, which gives the log-likelihood."""
    from particles import distributions as dists
    from particles import state_space_models as ssm

    rng = np.random.default_rng(0)

    class Moved(dists.ProbDist):
        def __init__(self, xp):
            self.xp = xp

        def rvs(self, size=None):
            return ALPHA * self.xp + math.sqrt(W) * rng.standard_normal(len(self.xp))

    class Model(ssm.StateSpaceModel):
        def PX0(self):  # noqa: N802
            return dists.Normal(0.0, math.sqrt(10.0 * ALPHA**2 + W))

        def PX(self, t, xp):  # noqa: N802
            return Moved(xp)

        def PY(self, t, xp, x):  # noqa: N802
            return dists.Normal(x, math.sqrt(V))

    return _run(Model(), np.asarray(samples.y), count)


def quadrotor_peer(samples: Samples, count: int) -> Callable[[], float]:
    """A run by `particles`, which gives the log-likelihood. A particle is a row of 12 states and the logarithm of the mass."""
    from particles import distributions as dists
    from particles import state_space_models as ssm

    system, rng = tracked_quadrotor(), np.random.default_rng(0)
    u, y = np.asarray(samples.u), np.asarray(samples.y)
    p = {name: np.asarray(system.parameter(name).value) for name in (q.name for q in system.parameters)}
    ix, iy, iz = p["inertia"]
    (lever_x, lever_y), spins = np.array(system.levers).T, np.array(system.spins)
    names = list(system.states)
    noise, wander = np.array([NOISE[n] for n in names]), np.array([WANDER[n] for n in names])
    pushes = np.append(wander, MASS_DRIFT / p["mass"]) * math.sqrt(DT)
    constant = -np.sum(np.log(noise)) - 6.0 * math.log(2.0 * math.pi)
    assert names[:6] == ["roll", "roll_rate", "pitch", "pitch_rate", "yaw", "yaw_rate"]

    def rate(x, speed, mass):
        square = np.abs(speed) * speed
        thrust = p["thrust_coefficient"] * square
        torque_x, torque_y = lever_y @ thrust, -lever_x @ thrust
        torque_z, h = -p["torque_coefficient"] * (spins @ square), p["rotor_inertia"] * (spins @ speed)
        roll, wx, pitch, wy, yaw, wz, _, vx, _, vy, _, vz = x.T
        sf, cf, st, ct = np.sin(roll), np.cos(roll), np.sin(pitch), np.cos(pitch)
        ss, cs, pull = np.sin(yaw), np.cos(yaw), np.sum(thrust) / mass
        d = np.empty_like(x)
        d[:, 0], d[:, 2], d[:, 4], d[:, 6], d[:, 8], d[:, 10] = wx, wy, wz, vx, vy, vz
        d[:, 1] = ((iy - iz) * wy * wz + torque_x - wy * h) / ix
        d[:, 3] = ((iz - ix) * wz * wx + torque_y + wx * h) / iy
        d[:, 5] = ((ix - iy) * wx * wy + torque_z) / iz
        d[:, 7] = (cf * st * cs + sf * ss) * pull
        d[:, 9] = (cf * st * ss - sf * cs) * pull
        d[:, 11] = cf * ct * pull - GRAVITY
        return d

    class Moved(dists.ProbDist):
        dim = 13

        def __init__(self, xp, t):
            self.xp, self.t = xp, t

        def rvs(self, size=None):
            x, mass, speed = self.xp[:, :12], np.exp(self.xp[:, 12]), u[self.t]
            after = rng.standard_normal(self.xp.shape) * pushes + self.xp
            after[:, :12] += DT * rate(x + 0.5 * DT * rate(x, speed, mass), speed, mass)
            return after

    class First(dists.ProbDist):
        dim = 13

        def rvs(self, size=None):
            mean = np.append(y[0], np.log(p["mass"]))
            return mean + np.append(noise, MASS_STD / p["mass"]) * rng.standard_normal((size, 13))

    class Seen(dists.ProbDist):
        dim = 12

        def __init__(self, x, t):
            self.x, self.t = x, t

        def logpdf(self, seen):
            if self.t == 0:
                return np.zeros(len(self.x))
            r = (seen - self.x[:, :12]) / noise
            return constant - 0.5 * np.einsum("ij,ij->i", r, r)

    class Model(ssm.StateSpaceModel):
        def PX0(self):  # noqa: N802
            return First()

        def PX(self, t, xp):  # noqa: N802
            return Moved(xp, t)

        def PY(self, t, xp, x):  # noqa: N802
            return Seen(x, t)

    return _run(Model(), y, count)


def _run(model, y: np.ndarray, count: int) -> Callable[[], float]:
    import particles
    from particles import state_space_models as ssm
    from particles.collectors import Moments

    def call() -> float:
        of = ssm.Bootstrap(ssm=model, data=list(y))
        filter_ = particles.SMC(fk=of, N=count, resampling="systematic", ESSrmin=0.5, collect=[Moments()])
        filter_.run()
        return float(filter_.logLt)

    return call
