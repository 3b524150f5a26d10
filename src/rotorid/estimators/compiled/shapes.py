"""Shapes of a pytree of rotorid's own classes as JSON, to be read without running code."""

from __future__ import annotations

import dataclasses
import importlib
from typing import Any

import jax
import numpy as np


class NotPlainError(Exception):
    """A pytree has a part that has no JSON form here."""


def to_json(tree: Any) -> Any:
    """The JSON form of a pytree of ShapeDtypeStruct.

    Nodes are None, tuples, lists, mappings with texts as keys, named tuples and dataclasses of rotorid; what is static in these
    is plain. Raises NotPlainError.
    """
    if isinstance(tree, jax.ShapeDtypeStruct):
        if not isinstance(tree.dtype, np.dtype):
            raise NotPlainError(str(tree.dtype))
        return {"shape": list(tree.shape), "dtype": tree.dtype.name}
    if tree is None or type(tree) in (bool, int, float, str):
        return {"value": tree}
    if type(tree) in (tuple, list):
        return {type(tree).__name__: [to_json(item) for item in tree]}
    if type(tree) is dict and all(isinstance(key, str) for key in tree):
        return {"dict": {key: to_json(item) for key, item in tree.items()}}
    kind = type(tree)
    if kind.__module__.split(".")[0] != "rotorid" or "." in kind.__qualname__:
        raise NotPlainError(f"{kind.__module__}.{kind.__qualname__}")
    name = f"{kind.__module__}:{kind.__qualname__}"
    if isinstance(tree, tuple):
        return {"class": name, "items": [to_json(item) for item in tree]}
    if not dataclasses.is_dataclass(tree):
        raise NotPlainError(name)
    fields = {field.name: to_json(getattr(tree, field.name)) for field in dataclasses.fields(tree)}
    return {"class": name, "fields": fields}


def from_json(node: Any) -> Any:
    """The pytree of `to_json`. Raises KeyError, TypeError, ValueError, AttributeError or ImportError for another document."""
    if "dtype" in node:
        return jax.ShapeDtypeStruct(tuple(node["shape"]), np.dtype(node["dtype"]))
    if "value" in node:
        return node["value"]
    if "tuple" in node:
        return tuple(from_json(item) for item in node["tuple"])
    if "list" in node:
        return [from_json(item) for item in node["list"]]
    if "dict" in node:
        return {key: from_json(item) for key, item in node["dict"].items()}
    module, _, name = node["class"].partition(":")
    if module.split(".")[0] != "rotorid":
        raise ValueError(f"{module} is not part of rotorid")
    kind = getattr(importlib.import_module(module), name)
    if "items" in node:
        return kind(*(from_json(item) for item in node["items"]))
    tree = object.__new__(kind)
    for key, item in node["fields"].items():
        object.__setattr__(tree, key, from_json(item))
    return tree
