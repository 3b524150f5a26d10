"""What a traced function computes, as a short text: equal for equal jaxprs, in every process."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax.extend
import numpy as np


def fingerprint(closed: jax.extend.core.ClosedJaxpr) -> str:
    """Of its operations, their parameters, the shapes and the constants; not of the names of variables."""
    digest = hashlib.sha256()
    _closed(closed, lambda text: digest.update(text if isinstance(text, bytes) else f"{text}\0".encode()))
    return digest.hexdigest()


_Put = Callable[[Any], None]


def _closed(closed: Any, put: _Put) -> None:
    for constant in closed.consts:
        _value(constant, put)
    _jaxpr(closed.jaxpr, put)


def _jaxpr(jaxpr: Any, put: _Put) -> None:
    numbers: dict[Any, int] = {}

    def name(variables: Sequence[Any]) -> None:
        for v in variables:
            numbers[v] = len(numbers)
            put(v.aval.str_short())

    def read(atoms: Sequence[Any]) -> None:
        for atom in atoms:
            if isinstance(atom, jax.extend.core.Literal):
                _value(np.asarray(atom.val), put)
            else:
                put(numbers[atom])

    name([*jaxpr.constvars, *jaxpr.invars])
    for equation in jaxpr.eqns:
        put(equation.primitive.name)
        read(equation.invars)
        _value(equation.params, put)
        name(equation.outvars)
    read(jaxpr.outvars)


def _value(value: Any, put: _Put) -> None:
    if isinstance(value, jax.extend.core.ClosedJaxpr):
        _closed(value, put)
    elif isinstance(value, jax.extend.core.Jaxpr):
        _jaxpr(value, put)
    elif isinstance(value, np.ndarray | jax.Array):
        array = np.asarray(value)
        put(f"{array.dtype}{array.shape}")
        put(array.tobytes())
    elif isinstance(value, Mapping):
        for key in sorted(value):
            put(key)
            _value(value[key], put)
    elif isinstance(value, list | tuple):
        put(len(value))
        for item in value:
            _value(item, put)
    else:  # functions for derivatives and the like, which a traced function has no more use for, lose their addresses
        put(re.sub(r"0x[0-9a-f]+", "", repr(value)))
