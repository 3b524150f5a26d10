"""A System with known changepoints: an additional input `change` is 1 in the first row after the parameters may have jumped.

A vehicle often knows when it releases a load or opens a valve. `adaptive(KnownChangepoints(system))` inflates the covariance
of the parameters at these rows, and `with_change_input` adds the input to Samples.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np

from rotorid.errors import SettingError
from rotorid.geometry.spaces import Scalar, Space
from rotorid.models.system import Parameter, Values
from rotorid.models.wrapped_system import WrappedSystem
from rotorid.signals.samples import Samples

CHANGE = "change"
"""Name of the input."""


@dataclasses.dataclass(frozen=True)
class KnownChangepoints(WrappedSystem):
    """A System with the additional input `change`, which is 1 at known changepoints and else 0.

    system: any System.
    """

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


def with_change_input(samples: Samples, times: Sequence[float]) -> Samples:
    """Samples of one flight with the input `change` appended.

    Args:
        samples: samples of one flight, n rows.
        times: known changepoints, s, on the clock of `samples.t`.
    Returns:
        Samples whose last input is 1 in the first row at or after each of the times, and 0 elsewhere.
    """
    t = np.asarray(samples.t)
    change = np.zeros((len(t), 1), np.asarray(samples.u).dtype)
    rows = np.searchsorted(t, np.asarray(times, float))
    change[rows[rows < len(t)]] = 1.0
    return dataclasses.replace(
        samples, u=jnp.concatenate([jnp.asarray(samples.u), jnp.asarray(change)], axis=1)
    )
