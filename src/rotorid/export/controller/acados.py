"""Export for CasADi and acados: the functions of the System, and a Python file that makes an AcadosModel from them."""

from __future__ import annotations

from rotorid.export.annotated_values import annotated_values
from rotorid.export.controller.system_files import system_files
from rotorid.export.file_header import as_docstring, file_header
from rotorid.export.limitations import command_delay, no_thrust_curve
from rotorid.export.uncertainty import standard_deviations
from rotorid.export.vehicle_values import vehicle_values
from rotorid.export.xml import number
from rotorid.models.airframe.airframe import Airframe
from rotorid.models.multirotor.properties import hover_trim, vehicle_properties
from rotorid.models.registry import SYSTEMS, WRENCH_SYSTEM, rotor_input_on_board

_MODEL = '''"""
{heading}"""

import json
from pathlib import Path

import casadi as ca

here = Path(__file__).parent
table = json.loads((here / "model.json").read_text(encoding="utf-8"))
parameters = [q["value"] for q in table["p"]]  # values of the airframe; names and units: table["p"]
hover_x = [{x}]  # at rest: {states}
hover_u = [{u}]  # {inputs}


def symbols():
    """Symbols of states, inputs, parameters and state derivatives, and x' = f(x, u, p)."""
    f = ca.Function.load(str(here / "dynamics.casadi"))
    x, u, p = (ca.SX.sym(name, f.size_in(k)[0]) for k, name in enumerate("xup"))
    return x, u, p, ca.SX.sym("xdot", x.size1()), f(x, u, p)


def acados_model(name="{name}"):
    """The AcadosModel, explicit and implicit. Its parameter_values are `parameters`."""
    from acados_template import AcadosModel

    model = AcadosModel()
    model.x, model.u, model.p, model.xdot, model.f_expl_expr = symbols()
    model.f_impl_expr = model.xdot - model.f_expl_expr
    model.name = name
    return model
'''


def acados_files(airframe: Airframe) -> dict[str, bytes]:
    """The CasADi functions of `system_files`, and acados_model.py."""
    vehicle = vehicle_properties(airframe, needs_thrust_curve=False)
    hover = hover_trim(vehicle)
    system = SYSTEMS[WRENCH_SYSTEM].build(airframe, rotor_input_on_board(airframe, WRENCH_SYSTEM))
    values, stds = vehicle_values(airframe), standard_deviations(vehicle_values, airframe)
    limitations = [*no_thrust_curve(vehicle), *command_delay(vehicle, "delay_inputs")]
    paragraphs = [
        "A model for acados: `acados_model()`; for CasADi only: `symbols()`, and the functions that `example.py` runs.",
        "",
        *file_header(airframe, "a model for CasADi and acados", limitations),
        "States and inputs: see model.json. Attitude: unit quaternion w x y z, body to world; z up; body x forward, y left.",
        "",
        *annotated_values(values, stds),
    ]
    x = {"attitude": hover.attitude, "position": [0.0] * 3, "velocity": [0.0] * 3, "body_rate": [0.0] * 3}
    x["rotor_thrust"] = hover.thrust
    u = {
        "rotor_command": hover.command,
        "battery_voltage": [vehicle.rotors.thrust_curve.voltage],
        "rotor_thrust": hover.thrust / vehicle.rotors.thrust_scales,
    }
    text = _MODEL.format(
        heading=as_docstring(paragraphs),
        x=", ".join(number(v) for name in system.states for v in x[name]),
        u=", ".join(number(v) for name in system.inputs for v in u[name]),
        states=", ".join(system.states),
        inputs=", ".join(system.inputs),
        name="".join(c if c.isalnum() else "_" for c in airframe.name),
    )
    return system_files(system, name=airframe.name) | {"acados_model.py": text.encode()}
