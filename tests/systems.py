"""Small Systems and data from them, for the tests of estimators."""

from __future__ import annotations

import dataclasses
import math
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from rotorid.estimators.adaptive import Adaptive
from rotorid.estimators.gaussian import AbstractGaussianFilter
from rotorid.estimators.wrench.base import AbstractWrenchObserver
from rotorid.geometry.spaces import Scalar, Space, Vector
from rotorid.models.airframe.airframe import load_airframe
from rotorid.models.multirotor.bare import BareMultirotor
from rotorid.models.multirotor.rigid import RigidMultirotor, rigid_multirotor
from rotorid.models.multirotor.with_drag import Multirotor, multirotor
from rotorid.models.system import Parameter, System
from rotorid.signals.samples import Samples


@dataclasses.dataclass(frozen=True)
class Pendulum(System):
    """A pendulum of unknown length."""

    states = Space.of(
        angle=Scalar("rad", std=0.5, noise=0.01, initial=0.3), rate=Scalar("rad/s", std=0.5, noise=0.05)
    )
    inputs = Space.of(torque=Scalar("N m"))
    outputs = Space.of(angle=Scalar("rad", noise=0.02))
    parameters = (Parameter("length", 1.0, std=0.2, unit="m", bounds=(0.0, math.inf), drift=0.005),)

    def dynamics(self, x, u, p):
        swing = -9.81 / p["length"] * jnp.sin(x["angle"]) + u["torque"] / p["length"] ** 2
        return {"angle": x["rate"], "rate": swing}

    def observe(self, x, u, p):
        return {"angle": x["angle"]}


@dataclasses.dataclass(frozen=True)
class Cart(System):
    """A cart with an unknown constant push: linear in everything."""

    states = Space.of(position=Scalar("m", std=2.0, noise=0.02), velocity=Scalar("m/s", std=1.0, noise=0.05))
    inputs = Space.of(force=Scalar("N"))
    outputs = Space.of(position=Scalar("m", noise=0.1), motion=Vector(2, "1", noise=(0.2, 0.3)))
    parameters = (Parameter("push", 0.5, std=1.0, unit="N", drift=0.1), Parameter("mass", 2.0, unit="kg"))

    def dynamics(self, x, u, p):
        return {"position": x["velocity"], "velocity": (u["force"] + p["push"]) / p["mass"]}

    def observe(self, x, u, p):
        mixed = jnp.stack([x["velocity"], x["position"] - 0.5 * p["push"]])
        return {"position": x["position"], "motion": mixed}


def with_known_aerodynamics(system: Multirotor) -> Multirotor:
    """The System with axial drag and lift known to 0.1: with less, its filters are not consistent far from hover."""
    parameters = tuple(
        dataclasses.replace(p, std=0.1) if p.name in ("axial_drag_ratio", "lift_factor") else p
        for p in system.parameters
    )
    return dataclasses.replace(system, parameters=parameters)


SYSTEMS = {
    "pendulum": Pendulum(),
    "cart": Cart(),
    "bare": BareMultirotor(),
    "multirotor": with_known_aerodynamics(multirotor(load_airframe("px4-sih-quad"), "thrust")),
}

RIGID = rigid_multirotor(load_airframe("quadrotor-x"))
"""What wrench observers are for."""


def inputs_for(system: System, t: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Inputs that excite a System: slow sines, about hover where there is a thrust."""
    n = system.inputs.size
    u = 0.5 * np.sin(np.outer(t, rng.uniform(0.5, 2.0, n)) + rng.uniform(0.0, 6.0, n))
    if "thrust" in system.inputs:
        slot = system.inputs.stored["thrust"]
        u[:, slot] = 9.81 * (1.0 + 0.2 * u[:, slot])
    if isinstance(system, RigidMultirotor):
        u = system.weight / n * (1.0 + 0.01 * u)
    return u


def matched(
    filter_: AbstractGaussianFilter | Adaptive | AbstractWrenchObserver,
    seed: int,
    steps: int,
    dt: float = 0.01,
) -> tuple[Samples, np.ndarray]:
    """Data drawn from a filter's own model, prior and noises, and the true joint points (one a row).

    Parameters wander by the filter's drift; rates that it has for them are zero.
    """
    joint, tuning = dataclasses.replace(filter_.joint, rates=()), filter_.tuning
    rng = np.random.default_rng(seed)
    t = dt * np.arange(1, steps + 1)
    u = jnp.asarray(inputs_for(joint.system, t, rng))
    dts = jnp.full(steps, dt).at[0].set(0.0)
    prior = np.concatenate([tuning.initial_std, tuning.coordinate_std])
    wander = np.concatenate([tuning.process_noise, tuning.drift])
    z0 = joint.space.plus(
        jnp.concatenate([tuning.initial, tuning.coordinate]),
        jnp.asarray(prior * rng.normal(size=joint.space.dim)),
    )
    disturbance = jnp.asarray(
        wander * np.sqrt(np.asarray(dts))[:, None] * rng.normal(size=(steps, joint.space.dim))
    )
    noise = tuning.measurement_noise * rng.normal(size=(steps, joint.system.outputs.dim))

    z, y = _simulate(joint, tuning.values, z0, (u, dts, disturbance, noise))
    mask = jnp.ones((steps, joint.system.outputs.dim), bool)
    return Samples(jnp.asarray(t), dts, u, y, mask), np.asarray(z)


@partial(jax.jit, static_argnums=0)
def _simulate(joint, values, z, rows):
    def one(z, row):
        u, dt, w, v = row
        z = joint.space.plus(joint.step(z, u, values, dt), w)
        return z, (z, joint.system.outputs.plus(joint.observe(z, u, values), v))

    return jax.lax.scan(one, z, rows)[1]
