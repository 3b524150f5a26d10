"""What logs of a free flight show of the body."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rotorid.geometry import rotations
from rotorid.identification.airframe.fit import make_logged_body
from rotorid.models.airframe.airframe import load_airframe
from rotorid.models.system import parameter_values
from rotorid.numerics import integrators


@pytest.mark.parametrize(("delay", "off"), [(0.01, 2e-4), (0.04, 3e-3)])
def test_delayed_measurements_are_past_values(delay: float, off: float) -> None:
    """off: m/s, what drag and a turn that gets slower add: a fifth of what v - d v' leaves out."""
    with jax.enable_x64(True):
        body = make_logged_body(load_airframe("px4-sih-quad"), (), has_pose=True, torques_observable=True)
        p = parameter_values(body)
        u = {name: jnp.zeros(block.size) for name, block in body.inputs.items()} | {
            "mass": jnp.array(1.0),
            "mean_thrust": jnp.full(4, 3.0),
            "rotor_thrust": jnp.full(4, 3.0),
        }
        then = {
            "attitude": rotations.exp(jnp.array([0.2, -0.1, 0.5])),
            "velocity": jnp.array([1.0, -2.0, 0.5]),
            "body_rate": jnp.array([1.5, -1.0, 0.3]),
        }

        def rate(x):
            return body.states.pack_tangent(body.dynamics(body.states.unpack(x), u, p))

        x = body.states.pack(then)
        for _ in range(10):
            x = integrators.step(body.states, rate, x, jnp.array(delay / 10), "rk4")
        now = body.states.unpack(x)
        late = {"velocity_delay": jnp.array(delay), "attitude_delay": jnp.array(delay)}
        seen = body.observe(now, u, {**p, **late})
    turned = np.linalg.norm(rotations.minus(seen["attitude"], then["attitude"]))
    assert turned < 3.0 * delay**2  # omega' is up to 2 rad/s^2
    moved = np.linalg.norm(seen["velocity"] - then["velocity"])
    first = now["velocity"] - delay * body.dynamics(now, u, p)["velocity"] - then["velocity"]
    assert moved < off
    assert np.linalg.norm(first) > 5.0 * moved
