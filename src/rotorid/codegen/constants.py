"""Constants of a program as its arguments: programs that differ in these numbers only share their compiled code.

A model holds numbers of its vehicle (weight, thrust curve, positions of the rotors), which are constants of the traced
functions. As arguments they leave the C code to the structure of the model, and each vehicle takes it from the cache.

Every constant is an argument of its own, even where two have the same value by chance. Only those of equal operations on equal
operands are one argument, so that a common expression is computed once (value numbering: Cocke and Schwartz, "Programming
languages and their compilers", 1970).

These stay constants: 0, 1 and -1, which simplify the code; exponents that are multiples of a half, which name a square or a
root; numbers that are not finite; large arrays; and what an operation on constants alone takes that is not cheap.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from jax.extend.core import ClosedJaxpr, Literal
from jaxtyping import Float

from rotorid.codegen.casadi import inner_jaxprs
from rotorid.codegen.fingerprint import digest_of

LARGEST = 64
"""Largest size of an array whose numbers become arguments."""

_CHEAP = {
    "add", "sub", "mul", "div", "neg", "abs", "sign", "square", "integer_pow", "max", "min", "add_any", "select_n",
    "lt", "le", "gt", "ge", "eq", "ne", "and", "or", "not", "broadcast_in_dim", "reshape", "squeeze", "slice",
    "concatenate", "stack", "transpose", "rev", "pad", "expand_dims", "split", "copy", "jit", "pjit", "reduce_sum",
    "convert_element_type", "custom_jvp_call", "stop_gradient",
}  # fmt: skip
"""Operations on constants alone that are written as C; others are computed while tracing."""

_Site = tuple[int, int]
"""A constant: the identity of its literal or variable, and the index of the element."""


class Constants:
    """The numbers of traced functions that become arguments, in the order of their first occurrence."""

    def __init__(self, programs: Sequence[ClosedJaxpr]) -> None:
        """programs: traced in float64."""
        self._programs = programs  # identities hold as long as these are kept
        self._values: dict[_Site, float] = {}
        self._parents: dict[_Site, _Site] = {}
        self._fixed: set[_Site] = set()
        self._sites: dict[int, list[_Site]] = {}
        for program in programs:
            self._collect(program.jaxpr, program.consts)
        fixed, numbers = {self._root(site) for site in self._fixed}, {}
        for site in self._values:
            if (root := self._root(site)) not in fixed:
                numbers.setdefault(root, len(numbers))
        self._indices = {
            site: numbers[root] for site in self._values if (root := self._root(site)) in numbers
        }
        self.values: Float[np.ndarray, " n"] = np.array([self._values[root] for root in numbers], dtype=float)
        """The arguments."""

    def indices(self, atom: Any, size: int) -> list[int | None]:
        """The index of the argument of each element of a literal or a constant variable, None where it stays a constant."""
        return [self._indices.get((id(atom), k)) for k in range(size)]

    def _collect(self, jaxpr: Any, constants: Sequence[Any]) -> list[_Site]:
        """Find the sites of a jaxpr and of those inside it, and return them."""
        if id(jaxpr) in self._sites:
            for variable, constant in zip(jaxpr.constvars, constants, strict=True):
                self._fix_changed(variable, np.asarray(constant))
            return self._sites[id(jaxpr)]
        known: dict[Any, tuple[Any, list[_Site]]] = {}  # constant variables: what they are, and their sites
        sites = self._sites[id(jaxpr)] = []
        numbers: dict[Any, Any] = {v: ("argument", k) for k, v in enumerate(jaxpr.invars)}
        equations: dict[Any, tuple[Any, list[_Site]]] = {}
        for variable, constant in zip(jaxpr.constvars, constants, strict=True):
            known[variable] = self._constant(variable, constant)
            sites += known[variable][1]
        for equation in jaxpr.eqns:
            own: list[_Site] = []
            keys, is_constant = [], True
            for k, atom in enumerate(equation.invars):
                if isinstance(atom, Literal):
                    key, found = self._constant(atom, atom.val)
                    if equation.primitive.name == "pow" and k == 1 and (2.0 * float(atom.val)).is_integer():
                        self._fixed.update(found)
                    sites += found
                elif atom in known:
                    key, found = known[atom]
                else:
                    key, found, is_constant = numbers[atom], [], False
                keys.append(key)
                own += found
            inner: list[_Site] = []
            for closed in inner_jaxprs(equation, closed=True):
                inner += self._collect(getattr(closed, "jaxpr", closed), getattr(closed, "consts", ()))
            sites += inner
            own += inner
            if not _is_free(equation, is_constant=is_constant):
                self._fixed.update(own)
            key = equation.primitive.name, digest_of(equation.params), tuple(keys)
            if is_constant:
                known |= {v: ((key, k), own) for k, v in enumerate(equation.outvars)}
                continue
            number, first = equations.setdefault(key, (len(equations), own))
            for a, b in zip(first, own, strict=True):
                self._parents[self._root(b)] = self._root(a)
            numbers |= {v: ("result", number, k) for k, v in enumerate(equation.outvars)}
        for atom in jaxpr.outvars:
            if isinstance(atom, Literal):
                sites += self._constant(atom, atom.val)[1]
        return sites

    def _fix_changed(self, variable: Any, constant: np.ndarray) -> None:
        """Leave a constant where it is if its jaxpr has other values of it elsewhere."""
        for k, value in enumerate(constant.ravel().tolist()):
            if self._values.get((id(variable), k), value) != value:
                self._fixed.add((id(variable), k))

    def _constant(self, atom: Any, constant: Any) -> tuple[Any, list[_Site]]:
        """The content of a constant, and the sites of its numbers that may become arguments."""
        array = np.asarray(constant)
        sites: list[_Site] = []
        if array.dtype == np.float64 and array.size <= LARGEST:
            for k, value in enumerate(array.ravel().tolist()):
                if math.isfinite(value) and value not in (0.0, 1.0, -1.0):
                    site = id(atom), k
                    self._values[site] = value
                    self._parents.setdefault(site, site)
                    sites.append(site)
        return (str(array.dtype), array.shape, array.tobytes()), sites

    def _root(self, site: _Site) -> _Site:
        while (parent := self._parents[site]) != site:
            self._parents[site] = site = self._parents[parent]
        return site


def _is_free(equation: Any, *, is_constant: bool) -> bool:
    """Whether the constants that an operation takes may be arguments. is_constant: whether it takes nothing else."""
    name = equation.primitive.name
    if name == "while" or (is_constant and name not in _CHEAP):
        return False
    if name == "convert_element_type" and np.issubdtype(equation.params["new_dtype"], np.integer):
        return not np.issubdtype(equation.invars[0].aval.dtype, np.floating)
    return all(_is_free(e, is_constant=is_constant) for jaxpr in inner_jaxprs(equation) for e in jaxpr.eqns)
