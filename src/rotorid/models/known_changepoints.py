"""A System whose changes are announced: an input more, `change`, is 1 in the row from which on parameters may have jumped.

A vehicle often knows when it lets go of a load or opens a valve. `adaptive(Announced(system))` opens its parameters then, and
`announce` gives Samples the input. Nothing else changes.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np

from rotorid.errors import SettingError
from rotorid.geometry.spaces import Scalar, Space
from rotorid.models.around import AroundSystem
from rotorid.models.system import Parameter, Values
from rotorid.signals.samples import Samples

CHANGE = "change"
"""Name of the input."""


@dataclasses.dataclass(frozen=True)
class Announced(AroundSystem):
    """A System, and the input `change` after its own."""

    def __post_init__(self) -> None:
        if CHANGE in self.system.inputs:
            raise SettingError(f"{type(self.system).__name__} has an input {CHANGE!r} already")

    @property
    def inputs(self) -> Space:  # pyright: ignore[reportIncompatibleVariableOverride]
        return Space((*self.system.inputs.blocks, (CHANGE, Scalar())))

    @property
    def parameters(self) -> tuple[Parameter, ...]:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.system.parameters

    def dynamics(self, x: Values, u: Values, p: Values) -> Values:
        return self.system.dynamics(x, u, p)


def announce(samples: Samples, times: Sequence[float]) -> Samples:
    """Samples of one flight with the input `change`: 1 in the first row at or after each of these times (s), 0 elsewhere."""
    t = np.asarray(samples.t)
    change = np.zeros((len(t), 1), np.asarray(samples.u).dtype)
    rows = np.searchsorted(t, np.asarray(times, float))
    change[rows[rows < len(t)]] = 1.0
    return dataclasses.replace(
        samples, u=jnp.concatenate([jnp.asarray(samples.u), jnp.asarray(change)], axis=1)
    )
