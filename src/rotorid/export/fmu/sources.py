"""model.h of an FMU: the functions of a System in C by CasADi, and the values at the start."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import casadi as ca

from rotorid.export.fmu.description import Variable, Variables
from rotorid.export.xml import number

MAX_STEP: Final = 0.002
"""Longest step of the Runge-Kutta method in Co-Simulation, s."""

FUNCTIONS: Final = ("dynamics", "observe", "step")


def model_header(functions: Mapping[str, ca.Function], variables: Variables, token: str, about: str) -> str:
    """The text of model.h. about: a comment in C."""
    used = [functions[name] for name in FUNCTIONS]
    first = variables.offsets
    sizes = "".join(f"  {name} = {value},\n" for name, value in first.items())
    sizes += f"  WORK = {max(f.sz_w() for f in used)},\n  INTEGERS = {max(f.sz_iw() for f in used)}\n"
    starts = "".join(
        _start(name, group)
        for name, group in (
            ("START_X", variables.states),
            ("START_U", variables.inputs),
            ("START_P", variables.parameters),
        )
    )
    return (
        f"{about}#ifndef ROTORID_MODEL_H\n#define ROTORID_MODEL_H\n\n"
        f'#define TOKEN "{token}"\n#define MAX_STEP {number(MAX_STEP)} /* s */\n\n'
        f"/* First place of each kind of value, their number, and sizes of work arrays. */\nenum {{\n{sizes}}};\n\n"
        f"{starts}\n{_functions(used)}\n#endif\n"
    )


def _start(name: str, group: Sequence[Variable]) -> str:
    values = ", ".join(repr(float(one.start)) for one in group)
    return f"static const double {name}[] = {{{values}}};\n"


def _functions(functions: Sequence[ca.Function]) -> str:
    """C of the functions."""
    generator = ca.CodeGenerator("functions.c", {"main": False, "mex": False, "with_export": False})
    for function in functions:
        generator.add(function)
    return generator.dump()
