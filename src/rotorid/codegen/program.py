"""A traced function as a C program: straight-line code, with the long loops of `jax.lax.scan` kept as loops.

    x ──> part 0 ──> m ──> for k: [ slice of m ──> body ──> carry in m ] ──> part 1 ──> y

Values that a loop reads, and values that are used after a loop, are stored in the memory m before the loop and read back like
arguments. The body of a loop is a program in turn. Short loops are unrolled, so that constants of single iterations are folded.
Elementwise operations on large arrays (see `_ELEMENTWISE`) are loops, too. A program writes an address in m before it reads it,
so m keeps nothing between calls.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Sequence
from typing import Any

import casadi as ca
import jax
import jax.extend
import numpy as np

from rotorid.codegen.c_source import constant
from rotorid.codegen.casadi import evaluate, inner_jaxprs, runner, scalar_operations, value_of
from rotorid.codegen.constants import Constants
from rotorid.codegen.emit import CProgram, emit
from rotorid.codegen.ir import (
    Address,
    Call,
    Congruence,
    Copy,
    Elementwise,
    Loop,
    Operand,
    Routine,
    contiguous,
)
from rotorid.codegen.memory import Frame, Storage, positions_read
from rotorid.codegen.primitives import Value, is_traced, zero_as
from rotorid.codegen.routines import (
    is_loop,
    is_routine,
    is_shared,
    kind_of,
    overwrites,
    sparse_rows,
)

LOOPED = 4_000
"""A scan with more scalar operations in all iterations stays a loop."""

LARGE = 200
"""Least size of an array for which an operation of `_ELEMENTWISE` is a loop."""

_ELEMENTWISE = {
    "select_n": "SELECT(MASK({0} != ZERO), {2}, {1})",
    "is_finite": "SELECT(MASK(num_fabs({0}) < NUM(INFINITY)), ONE, ZERO)",
    "reduce_and": "SELECT(MASK({0} != ZERO), all, ZERO)",
}
"""Formulas in C on numbers: selection, and the test whether an array is finite."""

_ARITHMETIC = {"add": "{0} + {1}", "sub": "{0} - {1}", "mul": "{0} * {1}"}
"""The same between arrays that are in memory. Of others, numbers may be known, and the result shorter than a loop."""

_CALLS = (
    "jit",
    "pjit",
    "closed_call",
    "core_call",
    "remat",
    "checkpoint",
    "remat2",
    "custom_jvp_call",
    "custom_vjp_call",
)


@dataclasses.dataclass(frozen=True)
class _Function:
    """A function of a program in C.

    used: its arguments that it reads; behind them it takes the constants with these indices. numbers: of each result, the place
    of each number among those that it gives, or its value. size: how many numbers it gives.
    """

    name: str
    program: CProgram
    used: Sequence[int]
    constants: Sequence[int]
    numbers: Sequence[Sequence[int | float]]
    size: int


def c_program(
    closed: jax.extend.core.ClosedJaxpr,
    name: str,
    *,
    looped: int = LOOPED,
    constants: Constants | None = None,
) -> CProgram:
    """Write a jaxpr as a C program.

    Args:
        closed: a jaxpr that was traced in float64. Arguments of extended types (random keys) must be unused.
        name: of the C function, which takes one column of all arguments, in order and each in C order, and gives one of all
            results.
        looped: number of scalar operations above which a scan is a loop.
        constants: numbers that are further arguments, before the others.
    Returns:
        The C files and the size of the memory.
    Raises:
        UnsupportedPrimitiveError: a primitive has no rule.
    """
    zero = ca.SX.sym("zero")
    with jax.enable_x64(True), zero_as(zero):
        return _Writer(name, looped, constants, zero, {}).write(closed)


def straight_operations(jaxpr: Any) -> int:
    """The approximate number of scalar operations of a program, the body of a loop counted once."""
    total = 0
    for equation in jaxpr.eqns:
        inner = inner_jaxprs(equation)
        if _is_elementwise(equation):
            total += 1
        elif (inner and _is_loop(equation)) or (inner and equation.primitive.name in _CALLS):
            total += sum(map(straight_operations, inner))
        else:
            total += scalar_operations(equation)
    return total


class _Writer:
    """Writes one program (see `c_program`)."""

    def __init__(
        self,
        name: str,
        looped: int,
        constants: Constants | None,
        zero: ca.SX,
        functions: dict[int, _Function],
        *,
        is_function: bool = False,
    ) -> None:
        """zero: see `zero_as`. functions: those written so far for the whole program, by the identity of their jaxprs.
        is_function: whether this is one of them."""
        self._is_function = is_function
        self._name = name
        self._looped = looped
        self._constants = constants
        self._run = runner(self._constant)
        self._functions = functions
        self._called: dict[str, None] = {}
        self._constant_symbols: dict[int, ca.SX] = {}
        self._size = 0
        """How many arguments there are."""
        self._storage = Storage(zero)
        self._loops = 0
        self._tables: dict[str, str] = {}

    def write(self, closed: Any) -> CProgram:
        if self._constants is not None:
            for index in range(self._constants.values.size):
                self._constant_symbol(index)
        results = self._block(closed.jaxpr, closed.consts, self._arguments(closed.jaxpr))
        self._storage.compute([e for value in results for e in value.ravel().tolist()], Address("y", 0))
        program = self._emit()
        parts = [unit for function in self._functions.values() for unit in function.program.units]
        return CProgram([*program.units, *parts], program.memory)

    def function(self, closed: Any) -> _Function:
        """Write a jaxpr as a function of this program. Its results are the numbers that differ, in the order of their first
        occurrence."""
        arguments = self._arguments(closed.jaxpr)
        size = self._size
        results = self._block(closed.jaxpr, closed.consts, arguments)
        distinct: dict[int, ca.SX] = {}
        for value in results:
            elements = [e for e in value.ravel().tolist() if isinstance(e, ca.SX)]
            elements.sort(
                key=lambda e: self._storage.address(e) or Address("", 0)
            )  # what is contiguous stays so
            distinct |= {e.element_hash(): e for e in elements}
        places = {key: k for k, key in enumerate(distinct)}
        self._storage.compute([*distinct.values()], Address("y", 0))
        numbers = [
            [places[e.element_hash()] if isinstance(e, ca.SX) else float(e) for e in value.ravel().tolist()]
            for value in results
        ]
        used = sorted(
            k for k in positions_read(self._storage.statements, [v.size for v in arguments]) if k < size
        )
        return _Function(self._name, self._emit(), used, [*self._constant_symbols], numbers, len(places))

    def _emit(self) -> CProgram:
        tables = [f"static const num {name}[] = {{{numbers}}};" for numbers, name in self._tables.items()]
        called = [f"void {name}(const num *x, num *y, num *m);" for name in self._called]
        return emit(self._name, self._storage.statements, self._storage.spans, [*tables, *called])

    def _arguments(self, jaxpr: Any) -> list[Value]:
        """Symbols for the variables of a jaxpr, as further arguments."""
        arguments = []
        for variable in jaxpr.invars:
            shape = variable.aval.shape
            if jax.numpy.issubdtype(variable.aval.dtype, jax.dtypes.extended):
                arguments.append(np.empty(0, dtype=object))
                continue
            arguments.append(self._storage.symbols(Address("x", self._size), shape))
            self._size += math.prod(shape)
        return arguments

    def _constant_symbol(self, index: int) -> ca.SX:
        """The symbol of a constant that is an argument."""
        if index not in self._constant_symbols:
            self._constant_symbols[index] = self._storage.symbols(Address("x", self._size), ()).item()
            self._size += 1
        return self._constant_symbols[index]

    def _constant(self, atom: Any, constant: Any) -> Value:
        """The value of a literal or of a constant variable, with the symbols of the numbers that are arguments."""
        array = np.asarray(constant)
        indices = [] if self._constants is None else self._constants.indices(atom, array.size)
        if not any(index is not None for index in indices):
            return array
        value = np.empty(array.size, dtype=object)
        for k, (number, index) in enumerate(zip(array.ravel().tolist(), indices, strict=True)):
            value[k] = number if index is None else self._constant_symbol(index)
        return value.reshape(array.shape)

    def _block(self, jaxpr: Any, constants: Sequence[Any], arguments: Sequence[Value]) -> list[Value]:
        """The results of a jaxpr, as expressions; statements are written where a loop needs values in memory."""
        environment: dict[Any, Value] = dict(
            zip(jaxpr.constvars, map(self._constant, jaxpr.constvars, constants), strict=True)
        )
        frame = Frame(jaxpr, environment | dict(zip(jaxpr.invars, arguments, strict=True)))
        self._storage.frames.append(frame)
        for frame.index, equation in enumerate(jaxpr.eqns):
            inputs = [value_of(atom, frame.environment, self._constant) for atom in equation.invars]
            if _is_loop(equation, self._looped) and any(map(is_traced, inputs)):
                outputs = self._loop(equation, inputs)
            elif is_shared(equation) and any(map(is_traced, inputs)):
                outputs = self._call(equation, inputs)
            elif is_routine(equation) and any(map(is_traced, inputs)):
                outputs = self._routine(equation, inputs)
            elif (_is_elementwise(equation) and is_traced(inputs[0])) or self._is_on_arrays(equation, inputs):
                outputs = [self._elementwise(equation, inputs)]
            elif equation.primitive.name in _CALLS and _contains_loop(equation, self._looped):
                (inner,) = inner_jaxprs(equation, closed=True)
                outputs = self._block(inner.jaxpr, inner.consts, inputs)
            else:
                outputs = evaluate(equation, inputs, self._run)
            frame.environment |= zip(equation.outvars, outputs, strict=True)
        self._storage.frames.pop()
        return [value_of(atom, frame.environment, self._constant) for atom in jaxpr.outvars]

    def _loop(self, equation: Any, inputs: list[Value]) -> list[Value]:
        p = equation.params
        n, m, iterations, body = p["num_consts"], p["num_consts"] + p["num_carry"], p["length"], p["jaxpr"]
        carry, xs = inputs[n:m], inputs[m:]
        row_size = sum(x.size // iterations for x in xs)
        carry_at, xs_at = (
            self._storage.reserve(sum(c.size for c in carry)),
            self._storage.reserve(iterations * row_size),
        )
        rows = [x.reshape(iterations, -1).astype(object) for x in xs]
        constants = self._storage.materialise(inputs[:n])
        self._storage.compute([e for c in carry for e in c.ravel().tolist()], carry_at)
        self._storage.compute([e for k in range(iterations) for r in rows for e in r[k].tolist()], xs_at)

        outer_frames, self._storage.frames, outer_statements, self._storage.statements = (
            self._storage.frames,
            [],
            self._storage.statements,
            [],
        )
        slot = self._storage.reserve(row_size)
        parts, start = [], slot
        for x in xs:
            parts.append(self._storage.symbols(start, x.shape[1:]))
            start = start.offset(x.size // iterations)
        carry_symbols, start = [], carry_at
        for c in carry:
            carry_symbols.append(self._storage.symbols(start, c.shape))
            start = start.offset(c.size)
        results = self._block(body.jaxpr, body.consts, [*constants, *carry_symbols, *parts])
        next_carry, outputs = results[: p["num_carry"]], results[p["num_carry"] :]
        output_size = sum(y.size for y in outputs)
        next_at, output_at, stack_at = (
            self._storage.reserve(size)
            for size in (sum(c.size for c in next_carry), output_size, iterations * output_size)
        )
        self._storage.compute([e for value in next_carry for e in value.ravel().tolist()], next_at)
        self._storage.compute([e for value in outputs for e in value.ravel().tolist()], output_at)
        body_statements = self._storage.statements
        self._storage.frames, self._storage.statements = outer_frames, outer_statements

        counter = f"turn{self._loops}"
        self._loops += 1
        index = f"({iterations - 1} - {counter})" if p["reverse"] else counter
        copies = (
            Copy(slot, xs_at, row_size, source_step=f"{index} * {row_size}"),
            Copy(carry_at, next_at, sum(c.size for c in next_carry)),
            Copy(stack_at, output_at, output_size, target_step=f"{index} * {output_size}"),
        )
        load, *store = ([copy] if copy.size else [] for copy in copies)
        self._storage.statements.append(
            Loop(counter, iterations, [*load, *body_statements, *itertools.chain(*store)])
        )
        table = self._storage.symbols(stack_at, (iterations, output_size))
        stacks, column = [], 0
        for y in outputs:
            stacks.append(table[:, column : column + y.size].reshape(iterations, *y.shape))
            column += y.size
        return [*carry_symbols, *stacks]

    def _call(self, equation: Any, inputs: list[Value]) -> list[Value]:
        """A call of a function that is written once."""
        closed = equation.params["jaxpr"]
        if id(closed.jaxpr) not in self._functions:
            name = f"{self._name.split('_shared')[0]}_shared{len(self._functions)}"
            writer = _Writer(
                name, self._looped, self._constants, self._storage.zero, self._functions, is_function=True
            )
            self._functions[id(closed.jaxpr)] = writer.function(closed)
        function = self._functions[id(closed.jaxpr)]
        self._called[function.name] = None
        flat = [e for value in inputs for e in value.ravel().tolist()]
        constants = [self._constant_symbol(index) for index in function.constants]
        passed = {k: flat[k] for k in function.used} | {len(flat) + k: e for k, e in enumerate(constants)}
        column = self._storage.reserve(len(flat) + len(constants))
        self._storage.store({column.offset(k): e for k, e in passed.items()})
        results = self._storage.reserve(function.size)
        memory = self._storage.reserve(function.program.memory) if function.program.memory else None
        self._storage.statements.append(Call(function.name, column, results, memory))
        symbols = self._storage.symbols(results, (function.size,)).tolist()
        values = []
        for numbers, variable in zip(function.numbers, equation.outvars, strict=True):
            flat = np.empty(len(numbers), dtype=object)
            for k, number in enumerate(numbers):
                flat[k] = symbols[number] if isinstance(number, int) else number
            values.append(self._storage.mark_materialised(flat.reshape(variable.aval.shape)))
        return values

    def _congruence(self, inputs: list[Value]) -> list[Value]:
        """F P F^T + diag(q) by loops over what F holds."""
        F, *others = inputs
        rows, numbers = sparse_rows(F)
        places, passed = [], {}
        for elements in (numbers, *(value.ravel().tolist() for value in others)):
            addresses = [self._storage.address(e) for e in elements]
            if not elements or all(not isinstance(e, ca.SX) and e == 0.0 for e in elements):
                places.append(None)
            elif contiguous(addresses):
                places.append(addresses[0])
            else:
                places.append(self._storage.reserve(len(elements)))
                passed |= {places[-1].offset(k): e for k, e in enumerate(elements)}
        self._storage.store(passed)
        m, n = F.shape
        product, result = self._storage.reserve(m * n), self._storage.reserve(m * m)
        self._storage.statements.append(Congruence(rows, n, [*places, product, result]))
        return [self._storage.mark_materialised(self._storage.symbols(result, (m, m)))]

    def _routine(self, equation: Any, inputs: list[Value]) -> list[Value]:
        """A matrix routine on arrays in memory; what would be short is written out."""
        if not is_loop(kind_of(equation), inputs, is_shared=self._is_function):
            (inner,) = inner_jaxprs(equation, closed=True)
            return self._block(inner.jaxpr, inner.consts, inputs)
        if kind_of(equation) == "congruence_plus":
            return self._congruence(inputs)
        operands = []
        for value in self._storage.materialise(inputs):
            elements = value.ravel().tolist()
            if not is_traced(value) and not overwrites(equation):
                operands.append(self._table(elements))
                continue
            addresses = [self._storage.address(e) for e in elements]
            if contiguous(addresses) and not overwrites(equation):
                operands.append(addresses[0])
                continue
            address = self._storage.reserve(value.size)
            self._storage.compute(elements, address)
            operands.append(address)
        shapes = [v.aval.shape for v in equation.outvars]
        results = [self._storage.reserve(math.prod(shape)) for shape in shapes]
        arguments = [v.aval.shape for v in equation.invars]
        self._storage.statements.append(Routine(kind_of(equation), arguments, operands, results))
        values = [
            self._storage.symbols(address, shape) for address, shape in zip(results, shapes, strict=True)
        ]
        if kind_of(equation) == "downdate":  # its upper triangle is not written
            rows, columns = np.indices(shapes[0])
            values = [values[0][np.maximum(rows, columns), np.minimum(rows, columns)]]
        return [self._storage.mark_materialised(value) for value in values]

    def _table(self, elements: Sequence[float]) -> str:
        """The name of a table of constants; equal tables are shared."""
        numbers = ", ".join(constant(float(e)) for e in elements)
        if numbers not in self._tables:
            self._tables[numbers] = f"{self._name}_table{len(self._tables)}"
        return self._tables[numbers]

    def _elementwise(self, equation: Any, inputs: list[Value]) -> Value:
        """A loop over the numbers of arrays."""
        shape, formula = equation.outvars[0].aval.shape, (_ELEMENTWISE | _ARITHMETIC)[equation.primitive.name]
        operands = [self._operand(value) for value in self._storage.materialise(inputs)]
        size, start = max(value.size for value in inputs), self._storage.reserve(math.prod(shape))
        self._storage.statements.append(Elementwise(formula, operands, size, start, is_reduction=not shape))
        return self._storage.mark_materialised(self._storage.symbols(start, shape))

    def _is_on_arrays(self, equation: Any, inputs: Sequence[Value]) -> bool:
        """Whether an equation is arithmetic between large arrays that are in memory, or of one with one number."""
        size = equation.outvars[0].aval.size
        if equation.primitive.name not in _ARITHMETIC or size < LARGE or not any(map(is_traced, inputs)):
            return False

        def is_operand(value: Value) -> bool:
            if not is_traced(value):
                return value.size > 0 and bool(np.all(value == value.flat[0]))
            return value.size in (1, size) and None not in map(self._storage.address, value.ravel().tolist())

        return all(map(is_operand, inputs))

    def _operand(self, value: Value) -> Operand:
        """A settled array as an operand; it is copied where it is not contiguous."""
        elements = value.ravel().tolist()
        sources = [self._storage.address(e) or constant(float(e)) for e in elements]
        if sources.count(sources[0]) == len(sources):
            return Operand(sources[0], is_array=False)
        if contiguous([s if isinstance(s, Address) else None for s in sources]):
            return Operand(sources[0], is_array=True)
        address = self._storage.reserve(len(elements))
        self._storage.compute(elements, address)
        return Operand(address, is_array=True)


def _is_loop(equation: Any, looped: int = LOOPED) -> bool:
    return equation.primitive.name == "scan" and scalar_operations(equation) > looped


def _is_elementwise(equation: Any) -> bool:
    """Whether an equation becomes a loop over the numbers of an array; selections are between two arrays."""
    name, inputs, output = equation.primitive.name, equation.invars, equation.outvars[0].aval
    if name not in _ELEMENTWISE or inputs[-1].aval.size < LARGE:
        return False
    if name == "select_n":
        return (
            len(inputs) == 3
            and inputs[0].aval.shape in ((), output.shape)
            and inputs[0].aval.dtype == np.bool_
        )
    return name != "reduce_and" or not output.shape


def _contains_loop(equation: Any, looped: int) -> bool:
    return any(
        _is_loop(e, looped)
        or is_shared(e)
        or is_routine(e)
        or _is_elementwise(e)
        or (e.primitive.name in _CALLS and _contains_loop(e, looped))
        for jaxpr in inner_jaxprs(equation)
        for e in jaxpr.eqns
    )
