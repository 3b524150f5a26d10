"""Export of the linear model at hover for python-control: exact Jacobians of `rigid_multirotor`, by CasADi.

    dx' = A dx + B du,   dy = C dx + D du

dx are tangent coordinates: for the attitude, the rotation vector from the hover attitude, rad, body frame. dy likewise.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import math
from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

import casadi as ca
import jax
import numpy as np
from jaxtyping import Float

from rotorid.codegen.casadi import to_casadi
from rotorid.export.file_header import as_docstring, file_header
from rotorid.export.limitations import command_delay, falling_lag, limitation, no_thrust_curve
from rotorid.export.uncertainty import standard_deviations
from rotorid.findings import Finding
from rotorid.geometry.spaces import Space
from rotorid.models.airframe.airframe import Airframe
from rotorid.models.multirotor.properties import hover_trim, vehicle_properties
from rotorid.models.multirotor.rigid import RigidMultirotor
from rotorid.models.multirotor.rotors import nominal_rotors
from rotorid.models.registry import SYSTEMS, WRENCH_SYSTEM, rotor_input_on_board
from rotorid.models.system import Values

MATRICES = ("A", "B", "C", "D")

_SNIPPET = '''"""
{heading}"""

import json
from pathlib import Path

import control
import numpy as np

model = json.loads((Path(__file__).parent / "state_space.json").read_text(encoding="utf-8"))


def state_space():
    """The linear model at hover: x = states - x0, u = inputs - u0, y = outputs - y0."""
    return control.ss(
        *(np.array(model[name]) for name in "ABCD"),
        name="hover",
        states=[x["name"] for x in model["states"]],
        inputs=[u["name"] for u in model["inputs"]],
        outputs=[y["name"] for y in model["outputs"]],
        remove_useless_states=False,
    )


if __name__ == "__main__":
    for pole in np.sort_complex(control.poles(state_space())):
        print(f"{{pole:.4g}} rad/s")
'''


@dataclasses.dataclass(frozen=True)
class HoverModel:
    """The matrices by name, and the operating point: states x0, inputs u0, outputs y0."""

    system: RigidMultirotor
    matrices: Mapping[str, Float[np.ndarray, ...]]
    x0: Float[np.ndarray, " states"]
    u0: Float[np.ndarray, " inputs"]
    y0: Float[np.ndarray, " outputs"]


def hover_model(airframe: Airframe) -> HoverModel:
    """Linearise an airframe at hover. Raises AirframeError where it cannot hover."""
    vehicle = vehicle_properties(airframe, needs_thrust_curve=False)
    hover = hover_trim(vehicle)
    system = SYSTEMS[WRENCH_SYSTEM].build(airframe, rotor_input_on_board(airframe, WRENCH_SYSTEM))
    x0, u0 = np.zeros(system.states.size), np.zeros(system.inputs.size)
    x0[system.states.stored["attitude"]] = hover.attitude
    if vehicle.rotors.has_thrust_curve:
        x0[system.states.stored["rotor_thrust"]] = hover.thrust
        u0[system.inputs.stored["rotor_command"]] = hover.command
    else:
        u0[system.inputs.stored["rotor_thrust"]] = hover.thrust / vehicle.rotors.thrust_scales
    if "battery_voltage" in system.inputs:
        u0[system.inputs.stored["battery_voltage"]] = vehicle.rotors.thrust_curve.voltage
    p = {q.name: np.array(q.value) for q in system.parameters}
    *jacobians, y0 = _slopes(_without_values(system))(x0, u0, *jax.tree.leaves(p))
    matrices = {name: m.full() for name, m in zip(MATRICES, jacobians, strict=True)}
    return HoverModel(system, matrices, x0, u0, y0.full()[:, 0])


def control_files(airframe: Airframe) -> dict[str, bytes]:
    """state_space.json, and hover.py, which makes a python-control StateSpace from it."""
    model = hover_model(airframe)
    stds = standard_deviations(_entries, airframe)
    states, inputs, outputs = model.system.states, model.system.inputs, model.system.outputs
    table: dict[str, Any] = {
        "about": f"{airframe.name} at hover, by rotorid {version('rotorid')}; see hover.py for its validation and "
        "limitations",
        "states": coordinates(states),
        "inputs": coordinates(inputs),
        "outputs": coordinates(outputs),
    }
    for name, matrix in model.matrices.items():
        table[name] = (matrix + 0.0).tolist()
        entries = [[stds[f"{name} {i} {k}"] for k in range(matrix.shape[1])] for i in range(matrix.shape[0])]
        table[f"{name}_std"] = [[s.std for s in row] for row in entries]
        table[f"{name}_std_known"] = [[s.is_known for s in row] for row in entries]
    table |= {"x0": model.x0.tolist(), "u0": model.u0.tolist(), "y0": (model.y0 + 0.0).tolist()}
    paragraphs = [
        "The linear model at hover: `state_space()` returns a python-control StateSpace. Needs control and numpy only.",
        "",
        *file_header(airframe, "a linear model at hover", control_limitations(airframe)),
        "A_std and so on in state_space.json are the standard deviations of the entries. Where A_std_known is false, A_std is "
        "a lower bound.",
        "Units: SI; names and units of all coordinates are in state_space.json. Attitude: rotation vector "
        "from the hover attitude, body frame.",
    ]
    return {
        "state_space.json": (json.dumps(table, indent=1) + "\n").encode(),
        "hover.py": _SNIPPET.format(heading=as_docstring(paragraphs)).encode(),
    }


def coordinates(space: Space) -> list[dict[str, str]]:
    """Name, unit and frame of every tangent coordinate."""
    names = []
    for name, block in space.blocks:
        count = 3 if block.rotation else block.size
        axes: tuple[str, ...] = tuple(f"_{k}" for k in range(count))
        if not block.shape and not block.rotation:
            axes = ("",)
        elif count == 3 and not name.startswith("rotor_"):
            axes = ("_x", "_y", "_z")
        unit, frame = ("rad", "body") if block.rotation else (block.unit, block.frame)
        names += [{"name": name + axis, "unit": unit, "frame": frame} for axis in axes]
    return names


def _entries(airframe: Airframe) -> Mapping[str, float]:
    return {
        f"{name} {i} {k}": float(value)
        for name, matrix in hover_model(airframe).matrices.items()
        for (i, k), value in np.ndenumerate(matrix)
    }


def _without_values(system: RigidMultirotor) -> RigidMultirotor:
    """The system without the values of its parameters, so that one traced function serves all values."""
    parameters = tuple(
        q.with_prior((0.0,) * len(q.value) if isinstance(q.value, tuple) else 0.0, std=0.0)
        for q in system.parameters
    )
    rotors = nominal_rotors(system.rotors)
    return dataclasses.replace(system, parameters=parameters, rotors=rotors, weight=1.0)


@functools.lru_cache(maxsize=32)
def _slopes(system: RigidMultirotor) -> ca.Function:
    """A, B, C, D and y0 of x0, u0 and the parameters, in the order of their names."""
    states, inputs, outputs = system.states, system.inputs, system.outputs
    p = {q.name: np.array(q.value) for q in system.parameters}

    def rates_and_outputs(x0: Any, d: Any, u: Any, p: Values) -> Any:
        # at hover the body does not rotate: to first order, the rate of the tangent is that of the state
        x, u = states.unpack(states.plus(x0, d)), inputs.unpack(u)
        return states.pack_tangent(system.dynamics(x, u, p)), outputs.pack(system.observe(x, u, p))

    def perturbed_output(y0: Any, e: Any) -> Any:
        return outputs.plus(y0, e)

    size, dim = states.size, states.dim
    rate = to_casadi(rates_and_outputs, np.zeros(size), np.zeros(dim), np.zeros(inputs.size), p)
    output_plus = to_casadi(perturbed_output, np.zeros(outputs.size), np.zeros(outputs.dim))
    x0, u = ca.SX.sym("x0", size), ca.SX.sym("u", inputs.size)
    d, e, y0 = ca.SX.sym("d", dim), ca.SX.sym("e", outputs.dim), ca.SX.sym("y0", outputs.size)
    values = [ca.SX.sym(f"p{k}", max(1, leaf.size)) for k, leaf in enumerate(jax.tree.leaves(p))]
    slope, output = rate(x0, d, u, *values)
    zero = ca.DM.zeros(dim)
    at = ca.Function(
        "at",
        [x0, u, *values, d],
        [*(ca.jacobian(g, by) for g in (slope, output) for by in (d, u)), output],
    )
    A, B, Y, Z, y = at(x0, u, *values, zero)
    # dy = (d plus(y0, e) / de)^+ d output: of a unit quaternion the columns are orthogonal
    E = ca.substitute(ca.jacobian(output_plus(y0, e), e), e, ca.DM.zeros(outputs.dim))
    E = ca.substitute(E, y0, y)
    pseudo = ca.solve(E.T @ E, E.T)
    return ca.Function("slopes", [x0, u, *values], [A, B, pseudo @ Y, pseudo @ Z, y])


def control_limitations(airframe: Airframe) -> list[Finding]:
    """What the linear model cannot represent."""
    vehicle = vehicle_properties(airframe, needs_thrust_curve=False)
    rotors, curve = vehicle.rotors, vehicle.rotors.thrust_curve
    found = [limitation("linear_at_hover"), *no_thrust_curve(vehicle)]
    if vehicle.drag.mean_area:
        found.append(limitation("drag_area_not_linear"))
    if rotors.has_thrust_curve:
        found += falling_lag(vehicle, "motor lag")
    found += command_delay(vehicle, "pade")
    if math.isfinite(curve.voltage) and curve.voltage_exponent:
        found.append(limitation("battery_voltage_is_input", voltage=curve.voltage))
    return found
