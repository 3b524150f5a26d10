"""The header and the source file of an estimator in C."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

import numpy as np

from rotorid.codegen.standalone import standalone
from rotorid.estimators.base import Health
from rotorid.estimators.onboard.fields import Field, estimate_fields, input_fields, measured_fields
from rotorid.estimators.onboard.trace import Onboard
from rotorid.quoting import c_comment

Precision = Literal["double", "float"]


def header_and_source(
    traced: Onboard, name: str, precision: Precision, about: Sequence[str]
) -> tuple[str, str]:
    """The texts of NAME.h and NAME.c. about: lines of what it is."""
    body = standalone(traced.programs, single=precision == "float")
    return _header(traced, name, precision, body.memory, about), _source(traced, name, body.text)


def _header(traced: Onboard, name: str, precision: Precision, work: int, about: Sequence[str]) -> str:
    joint, upper = traced.estimator.joint, name.upper()
    lines = "\n".join(f" * {c_comment(line)}".rstrip() for line in about)
    return f"""/*
{lines}
 *
 * C99, no allocation, no library but libm, and no state but that in {name}_state: as many filters as there are of them, in as
 * many threads as there are {name}_scratch. SI units; world frame: east, north, up; body frame: forward, left, up; quaternions
 * w x y z, body to world.
 *
 *     static {name}_state filter;
 *     static {name}_scratch scratch;
 *     {name}_init(&filter, &scratch);
 *     ... for each sample:
 *     {name}_step(&filter, &scratch, dt, &inputs, &measured, &estimate);
 */
#ifndef ROTORID_{upper}_H
#define ROTORID_{upper}_H

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {{
#endif

typedef {precision} {name}_real;

/* What the filter keeps from sample to sample: its own business. A copy of it is the same filter once more. */
typedef struct {{
  {name}_real x[{traced.sample + traced.state}];
}} {name}_state;

/* Where a filter computes: of no meaning between two calls, so that filters may share it, but not at the same time. */
typedef struct {{
  {name}_real y[{max(traced.state, traced.estimate)}];
  {name}_real work[{max(work, 1)}];
}} {name}_scratch;

/* What acts. */
{_struct(f"{name}_inputs", input_fields(joint), name)}

/* What was measured. What was not may have any value, and its flags are false. */
{_struct(f"{name}_measured", measured_fields(joint), name)}

/* What an estimate is worth: the worst that applies. */
enum {name}_health {{
{_health(upper)}
}};

/* What is known. */
{_struct(f"{name}_estimate", estimate_fields(traced.estimator, traced.estimate_shapes), name)}

/* Before the first sample, and whenever all is to be forgotten. */
void {name}_init({name}_state *filter, {name}_scratch *scratch);

/* dt seconds later (0 with the first sample), during which these inputs acted: a command that was given at the sample before,
   and what a rate gyro says now, since that is the mean rate up to now. */
void {name}_predict({name}_state *filter, {name}_scratch *scratch, {name}_real dt, const {name}_inputs *inputs);

/* What was measured at that time. Call it after every prediction, with all flags false where nothing was. */
void {name}_update({name}_state *filter, {name}_scratch *scratch, const {name}_measured *measured);

/* What is known now. */
void {name}_read(const {name}_state *filter, {name}_scratch *scratch, {name}_estimate *estimate);

/* One sample: the three of them. */
void {name}_step({name}_state *filter, {name}_scratch *scratch, {name}_real dt, const {name}_inputs *inputs,
                 const {name}_measured *measured, {name}_estimate *estimate);

#ifdef __cplusplus
}}
#endif

#endif
"""


def _source(traced: Onboard, name: str, functions: str) -> str:
    joint = traced.estimator.joint
    inputs = "\n".join(_copies(input_fields(joint), "inputs", "filter->x", 2, is_input=True))
    measured = "\n".join(
        _copies(measured_fields(joint), "measured", "filter->x", 2 + joint.system.inputs.size, is_input=True)
    )
    estimate_members = estimate_fields(traced.estimator, traced.estimate_shapes)
    estimate = "\n".join(_copies(estimate_members, "estimate", "scratch->y", 0, is_input=False))
    return f"""/* Written by rotorid: the functions of {name}.h. */
#include "{name}.h"

#include <math.h>
#include <string.h>

typedef {name}_real num;

{functions}
/* filter->x: [t, dt, inputs, measured, flags, state]. scratch->y: what a program makes of it. */
static void keep({name}_state *filter, const {name}_scratch *scratch) {{
  memcpy(filter->x + {traced.sample}, scratch->y, {traced.state} * sizeof(num));
}}

void {name}_init({name}_state *filter, {name}_scratch *scratch) {{
  memset(filter, 0, sizeof *filter);
  f_init(filter->x, scratch->y, scratch->work);
  keep(filter, scratch);
}}

void {name}_predict({name}_state *filter, {name}_scratch *scratch, {name}_real dt, const {name}_inputs *inputs) {{
  filter->x[1] = dt;
{inputs or "  (void)inputs;"}
  f_predict(filter->x, scratch->y, scratch->work);
  keep(filter, scratch);
}}

void {name}_update({name}_state *filter, {name}_scratch *scratch, const {name}_measured *measured) {{
{measured}
  f_update(filter->x, scratch->y, scratch->work);
  keep(filter, scratch);
}}

void {name}_read(const {name}_state *filter, {name}_scratch *scratch, {name}_estimate *estimate) {{
  f_estimate(filter->x, scratch->y, scratch->work);
{estimate}
}}

void {name}_step({name}_state *filter, {name}_scratch *scratch, {name}_real dt, const {name}_inputs *inputs,
                 const {name}_measured *measured, {name}_estimate *estimate) {{
  {name}_predict(filter, scratch, dt, inputs);
  {name}_update(filter, scratch, measured);
  {name}_read(filter, scratch, estimate);
}}
"""


def _struct(type_: str, fields: Sequence[Field], name: str) -> str:
    body = "\n".join(_members(fields, name, "  ")) if fields else "  char none;"
    return f"typedef struct {{\n{body}\n}} {type_};"


def _members(fields: Sequence[Field], name: str, indent: str) -> Iterator[str]:
    for field in fields:
        comment = f" /* {c_comment(field.comment.replace('NAME', name))} */" if field.comment else ""
        if field.members:
            yield f"{indent}struct {{{comment}"
            yield from _members(field.members, name, indent + "  ")
            yield f"{indent}}} {field.name};"
        else:
            type_ = f"{name}_real" if field.kind == "real" else field.kind
            yield f"{indent}{type_} {field.name}{''.join(f'[{n}]' for n in field.shape)};{comment}"


def _health(upper: str) -> str:
    return "\n".join(f"  {upper}_{h.name} = {h.value}, /* {h.meaning} */" for h in Health)


def _copies(
    fields: Sequence[Field], struct: str, column: str, offset: int, *, is_input: bool
) -> Iterator[str]:
    """Statements that copy members to (is_input) or from a column of numbers."""

    def copy(path: str, field: Field, index: str, place: str) -> str:
        member, number = f"{path}{field.name}{index}", f"{column}[{place}]"
        if is_input:
            return f"{number} = {member} ? ONE : ZERO;" if field.kind == "bool" else f"{number} = {member};"
        return f"{member} = {({'real': '', 'int': '(int)', 'bool': 'ZERO != '})[field.kind]}{number};"

    def statements(fields: Sequence[Field], path: str) -> Iterator[str]:
        nonlocal offset
        for field in fields:
            if field.members:
                yield from statements(field.members, f"{path}{field.name}.")
            elif not field.shape:
                yield f"  {copy(path, field, '', str(offset))}"
                offset += 1
            else:
                rows = field.shape[:-1]
                for row in np.ndindex(*rows):
                    index = "".join(f"[{i}]" for i in row) + "[i]"
                    yield f"  for (int i = 0; i < {field.shape[-1]}; i++) {copy(path, field, index, f'{offset} + i')}"
                    offset += field.shape[-1]

    yield from statements(fields, f"{struct}->")
