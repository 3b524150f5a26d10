"""The numbers that a filter is tuned by, as leaves of one pytree, with the System's own defaults."""

from __future__ import annotations

import dataclasses

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from rotorid.errors import SettingError
from rotorid.geometry.spaces import Space
from rotorid.models.joint import Joint, slope, to_coordinate
from rotorid.models.system import Parameter


class Tuning(eqx.Module):
    """Priors, noises and thresholds. Differentiable, and `vmap` runs many tunings at once.

    values: prior means of all parameters, in their units. coordinate, coordinate_std, drift: of the tracked ones, in
    estimation coordinates (drift per square root of s). initial, initial_std: of the states. process_noise: per tangent
    dimension of the states, per square root of s. measurement_noise: per tangent dimension of the outputs. gate: a
    block of measurements further out than this many standard deviations (of the one-dimensional normal with the same
    tail) is rejected. patience: s of rejections after which the filter doubts itself and opens up. bias_gate: standard
    deviations of a running mean of innovations over bias_memory (s) at which it does so too. max_gap: s without samples
    after which the states are taken as lost.
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
    bias_gate: Float[Array, ""]
    bias_memory: Float[Array, ""]
    max_gap: Float[Array, ""]

    @classmethod
    def of(
        cls,
        joint: Joint,
        *,
        measurement_noise: dict[str, float | tuple[float, ...]] | None = None,
        process_noise: dict[str, float | tuple[float, ...]] | None = None,
        priors: dict[str, Parameter] | None = None,
        gate: float = 5.0,
        patience: float = 0.1,
        bias_gate: float = 4.0,
        bias_memory: float = 0.06,
        max_gap: float = 0.5,
    ) -> Tuning:
        """The System's defaults, some of them replaced: noises by block name (in the blocks' units), priors by parameter.

        Estimators whose tunings alone differ share one compiled program, and `stack_tunings` runs them at once; a
        System built anew with another prior is compiled anew.
        """
        for name in priors or {}:
            joint.system.parameter(name)
        values = [v for p in joint.system.parameters for v in (priors or {}).get(p.name, p).values]
        states = _with_noise(joint.system.states, process_noise, "state")
        outputs = _with_noise(joint.system.outputs, measurement_noise, "output")
        coordinate, std, drift = [], [], []
        for p in joint.tracked:
            prior = (priors or {}).get(p.name, p)
            for value in prior.values:
                per_unit = 1.0 / float(slope(p, np.float64(value)))
                coordinate.append(to_coordinate(p, value))
                std.append(prior.std * per_unit)
                drift.append(prior.drift * per_unit)
        return cls(
            *(jnp.asarray(a, dtype=float) for a in (values, coordinate, std, drift)),
            *(
                jnp.asarray(a, dtype=float)
                for a in (states.initial(), states.std(), states.noise(), outputs.noise())
            ),
            *(jnp.asarray(a, dtype=float) for a in (gate, patience, bias_gate, bias_memory, max_gap)),
        )


def _with_noise(space: Space, noise: dict[str, float | tuple[float, ...]] | None, what: str) -> Space:
    for name in noise or {}:
        if name not in space:
            raise SettingError(f"no {what} {name!r} to set the noise of (there are {', '.join(space)})")
    replaced = tuple(
        (n, dataclasses.replace(b, noise=(noise or {}).get(n, b.noise))) for n, b in space.blocks
    )
    return Space(replaced)
