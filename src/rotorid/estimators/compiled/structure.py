"""Digest of the structure of an estimator: equal, in every process, for estimators that JAX traces to the same program.

The structure is all that is no array leaf: classes, settings and the numbers of the vehicle in static fields. Only plain
values, arrays and instances of rotorid's own module-level classes have a digest, since their code is known by `source_stamp`; a
function, a class made at run time, and one of another package have none.
"""

from __future__ import annotations

import dataclasses
import enum
import hashlib
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

import jax
import numpy as np


def structure_digest(value: Any) -> str | None:
    """The digest of a value; None where it contains something that has none."""
    digest = hashlib.sha256()
    try:
        _add(value, digest.update)
    except _UnknownError:
        return None
    return digest.hexdigest()


class _UnknownError(Exception):
    """A value has no digest."""


def _add(value: Any, update: Callable[[bytes], None]) -> None:
    if value is None or type(value) in (bool, int, float, str, bytes):
        update(f"{type(value).__name__}{value!r}\0".encode())
    elif type(value) is slice:
        update(f"{value!r}\0".encode())
    elif type(value) in (tuple, list):
        update(f"{type(value).__name__}{len(value)}\0".encode())
        for item in value:
            _add(item, update)
    elif isinstance(value, Mapping):
        update(f"{type(value).__name__}{len(value)}\0".encode())
        for key, item in value.items():
            _add(key, update)
            _add(item, update)
    elif isinstance(value, np.ndarray | np.generic | jax.Array):
        array = np.asarray(value)
        if array.dtype.kind not in "fiub":
            raise _UnknownError
        update(f"{array.dtype}{array.shape}\0".encode())
        update(array.tobytes())
    elif isinstance(value, enum.Enum):
        update(f"{_class_name(type(value))}.{value.name}\0".encode())
    elif isinstance(value, type):
        update(f"{_class_name(value)}\0".encode())
    else:
        update(f"{_class_name(type(value))}\0".encode())
        _add(tuple(value) if isinstance(value, tuple) else _attributes(value), update)


def _class_name(kind: type) -> str:
    if kind.__module__.split(".")[0] != "rotorid" or "<locals>" in kind.__qualname__:
        raise _UnknownError
    return f"{kind.__module__}.{kind.__qualname__}"


def _attributes(value: Any) -> Mapping[str, Any]:
    """The attributes that make an object; not those that it computes and keeps."""
    if dataclasses.is_dataclass(value):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if not hasattr(value, "__dict__"):
        raise _UnknownError
    kind = type(value)
    return {
        name: v
        for name, v in vars(value).items()
        if not isinstance(getattr(kind, name, None), cached_property)
    }
