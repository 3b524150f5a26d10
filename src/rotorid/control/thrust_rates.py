"""NMPC of a rigid multirotor by the rates of its rotors' thrusts, with both the thrusts and their rates bounded.

    x = (q, p, v, omega, gamma)        u = gamma'
    gamma_min <= gamma <= gamma_max    |gamma'| <= gamma'_max

A motor can neither pull beyond its limits nor reach another thrust at once: with the thrusts as states and their rates as
inputs both are box bounds, and the plan can be flown as it is. It works for any rotors, tilted or not, as the force and
the torque are those of all thrusts together.

Reference: A. Alharbat, H. Esmaeeli, D. Bicego, A. Mersha, A. Franchi, Three fundamental paradigms for aerial physical
interaction using nonlinear model predictive control, ICUAS 2022 (the seed 001's [22]), after D. Bicego, J. Mazzetto,
R. Carli, M. Farina, A. Franchi, Nonlinear model predictive control with enhanced actuator model for multi-rotor aerial
vehicles with generic designs, J. Intelligent & Robotic Systems 100 (2020).
"""

from __future__ import annotations

import dataclasses
import functools

from rotorid.control.nmpc import NMPC
from rotorid.errors import SettingError
from rotorid.geometry.spaces import Space, Vector
from rotorid.models.multirotor.rigid import RigidMultirotor
from rotorid.models.system import Parameter, System, Values

HORIZON = 15
"""Steps that the controller looks ahead."""

STEP = 0.06
"""Length of such a step, s."""


@dataclasses.dataclass(frozen=True)
class ThrustRates(System):
    """A rigid multirotor whose rotors' thrusts (N) are states, and their rates (N/s) its inputs.

    vehicle: takes rotor thrusts as its inputs. Raises SettingError where it takes others.
    """

    vehicle: RigidMultirotor

    def __post_init__(self) -> None:
        if self.vehicle.rotor_input != "rotor_thrust":
            raise SettingError(
                f"thrust rates need a vehicle whose inputs are rotor thrusts, not {self.vehicle.rotor_input!r}: "
                'take rigid_multirotor(airframe, "rotor_thrust")'
            )

    @property
    def states(self) -> Space:  # pyright: ignore[reportIncompatibleVariableOverride]
        n = len(self.vehicle.rotors)
        hover = (self.vehicle.weight / n,) * n
        return Space((*self.vehicle.states.blocks, ("rotor_thrust", Vector(n, "N", initial=hover))))

    @property
    def inputs(self) -> Space:  # pyright: ignore[reportIncompatibleVariableOverride]
        return Space.of(thrust_rate=Vector(len(self.vehicle.rotors), "N/s"))

    @property
    def outputs(self) -> Space:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.vehicle.outputs

    @property
    def parameters(self) -> tuple[Parameter, ...]:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.vehicle.parameters

    def dynamics(self, x: Values, u: Values, p: Values) -> Values:
        of_vehicle = self.vehicle.dynamics(x, {"rotor_thrust": x["rotor_thrust"]}, p)
        return {**of_vehicle, "rotor_thrust": u["thrust_rate"]}

    def observe(self, x: Values, u: Values, p: Values) -> Values:
        return self.vehicle.observe(x, {"rotor_thrust": x["rotor_thrust"]}, p)


@functools.cache
def thrust_rate_controller(
    vehicle: RigidMultirotor, thrust_bounds: tuple[float, float], thrust_rate: float
) -> NMPC:
    """NMPC of a rigid multirotor that knows its priors' parameters and no external wrench.

    vehicle: takes rotor thrusts as its inputs. thrust_bounds: least and greatest thrust of a rotor, N. thrust_rate: greatest
    rate of a rotor's thrust either way, N/s. Its states are those of `ThrustRates`, its inputs thrust rates in N/s; the
    first of the plan is held until the next one. Raises SettingError where a bound cannot be.
    """
    if thrust_rate <= 0:
        raise SettingError(f"a thrust rate of at most {thrust_rate:g} N/s: it must be positive")
    return NMPC(
        ThrustRates(vehicle),
        horizon=HORIZON,
        dt=STEP,
        state_weights={
            "attitude": 20.0,
            "position": 100.0,
            "velocity": 10.0,
            "body_rate": 1.0,
            "rotor_thrust": 0.02,
        },
        input_weights={"thrust_rate": 2e-4},
        input_bounds={"thrust_rate": (-thrust_rate, thrust_rate)},
        state_bounds={"rotor_thrust": thrust_bounds},
        terminal=5.0,
    )
