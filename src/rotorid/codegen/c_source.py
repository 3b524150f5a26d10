"""C source of a CasADi function on scalars: straight-line code over lanes, one filter in each lane.

The instructions become single assignments. Equal ones are shared, truth values stay masks instead of numbers, a choice between
two values is one selection, and a product that is only added or subtracted is fused with each addition. The code is cut into
functions of `CHUNK` assignments, so that a C compiler's time grows no faster than the code; values that are used in later
chunks are stored in memory.

The arithmetic is on the type `num` of "num.h": a double, or a vector of several. One program thus steps one filter, or
several side by side with the same result to the last bit.
"""

from __future__ import annotations

import heapq
import itertools
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, no_type_check

import casadi as ca

from rotorid.codegen.ir import Address
from rotorid.errors import SettingError

CHUNK = 500
"""Assignments to a C function."""

# fmt: off
_ARITHMETIC = {
    ca.OP_NEG: "-{0}", ca.OP_SQ: "{0} * {0}", ca.OP_TWICE: "{0} + {0}", ca.OP_INV: "ONE / {0}",
    ca.OP_ADD: "{0} + {1}", ca.OP_SUB: "{0} - {1}", ca.OP_MUL: "{0} * {1}", ca.OP_DIV: "{0} / {1}",
    **{op: f"num_{name}({{0}})" for op, name in {
        ca.OP_SQRT: "sqrt", ca.OP_FABS: "fabs", ca.OP_SIGN: "sign", ca.OP_FLOOR: "floor", ca.OP_CEIL: "ceil",
        ca.OP_EXP: "exp", ca.OP_EXPM1: "expm1", ca.OP_LOG: "log", ca.OP_LOG1P: "log1p", ca.OP_ERF: "erf",
        ca.OP_SIN: "sin", ca.OP_COS: "cos", ca.OP_TAN: "tan",
        ca.OP_ASIN: "asin", ca.OP_ACOS: "acos", ca.OP_ATAN: "atan",
        ca.OP_SINH: "sinh", ca.OP_COSH: "cosh", ca.OP_TANH: "tanh",
        ca.OP_ASINH: "asinh", ca.OP_ACOSH: "acosh", ca.OP_ATANH: "atanh",
    }.items()},
    **{op: f"num_{name}({{0}}, {{1}})" for op, name in {
        ca.OP_FMIN: "min", ca.OP_FMAX: "max", ca.OP_POW: "pow", ca.OP_CONSTPOW: "pow", ca.OP_ATAN2: "atan2",
        ca.OP_FMOD: "fmod",
    }.items()},
}
_COMPARISONS = {ca.OP_LT: "<", ca.OP_LE: "<=", ca.OP_EQ: "==", ca.OP_NE: "!="}
_LOGICAL = {ca.OP_AND: "{0} & {1}", ca.OP_OR: "{0} | {1}"}
_MASK_OPERATIONS = _LOGICAL | {ca.OP_EQ: "NOT({0} ^ {1})", ca.OP_NE: "{0} ^ {1}"}
_PRODUCTS = {_ARITHMETIC[op] for op in (ca.OP_MUL, ca.OP_SQ)}
_FUSED = {
    _ARITHMETIC[ca.OP_ADD]: ("num_fma({0}, {1}, {2})", "num_fma({0}, {1}, {2})"),
    _ARITHMETIC[ca.OP_SUB]: ("num_fma({0}, {1}, -{2})", "num_fma(-{0}, {1}, {2})"),
}
"""An operation on a product and another number, by the place of the product: one rounding, and one instruction."""
_COMMUTATIVE = {ca.OP_ADD, ca.OP_MUL, ca.OP_AND, ca.OP_OR, ca.OP_EQ, ca.OP_NE}
# fmt: on


class _Value(NamedTuple):
    """A formula over other values, by their numbers. truth: whether it is a mask."""

    formula: str
    operands: tuple[int, ...] = ()
    truth: bool = False


@no_type_check  # as all that is called for every scalar
class _Values:
    """Single assignments, equal ones shared. addresses: of the values that are arguments, by their numbers."""

    def __init__(self) -> None:
        self.all: list[_Value] = []
        self.addresses: dict[int, Address] = {}
        self._numbers: dict[_Value, int] = {}
        self._opposites: dict[int, int] = {}
        self._masked: dict[int, tuple[int, int]] = {}
        """Mask and number of the values that are selections between a number and zero."""

    def add(self, formula: str, *operands: int, truth: bool = False) -> int:
        value = _Value(formula, operands, truth)
        number = self._numbers.setdefault(value, len(self.all))
        if number == len(self.all):
            self.all.append(value)
        return number

    def constant(self, c: float) -> int:
        return self.add(constant(c))

    def argument(self, address: Address) -> int:
        number = self.add(address.element)
        self.addresses[number] = address
        return number

    def truth(self, value: int) -> int:
        """The value as a mask."""
        return value if self.all[value].truth else self.add("MASK({0} != ZERO)", value, truth=True)

    def number(self, value: int) -> int:
        """The value as a number."""
        return self.add("SELECT({0}, ONE, ZERO)", value) if self.all[value].truth else value

    def operation(self, op: int, operands: list[int]) -> int:
        """The result of one of CasADi's operations."""
        if op == ca.OP_ASSIGN:
            return operands[0]
        if op == ca.OP_NOT:
            return self._not(self.truth(operands[0]))
        if op == ca.OP_IF_ELSE_ZERO:
            mask, number = self.truth(operands[0]), self.number(operands[1])
            selection = self.add("SELECT({0}, {1}, ZERO)", mask, number)
            self._masked[selection] = mask, number
            return selection
        if op == ca.OP_ADD and all(o in self._masked for o in operands):
            (mask, if_true), (other, if_false) = (self._masked[o] for o in operands)
            if self._opposites.get(mask) == other:
                return self.add("SELECT({0}, {1}, {2})", mask, if_true, if_false)
        if op in _COMMUTATIVE:
            operands = sorted(operands)
        if op in _LOGICAL or (op in _MASK_OPERATIONS and all(self.all[o].truth for o in operands)):
            return self.add(_MASK_OPERATIONS[op], *map(self.truth, operands), truth=True)
        numbers = [self.number(o) for o in operands]
        if op in _COMPARISONS:
            return self.add(f"MASK({{0}} {_COMPARISONS[op]} {{1}})", *numbers, truth=True)
        if op not in _ARITHMETIC:
            raise SettingError(f"CasADi's operation {op} has no C form in rotorid")
        return self.add(_ARITHMETIC[op], *numbers)

    def _not(self, mask: int) -> int:
        if mask not in self._opposites:
            opposite = self.add("NOT({0})", mask, truth=True)
            self._opposites |= {mask: opposite, opposite: mask}
        return self._opposites[mask]


@no_type_check
def constant(c: float) -> str:
    """A number in C."""
    return f"NUM({c!r})".replace("nan", "NAN").replace("inf", "INFINITY")


def c_source(
    function: ca.Function,
    name: str,
    reads: Sequence[Address],
    writes: Sequence[Address],
    free: Callable[[int], int],
) -> list[str]:
    """Text of C files that define `void NAME(const num *x, num *y, num *m)`, for a function of one column that gives one.

    Args:
        function: of one column, with one column as result. Further arguments stand for zero (see `primitives.zero_as`).
        name: of the C function.
        reads, writes: addresses of its arguments and results; no address is both.
        free: returns the index in m of a free range of the given size.
    Returns:
        The files, which include "num.h" (in the folder `c`).
    Raises:
        SettingError: an operation has no C form.
    """
    values, results = _assignments(function, reads)
    _fuse_products(values, results)
    order = _dependencies(values, results)
    chunks = [order[i : i + CHUNK] for i in range(0, len(order), CHUNK)]
    chunk_of = {value: k for k, chunk in enumerate(chunks) for value in chunk}
    slots, slot_count = _slots(values, chunks, chunk_of)

    parts = []
    for k, chunk in enumerate(chunks):
        outputs = [(writes[place].element, v) for place, v in enumerate(results) if chunk_of.get(v) == k]
        parts.append(_chunk_function(f"{name}_{k}", values, chunk, outputs, slots))
    copies = [
        (writes[place], values.addresses.get(v, values.all[v].formula))
        for place, v in enumerate(results)
        if v not in chunk_of
    ]
    lines = _copies(copies)
    for start in range(0, len(lines), CHUNK):
        body = "\n  ".join(lines[start : start + CHUNK])
        parts.append(f"{_signature(f'{name}_{len(parts)}')} {{\n  {body}\n}}\n")
    declarations = "\n".join(f"{_signature(f'{name}_{k}')};" for k in range(len(parts)))
    calls = "\n".join(f"  {name}_{k}(x, y, m, w);" for k in range(len(parts)))
    entry = (
        f"{declarations}\n\nvoid {name}(const num *x, num *y, num *m) {{\n"
        f"  num *w = &m[{free(slot_count)}];\n{calls}\n}}\n"
    )
    return [f'#include "num.h"\n\n{text}' for text in [entry, *parts]]


def _slots(
    values: _Values, chunks: Sequence[Sequence[int]], chunk_of: Mapping[int, int]
) -> tuple[dict[int, int], int]:
    """The slot of each value that is used in a later chunk, and the number of slots. chunk_of: the chunk of each value."""
    last_use: dict[int, int] = {}
    for k, chunk in enumerate(chunks):
        for value in chunk:
            last_use |= {o: k for o in values.all[value].operands if chunk_of.get(o, k) != k}
    slots: dict[int, int] = {}
    free: list[int] = []
    count = 0
    for k, chunk in enumerate(chunks):
        for value in chunk:
            if value in last_use:
                slots[value] = heapq.heappop(free) if free else count
                count = max(count, slots[value] + 1)
        for value, slot in slots.items():
            if last_use[value] == k:
                heapq.heappush(free, slot)
    return slots, count


class _Run(NamedTuple):
    """Copies to addresses at equal steps: how many, the first, and the steps of their targets and sources. A source in C is a
    constant."""

    length: int
    target: Address
    source: Address | str
    steps: tuple[int, int] = (1, 1)


_FEWEST = 4
"""Fewest copies at other steps than 1 that become a loop."""


def _copies(pairs: Sequence[tuple[Address, Address | str]]) -> list[str]:
    """Statements that write arguments and constants to addresses; those at equal steps by one loop, such loops by another."""
    lines = []
    for (length, steps), alike in itertools.groupby(_runs(pairs), key=lambda run: (run.length, run.steps)):
        firsts = [(run.target, run.source) for run in alike]
        outer = _runs(firsts) if length > 1 else [_Run(1, *first) for first in firsts]
        lines += [_copy_line(_Run(length, run.target, run.source, steps), run) for run in outer]
    return lines


@no_type_check  # called for every copy
def _runs(pairs: Sequence[tuple[Address, Address | str]]) -> Iterator[_Run]:
    """Copies in the longest runs, from the first on."""
    steps = [_steps(*pair, *following) for pair, following in itertools.pairwise(pairs)]
    start = 0
    while start < len(pairs):
        step, end = steps[start] if start < len(steps) else None, start
        while step is not None and end < len(steps) and steps[end] == step:
            end += 1
        length = end - start + 1
        is_loop = length >= _FEWEST or (length > 1 and step in ((1, 1), (1, 0)))
        run = _Run(length, *pairs[start], step) if is_loop else _Run(1, *pairs[start])
        yield run
        start += run.length


@no_type_check
def _steps(
    target: Address, source: Address | str, next_target: Address, next_source: Address | str
) -> tuple[int, int] | None:
    """By how many numbers target and source of a copy follow those of another, 0 for equal constants; None where no loop can
    pass to it."""
    step = next_target.position - target.position
    if target.array != next_target.array or step < 0:
        return None
    if source == next_source:
        return step, 0
    if type(source) is str or type(next_source) is str:
        return None
    source_step = next_source.position - source.position
    return (step, source_step) if source.array == next_source.array and source_step > 0 else None


def _copy_line(run: _Run, outer: _Run) -> str:
    """The C code of a run, or of a run of runs."""
    loops = [(r, k) for r, k in ((outer, "j"), (run, "i")) if r.length > 1]

    def element(first: Address | str, steps: Sequence[int]) -> str:
        counters = [(step, k) for step, (_, k) in zip(steps, loops, strict=True) if step]
        if isinstance(first, str) or not counters:
            return first if isinstance(first, str) else first.element
        index = " + ".join(k if step == 1 else f"{step} * {k}" for step, k in counters)
        return f"(&{first.element})[{index}]"

    rolled = "" if len(loops) < 2 and run.steps == (1, 1) else "ROLLED "
    heads = "".join(f"{rolled}for (int {k} = 0; {k} < {r.length}; {k}++) " for r, k in loops)
    target, source = (
        element(first, [r.steps[side] for r, _ in loops])
        for side, first in enumerate((run.target, run.source))
    )
    return f"{heads}{target} = {source};"


def _assignments(function: ca.Function, reads: Sequence[Address]) -> tuple[_Values, list[int]]:
    """The function's instructions as single assignments, and the values that are its results."""
    values = _Values()
    work: dict[int, int] = {}
    results: dict[int, int] = {}
    instructions = [
        (function.instruction_id(k), function.instruction_input(k), function.instruction_output(k))
        for k in range(function.n_instructions())
    ]
    shared = _shared_divisors(instructions)
    for k, (op, operands, target) in enumerate(instructions):
        if op == ca.OP_OUTPUT:
            results[target[1]] = values.number(work[operands[0]])
        elif op == ca.OP_INPUT:
            argument, place = operands
            work[target[0]] = values.constant(0.0) if argument else values.argument(reads[place])
        elif op == ca.OP_CONST:
            work[target[0]] = values.constant(function.instruction_constant(k))
        elif k in shared:
            dividend, divisor = (work[i] for i in operands)
            work[target[0]] = values.operation(ca.OP_MUL, [dividend, values.operation(ca.OP_INV, [divisor])])
        else:
            work[target[0]] = values.operation(op, [work[i] for i in operands])
    return values, [results[place] for place in sorted(results)]


def _shared_divisors(instructions: Sequence[tuple[int, Sequence[int], Sequence[int]]]) -> set[int]:
    """The divisions by a number that divides several, which become products with its inverse.

    CasADi writes a product with an inverse as a division, too.
    """
    written: dict[int, int] = {}
    divisions: dict[int, list[int]] = defaultdict(list)
    for k, (op, operands, target) in enumerate(instructions):
        if op == ca.OP_DIV:
            divisions[written[operands[1]]].append(k)
        if op != ca.OP_OUTPUT:
            written[target[0]] = k
    return {k for several in divisions.values() if len(several) > 1 for k in several}


@no_type_check
def _fuse_products(values: _Values, results: Iterable[int]) -> None:
    """Put additions of products in place of products that are only added or subtracted."""
    order = _dependencies(values, results)
    other_uses, uses = set(results), Counter()
    for v in order:
        formula, operands, _ = values.all[v]
        uses.update(operands)
        if formula not in _FUSED:
            other_uses.update(operands)
    for v in order:
        formula, operands, _ = values.all[v]
        if formula not in _FUSED:
            continue
        places = [
            k for k, o in enumerate(operands) if o not in other_uses and values.all[o].formula in _PRODUCTS
        ]
        if not places:
            continue
        place = min(places, key=lambda k: (uses[operands[k]], -operands[k]))
        product, other = values.all[operands[place]], operands[1 - place]
        factors = product.operands * (2 // len(product.operands))
        values.all[v] = _Value(_FUSED[formula][place], (*factors, other))
        other_uses.update(o for k, o in enumerate(operands) if k != place)


def _dependencies(values: _Values, results: Iterable[int]) -> list[int]:
    """The values that the results depend on, in their order, without constants and arguments."""
    dependencies, pending = set(), list(results)
    while pending:
        value = pending.pop()
        if value not in dependencies and values.all[value].operands:
            dependencies.add(value)
            pending += values.all[value].operands
    return sorted(dependencies)


def _signature(name: str) -> str:
    return f"void {name}(const num *restrict x, num *restrict y, num *restrict m, num *restrict w)"


@no_type_check
def _chunk_function(
    name: str,
    values: _Values,
    chunk: Sequence[int],
    outputs: Sequence[tuple[str, int]],
    slots: dict[int, int],
) -> str:
    """A C function that computes a chunk of the values; values used in other chunks have a slot in w."""
    lines, loaded = [], set()
    places = defaultdict(list)
    for place, value in outputs:
        places[value].append(place)

    def reference(value: int) -> str:
        if not values.all[value].operands:
            return values.all[value].formula
        if value not in loaded:
            loaded.add(value)
            slot = slots[value]
            lines.append(
                f"const mask t{value} = GET_MASK(w[{slot}]);"
                if values.all[value].truth
                else f"const num t{value} = w[{slot}];"
            )
        return f"t{value}"

    for value in chunk:
        v = values.all[value]
        formula = v.formula.format(*map(reference, v.operands))
        loaded.add(value)
        lines.append(f"const {'mask' if v.truth else 'num'} t{value} = {formula};")
        if value in slots:
            lines.append(f"w[{slots[value]}] = {f'PUT_MASK(t{value})' if v.truth else f't{value}'};")
        lines += [
            f"{place} = t{value};" for place in places[value]
        ]  # at once, so that it need not be kept in a register
    return f"{_signature(name)} {{\n  " + "\n  ".join(lines) + "\n}\n"
