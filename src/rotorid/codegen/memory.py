"""Memory of a program: its values while it is written (`Storage`), and the allocation, by which arrays that are not live at the
same time share addresses.

While a program is written, every array has its own span, with one unused number after it, so that two spans are never
contiguous. When the program is complete, spans are packed by their live ranges: the largest first, each at the lowest free
address (greedy by size: Pisarchyk and Lee, "Efficient memory management for deep neural net inference", 2020, section 5).
"""

from __future__ import annotations

import bisect
import dataclasses
import itertools
import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import casadi as ca
import jax
import jax.extend
import numpy as np
from jaxtyping import Int

from rotorid.codegen.ir import Address, AnyStatement, Compute, Loop
from rotorid.codegen.primitives import Value, is_traced

LiveRange = tuple[int, int]
"""First and last line of a program at which a span is live."""


class Spans:
    """Spans by number, with their first addresses and sizes while the program is written."""

    def __init__(self) -> None:
        self.starts: list[int] = []
        self.sizes: list[int] = []
        self._end = 0

    def reserve(self, size: int) -> int:
        """Add a span, and return its first address."""
        start = self._end
        if size:
            self.starts.append(start)
            self.sizes.append(size)
            self._end += size + 1
        return start

    def span_at(self, place: int) -> int:
        """The number of the span that contains an address."""
        return bisect.bisect_right(self.starts, place) - 1


def live_ranges(
    spans_of_lines: Sequence[Collection[int]], loops: Sequence[LiveRange], count: int
) -> list[LiveRange]:
    """The live ranges of `count` spans.

    A span that is used inside and outside of a loop is live in all of its iterations. A span that is used inside only is
    written in each iteration before it is read.

    Args:
        used: the spans that each line reads or writes.
        loops: first and last line of each loop, inner loops first.
        count: number of spans.
    Returns:
        First and last line at which each span is live, (0, -1) for a span that is not used.
    """
    ranges = [(0, -1)] * count
    for line, spans in enumerate(spans_of_lines):
        for span in spans:
            first, last = ranges[span]
            ranges[span] = (line, line) if last < first else (first, line)
    for first, last in loops:
        for span, (start, end) in enumerate(ranges):
            if start < first <= end <= last:
                ranges[span] = start, last
            elif first <= start <= last < end:
                ranges[span] = first, end
    return ranges


class Packed:
    """Final addresses of spans (`addresses`), and the size of the memory (`total`)."""

    def __init__(self, sizes: Sequence[int], ranges: Sequence[LiveRange]) -> None:
        self.total = 0
        self._allocations = np.zeros((0, 4), int)
        self.addresses = np.zeros(len(sizes), int)
        for span in sorted(range(len(sizes)), key=lambda k: (-sizes[k], ranges[k])):
            self.addresses[span] = self.fit(sizes[span], ranges[span], reserve=True)

    def fit(self, size: int, live_range: LiveRange, *, reserve: bool = False) -> int:
        """The lowest address at which `size` numbers are free over a live range. reserve: whether to allocate them."""
        first, last = live_range
        if last < first:
            return 0
        allocations: Int[np.ndarray, "spans 4"] = self._allocations
        overlapping = allocations[(allocations[:, 0] <= last) & (allocations[:, 1] >= first)]
        place = 0
        for start, end in overlapping[np.argsort(overlapping[:, 2]), 2:].tolist():
            if start - place >= size:
                break
            place = max(place, end)
        self.total = max(self.total, place + size)
        if reserve:
            self._allocations = np.concatenate([allocations, [[first, last, place, place + size]]])
        return place


@dataclasses.dataclass
class Frame:
    """A jaxpr that is being traced: its values so far, and the index of the present equation."""

    jaxpr: Any
    environment: dict[Any, Value]
    index: int = 0

    def live_variables(self) -> list[Any]:
        """Variables that are used after the present equation."""
        later_atoms = [a for equation in self.jaxpr.eqns[self.index + 1 :] for a in equation.invars]
        atoms = [a for a in [*later_atoms, *self.jaxpr.outvars] if not isinstance(a, jax.extend.core.Literal)]
        return [v for v in dict.fromkeys(atoms) if v in self.environment]


class Storage:
    """Values of a program that is being written, and the statements that keep them in its memory."""

    def __init__(self, zero: ca.SX) -> None:
        """zero: see `primitives.zero_as`."""
        self.zero = zero
        self.statements: list[AnyStatement] = []
        self.frames: list[Frame] = []
        self.spans = Spans()
        self._materialised: dict[int, Value] = {}
        """Arrays that consist of symbols and constants only, by their identity."""
        self._addresses: dict[int, tuple[Address, ca.SX]] = {}
        """Addresses of the symbols, by the identity of their nodes, which the symbols keep alive."""

    def store(self, passed: Mapping[Address, Any]) -> None:
        """Write elements to addresses, and store all expressions that are used later."""
        elements = np.empty(len(passed), dtype=object)
        elements[:] = [*passed.values()]
        targets = {e.element_hash(): target for target, e in passed.items() if isinstance(e, ca.SX)}
        (stored,) = self.materialise([elements], targets)
        copies = {
            target: e for target, e in zip(passed, stored.tolist(), strict=True) if self.address(e) != target
        }
        self.compute_to([*copies.values()], [*copies])

    def materialise(self, values: list[Value], targets: Mapping[int, Address] | None = None) -> list[Value]:
        """Store all expressions that are used later, and return the values as symbols of their addresses.

        targets: addresses of some expressions, by their hashes; the others are stored where there is room.
        """
        variables = [(frame, v) for frame in self.frames for v in frame.live_variables()]
        stored: dict[int, ca.SX] = {}
        computed: list[ca.SX] = []
        for value in [*values, *(frame.environment[v] for frame, v in variables)]:
            expressions = {
                e.element_hash(): e
                for e in (() if self._is_materialised(value) else value.ravel().tolist())
                if isinstance(e, ca.SX) and not e.is_symbolic() and not e.is_constant()
            }
            expressions = {key: e for key, e in expressions.items() if key not in stored}
            places = {key: targets[key] for key in expressions if targets and key in targets}
            rest = [key for key in expressions if key not in places]
            start = self.reserve(len(rest))
            places |= {key: start.offset(k) for k, key in enumerate(rest)}
            stored |= {key: self.symbols(places[key], ()).item() for key in expressions}
            computed += expressions.values()
        self.compute_to(computed, [self._addresses[e.element_hash()][0] for e in stored.values()])

        def read_back(value: Value) -> Value:
            if self._is_materialised(value):
                return value
            flat = np.empty(value.size, dtype=object)
            for i, e in enumerate(value.ravel().tolist()):
                flat[i] = stored.get(e.element_hash(), e) if isinstance(e, ca.SX) else e
            return self.mark_materialised(flat.reshape(value.shape))

        for frame, v in variables:
            frame.environment[v] = read_back(frame.environment[v])
        return [read_back(value) for value in values]

    def _is_materialised(self, value: Value) -> bool:
        """Whether an array is known to consist of symbols and constants only."""
        return not is_traced(value) or id(value) in self._materialised

    def mark_materialised(self, value: Value) -> Value:
        self._materialised[id(value)] = value
        return value

    def compute(self, elements: list[Any], address: Address) -> None:
        """Straight-line code that writes elements to contiguous addresses."""
        self.compute_to(elements, [address.offset(k) for k in range(len(elements))])

    def compute_to(self, elements: list[Any], addresses: Sequence[Address]) -> None:
        """Straight-line code that writes elements to addresses."""
        if not elements:
            return
        results = ca.vertcat(*(e if isinstance(e, ca.SX) else ca.SX(e) for e in elements))
        symbols = [s for s in ca.symvar(results) if s.element_hash() in self._addresses]
        argument = ca.vertcat(*symbols) if symbols else ca.SX(0, 1)
        function = ca.Function("part", [argument, self.zero], [ca.densify(results)])
        reads = [self._addresses[s.element_hash()][0] for s in symbols]
        self.statements.append(Compute(function, reads, addresses))

    def symbols(self, start: Address, shape: Sequence[int]) -> Value:
        """Scalars that stand for consecutive numbers from an address on."""
        flat = np.empty(math.prod(shape), dtype=object)
        for k in range(flat.size):
            address = start.offset(k)
            flat[k] = symbol = ca.SX.sym(address.element)
            self._addresses[symbol.element_hash()] = address, symbol
        return flat.reshape(shape)

    def address(self, element: Any) -> Address | None:
        """The address of a symbol, None of anything else."""
        if isinstance(element, ca.SX) and element.is_symbolic():
            return self._addresses[element.element_hash()][0]
        return None

    def reserve(self, size: int) -> Address:
        return Address("m", self.spans.reserve(size))


def positions_read(statements: Sequence[AnyStatement], sizes: Sequence[int]) -> set[int]:
    """Positions of the arguments that statements read; all of an argument that not only straight-line code reads.

    sizes: of the arguments.
    """
    ends = [*itertools.accumulate(sizes)]
    positions: set[int] = set()
    for statement in statements:
        if isinstance(statement, Loop):
            positions |= positions_read(statement.body, sizes)
            continue
        for address in statement.addresses():
            if address.array != "x":
                continue
            positions.add(address.position)
            if not isinstance(statement, Compute) and address.position < ends[-1]:
                k = bisect.bisect_right(ends, address.position)
                positions |= set(range(ends[k] - sizes[k], ends[k]))
    return positions
