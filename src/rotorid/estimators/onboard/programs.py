"""The two test programs of an estimator in C: replay of a flight, and comparison with JAX."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rotorid.codegen.native import c_file
from rotorid.estimators.base import Health
from rotorid.estimators.onboard.fields import (
    Field,
    Place,
    estimate_fields,
    input_fields,
    measured_fields,
    places,
)
from rotorid.estimators.onboard.trace import Onboard

MEANS = ("body_rate",)
"""Inputs that are averages over the step before their sample (rate gyro); others act from their sample on."""


def replay_program(traced: Onboard, name: str) -> str:
    """The text of main.c."""
    joint = traced.estimator.joint
    inputs = [
        f'{{"{p.name}", &inputs.{p.path}, {"false" if p.block in MEANS else "true"}}}'
        for p in places(input_fields(joint))
    ]
    measured, flags = _measured_and_flags(measured_fields(joint))
    blocks, first = [], 0
    for field, flag in zip(measured, flags, strict=True):
        flag_pointer = f"&measured.{flag.name}" + ("[0]" if flag.shape else "")
        blocks.append(f"{{{first}, {field.size}, {flag_pointer}, {flag.size}}}")
        first += field.size
    estimate = {f.name: f for f in estimate_fields(traced.estimator, traced.estimate_shapes)}
    columns = [
        f'{{"{p.name}{suffix}", &estimate.{member}.{p.path}}}'
        for pairs in zip(
            *(places(estimate[m].members) for m in ("value", "std") if m in estimate), strict=True
        )
        for p, member, suffix in zip(pairs, ("value", "std"), ("", "_std"), strict=True)
    ]
    if not columns:
        columns = [f'{{"{p.name}", &estimate.state.{p.path}}}' for p in places(estimate["state"].members)]
    tables = [
        "static const struct {\n  const char *name;\n  real *to;\n  bool until_next;\n} INPUTS[] = "
        + _table(inputs),
        "static const struct {\n  const char *name;\n  real *to;\n} MEASURED[] = "
        + _table(f'{{"{p.name}", &measured.{p.path}}}' for p in places(measured)),
        "static const struct {\n  int first, count;\n  bool *measured;\n  int flags;\n} MEASURED_BLOCKS[] = "
        + _table(blocks),
        "static const struct {\n  const char *name;\n  const real *from;\n} SHOWN[] = " + _table(columns),
        "static const char *const HEALTH[] = " + _table(f'"{h.name.lower()}"' for h in Health),
    ]
    return _program(name, tables, "replay.c")


def check_program(traced: Onboard, name: str, tolerance: float, different_share: float) -> str:
    """The text of check.c. tolerance: relative to a number's scale; different_share: allowed share of rows with another
    integer or flag."""
    joint = traced.estimator.joint
    measured, flags = _measured_and_flags(measured_fields(joint))
    inputs = [f"&inputs.{p.path}" for p in places(input_fields(joint))]
    inputs += [f"&measured.{p.path}" for p in places(measured)]
    kinds = {"real": "REAL", "int": "INTEGER", "bool": "TRUTH"}
    tables = [
        f"#define TOLERANCE {tolerance!r}\n#define DIFFERENT {different_share!r}",
        "enum kind { REAL, INTEGER, TRUTH };",
        "static real *const GIVEN[] = " + _table(inputs),
        "static bool *const FLAGS[] = " + _table(f"&measured.{p.path}" for p in places(flags)),
        "static const struct {\n  const char *name;\n  const void *at;\n  enum kind kind;\n} WANTED[] = "
        + _table(f'{{"{p.name}", &estimate.{p.path}, {kinds[p.kind]}}}' for p in estimate_places(traced)),
    ]
    return _program(name, tables, "check.c")


def estimate_places(traced: Onboard) -> list[Place]:
    """Every number of an estimate, in order."""
    return list(places(estimate_fields(traced.estimator, traced.estimate_shapes)))


def _measured_and_flags(fields: Sequence[Field]) -> tuple[Sequence[Field], Sequence[Field]]:
    return fields[: len(fields) // 2], fields[len(fields) // 2 :]


def _program(name: str, tables: Sequence[str], file: str) -> str:
    about, code = c_file(file).split("*/\n", 1)
    declarations = "\n\n".join(tables)
    return f"""{about}*/
#include "{name}.h"

typedef {name}_real real;

static {name}_state filter;
static {name}_scratch scratch;
static {name}_inputs inputs;
static {name}_measured measured;
static {name}_estimate estimate;

#define INIT() {name}_init(&filter, &scratch)
#define STEP(dt) {name}_step(&filter, &scratch, dt, &inputs, &measured, &estimate)

{declarations}

{code}"""


def _table(rows: Iterable[str]) -> str:
    return "{\n" + "".join(f"  {row},\n" for row in rows) + "};"
