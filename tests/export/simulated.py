"""rotorid's own simulation of an airframe, beside which exported models fly."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from rotorid.models.airframe.airframe import Airframe
from rotorid.models.multirotor.properties import hover_trim, vehicle_properties
from rotorid.models.multirotor.rigid import rigid_multirotor
from rotorid.models.system import parameter_values
from rotorid.numerics import integrators


def simulate_commands(airframe: Airframe, commands: np.ndarray, dt: float) -> tuple[np.ndarray, np.ndarray]:
    """The first state, in hover, and the states after each step of dt (s): attitude w x y z, position, velocity, body rate,
    thrusts. commands: of the rotors, held over a step."""
    system, hover = rigid_multirotor(airframe, "rotor_command"), hover_trim(vehicle_properties(airframe))
    with jax.enable_x64(True):
        p = parameter_values(system)

        def rate(x, u):
            return system.states.pack_tangent(
                system.dynamics(system.states.unpack(x), system.inputs.unpack(u), p)
            )

        def step(x, u):
            x = integrators.step(system.states, lambda x: rate(x, u), x, dt, "rk4")
            return x, x

        x0 = np.concatenate([hover.attitude, np.zeros(9), hover.thrust])
        _, states = jax.jit(lambda x, u: jax.lax.scan(step, x, u))(jnp.asarray(x0), jnp.asarray(commands))
        return x0, np.asarray(states)
