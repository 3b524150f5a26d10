"""A System as CasADi functions in files, for NMPC, acados and other simulators.

    dynamics.casadi   x' = f(x, u, p)               observe.casadi   y = h(x, u, p)
    step.casadi       x_next = F(x, u, p, dt)       each of them with its Jacobians in NAME_jacobian.casadi: by x, u and p,
                                                    the step's by x and u

x, u, p and y are columns; model.json names each of their elements. A rotation is stored as a unit quaternion (w x y z), and x'
is the derivative of the stored numbers, q' = 1/2 q (x) omega. The step is taken on the manifold, so that the quaternion keeps
unit length.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import casadi as ca
import jax.numpy as jnp
import numpy as np

from rotorid.codegen.casadi import to_casadi
from rotorid.geometry.spaces import Block, Space
from rotorid.models.system import Parameter, System, Values
from rotorid.numerics import integrators
from rotorid.numerics.integrators import Method

_EXAMPLE = '''"""One second of the model in this folder, from its initial state: `python example.py`. Needs casadi only."""

import json
from pathlib import Path

import casadi as ca

here = Path(__file__).parent
model = json.loads((here / "model.json").read_text(encoding="utf-8"))
step = ca.Function.load(str(here / "step.casadi"))
slopes = ca.Function.load(str(here / "step_jacobian.casadi"))

x, u, p = ca.DM(model["x0"]), ca.DM.zeros(len(model["u"])), ca.DM([q["value"] for q in model["p"]])
for _ in range(100):
    x = step(x, u, p, 0.01)
for number, value in zip(model["x"], x.full()[:, 0]):
    print(f"{number['name']:20} {value: .6f} {number['unit']}")
print("d x_next / d x:", slopes(x, u, p, 0.01)[0].shape)
'''


def system_functions(
    system: System, *, constants: Sequence[str] = (), method: Method = "rk4"
) -> dict[str, ca.Function]:
    """Convert a System to CasADi functions and their Jacobians.

    Args:
        system: the model.
        constants: names of parameters that are fixed at their prior means and are no part of p.
        method: of the step.
    Returns:
        The functions by name.
    Raises:
        SettingError: an unknown parameter, or an operation that CasADi does not have.
    """
    free = _free(system, constants)
    states, inputs, outputs = system.states, system.inputs, system.outputs

    def named(p: Any) -> Values:
        by_name, start = {}, 0
        for parameter in system.parameters:
            values = jnp.asarray(parameter.values, float)
            if parameter in free:
                values = p[start : start + len(parameter.values)]
                start += len(parameter.values)
            by_name[parameter.name] = values if isinstance(parameter.value, tuple) else values[0]
        return by_name

    def rate(x: Any, u: Any, p: Any) -> Any:
        return states.pack_tangent(system.dynamics(states.unpack(x), inputs.unpack(u), named(p)))

    def dynamics(x: Any, u: Any, p: Any) -> Any:
        return states.lift(x, rate(x, u, p))

    def observe(x: Any, u: Any, p: Any) -> Any:
        return outputs.pack(system.observe(states.unpack(x), inputs.unpack(u), named(p)))

    def step(x: Any, u: Any, p: Any, dt: Any) -> Any:
        return integrators.step(states, lambda now: rate(now, u, p), x, dt, method)

    sizes = {"x": states.size, "u": inputs.size, "p": sum(len(q.values) for q in free)}
    functions: dict[str, ca.Function] = {}
    for name, function, result in (
        ("dynamics", dynamics, "rate"),
        ("observe", observe, "y"),
        ("step", step, "next"),
    ):
        functions |= _with_jacobian(name, function, sizes | ({"dt": 1} if name == "step" else {}), result)
    return functions


def system_files(
    system: System, *, name: str, constants: Sequence[str] = (), method: Method = "rk4"
) -> dict[str, bytes]:
    """The files of a folder: the functions, model.json with the names of all elements, and an example.

    Arguments and errors: those of `system_functions`; name: of the model.
    """
    functions = system_functions(system, constants=constants, method=method)
    table = {
        "name": name,
        "method": method,
        "versions": {package: version(package) for package in ("rotorid", "casadi")},
        **system_table(system, constants=constants),
    }
    files = {f"{n}.casadi": _saved(f) for n, f in functions.items()}
    return files | {
        "model.json": (json.dumps(table, indent=2) + "\n").encode(),
        "example.py": _EXAMPLE.encode(),
    }


def system_table(system: System, *, constants: Sequence[str] = ()) -> dict[str, Any]:
    """Name, unit and frame of each element of x, u, y and p, with the values of p and x0. constants: those of
    `system_functions`."""
    free = _free(system, constants)
    return {
        "x": _numbers(system.states),
        "u": _numbers(system.inputs),
        "y": _numbers(system.outputs),
        "p": [
            {"name": q, "unit": p.unit, "frame": p.frame, "value": v, "std": p.std}
            for p in free
            for q, v in zip(_quantities(p), p.values, strict=True)
        ],
        "x0": list(system.states.initial()),
        "constants": {p.name: len(p.values) for p in system.parameters if p not in free},
    }


def _free(system: System, constants: Sequence[str]) -> tuple[Parameter, ...]:
    for name in constants:
        system.parameter(name)
    return tuple(p for p in system.parameters if p.name not in constants)


def _with_jacobian(
    name: str, function: Callable[..., Any], sizes: Mapping[str, int], result: str
) -> dict[str, ca.Function]:
    examples = [np.zeros(()) if n == "dt" else np.zeros(size) for n, size in sizes.items()]
    symbols = [ca.SX.sym(n, size) for n, size in sizes.items()]
    value = to_casadi(function, *examples, name=name)(*symbols)
    by = ("x", "u") if name == "step" else ("x", "u", "p")
    jacobians = [ca.jacobian(value, symbol) for n, symbol in zip(sizes, symbols, strict=True) if n in by]
    labels = [f"d{result}_d{n}" for n in by]
    return {
        name: ca.Function(name, symbols, [value], list(sizes), [result]),
        f"{name}_jacobian": ca.Function(f"{name}_jacobian", symbols, jacobians, list(sizes), labels),
    }


def _saved(function: ca.Function) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "f.casadi"
        function.save(str(path))
        return path.read_bytes()


def _numbers(space: Space) -> list[dict[str, str]]:
    return [
        {"name": name + axis, "unit": block.unit, "frame": block.frame}
        for name, block in space.blocks
        for axis in _axes(name, block)
    ]


def _axes(name: str, block: Block) -> Sequence[str]:
    if not block.shape:
        return ("",)
    if block.rotation:
        return ("_w", "_x", "_y", "_z")
    if name.startswith("rotor_") or block.size not in (2, 3):
        return [f"_{i}" for i in range(block.size)]
    return ("_x", "_y", "_z")[: block.size]


def _quantities(p: Parameter) -> Sequence[str]:
    return (
        p.quantities
        if len(p.quantities) == len(p.values)
        else [f"{p.name}_{i}" for i in range(len(p.values))]
    )
