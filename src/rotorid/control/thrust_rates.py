"""NMPC of a rigid multirotor with bounded rotor thrusts as states and bounded thrust rates as inputs.

    x = (q, p, v, omega, gamma)        u = gamma'
    gamma_min <= gamma <= gamma_max    |gamma'| <= gamma'_max

Motors limit both the thrust and its rate of change. With thrusts as states and thrust rates as inputs, both limits are
box bounds, and the vehicle can follow the planned trajectory. The formulation holds for upright and tilted rotors,
because force and torque are computed from all thrusts.

Reference: A. Alharbat, H. Esmaeeli, D. Bicego, A. Mersha, A. Franchi, Three fundamental paradigms for aerial physical
interaction using nonlinear model predictive control, ICUAS 2022 (the Alharbat 2025's [22]), after D. Bicego, J. Mazzetto,
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
"""Number of steps of the prediction horizon."""

STEP = 0.06
"""Length of a step, s."""


@dataclasses.dataclass(frozen=True)
class ThrustRates(System):
    """A rigid multirotor with rotor thrusts (N) as states and thrust rates (N/s) as inputs.

    vehicle: with rotor thrusts as inputs. Raises SettingError for other inputs.
    """

    vehicle: RigidMultirotor

    def __post_init__(self) -> None:
        if self.vehicle.rotor_input != "rotor_thrust":
            raise SettingError(
                f"thrust rates need a vehicle whose inputs are rotor thrusts, not {self.vehicle.rotor_input!r}: "
                'use rigid_multirotor(airframe, "rotor_thrust")'
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
        derivatives = self.vehicle.dynamics(x, {"rotor_thrust": x["rotor_thrust"]}, p)
        return {**derivatives, "rotor_thrust": u["thrust_rate"]}

    def observe(self, x: Values, u: Values, p: Values) -> Values:
        return self.vehicle.observe(x, {"rotor_thrust": x["rotor_thrust"]}, p)


@functools.cache
def thrust_rate_controller(
    vehicle: RigidMultirotor, thrust_bounds: tuple[float, float], thrust_rate: float
) -> NMPC:
    """NMPC of a rigid multirotor with its nominal parameters and without external wrench.

    Args:
        vehicle: with rotor thrusts as inputs.
        thrust_bounds: least and largest thrust of a rotor, N.
        thrust_rate: largest absolute rate of change of a rotor thrust, N/s.
    Returns:
        A controller with the states of `ThrustRates` and thrust rates in N/s as inputs.
    Raises:
        SettingError: a bound is not valid, or the vehicle has other inputs.
    """
    if thrust_rate <= 0:
        raise SettingError(f"the largest thrust rate {thrust_rate:g} N/s must be positive")
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
