"""What a traced function computes, as a short text: equal for equal jaxprs, in every process."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import numpy as np
from jax.extend.core import ClosedJaxpr, Jaxpr, Literal


def fingerprint(closed: ClosedJaxpr) -> str:
    """Of its operations, their parameters, the shapes and the constants; not of the names of variables."""
    return _Fingerprints().of_closed(closed).hex()


class _Fingerprints:
    """Those of the jaxprs inside one, each found once: a function that is called a hundred times is one jaxpr."""

    def __init__(self) -> None:
        self._known: dict[int, bytes] = {}

    def of_closed(self, closed: ClosedJaxpr) -> bytes:
        if id(closed) not in self._known:
            digest = hashlib.sha256()
            for constant in closed.consts:
                self._put(constant, digest.update)
            digest.update(self.of(closed.jaxpr))
            self._known[id(closed)] = digest.digest()
        return self._known[id(closed)]

    def of(self, jaxpr: Jaxpr) -> bytes:
        if id(jaxpr) not in self._known:
            digest = hashlib.sha256()
            self._put_jaxpr(jaxpr, digest.update)
            self._known[id(jaxpr)] = digest.digest()
        return self._known[id(jaxpr)]

    def _put_jaxpr(self, jaxpr: Any, put: Callable[[bytes], None]) -> None:
        numbers: dict[Any, int] = {}

        def name(variables: Sequence[Any]) -> None:
            for v in variables:
                numbers[v] = len(numbers)
                put(f"{v.aval.str_short()}\0".encode())

        def read(atoms: Sequence[Any]) -> None:
            for atom in atoms:
                if isinstance(atom, Literal):
                    self._put(np.asarray(atom.val), put)
                else:
                    put(f"{numbers[atom]}\0".encode())

        name([*jaxpr.constvars, *jaxpr.invars])
        for equation in jaxpr.eqns:
            put(f"{equation.primitive.name}\0".encode())
            read(equation.invars)
            self._put(equation.params, put)
            name(equation.outvars)
        read(jaxpr.outvars)

    def _put(self, value: Any, put: Callable[[bytes], None]) -> None:
        if value is None or isinstance(value, str | int | float):
            put(f"{value!r}\0".encode())
        elif isinstance(value, ClosedJaxpr):
            put(self.of_closed(value))
        elif isinstance(value, Jaxpr):
            put(self.of(value))
        elif isinstance(value, np.ndarray | jax.Array):
            array = np.asarray(value)
            put(f"{array.dtype}{array.shape}\0".encode())
            put(array.tobytes())
        elif isinstance(value, Mapping):
            for key in sorted(value):
                put(f"{key}\0".encode())
                self._put(value[key], put)
        elif type(value) in (list, tuple):
            put(f"{len(value)}\0".encode())
            for item in value:
                self._put(item, put)
        else:  # functions for derivatives and the like, of no more use to what is traced, lose their addresses
            put(f"{re.sub('0x[0-9a-f]+', '', repr(value))}\0".encode())
