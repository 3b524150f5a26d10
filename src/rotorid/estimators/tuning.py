"""The numbers that a filter is tuned by, as leaves of one pytree, with the System's own defaults."""

from __future__ import annotations

import dataclasses

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from rotorid.errors import SettingError
from rotorid.models.joint import Joint, slope, to_coordinate


class Tuning(eqx.Module):
    """Priors, noises and thresholds. Differentiable, and `vmap` runs many tunings at once.

    values: prior means of all parameters, in their units. coordinate, coordinate_std, drift: of the tracked ones, in
    estimation coordinates (drift per square root of s). initial, initial_std: of the states. process_noise: per tangent
    dimension of the states, per square root of s. measurement_noise: per tangent dimension of the outputs. gate: a
    block of measurements further out than this many standard deviations (of the one-dimensional normal with the same
    tail) is rejected. patience: s of rejections after which the filter doubts itself and opens up. max_gap: s without
    samples after which the states are taken as lost.
    """

    values: Float[Array, " all"]
    coordinate: Float[Array, " parameters"]
    coordinate_std: Float[Array, " parameters"]
    drift: Float[Array, " parameters"]
    initial: Float[Array, " states"]
    initial_std: Float[Array, " tangent"]
    process_noise: Float[Array, " tangent"]
    measurement_noise: Float[Array, " measured"]
    gate: Float[Array, ""]
    patience: Float[Array, ""]
    max_gap: Float[Array, ""]

    @classmethod
    def of(
        cls,
        joint: Joint,
        *,
        measurement_noise: dict[str, float | tuple[float, ...]] | None = None,
        process_noise: dict[str, float | tuple[float, ...]] | None = None,
        gate: float = 5.0,
        patience: float = 0.1,
        max_gap: float = 0.5,
    ) -> Tuning:
        """The System's defaults, some of them replaced by block name (in the blocks' units)."""
        states = _with_noise(joint.system.states, process_noise, "state")
        outputs = _with_noise(joint.system.outputs, measurement_noise, "output")
        coordinate, std, drift = [], [], []
        for p in joint.tracked:
            for value in p.values:
                per_unit = 1.0 / float(slope(p, np.float64(value)))
                coordinate.append(to_coordinate(p, value))
                std.append(p.std * per_unit)
                drift.append(p.drift * per_unit)
        return cls(
            *(jnp.asarray(a, dtype=float) for a in (joint.values(), coordinate, std, drift)),
            *(
                jnp.asarray(a, dtype=float)
                for a in (states.initial(), states.std(), states.noise(), outputs.noise())
            ),
            *(jnp.asarray(a, dtype=float) for a in (gate, patience, max_gap)),
        )


def _with_noise(space, noise, what):
    for name in noise or {}:
        if name not in space:
            raise SettingError(f"no {what} {name!r} to set the noise of (there are {', '.join(space)})")
    replaced = tuple(
        (n, dataclasses.replace(b, noise=(noise or {}).get(n, b.noise))) for n, b in space.blocks
    )
    return type(space)(replaced)
