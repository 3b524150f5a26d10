"""Intermediate representation of a program in C: statements over numbers at addresses.

While a program is written, every array has a span of the memory m of its own. When it is complete, the spans are packed
(see `memory`) and every statement is written as C at its final addresses (see `emit`).
"""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import casadi as ca

from rotorid.codegen.routines import Rows, congruence_lines, routine_lines


class Address(NamedTuple):
    """One number of an array of a program: of its arguments x, its results y or its memory m."""

    array: str
    position: int

    def offset(self, steps: int) -> Address:
        return Address(self.array, self.position + steps)

    @property
    def element(self) -> str:
        """The number, in C."""
        return f"{self.array}[{self.position}]"

    @property
    def pointer(self) -> str:
        """A pointer to the number, in C."""
        return f"{self.array} + {self.position}"


Place = Callable[[Address], Address]
"""From an address while the program is written to the final one."""


def contiguous(addresses: Sequence[Address | None]) -> bool:
    """Whether addresses follow each other in one array."""
    first = addresses[0]
    return first is not None and all(a == first.offset(k) for k, a in enumerate(addresses))


class Statement(abc.ABC):
    """A statement other than `Compute` and `Loop`."""

    @abc.abstractmethod
    def addresses(self) -> Iterator[Address]:
        """Addresses of the arrays that it reads or writes, at least one of each span."""

    @abc.abstractmethod
    def c_text(self, place: Place) -> str:
        """The statement in C."""


@dataclasses.dataclass(frozen=True)
class Compute:
    """Straight-line code: a CasADi function of one column, read from and written to single numbers."""

    function: ca.Function
    reads: Sequence[Address]
    writes: Sequence[Address]

    def addresses(self) -> Iterator[Address]:
        yield from self.reads
        yield from self.writes


@dataclasses.dataclass(frozen=True)
class Loop:
    """A loop. counter: the name of its index in C."""

    counter: str
    iterations: int
    body: Sequence[AnyStatement]


@dataclasses.dataclass(frozen=True)
class Copy(Statement):
    """A copy of `size` numbers. source_step, target_step: added to either address, in C ("turn0 * 3"), "" for nothing."""

    target: Address
    source: Address
    size: int
    target_step: str = ""
    source_step: str = ""

    def addresses(self) -> Iterator[Address]:
        yield self.target
        yield self.source

    def c_text(self, place: Place) -> str:
        target = " + ".join(filter(None, (place(self.target).pointer, self.target_step)))
        source = " + ".join(filter(None, (place(self.source).pointer, self.source_step)))
        return f"memcpy({target}, {source}, {self.size} * sizeof(num));"


class Operand(NamedTuple):
    """An operand of an elementwise operation: an array from its first address on, one number for all, or a constant in C."""

    source: Address | str
    is_array: bool

    def element(self, place: Place) -> str:
        """Its number i, in C."""
        if isinstance(self.source, str):
            return self.source
        element = place(self.source).element
        return f"(&{element})[i]" if self.is_array else element


@dataclasses.dataclass(frozen=True)
class Elementwise(Statement):
    """A loop over the numbers of arrays. formula: in C, of the operands by their position; of `all` where it is a reduction."""

    formula: str
    operands: Sequence[Operand]
    size: int
    target: Address
    is_reduction: bool

    def addresses(self) -> Iterator[Address]:
        yield self.target
        for operand in self.operands:
            if not isinstance(operand.source, str):
                yield operand.source

    def c_text(self, place: Place) -> str:
        value = self.formula.format(*(operand.element(place) for operand in self.operands))
        loop, target = f"for (int i = 0; i < {self.size}; i++)", place(self.target).element
        if self.is_reduction:
            return f"{{ num all = ONE; {loop} all = {value}; {target} = all; }}"
        return f"{loop} (&{target})[i] = {value};"


@dataclasses.dataclass(frozen=True)
class Routine(Statement):
    """A matrix routine (see `routines`). operands: addresses, or names of tables of constants."""

    kind: str
    shapes: Sequence[tuple[int, ...]]
    operands: Sequence[Address | str]
    results: Sequence[Address]

    def addresses(self) -> Iterator[Address]:
        yield from self.results
        for operand in self.operands:
            if not isinstance(operand, str):
                yield operand

    def c_text(self, place: Place) -> str:
        operands = [o if isinstance(o, str) else place(o).pointer for o in self.operands]
        results = [place(result).pointer for result in self.results]
        return "\n".join(routine_lines(self.kind, self.shapes, operands, results))


@dataclasses.dataclass(frozen=True)
class Congruence(Statement):
    """F P F^T + diag(q) (see `routines`). rows: of F. columns: how many it has. places: of the numbers of F, of P, q, F P and
    the result; None for what there is none of."""

    rows: Rows
    columns: int
    places: Sequence[Address | None]

    def addresses(self) -> Iterator[Address]:
        yield from (address for address in self.places if address is not None)

    def c_text(self, place: Place) -> str:
        pointers = ["" if address is None else place(address).pointer for address in self.places]
        return "\n".join(congruence_lines(self.rows, self.columns, pointers))


@dataclasses.dataclass(frozen=True)
class Call(Statement):
    """A call of the C function of a program. arguments, results: its columns. memory: its memory, None if it needs none."""

    name: str
    arguments: Address
    results: Address
    memory: Address | None

    def addresses(self) -> Iterator[Address]:
        yield from (self.arguments, self.results)
        if self.memory is not None:
            yield self.memory

    def c_text(self, place: Place) -> str:
        memory = "m" if self.memory is None else place(self.memory).pointer
        return f"{self.name}({place(self.arguments).pointer}, {place(self.results).pointer}, {memory});"


AnyStatement = Compute | Loop | Statement
