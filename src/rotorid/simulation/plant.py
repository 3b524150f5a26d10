"""Plant of the simulated flights: the bare multirotor with motor lag, thrust limits, drag and wind.

    v' = (R(q) (0, 0, T) + f) / m + g,     f = k (w - v),     T' = (T_d - T) / tau     (tau = 0: T = T_d)

T_d is the commanded thrust T_c, clipped to the limits of the rotors. The plant is integrated by fourth-order Runge-Kutta steps
of 1 ms with the true mass and wind. It is compiled by CasADi from the same `BareMultirotor` that the estimators use.
"""

from __future__ import annotations

import dataclasses
import functools

import casadi as ca
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from rotorid.codegen.casadi import to_casadi
from rotorid.errors import SettingError
from rotorid.geometry import rotations
from rotorid.geometry.spaces import Scalar, Space, Vector
from rotorid.models.multirotor.bare import INPUTS, BareMultirotor
from rotorid.models.system import Parameter, System, Values
from rotorid.numerics import integrators
from rotorid.simulation.wind import Axes

STEP = 0.001
"""Length of an integration step, s."""


@dataclasses.dataclass(frozen=True)
class Plant:
    """Effects on the simulated vehicle other than thrust and weight; by default none. Wind acts by drag only.

    motor_time_constant: time constant of the motors, s. drag: drag coefficient, N s/m, the same in all directions. wind: mean
    wind, m/s, world frame. gusts: standard deviation of the wind along x, y, z, m/s. gust_times: time constants of the gusts,
    s (see `rotorid.simulation.wind`). thrust_limits: minimum and maximum of the delivered thrust, N; None: no limits.
    """

    motor_time_constant: float = 0.0
    drag: float = 0.0
    wind: Axes = (0.0, 0.0, 0.0)
    gusts: Axes = (0.0, 0.0, 0.0)
    gust_times: Axes = (1.0, 1.0, 1.0)
    thrust_limits: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        if self.motor_time_constant < 0 or self.drag < 0:
            raise SettingError("plant: motor_time_constant (s) and drag (N s/m) must be 0 or more")
        if min(self.gusts) < 0 or min(self.gust_times) <= 0:
            raise SettingError("plant: gusts (m/s) must be 0 or more, and gust_times (s) positive")
        if self.thrust_limits and not 0 <= self.thrust_limits[0] < self.thrust_limits[1]:
            raise SettingError("plant: thrust_limits (N) must be a minimum of 0 or more and a larger maximum")
        if 0 < self.motor_time_constant < 2 * STEP:
            raise SettingError(
                f"plant: a motor_time_constant below {2 * STEP:g} s cannot be integrated; use 0 for no motor lag"
            )

    @property
    def has_wind(self) -> bool:
        """Whether wind acts on the vehicle."""
        return self.drag > 0 and any((*self.wind, *self.gusts))

    def without_wind(self) -> Plant:
        """The plant without its wind, which is an input of the compiled functions."""
        return dataclasses.replace(
            self, wind=(0.0, 0.0, 0.0), gusts=(0.0, 0.0, 0.0), gust_times=(1.0, 1.0, 1.0)
        )


@dataclasses.dataclass(frozen=True)
class PlantModel(System):
    """The plant as a System. With motor lag, the thrust (N) is a state."""

    states: Space = BareMultirotor.states
    thrust_limits: tuple[float, float] | None = None

    inputs = INPUTS
    outputs = Space.of(specific_force=Vector(3, "m/s^2", frame="body"), force=Vector(3, "N", frame="world"))
    parameters = (
        Parameter("mass", 1.0, unit="kg"),
        Parameter("drag", 0.0, unit="N s/m"),
        Parameter("wind", (0.0, 0.0, 0.0), unit="m/s", frame="world"),
        Parameter("motor_time_constant", 0.0, unit="s"),
    )

    def _delivered_thrust(self, u: Values) -> Float[Array, ""]:
        """T_d."""
        return jnp.clip(u["thrust"], *self.thrust_limits) if self.thrust_limits else u["thrust"]

    def _thrust(self, x: Values, u: Values) -> Float[Array, ""]:
        return x["thrust"] if "thrust" in x else self._delivered_thrust(u)

    def dynamics(self, x: Values, u: Values, p: Values) -> Values:
        thrust = self._thrust(x, u)
        rates = dict(BareMultirotor().dynamics(x, {**u, "thrust": thrust}, p))
        rates["velocity"] = rates["velocity"] + self._air_force(x, p) / p["mass"]
        if "thrust" in x:
            rates["thrust"] = (self._delivered_thrust(u) - thrust) / p["motor_time_constant"]
        return rates

    def observe(self, x: Values, u: Values, p: Values) -> Values:
        """Specific force (m/s^2, body) and force of the air (N, world)."""
        force = self._air_force(x, p)
        along_z = self._thrust(x, u) * jnp.array([0.0, 0.0, 1.0])
        body_force = along_z + rotations.rotate(rotations.inverse(x["attitude"]), force)
        return {"specific_force": body_force / p["mass"], "force": force}

    def _air_force(self, x: Values, p: Values) -> Float[Array, " 3"]:
        return p["drag"] * (p["wind"] - x["velocity"])


def flight_interval(plant: Plant, steps: int) -> ca.Function:
    """(x, u, masses, winds) -> x after `steps` steps of `STEP` with u held, a mass (kg) and a wind (m/s, world) per step."""
    return _flight_interval(plant.without_wind(), steps)


def plant_outputs(plant: Plant) -> ca.Function:
    """(x, u, mass, wind) -> specific force (m/s^2, body) and force of the air (N, world)."""
    return _plant_outputs(plant.without_wind())


@functools.cache
def _flight_interval(plant: Plant, steps: int) -> ca.Function:
    system, space, inputs = _model(plant)

    def step(x, u, mass, wind):
        p = _values(plant, mass, wind)
        return integrators.step(
            space,
            lambda x: space.pack_tangent(system.dynamics(space.unpack(x), inputs.unpack(u), p)),
            x,
            STEP,
        )

    one = to_casadi(step, np.array(space.initial()), np.zeros(inputs.size), 1.0, np.zeros(3), name="step")
    x, u = ca.MX.sym("x", space.size), ca.MX.sym("u", inputs.size)
    masses, winds = ca.MX.sym("masses", 1, steps), ca.MX.sym("winds", 3, steps)
    last = one.mapaccum("interval", steps)(x, ca.repmat(u, 1, steps), masses, winds)[:, -1]
    return ca.Function("interval", [x, u, masses, winds], [last])


@functools.cache
def _plant_outputs(plant: Plant) -> ca.Function:
    system, space, inputs = _model(plant)

    def outputs(x, u, mass, wind):
        y = system.observe(space.unpack(x), inputs.unpack(u), _values(plant, mass, wind))
        return y["specific_force"], y["force"]

    return to_casadi(
        outputs, np.array(space.initial()), np.zeros(inputs.size), 1.0, np.zeros(3), name="outputs"
    )


def _model(plant: Plant) -> tuple[PlantModel, Space, Space]:
    states = BareMultirotor.states
    if plant.motor_time_constant > 0:
        states = Space((*states.blocks, ("thrust", Scalar("N", frame="body z"))))
    return PlantModel(states, plant.thrust_limits), states, PlantModel.inputs


def _values(plant: Plant, mass: Float[Array, ""], wind: Float[Array, " 3"]) -> Values:
    constants = {"drag": plant.drag, "motor_time_constant": plant.motor_time_constant}
    fixed = {name: jnp.asarray(value, dtype=float) for name, value in constants.items()}
    return {"mass": mass, "wind": wind, **fixed}
