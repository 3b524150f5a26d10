"""Flights of a fully actuated multirotor under a wrench that is told, with a naive controller, for wrench observers."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from rotorid.geometry import rotations
from rotorid.models.multirotor.rigid import RigidMultirotor
from rotorid.models.multirotor.rotors import allocation
from rotorid.models.system import GRAVITY, parameter_values
from rotorid.numerics import integrators
from rotorid.signals.samples import Samples

FINE = 10  # integrator steps per sample


def flown(
    system: RigidMultirotor,
    wrench: Float[np.ndarray, "steps 6"],
    dt: float = 0.01,
    *,
    sway: float = 0.0,
    **parameters: float | tuple[float, ...],
) -> Samples:
    """Noiseless samples of a hovering vehicle whose rotor speeds are known.

    wrench: force (world, N) and torque (body, N m) up to each sample. sway: amplitude of the body rates that it is told to
    turn with, rad/s. parameters: replaced ones of the System.
    """
    u, y = _flown(system, parameter_values(system, **parameters), jnp.asarray(wrench), dt, sway)
    steps = len(wrench)
    mask = np.ones((steps, system.outputs.dim), bool)
    spans = np.full(steps, dt)
    spans[0] = 0.0
    return Samples(jnp.asarray(dt * np.arange(1, steps + 1)), jnp.asarray(spans), u, y, jnp.asarray(mask))


@partial(jax.jit, static_argnums=0)
def _flown(
    system: RigidMultirotor,
    p: Mapping[str, Float[Array, " ..."]],
    wrench: Float[Array, "steps 6"],
    dt: float,
    sway: float,
) -> tuple[Float[Array, "steps inputs"], Float[Array, "steps outputs"]]:
    G = allocation(system.rotors, p["torque_ratio"], p["centre_of_mass"])
    space, outputs = system.states, system.outputs

    def one(z, at):
        t, w = at
        x, under = space.unpack(z), {**p, "force": w[:3], "torque": w[3:]}
        aim = sway * jnp.stack([jnp.sin(3.0 * t), jnp.cos(2.0 * t), jnp.sin(1.5 * t)])
        upright = rotations.log(x["attitude"])
        force = p["mass"] * (jnp.array([0.0, 0.0, GRAVITY]) - 2.0 * x["velocity"] - x["position"])
        torque = p["inertia"] * (8.0 * (aim - x["body_rate"]) - 16.0 * upright)
        asked = jnp.concatenate([rotations.rotate(rotations.inverse(x["attitude"]), force), torque])
        thrust = jnp.linalg.solve(G, asked)
        u = {"rotor_speed": jnp.sign(thrust) * jnp.sqrt(jnp.abs(thrust) / p["thrust_coefficient"])}

        def fine(k, z):
            return integrators.step(
                space, lambda z: space.pack_tangent(system.dynamics(space.unpack(z), u, under)), z, dt / FINE
            )

        z = jax.lax.fori_loop(0, FINE, fine, z)
        return z, (system.inputs.pack(u), outputs.pack(system.observe(space.unpack(z), u, under)))

    times = dt * jnp.arange(len(wrench))
    return jax.lax.scan(one, jnp.asarray(space.initial()), (times, wrench))[1]


def noisy(samples: Samples, system: RigidMultirotor, key: jax.Array) -> Samples:
    """Samples with the System's own measurement noise."""
    noise = jnp.asarray(system.outputs.noise()) * jax.random.normal(key, samples.mask.shape)
    return eqx.tree_at(lambda s: s.y, samples, jax.vmap(system.outputs.plus)(samples.y, noise))
