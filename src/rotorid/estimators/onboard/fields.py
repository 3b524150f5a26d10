"""Inputs and outputs of an estimator in C: the members of three structs, named as in the System.

inputs       one member an input block
measured     one member an output block, and a flag for each of its tangent dimensions
estimate     as `rotorid.estimators.base.Estimate`, with a member for each block or parameter in place of arrays
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Sequence
from typing import Literal

import jax
import numpy as np

from rotorid.estimators.base import AbstractEstimator, Estimate
from rotorid.geometry.spaces import Block, Space
from rotorid.models.joint import Joint

Kind = Literal["real", "int", "bool"]

# fmt: off
_KEYWORDS = frozenset((
    "auto", "bool", "break", "case", "char", "const", "continue", "default", "do", "double", "else", "enum", "extern", "false",
    "float", "for", "goto", "if", "inline", "int", "long", "register", "restrict", "return", "short", "signed", "sizeof",
    "static", "struct", "switch", "true", "typedef", "union", "unsigned", "void", "volatile", "while",
))
# fmt: on


@dataclasses.dataclass(frozen=True)
class Field:
    """A member of a struct: numbers of this shape, or a struct of members. axes: names of the components of a vector."""

    name: str
    comment: str
    shape: tuple[int, ...] = ()
    kind: Kind = "real"
    members: tuple[Field, ...] = ()
    axes: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        """Numbers in it."""
        return sum(m.size for m in self.members) if self.members else int(np.prod(self.shape))


@dataclasses.dataclass(frozen=True)
class Place:
    """The location of a number: its name, the C expression after the struct, and its kind; block: its array or scalar."""

    name: str
    path: str
    kind: Kind
    block: str


def identifier(name: str) -> str:
    """A valid C identifier for a name."""
    valid = re.sub(r"\W", "_", name)
    return f"{valid}_" if valid in _KEYWORDS or valid[:1].isdigit() else valid


def places(fields: Sequence[Field], prefix: str = "") -> Iterator[Place]:
    """Every number of some members, in order."""
    for field in fields:
        path = f"{prefix}{field.name}"
        if field.members:
            yield from places(field.members, f"{path}.")
            continue
        for index in np.ndindex(*field.shape):
            name = path
            if field.shape:
                name += f"_{field.axes[index[0]]}" if field.axes else "".join(f"_{i}" for i in index)
            yield Place(name, path + "".join(f"[{i}]" for i in index), field.kind, path)


def input_fields(joint: Joint) -> tuple[Field, ...]:
    """Members of the inputs."""
    return _block_fields(joint.system.inputs)


def measured_fields(joint: Joint) -> tuple[Field, ...]:
    """Members of the measurements, with their flags."""
    outputs = joint.system.outputs
    flags = tuple(
        Field(
            f"{identifier(name)}_measured",
            f"whether, for each of {block.dim}" if block.dim > 1 else "whether",
            (block.dim,) if block.shape else (),
            "bool",
            axes=_axes(block.dim) if block.shape else (),
        )
        for name, block in outputs.blocks
    )
    return _block_fields(outputs) + flags


def estimate_fields(estimator: AbstractEstimator, shapes: Estimate) -> tuple[Field, ...]:
    """Members of the estimate, in the order of its leaves. shapes: its shapes and dtypes."""
    joint = estimator.joint
    states, outputs = joint.system.states, joint.system.outputs
    count = len(joint.quantities)
    descriptions = {
        "state": ("", _block_fields(states)),
        "state_std": ("standard deviations of state", _tangent_fields(states)),
        "value": ("", _parameter_fields(joint)),
        "std": ("standard deviations of value", _parameter_fields(joint)),
        "covariance": (f"of value, in its order: {', '.join(joint.quantities)}", None),
        "innovation": ("measured minus predicted, 0 where not measured", _tangent_fields(outputs)),
        "innovation_std": (
            "its predicted standard deviations, 0 where not measured",
            _tangent_fields(outputs),
        ),
        "nis": ("normalised innovation squared of what was accepted", None),
        "nis_dof": ("over so many dimensions", None),
        "informed": (
            "whether the data carried information about each of value",
            _parameter_fields(joint, "bool"),
        ),
        "health": ("see NAME_health", None),
        "since_change": ("s since the last change that it is convinced of", None),
        "change_probability": ("that there was one within its short memory", None),
        "lagged": ("value some time ago, in its order", None),
        "lagged_std": ("standard deviations of lagged", None),
    }
    fields = []
    for item in dataclasses.fields(shapes):
        leaf = getattr(shapes, item.name)
        comment, members = descriptions.get(item.name, ("", None))
        kind: Kind = {"f": "real", "i": "int", "b": "bool"}[leaf.dtype.kind]  # pyright: ignore[reportAssignmentType]
        if 0 in leaf.shape:
            continue
        if members is not None:
            fields.append(Field(item.name, comment, members=members))
        else:
            axes = joint.quantities if leaf.shape == (count,) else ()
            fields.append(Field(item.name, comment, leaf.shape, kind, axes=axes))
    assert sum(f.size for f in fields) == sum(leaf.size for leaf in jax.tree.leaves(shapes))
    return tuple(fields)


def _block_fields(space: Space) -> tuple[Field, ...]:
    return tuple(
        Field(identifier(name), _comment(block), block.shape, axes=_block_axes(name, block))
        for name, block in space.blocks
    )


def _tangent_fields(space: Space) -> tuple[Field, ...]:
    return tuple(
        Field(
            identifier(name),
            "rad, body axes" if block.rotation else _comment(block),
            (block.dim,) if block.shape else (),
            axes=_axes(block.dim) if block.rotation else _block_axes(name, block),
        )
        for name, block in space.blocks
    )


def _parameter_fields(joint: Joint, kind: Kind = "real") -> tuple[Field, ...]:
    fields = []
    for p in joint.tracked:
        shape = (len(p.values),) if isinstance(p.value, tuple) else ()
        comment = ", ".join(part for part in (p.unit, p.frame) if part not in ("-", ""))
        fields.append(
            Field(
                identifier(p.name),
                "" if kind == "bool" else comment,
                shape,
                kind,
                axes=_axes(len(p.values)) if shape else (),
            )
        )
    return tuple(fields)


def _comment(block: Block) -> str:
    if block.rotation:
        return "unit quaternion w x y z, body to world"
    return ", ".join(part for part in (block.unit, block.frame) if part != "-")


def _block_axes(name: str, block: Block) -> tuple[str, ...]:
    """Names of components as in the flight table: rotors by number."""
    if block.rotation:
        return ("w", "x", "y", "z")
    return tuple(map(str, range(block.size))) if name.startswith("rotor_") else _axes(block.size)


def _axes(size: int) -> tuple[str, ...]:
    return ("x", "y", "z")[:size] if size in (2, 3) else tuple(map(str, range(size)))
