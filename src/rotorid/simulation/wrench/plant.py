"""The rigid multirotor as a plant: its motion within a row, with constant rotor speeds and a constant external wrench.

    x_{k+1} = RK4(x_k, Omega_k, w_k),    y_{k+1} = h(x_{k+1}, Omega_k, w_k)

The System is the `RigidMultirotor` that the estimators use, traced to CasADi and compiled to C if there is a compiler. All
parameters are inputs, so that one compiled function serves all vehicles with the same rotors.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping

import casadi as ca
import jax
import numpy as np
from jaxtyping import Array, Float, Float64

from rotorid.codegen.casadi import to_casadi
from rotorid.codegen.native import compiled
from rotorid.errors import SettingError
from rotorid.models.multirotor.rigid import RigidMultirotor
from rotorid.models.system import parameter_values
from rotorid.numerics import integrators

WRENCH = ("force", "torque")
"""Parameters of the System that are replaced by the wrench of a row."""


def plant_parameters(
    system: RigidMultirotor, override: Mapping[str, float | tuple[float, ...]]
) -> Float64[np.ndarray, " numbers"]:
    """The parameters of the plant, packed: the prior means of the System, with some replaced.

    Args:
        system: rigid multirotor.
        override: values by name.
    Raises:
        SettingError: an unknown name, a wrong shape, a value that is not finite, or the wrench.
    """
    for name, value in override.items():
        expected = np.shape(system.parameter(name).value)
        if name in WRENCH:
            raise SettingError(
                f"parameters: {name!r} is the external wrench, which the scenario gives; leave it out"
            )
        if np.shape(value) != expected:
            raise SettingError(
                f"parameters: {name!r} needs {expected[0] if expected else 1} numbers, not {value!r}"
            )
        if not np.isfinite(value).all():
            raise SettingError(f"parameters: {name!r} is {value!r}; it must be finite")
    with jax.enable_x64(True):
        values = parameter_values(system, **override)
        return np.concatenate([np.ravel(values[n]) for n in parameter_slices(system)])


@functools.cache
def interval_function(system: RigidMultirotor, step: float, steps: int) -> ca.Function:
    """(x, u, wrench, parameters) -> x after `steps` Runge-Kutta steps of `step` s, with constant u and wrench."""
    space = system.states

    def after(x, u, wrench, numbers):
        p = _parameters_by_name(system, numbers, wrench)
        rate = lambda x: space.pack_tangent(  # noqa: E731
            system.dynamics(space.unpack(x), system.inputs.unpack(u), p)
        )
        for _ in range(steps):
            x = integrators.step(space, rate, x, step)
        return x

    return compiled(to_casadi(after, *_examples(system), name="interval"))


@functools.cache
def output_function(system: RigidMultirotor) -> ca.Function:
    """(x, u, wrench, parameters) -> the System's outputs, packed."""

    def outputs(x, u, wrench, numbers):
        p = _parameters_by_name(system, numbers, wrench)
        return system.outputs.pack(system.observe(system.states.unpack(x), system.inputs.unpack(u), p))

    return compiled(to_casadi(outputs, *_examples(system), name="measured"))


def parameter_slices(system: RigidMultirotor) -> dict[str, slice]:
    """Slice of each parameter, except the wrench, in the packed parameters."""
    slices, start = {}, 0
    for parameter in system.parameters:
        if parameter.name not in WRENCH:
            slices[parameter.name] = slice(start, start + len(parameter.values))
            start += len(parameter.values)
    return slices


def _parameters_by_name(
    system: RigidMultirotor, numbers: Float[Array, " numbers"], wrench: Float[Array, " 6"]
) -> dict[str, Float[Array, " ..."]]:
    """Parameters by name, from the packed parameters and the wrench."""
    p = {"force": wrench[:3], "torque": wrench[3:]}
    for name, place in parameter_slices(system).items():
        p[name] = numbers[place] if isinstance(system.parameter(name).value, tuple) else numbers[place.start]
    return p


def _examples(system: RigidMultirotor) -> tuple[np.ndarray, ...]:
    numbers = sum(place.stop - place.start for place in parameter_slices(system).values())
    x = np.array(system.states.initial())
    return x, np.ones(system.inputs.size), np.zeros(6), np.ones(numbers)
