"""Simulated flights of the fully actuated hexarotor with a naive controller, for identification; exact, or with noise."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from rotorid.geometry import rotations
from rotorid.models.airframe.airframe import load_airframe
from rotorid.models.multirotor.rigid import RigidMultirotor, rigid_multirotor
from rotorid.models.multirotor.rotors import allocation
from rotorid.models.system import GRAVITY, Values, parameter_values
from rotorid.numerics import integrators
from rotorid.signals.samples import Samples

STEP = 0.01
NOISE = {"attitude": 0.005, "position": 0.002, "velocity": 0.02, "body_rate": 0.01}


@functools.cache
def hexarotor() -> RigidMultirotor:
    """The System of Alharbat 2025's hexarotor, whose rotor speeds are known."""
    return rigid_multirotor(load_airframe("fully-actuated-hexarotor"), "rotor_speed")


def flown(
    system: RigidMultirotor,
    seed: int,
    duration: float = 20.0,
    *,
    sway: float = 1.0,
    wrench: Float[np.ndarray, "steps 6"] | None = None,
    **parameters: float | tuple[float, ...],
) -> Samples:
    """A flight of slow lemniscates and turns, without noise. parameters: of the vehicle, which its controller does not know.

    sway: how much it moves; 0 hovers. wrench: force (world, N) and torque (body, N m) up to each row.
    """
    steps = round(duration / STEP)
    given = np.zeros((steps, 6)) if wrench is None else wrench
    draw = np.random.default_rng(seed)
    shape = jnp.asarray(np.stack([draw.uniform(0.6, 1.4, 6), draw.uniform(0.0, 6.28, 6)]))
    with jax.enable_x64(True):
        u, y = _flown(system, parameter_values(system, **parameters), jnp.asarray(given), shape, sway)
        dt = np.full(steps, STEP)
        dt[0] = 0.0
        mask = np.ones((steps, system.outputs.dim), bool)
        return Samples(jnp.asarray(STEP * np.arange(1, steps + 1)), jnp.asarray(dt), u, y, jnp.asarray(mask))


@functools.partial(jax.jit, static_argnums=0)
def _flown(
    system: RigidMultirotor,
    p: Values,
    wrench: Float[Array, "steps 6"],
    shape: Float[Array, "2 6"],
    sway: float,
) -> tuple[Float[Array, "steps inputs"], Float[Array, "steps outputs"]]:
    nominal = parameter_values(system)
    G = allocation(system.rotors, nominal["torque_ratio"])
    space, outputs = system.states, system.outputs
    rate, phase = shape

    def aim(t):
        wave = sway * jnp.sin(rate * t + phase)
        return jnp.stack([3.0 * wave[0], 3.0 * wave[1], wave[2]]), 0.4 * wave[3:] * jnp.array([1.0, 1.0, 2.0])

    def one(z, at):
        t, w = at
        x, under = space.unpack(z), {**p, "force": w[:3], "torque": w[3:]}
        (place, turn), (speed, turning) = jax.jvp(aim, (t,), (1.0,))
        off = rotations.minus(x["attitude"], rotations.exp(turn))
        pull = 3.0 * (speed - x["velocity"]) + 4.0 * (place - x["position"])
        force = nominal["mass"] * (jnp.array([0.0, 0.0, GRAVITY]) + pull)
        torque = nominal["inertia"] * (8.0 * (turning - x["body_rate"]) - 25.0 * off)
        asked = jnp.concatenate([rotations.rotate(rotations.inverse(x["attitude"]), force), torque])
        thrust = jnp.linalg.solve(G, asked)
        u = {"rotor_speed": jnp.sign(thrust) * jnp.sqrt(jnp.abs(thrust) / nominal["thrust_coefficient"])}
        z = integrators.step(
            space, lambda z: space.pack_tangent(system.dynamics(space.unpack(z), u, under)), z, STEP
        )
        return z, (system.inputs.pack(u), outputs.pack(system.observe(space.unpack(z), u, under)))

    times = STEP * jnp.arange(len(wrench))
    start = space.pack(
        {
            "attitude": rotations.exp(aim(0.0)[1]),
            "position": aim(0.0)[0],
            "velocity": jnp.zeros(3),
            "body_rate": jnp.zeros(3),
        }
    )
    return jax.lax.scan(one, start, (times, wrench))[1]


def noisy(
    flights: Sequence[Samples], system: RigidMultirotor, seed: int, noise: Mapping[str, float] = NOISE
) -> list[Samples]:
    """The flights with white noise on their measurements."""
    std = jnp.asarray(
        np.concatenate([np.full(b.dim, noise.get(name, 0.1)) for name, b in system.outputs.items()])
    )
    found = []
    for k, flight in enumerate(flights):
        drawn = std * jax.random.normal(jax.random.key(1000 * seed + k), flight.mask.shape)
        found.append(eqx.tree_at(lambda s: s.y, flight, jax.vmap(system.outputs.plus)(flight.y, drawn)))
    return found
