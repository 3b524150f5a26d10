"""The vehicle that is flown: the bare multirotor, with motor lag, drag and wind where asked for.

    v' = (R(q) (0, 0, T) + f) / m + g,     f = k (w - v),     T' = (T_c - T) / tau     (tau = 0: T = T_c)

integrated by fourth-order Runge-Kutta steps of a millisecond with the true mass, as compiled CasADi functions
of the same `BareMultirotor` that the estimators use.
"""

from __future__ import annotations

import dataclasses
import functools

import casadi as ca
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from rotorid.errors import SettingError
from rotorid.export.casadi import to_casadi
from rotorid.geometry import rotations
from rotorid.geometry.spaces import Scalar, Space, Vector
from rotorid.models.multirotor import BareMultirotor
from rotorid.models.system import Parameter, System, Values
from rotorid.numerics import integrators

STEP = 0.001
"""Length of an integration step, s."""


@dataclasses.dataclass(frozen=True)
class Plant:
    """What acts on the simulated vehicle beside thrust and weight; by default nothing.

    motor_time_constant: tau, s. drag: k, N s/m, the same in all directions. wind: w, m/s, world.
    """

    motor_time_constant: float = 0.0
    drag: float = 0.0
    wind: tuple[float, float, float] = (0.0, 0.0, 0.0)

    def __post_init__(self) -> None:
        if self.motor_time_constant < 0 or self.drag < 0:
            raise SettingError("plant: motor_time_constant (s) and drag (N s/m) must be 0 or more")
        if 0 < self.motor_time_constant < 2 * STEP:
            raise SettingError(
                f"plant: a motor_time_constant below {2 * STEP:g} s cannot be integrated; take 0 for none"
            )


@dataclasses.dataclass(frozen=True)
class PlantModel(System):
    """The plant as a System, with the thrust (N) among its states where the motors lag."""

    states: Space = BareMultirotor.states

    inputs = BareMultirotor.inputs
    outputs = Space.of(specific_force=Vector(3, "m/s^2", frame="body"), force=Vector(3, "N", frame="world"))
    parameters = (
        Parameter("mass", 1.0, unit="kg"),
        Parameter("drag", 0.0, unit="N s/m"),
        Parameter("wind", (0.0, 0.0, 0.0), unit="m/s", frame="world"),
        Parameter("motor_time_constant", 0.0, unit="s"),
    )

    def _thrust(self, x: Values, u: Values) -> Float[Array, ""]:
        return x["thrust"] if "thrust" in x else u["thrust"]

    def dynamics(self, x: Values, u: Values, p: Values) -> Values:
        thrust = self._thrust(x, u)
        rates = dict(BareMultirotor().dynamics(x, {**u, "thrust": thrust}, p))
        rates["velocity"] = rates["velocity"] + self._air_force(x, p) / p["mass"]
        if "thrust" in x:
            rates["thrust"] = (u["thrust"] - thrust) / p["motor_time_constant"]
        return rates

    def observe(self, x: Values, u: Values, p: Values) -> Values:
        """What an accelerometer measures, and the force of the air."""
        force = self._air_force(x, p)
        along_z = self._thrust(x, u) * jnp.array([0.0, 0.0, 1.0])
        body_force = along_z + rotations.rotate(rotations.inverse(x["attitude"]), force)
        return {"specific_force": body_force / p["mass"], "force": force}

    def _air_force(self, x: Values, p: Values) -> Float[Array, " 3"]:
        return p["drag"] * (p["wind"] - x["velocity"])


@functools.cache
def flight_interval(plant: Plant, steps: int) -> ca.Function:
    """(x, u, masses) -> x after `steps` steps of `STEP` with u held and one mass (kg) a step."""
    system, space, inputs = _model(plant)

    def step(x, u, mass):
        p = _values(plant, mass)
        return integrators.step(
            space,
            lambda x: space.pack_tangent(system.dynamics(space.unpack(x), inputs.unpack(u), p)),
            x,
            STEP,
        )

    one = to_casadi(step, np.array(space.initial()), np.zeros(inputs.size), 1.0, name="step")
    x, u, masses = ca.MX.sym("x", space.size), ca.MX.sym("u", inputs.size), ca.MX.sym("masses", 1, steps)
    last = one.mapaccum("interval", steps)(x, ca.repmat(u, 1, steps), masses)[:, -1]
    return ca.Function("interval", [x, u, masses], [last])


@functools.cache
def plant_outputs(plant: Plant) -> ca.Function:
    """(x, u, mass) -> specific force (m/s^2, body) and force of the air (N, world)."""
    system, space, inputs = _model(plant)

    def outputs(x, u, mass):
        y = system.observe(space.unpack(x), inputs.unpack(u), _values(plant, mass))
        return y["specific_force"], y["force"]

    return to_casadi(outputs, np.array(space.initial()), np.zeros(inputs.size), 1.0, name="outputs")


def _model(plant: Plant) -> tuple[PlantModel, Space, Space]:
    states = BareMultirotor.states
    if plant.motor_time_constant > 0:
        states = Space((*states.blocks, ("thrust", Scalar("N", frame="body z"))))
    return PlantModel(states), states, PlantModel.inputs


def _values(plant: Plant, mass: Float[Array, ""]) -> Values:
    constants = {"drag": plant.drag, "wind": plant.wind, "motor_time_constant": plant.motor_time_constant}
    return {"mass": mass} | {name: jnp.asarray(value, dtype=float) for name, value in constants.items()}
