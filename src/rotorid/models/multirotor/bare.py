"""The thrust-and-body-rate multirotor of SESAME D2.2, section 5 (eqs. 41-47).

    q' = 1/2 q (x) omega,    r' = v,    v' = R(q) (0, 0, T) / m + g,    m' = 0

The inertia drops out, since the body rate omega is measured after the rotational dynamics. The thrust T is taken to be
the one commanded (eq. 44): no drag, no wind, no motor lag. `multirotor_drag` adds them.
"""

from __future__ import annotations

import dataclasses
import math
from functools import cached_property

import jax.numpy as jnp

from rotorid.geometry import rotations
from rotorid.geometry.spaces import Rotation, Scalar, Space, Vector
from rotorid.logs.flight import KINDS
from rotorid.models.airframe.mass import DEFAULT_MASS_STD
from rotorid.models.system import GRAVITY, Parameter, System, Values

MASS_DRIFT = 0.028
"""Drift of the mass per square root of s, as a share of it: fast enough for a sprayer and for loads attached or dropped."""

INPUTS = Space.of(thrust=Scalar("N", frame="body z"), body_rate=Vector(3, "rad/s", frame="body"))
"""Inputs of the bare multirotor, without limits."""

MOST_THRUST = 100.0
"""Largest possible thrust over the weight; those of aerobatic vehicles are about 15."""

MOST_RATE = KINDS["body_rate"].limit
"""Largest possible body rate, rad/s."""

MASS = Parameter("mass", 1.0, std=DEFAULT_MASS_STD, unit="kg", bounds=(0.0, math.inf), drift=MASS_DRIFT)
"""Prior of a mass of 1 kg."""


@dataclasses.dataclass(frozen=True)
class BareMultirotor(System):
    """Attitude, position and velocity driven by thrust (N, along body z) and body rate (rad/s, FLU).

    mass: prior of the tracked mass, kg. thrust_scale: true thrust over the given one.
    """

    mass: Parameter = MASS
    thrust_scale: float = 1.0

    states = Space.of(
        attitude=Rotation(noise=0.003, std=0.3),
        position=Vector(3, "m", frame="world", noise=0.003, std=10.0),
        velocity=Vector(3, "m/s", frame="world", noise=0.01, std=3.0),
    )
    outputs = Space.of(
        attitude=Rotation(noise=0.01),
        position=Vector(3, "m", frame="world", noise=0.01),
        velocity=Vector(3, "m/s", frame="world", noise=0.03),
    )

    @cached_property
    def inputs(self) -> Space:  # pyright: ignore[reportIncompatibleVariableOverride]
        weight = GRAVITY * self.mass.values[0]
        return Space.of(
            thrust=Scalar("N", frame="body z", initial=weight, limit=MOST_THRUST * weight),
            body_rate=Vector(3, "rad/s", frame="body", limit=MOST_RATE),
        )

    @property
    def parameters(self) -> tuple[Parameter, ...]:  # pyright: ignore[reportIncompatibleVariableOverride]
        return (self.mass,)

    def dynamics(self, x: Values, u: Values, p: Values) -> Values:
        scaled = u["thrust"] if self.thrust_scale == 1.0 else self.thrust_scale * u["thrust"]
        thrust = jnp.stack([jnp.zeros_like(scaled), jnp.zeros_like(scaled), scaled])
        gravity = jnp.array([0.0, 0.0, -GRAVITY])
        return {
            "attitude": u["body_rate"],
            "position": x["velocity"],
            "velocity": rotations.rotate(x["attitude"], thrust) / p["mass"] + gravity,
        }

    def observe(self, x: Values, u: Values, p: Values) -> Values:
        return {"attitude": x["attitude"], "position": x["position"], "velocity": x["velocity"]}
