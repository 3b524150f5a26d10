"""Export to Isaac Lab: the fields of `ThrusterCfg` and `MultirotorCfg`, and the rigid body.

Equations of `isaaclab_contrib.actuators.Thruster`, with n the speed of a rotor in revolutions per second and T_c its input:

    T = k n^2        n' = (sqrt(T_c / k) - n) / tau        tau: tau_inc while the thrust rises, else tau_dec

so that k = thrust_coefficient (2 pi)^2. `Multirotor` applies allocation_matrix T, three forces and three torques, at the centre
of mass of the base link. rotor_directions and torque_to_thrust_ratio do not act: the torques are in the matrix.

A step dt of "rk4" with `use_discrete_approximation` closes this part of the gap to a constant input:

    x + x^2/2 + x^3/6 + x^4/24        x = dt / (dt + tau);  exact: 1 - exp(-dt/tau)
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

from rotorid.export.file_header import as_docstring, file_header
from rotorid.export.limitations import (
    battery_voltage,
    command_delay,
    limitation,
    no_drag,
    rotor_aerodynamics,
    rotor_moments,
)
from rotorid.export.simulator.rotor_speeds import (
    assumed_speeds,
    decimal,
    hover_speeds,
    in_python,
    thrust_coefficient,
)
from rotorid.export.uncertainty import StandardDeviation, standard_deviations
from rotorid.findings import Finding
from rotorid.models.airframe.airframe import Airframe
from rotorid.models.multirotor.properties import VehicleProperties, hover_trim, vehicle_properties

FILE = "isaac_lab_vehicle.py"

SOURCE: Final = (
    "isaac-sim/IsaacLab, isaaclab_contrib: thruster.py at 1ab6d6cff63e, thruster_cfg.py at 2620547034b1, multirotor.py at "
    "03fd8019ec7f, multirotor_cfg.py at 0bbbbf6a2a9b"
)
"""The files that were read, and their commits."""

STEP: Final = 0.01
"""`dt` in the file, s, until the user gives that of the simulation."""

LEAST_CONSTANT: Final = 1e-6
"""`Thruster` starts with a thrust constant of at least this, N/rps^2."""

_LARGEST_ERROR = 0.05  # of a step of the lag, over the gap

_TURN = 2.0 * math.pi
_AXES = "xyz"
_ROWS = (*(f"force along {a}, N per N" for a in _AXES), *(f"torque about {a}, N m per N" for a in _AXES))
_ROW_UNITS = ("1",) * 3 + ("m",) * 3

_FILE = '''"""
{heading}"""

THRUSTER = {{
    "dt": {step},  # s, of the simulation
    "thrust_range": ({thrust_low}, {thrust_high}),  # N, {std[thrust_low]}; {std[thrust_high]}
    "thrust_const_range": ({constant}, {constant}),  # N/rps^2, {std[constant]}
    "tau_inc_range": ({tau_inc}, {tau_inc}),  # s, {std[tau_inc]}
    "tau_dec_range": ({tau_dec}, {tau_dec}),  # s, {std[tau_dec]}
    "torque_to_thrust_ratio": {ratio},  # m, {std[ratio]}
    "use_discrete_approximation": True,
    "integration_scheme": "rk4",
    "thruster_names_expr": {names},
}}
"""Fields of ThrusterCfg."""

MULTIROTOR = {{
    "allocation_matrix": [
{rows}
    ],
    "rotor_directions": {directions},  # 1 for a rotor that turns counter-clockwise about its thrust
}}
"""Fields of MultirotorCfg."""

RPS = {{
{speeds}
}}
"""Rotor speeds in hover, of init_state."""

HOVER_THRUSTS = {{
{thrusts}
}}
"""Inputs in hover, `offset` of a ThrustActionCfg."""

RIGID_BODY = {{
    "mass": {mass},  # kg, {std[mass]}
    "inertia": [  # kg m^2, about the centre of mass
{inertia}
    ],
    "centre_of_mass": {centre},  # m, from the origin of the base link, {centre_std}
}}
"""Of the base link."""


def multirotor_cfg(dt=THRUSTER["dt"], **fields):
    """A MultirotorCfg. dt: step of the simulation, s. fields: others of MultirotorCfg, such as prim_path and spawn."""
    from isaaclab_contrib.actuators import ThrusterCfg
    from isaaclab_contrib.assets import MultirotorCfg

    return MultirotorCfg(
        init_state=MultirotorCfg.InitialStateCfg(rps=RPS),
        actuators={{"thrusters": ThrusterCfg(**{{**THRUSTER, "dt": dt}})}},
        **MULTIROTOR,
        **fields,
    )
'''


def isaac_lab_files(airframe: Airframe) -> dict[str, bytes]:
    """isaac_lab_vehicle.py: the fields as dictionaries, and `multirotor_cfg`, which makes a MultirotorCfg of them."""
    vehicle = vehicle_properties(airframe)
    rotors = vehicle.rotors
    names = [f"rotor_{k}" for k in range(rotors.count)]
    values, stds = isaac_lab_values(airframe), standard_deviations(isaac_lab_values, airframe)
    paragraphs = [
        "`multirotor_cfg` makes a MultirotorCfg, whose inputs are thrusts in N.",
        *file_header(airframe, "a vehicle for Isaac Lab", isaac_lab_limitations(airframe)),
        f"Fields and equations as in {SOURCE}. Not run in Isaac Lab.",
        "Units: SI, and revolutions per second. Body: x forward, y left, z up. The forces act at the centre of mass of the "
        "base link: give it the values of RIGID_BODY, and the bodies of the rotors next to no mass. The columns of the matrix "
        "are in the order of the rotors in the USD: check that `thruster_names` of the Multirotor is thruster_names_expr.",
    ]
    texts = {name: std.to_text(_unit(name)) for name, std in stds.items()}
    text = _FILE.format(
        heading=as_docstring(paragraphs),
        step=decimal(STEP),
        std=texts,
        names=str(names).replace("'", '"'),
        rows="\n".join(
            f"        {in_python(row)},  # {_ROWS[r]}, {_of_all(stds, f'matrix_{r}_', _ROW_UNITS[r])}"
            for r, row in enumerate(rotors.allocation)
        ),
        directions=[int(spin) for spin in rotors.spins],
        speeds=_by_rotor(names, values, texts, "speed"),
        thrusts=_by_rotor(names, values, texts, "thrust"),
        inertia="\n".join(
            f"        {in_python(row)},  # {'; '.join(texts[_inertia(i, k)] for k in range(3))}"
            for i, row in enumerate(vehicle.body.inertia)
        ),
        centre=in_python(vehicle.body.centre_of_mass),
        centre_std=_of_all(stds, "centre_", "m"),
        **{name: decimal(value) for name, value in values.items()},
    )
    return {FILE: text.encode()}


def isaac_lab_values(airframe: Airframe) -> Mapping[str, float]:
    """The numbers of the file by name."""
    vehicle = vehicle_properties(airframe)
    body, rotors = vehicle.body, vehicle.rotors
    idle = float((rotors.thrust_scales * rotors.thrust_curve.coefficients[0]).min())
    speeds, thrusts = hover_speeds(airframe, vehicle) / _TURN, hover_trim(vehicle).thrust
    return {
        "mass": body.mass,
        **{_inertia(i, k): float(body.inertia[i, k]) for i in range(3) for k in range(i, 3)},
        **{f"centre_{axis}": float(body.centre_of_mass[k]) for k, axis in enumerate(_AXES)},
        "thrust_low": max(idle, 0.0),
        "thrust_high": float(rotors.full_thrusts.max()),
        "constant": thrust_coefficient(airframe, vehicle) * _TURN**2,
        "tau_inc": rotors.lag,
        "tau_dec": rotors.lag_down,
        "ratio": rotors.torque_ratio,
        **{f"speed_{k}": float(speed) for k, speed in enumerate(speeds)},
        **{f"thrust_{k}": float(thrust) for k, thrust in enumerate(thrusts)},
        **{f"matrix_{r}_{k}": float(v) for r, row in enumerate(rotors.allocation) for k, v in enumerate(row)},
    }


def isaac_lab_limitations(airframe: Airframe) -> list[Finding]:
    """What Isaac Lab cannot represent, with the size of each error."""
    vehicle = vehicle_properties(airframe)
    full, constant = vehicle.rotors.full_thrusts, thrust_coefficient(airframe, vehicle) * _TURN**2
    found = [limitation("inputs_in_newtons")]
    if full.min() < full.max():
        found.append(limitation("one_thrust_range", low=float(full.min()), high=float(full.max())))
    if constant < LEAST_CONSTANT:
        found.append(
            limitation(
                "thrust_constant_raised",
                value=constant,
                least=LEAST_CONSTANT,
                factor=LEAST_CONSTANT / constant,
            )
        )
    found += [*_short_lag(vehicle), *assumed_speeds(airframe)]
    found += [*no_drag(vehicle), *rotor_aerodynamics(vehicle), *rotor_moments(vehicle)]
    return [*found, *command_delay(vehicle), *battery_voltage(vehicle)]


def _short_lag(vehicle: VehicleProperties) -> list[Finding]:
    """A lag that is too short for the step."""
    lag = min(vehicle.rotors.lag, vehicle.rotors.lag_down)
    x = STEP / (STEP + lag)
    closed, exact = x + x**2 / 2 + x**3 / 6 + x**4 / 24, 1.0 - math.exp(-STEP / lag) if lag else 1.0
    if closed - exact < _LARGEST_ERROR:
        return []
    return [limitation("lag_short_for_step", lag=lag, step=STEP, closed=closed, exact=exact)]


def _by_rotor(names: list[str], values: Mapping[str, float], texts: Mapping[str, str], kind: str) -> str:
    """Lines of a dictionary from rotor to value."""
    unit = _unit(f"{kind}_0")
    return "\n".join(
        f'    "{name}": {decimal(values[f"{kind}_{k}"])},  # {unit}, {texts[f"{kind}_{k}"]}'
        for k, name in enumerate(names)
    )


def _of_all(stds: Mapping[str, StandardDeviation], start: str, unit: str) -> str:
    """The texts of the standard deviations whose names begin so, equal ones once."""
    return "; ".join(dict.fromkeys(std.to_text(unit) for name, std in stds.items() if name.startswith(start)))


def _inertia(i: int, k: int) -> str:
    return f"I{_AXES[min(i, k)]}{_AXES[max(i, k)]}"


def _unit(name: str) -> str:
    units = {
        "mass": "kg", "I": "kg m^2", "centre": "m", "thrust": "N", "constant": "N/rps^2", "tau": "s", "ratio": "m",
        "speed": "rps", "matrix": "m",
    }  # fmt: skip
    return units["I" if name.startswith("I") else name.partition("_")[0]]
