"""An airframe as a model for CasADi and acados: the System's functions, and a Python file that makes acados's model of them."""

from __future__ import annotations

from rotorid.export.system_files import system_files
from rotorid.export.vehicle.facts import facts_of, no_commands
from rotorid.export.vehicle.heading import heading, in_python
from rotorid.export.vehicle.spread import spreads
from rotorid.export.vehicle.told import told
from rotorid.export.vehicle.vehicle_numbers import vehicle_numbers
from rotorid.export.vehicle.xml import number
from rotorid.models.airframe import Airframe
from rotorid.models.rigid_multirotor import rigid_multirotor

_MODEL = '''"""
{heading}"""

import json
from pathlib import Path

import casadi as ca

here = Path(__file__).parent
table = json.loads((here / "model.json").read_text())
parameters = [q["value"] for q in table["p"]]  # as the airframe has them; names and units: table["p"]
hover_x = [{x}]  # at rest: {states}
hover_u = [{u}]  # {inputs}


def symbols():
    """Symbols of the states, the inputs, the parameters and the states' rates, and x' = f(x, u, p)."""
    f = ca.Function.load(str(here / "dynamics.casadi"))
    x, u, p = (ca.SX.sym(name, f.size_in(k)[0]) for k, name in enumerate("xup"))
    return x, u, p, ca.SX.sym("xdot", x.size1()), f(x, u, p)


def acados_model(name="{name}"):
    """acados's model, explicit and implicit. Its parameter_values are `parameters`."""
    from acados_template import AcadosModel

    model = AcadosModel()
    model.x, model.u, model.p, model.xdot, model.f_expl_expr = symbols()
    model.f_impl_expr = model.xdot - model.f_expl_expr
    model.name = name
    return model
'''


def acados_files(airframe: Airframe) -> dict[str, bytes]:
    """The CasADi functions of `system_files`, and acados_model.py."""
    f = facts_of(airframe, commands=False)
    hover = f.hover()
    system = rigid_multirotor(airframe, "rotor_command" if f.commanded else "rotor_thrust")
    values, stds = vehicle_numbers(airframe), spreads(vehicle_numbers, airframe)
    sentences = [] if f.commanded else [no_commands(f)]
    if f.delay:
        sentences.append(
            f"commands arrive {1000 * f.delay:.3g} ms late: give the model those of that time before"
        )
    paragraphs = [
        "A model for acados: `acados_model()`; for CasADi alone: `symbols()`, and the functions that `example.py` runs.",
        "",
        *heading(airframe, "a model for CasADi and acados", sentences),
        "States and inputs are those of model.json: unit quaternion w x y z, body to world; z up; body x forward, y left.",
        "",
        *told(values, stds),
    ]
    x = {"attitude": hover.attitude, "position": [0.0] * 3, "velocity": [0.0] * 3, "body_rate": [0.0] * 3}
    x["rotor_thrust"] = hover.thrust
    u = {
        "rotor_command": hover.command,
        "battery_voltage": [f.curve.voltage],
        "rotor_thrust": hover.thrust / f.scales,
    }
    text = _MODEL.format(
        heading=in_python(paragraphs),
        x=", ".join(number(v) for name in system.states for v in x[name]),
        u=", ".join(number(v) for name in system.inputs for v in u[name]),
        states=", ".join(system.states),
        inputs=", ".join(system.inputs),
        name="".join(c if c.isalnum() else "_" for c in airframe.name),
    )
    return system_files(system, name=airframe.name) | {"acados_model.py": text.encode()}
