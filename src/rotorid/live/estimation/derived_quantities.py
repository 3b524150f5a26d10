"""Quantities that a System derives from its states and tracked parameters (`Joint.derived`), for each row."""

from __future__ import annotations

from collections.abc import Callable

import casadi as ca
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from rotorid.codegen.casadi import to_casadi
from rotorid.estimators.base import Estimate
from rotorid.live.snapshot import Reading
from rotorid.models.joint import Joint


class DerivedQuantities:
    """Derived quantities of one System. values: prior means of all its parameters."""

    def __init__(self, joint: Joint, values: Float[Array, " all"]) -> None:
        self._joint, self._units = joint, dict(joint.system.derived_units)
        count = len(joint.quantities)
        shapes = (count,), (joint.system.states.size,), (count, count)
        self._arguments = [np.zeros(shape) for shape in shapes]
        self._values, self._result = np.array(values, float), np.zeros((len(self._units), 2))
        self._function: tuple[ca.FunctionBuffer, Callable[[], None]] | None = (
            None  # made for the first estimate
        )

    def readings(self, estimate: Estimate) -> dict[str, Reading]:
        """Derived quantities of an estimate."""
        if not self._units:
            return {}
        if self._function is None:
            self._function = self._make()
        for argument, number in zip(
            self._arguments, (estimate.value, estimate.state, estimate.covariance), strict=True
        ):
            argument[...] = number
        self._function[1]()
        return {
            name: Reading(value, std, unit)
            for (name, unit), (value, std) in zip(self._units.items(), self._result.tolist(), strict=True)
        }

    def _make(self) -> tuple[ca.FunctionBuffer, Callable[[], None]]:
        """The arrays of this object as a buffer, and the function on them."""
        arguments = (*self._arguments, self._values)
        function = to_casadi(lambda *of: jnp.stack(self._joint.derived(*of)[:2]), *arguments)
        symbols = function.sx_in()
        dense = ca.Function("derived", symbols, [ca.densify(function(*symbols))])
        buffer, call = dense.buffer()
        for k, argument in enumerate(arguments):
            buffer.set_arg(k, memoryview(argument))  # pyright: ignore
        buffer.set_res(0, memoryview(self._result))  # pyright: ignore
        return buffer, call
