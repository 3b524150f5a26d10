"""Fingerprints of traced functions: short texts, equal for equal jaxprs in every process."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import jax
import numpy as np
from jax.extend.core import ClosedJaxpr, Jaxpr, Literal

if TYPE_CHECKING:
    from rotorid.codegen.constants import Constants


def fingerprint(closed: ClosedJaxpr, constants: Constants | None = None) -> str:
    """Fingerprint of the operations, their parameters, shapes and constants; independent of the names of variables.

    constants: numbers that are arguments, and count by their index.
    """
    return _Fingerprints(constants).of_closed(closed).hex()


def digest_of(value: Any) -> bytes:
    """Digest of a parameter of an operation, its jaxprs with their constants included."""
    digest = hashlib.sha256()
    _Fingerprints(None).hash_value(value, digest.update)
    return digest.digest()


class _Fingerprints:
    """Digests of the jaxprs inside a jaxpr, each computed once: a function that is called often is one jaxpr."""

    def __init__(self, constants: Constants | None) -> None:
        self._constants = constants
        self._digests: dict[int, bytes] = {}

    def of_closed(self, closed: ClosedJaxpr) -> bytes:
        if id(closed) not in self._digests:
            digest = hashlib.sha256()
            for variable, constant in zip(closed.jaxpr.constvars, closed.consts, strict=True):
                self._hash_constant(variable, np.asarray(constant), digest.update)
            digest.update(self.of_jaxpr(closed.jaxpr))
            self._digests[id(closed)] = digest.digest()
        return self._digests[id(closed)]

    def of_jaxpr(self, jaxpr: Jaxpr) -> bytes:
        if id(jaxpr) not in self._digests:
            digest = hashlib.sha256()
            self._hash_jaxpr(jaxpr, digest.update)
            self._digests[id(jaxpr)] = digest.digest()
        return self._digests[id(jaxpr)]

    def _hash_jaxpr(self, jaxpr: Any, update: Callable[[bytes], None]) -> None:
        numbers: dict[Any, int] = {}

        def name(variables: Sequence[Any]) -> None:
            for v in variables:
                numbers[v] = len(numbers)
                update(f"{v.aval.str_short()}\0".encode())

        def read(atoms: Sequence[Any]) -> None:
            for atom in atoms:
                if isinstance(atom, Literal):
                    self._hash_constant(atom, np.asarray(atom.val), update)
                else:
                    update(f"{numbers[atom]}\0".encode())

        name([*jaxpr.constvars, *jaxpr.invars])
        for equation in jaxpr.eqns:
            update(f"{equation.primitive.name}\0".encode())
            read(equation.invars)
            self.hash_value(equation.params, update)
            name(equation.outvars)
        read(jaxpr.outvars)

    def _hash_constant(self, atom: Any, array: np.ndarray, update: Callable[[bytes], None]) -> None:
        indices = [] if self._constants is None else self._constants.indices(atom, array.size)
        if not any(index is not None for index in indices):
            self.hash_value(array, update)
            return
        fixed = [value if i is None else i for value, i in zip(array.ravel().tolist(), indices, strict=True)]
        update(f"{array.dtype}{array.shape}{[i is None for i in indices]}{fixed!r}\0".encode())

    def hash_value(self, value: Any, update: Callable[[bytes], None]) -> None:
        if value is None or isinstance(value, str | int | float):
            update(f"{value!r}\0".encode())
        elif isinstance(value, ClosedJaxpr):
            update(self.of_closed(value))
        elif isinstance(value, Jaxpr):
            update(self.of_jaxpr(value))
        elif isinstance(value, np.ndarray | jax.Array):
            array = np.asarray(value)
            update(f"{array.dtype}{array.shape}\0".encode())
            update(array.tobytes())
        elif isinstance(value, Mapping):
            for key in sorted(value):
                update(f"{key}\0".encode())
                self.hash_value(value[key], update)
        elif type(value) in (list, tuple):
            update(f"{len(value)}\0".encode())
            for item in value:
                self.hash_value(item, update)
        else:  # functions for derivatives, which the traced function does not use: without their addresses
            update(f"{re.sub('0x[0-9a-f]+', '', repr(value))}\0".encode())
