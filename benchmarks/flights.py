"""Flights of the bare multirotor whose truth is known: smooth inputs, a mass that is sprayed away, noisy sensors."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

from rotorid import Samples
from rotorid.models import Joint
from rotorid.models.multirotor import BareMultirotor

RATE = 100.0  # Hz
SYSTEM = BareMultirotor()


@dataclasses.dataclass(frozen=True)
class Made:
    """Flights of equal length: samples with a first axis of flights, mass in kg, euler: attitudes as roll, pitch, yaw."""

    samples: Samples
    mass: np.ndarray
    euler: np.ndarray

    def measured(self) -> np.ndarray:
        """What the peers are given: roll, pitch, yaw, position, velocity."""
        return np.concatenate([self.euler, np.asarray(self.samples.y)[..., 4:]], axis=-1)

    def rows(self, flight: int) -> list[Samples]:
        """One flight sample by sample, as numpy arrays."""
        leaves = jax.tree.map(lambda leaf: np.asarray(leaf)[flight], self.samples)
        return [jax.tree.map(lambda leaf, k=k: leaf[k], leaves) for k in range(leaves.t.shape[0])]


def make(count: int, seconds: float, seed: int = 0) -> Made:
    """Flights that differ in inputs, mass and noise."""
    rng = np.random.default_rng(seed)
    times = np.arange(round(seconds * RATE)) / RATE
    shape = (count, len(times))
    mass = 1.0 + rng.uniform(-0.1, 0.1, (count, 1)) - rng.uniform(0.0, 0.02, (count, 1)) * times
    phase, pace = rng.uniform(0.0, 6.0, (2, count, 1, 4))
    waves = np.sin((0.5 + 0.3 * pace) * times[None, :, None] + phase)
    thrust = mass * 9.81 + 1.5 * waves[..., 0]
    inputs = np.concatenate([thrust[..., None], 0.4 * waves[..., 1:]], axis=-1)

    joint = Joint(SYSTEM, "rk4")
    values = jnp.asarray(joint.values())
    start = jnp.zeros(11).at[0].set(1.0)

    def fly(u, logs):
        def advance(z, row):
            z = joint.step(z.at[-1].set(row[1]), row[0], values, 1.0 / RATE)
            return z, z[:-1]

        return jax.lax.scan(advance, start, (u, logs))[1]

    true = jax.vmap(fly)(jnp.asarray(inputs), jnp.log(mass))
    noise = rng.normal(size=(*shape, 9)) * np.asarray(SYSTEM.outputs.noise())
    y = np.asarray(jax.vmap(jax.vmap(SYSTEM.outputs.plus))(true, jnp.asarray(noise)))
    dt = np.full(shape, 1.0 / RATE)
    dt[:, 0] = 0.0
    samples = Samples(
        t=jnp.asarray(np.broadcast_to(times, shape)),
        dt=jnp.asarray(dt),
        u=jnp.asarray(inputs),
        y=jnp.asarray(y),
        mask=jnp.ones((*shape, 9), bool),
    )
    return Made(samples, mass, _euler(y[..., :4]))


def error_of_mass(estimated: np.ndarray, made: Made) -> float:
    """Root mean square error of the mass in % of it, from 2 s on."""
    from_2s = int(2 * RATE) if made.mass.shape[1] > 4 * RATE else made.mass.shape[1] // 2
    share = (estimated - made.mass)[:, from_2s:] / made.mass[:, from_2s:]
    return float(100.0 * np.sqrt(np.mean(share**2)))


def _euler(q: np.ndarray) -> np.ndarray:
    w, x, y, z = np.moveaxis(q, -1, 0)
    roll = np.arctan2(2 * (w * x + y * z), 1 - 2 * (x * x + y * y))
    pitch = np.arcsin(np.clip(2 * (w * y - z * x), -1.0, 1.0))
    yaw = np.unwrap(np.arctan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z)))
    return np.stack([roll, pitch, yaw], axis=-1)
