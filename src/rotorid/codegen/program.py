"""A traced function as a C program: straight-line code, with the long loops of `jax.lax.scan` kept as loops.

    x ──> part 0 ──> m ──> for k: [ slice of m ──> body ──> carry in m ] ──> part 1 ──> y

Values that a loop reads, and values that are used after a loop, are stored in the memory m before the loop and read back like
arguments. The body of a loop is a program in turn. Short loops are unrolled, so that constants of single iterations are folded.
Elementwise operations on large arrays (see `_ELEMENTWISE`) are loops, too. A program writes an address in m before it reads it,
so m keeps nothing between calls.
"""

from __future__ import annotations

import bisect
import dataclasses
import itertools
import math
from collections.abc import Mapping, Sequence
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
    AnyStatement,
    Call,
    Compute,
    Congruence,
    Copy,
    Elementwise,
    Loop,
    Operand,
    Routine,
    contiguous,
)
from rotorid.codegen.memory import Spans
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


@dataclasses.dataclass
class _Frame:
    """A jaxpr that is being traced: its values so far, and the index of the present equation."""

    jaxpr: Any
    environment: dict[Any, Value]
    index: int = 0

    def live_variables(self) -> list[Any]:
        """Variables that are used after the present equation."""
        later_atoms = [a for equation in self.jaxpr.eqns[self.index + 1 :] for a in equation.invars]
        atoms = [a for a in [*later_atoms, *self.jaxpr.outvars] if not isinstance(a, jax.extend.core.Literal)]
        return [v for v in dict.fromkeys(atoms) if v in self.environment]


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
    writer = _Writer(name, looped, constants, ca.SX.sym("zero"), {})
    with jax.enable_x64(True), zero_as(writer.zero):
        return writer.write(closed)


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
        self.zero = zero
        self._functions = functions
        self._called: dict[str, None] = {}
        self._constant_symbols: dict[int, ca.SX] = {}
        self._size = 0
        """How many arguments there are."""
        self._statements: list[AnyStatement] = []
        self._frames: list[_Frame] = []
        self._spans = Spans()
        self._loops = 0
        self._tables: dict[str, str] = {}
        self._materialised: dict[int, Value] = {}
        """Arrays that consist of symbols and constants only, by their identity."""
        self._addresses: dict[int, tuple[Address, ca.SX]] = {}
        """Addresses of the symbols, by the identity of their nodes, which the symbols keep alive."""

    def write(self, closed: Any) -> CProgram:
        if self._constants is not None:
            for index in range(self._constants.values.size):
                self._constant_symbol(index)
        results = self._block(closed.jaxpr, closed.consts, self._arguments(closed.jaxpr))
        self._compute([e for value in results for e in value.ravel().tolist()], Address("y", 0))
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
            elements.sort(key=lambda e: self._address(e) or Address("", 0))  # what is contiguous stays so
            distinct |= {e.element_hash(): e for e in elements}
        places = {key: k for k, key in enumerate(distinct)}
        self._compute([*distinct.values()], Address("y", 0))
        numbers = [
            [places[e.element_hash()] if isinstance(e, ca.SX) else float(e) for e in value.ravel().tolist()]
            for value in results
        ]
        used = sorted(k for k in _positions_read(self._statements, [v.size for v in arguments]) if k < size)
        return _Function(self._name, self._emit(), used, [*self._constant_symbols], numbers, len(places))

    def _emit(self) -> CProgram:
        tables = [f"static const num {name}[] = {{{numbers}}};" for numbers, name in self._tables.items()]
        called = [f"void {name}(const num *x, num *y, num *m);" for name in self._called]
        return emit(self._name, self._statements, self._spans, [*tables, *called])

    def _arguments(self, jaxpr: Any) -> list[Value]:
        """Symbols for the variables of a jaxpr, as further arguments."""
        arguments = []
        for variable in jaxpr.invars:
            shape = variable.aval.shape
            if jax.numpy.issubdtype(variable.aval.dtype, jax.dtypes.extended):
                arguments.append(np.empty(0, dtype=object))
                continue
            arguments.append(self._symbols(Address("x", self._size), shape))
            self._size += math.prod(shape)
        return arguments

    def _constant_symbol(self, index: int) -> ca.SX:
        """The symbol of a constant that is an argument."""
        if index not in self._constant_symbols:
            self._constant_symbols[index] = self._symbols(Address("x", self._size), ()).item()
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
        frame = _Frame(jaxpr, environment | dict(zip(jaxpr.invars, arguments, strict=True)))
        self._frames.append(frame)
        for frame.index, equation in enumerate(jaxpr.eqns):
            inputs = [value_of(atom, frame.environment, self._constant) for atom in equation.invars]
            if _is_loop(equation, self._looped) and any(map(is_traced, inputs)):
                outputs = self._loop(equation, inputs)
            elif is_shared(equation) and any(map(is_traced, inputs)):
                outputs = self._call(equation, inputs)
            elif is_routine(equation) and any(map(is_traced, inputs)):
                outputs = self._routine(equation, inputs)
            elif _is_elementwise(equation) and any(map(is_traced, inputs)):
                outputs = [self._elementwise(equation, inputs)]
            elif equation.primitive.name in _CALLS and _contains_loop(equation, self._looped):
                (inner,) = inner_jaxprs(equation, closed=True)
                outputs = self._block(inner.jaxpr, inner.consts, inputs)
            else:
                outputs = evaluate(equation, inputs, self._run)
            frame.environment |= zip(equation.outvars, outputs, strict=True)
        self._frames.pop()
        return [value_of(atom, frame.environment, self._constant) for atom in jaxpr.outvars]

    def _loop(self, equation: Any, inputs: list[Value]) -> list[Value]:
        p = equation.params
        n, m, iterations, body = p["num_consts"], p["num_consts"] + p["num_carry"], p["length"], p["jaxpr"]
        carry, xs = inputs[n:m], inputs[m:]
        row_size = sum(x.size // iterations for x in xs)
        carry_at, xs_at = self._reserve(sum(c.size for c in carry)), self._reserve(iterations * row_size)
        rows = [x.reshape(iterations, -1).astype(object) for x in xs]
        constants = self._materialise(inputs[:n])
        self._compute([e for c in carry for e in c.ravel().tolist()], carry_at)
        self._compute([e for k in range(iterations) for r in rows for e in r[k].tolist()], xs_at)

        outer_frames, self._frames, outer_statements, self._statements = (
            self._frames,
            [],
            self._statements,
            [],
        )
        slot = self._reserve(row_size)
        parts, start = [], slot
        for x in xs:
            parts.append(self._symbols(start, x.shape[1:]))
            start = start.offset(x.size // iterations)
        carry_symbols, start = [], carry_at
        for c in carry:
            carry_symbols.append(self._symbols(start, c.shape))
            start = start.offset(c.size)
        results = self._block(body.jaxpr, body.consts, [*constants, *carry_symbols, *parts])
        next_carry, outputs = results[: p["num_carry"]], results[p["num_carry"] :]
        output_size = sum(y.size for y in outputs)
        next_at, output_at, stack_at = (
            self._reserve(size)
            for size in (sum(c.size for c in next_carry), output_size, iterations * output_size)
        )
        self._compute([e for value in next_carry for e in value.ravel().tolist()], next_at)
        self._compute([e for value in outputs for e in value.ravel().tolist()], output_at)
        body_statements, self._frames, self._statements = self._statements, outer_frames, outer_statements

        counter = f"turn{self._loops}"
        self._loops += 1
        index = f"({iterations - 1} - {counter})" if p["reverse"] else counter
        copies = (
            Copy(slot, xs_at, row_size, source_step=f"{index} * {row_size}"),
            Copy(carry_at, next_at, sum(c.size for c in next_carry)),
            Copy(stack_at, output_at, output_size, target_step=f"{index} * {output_size}"),
        )
        load, *store = ([copy] if copy.size else [] for copy in copies)
        self._statements.append(
            Loop(counter, iterations, [*load, *body_statements, *itertools.chain(*store)])
        )
        table = self._symbols(stack_at, (iterations, output_size))
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
                name, self._looped, self._constants, self.zero, self._functions, is_function=True
            )
            self._functions[id(closed.jaxpr)] = writer.function(closed)
        function = self._functions[id(closed.jaxpr)]
        self._called[function.name] = None
        flat = [e for value in inputs for e in value.ravel().tolist()]
        constants = [self._constant_symbol(index) for index in function.constants]
        passed = {k: flat[k] for k in function.used} | {len(flat) + k: e for k, e in enumerate(constants)}
        column = self._reserve(len(flat) + len(constants))
        self._store({column.offset(k): e for k, e in passed.items()})
        results = self._reserve(function.size)
        memory = self._reserve(function.program.memory) if function.program.memory else None
        self._statements.append(Call(function.name, column, results, memory))
        symbols = self._symbols(results, (function.size,)).tolist()
        values = []
        for numbers, variable in zip(function.numbers, equation.outvars, strict=True):
            flat = np.empty(len(numbers), dtype=object)
            for k, number in enumerate(numbers):
                flat[k] = symbols[number] if isinstance(number, int) else number
            values.append(self._mark_materialised(flat.reshape(variable.aval.shape)))
        return values

    def _store(self, passed: Mapping[Address, Any]) -> None:
        """Write elements to addresses, and store all expressions that are used later."""
        elements = np.empty(len(passed), dtype=object)
        elements[:] = [*passed.values()]
        targets = {e.element_hash(): target for target, e in passed.items() if isinstance(e, ca.SX)}
        (stored,) = self._materialise([elements], targets)
        copies = {
            target: e
            for target, e in zip(passed, stored.tolist(), strict=True)
            if self._address(e) != target
        }
        self._compute_to([*copies.values()], [*copies])

    def _congruence(self, inputs: list[Value]) -> list[Value]:
        """F P F^T + diag(q) by loops over what F holds."""
        F, *others = inputs
        rows, numbers = sparse_rows(F)
        places, passed = [], {}
        for elements in (numbers, *(value.ravel().tolist() for value in others)):
            addresses = [self._address(e) for e in elements]
            if not elements or all(not isinstance(e, ca.SX) and e == 0.0 for e in elements):
                places.append(None)
            elif contiguous(addresses):
                places.append(addresses[0])
            else:
                places.append(self._reserve(len(elements)))
                passed |= {places[-1].offset(k): e for k, e in enumerate(elements)}
        self._store(passed)
        m, n = F.shape
        product, result = self._reserve(m * n), self._reserve(m * m)
        self._statements.append(Congruence(rows, n, [*places, product, result]))
        return [self._mark_materialised(self._symbols(result, (m, m)))]

    def _routine(self, equation: Any, inputs: list[Value]) -> list[Value]:
        """A matrix routine on arrays in memory; what would be short is written out."""
        if not is_loop(kind_of(equation), inputs, is_shared=self._is_function):
            (inner,) = inner_jaxprs(equation, closed=True)
            return self._block(inner.jaxpr, inner.consts, inputs)
        if kind_of(equation) == "congruence_plus":
            return self._congruence(inputs)
        operands = []
        for value in self._materialise(inputs):
            elements = value.ravel().tolist()
            if not is_traced(value) and not overwrites(equation):
                operands.append(self._table(elements))
                continue
            addresses = [self._address(e) for e in elements]
            if contiguous(addresses) and not overwrites(equation):
                operands.append(addresses[0])
                continue
            address = self._reserve(value.size)
            self._compute(elements, address)
            operands.append(address)
        shapes = [v.aval.shape for v in equation.outvars]
        results = [self._reserve(math.prod(shape)) for shape in shapes]
        arguments = [v.aval.shape for v in equation.invars]
        self._statements.append(Routine(kind_of(equation), arguments, operands, results))
        values = [self._symbols(address, shape) for address, shape in zip(results, shapes, strict=True)]
        if kind_of(equation) == "downdate":  # its upper triangle is not written
            rows, columns = np.indices(shapes[0])
            values = [values[0][np.maximum(rows, columns), np.minimum(rows, columns)]]
        return [self._mark_materialised(value) for value in values]

    def _table(self, elements: Sequence[float]) -> str:
        """The name of a table of constants; equal tables are shared."""
        numbers = ", ".join(constant(float(e)) for e in elements)
        if numbers not in self._tables:
            self._tables[numbers] = f"{self._name}_table{len(self._tables)}"
        return self._tables[numbers]

    def _elementwise(self, equation: Any, inputs: list[Value]) -> Value:
        """A loop over the numbers of arrays."""
        shape, formula = equation.outvars[0].aval.shape, _ELEMENTWISE[equation.primitive.name]
        operands = [self._operand(value) for value in self._materialise(inputs)]
        size, start = max(value.size for value in inputs), self._reserve(math.prod(shape))
        self._statements.append(Elementwise(formula, operands, size, start, is_reduction=not shape))
        return self._mark_materialised(self._symbols(start, shape))

    def _operand(self, value: Value) -> Operand:
        """A settled array as an operand; it is copied where it is not contiguous."""
        elements = value.ravel().tolist()
        sources = [self._address(e) or constant(float(e)) for e in elements]
        if sources.count(sources[0]) == len(sources):
            return Operand(sources[0], is_array=False)
        if contiguous([s if isinstance(s, Address) else None for s in sources]):
            return Operand(sources[0], is_array=True)
        address = self._reserve(len(elements))
        self._compute(elements, address)
        return Operand(address, is_array=True)

    def _materialise(self, values: list[Value], targets: Mapping[int, Address] | None = None) -> list[Value]:
        """Store all expressions that are used later, and return the values as symbols of their addresses.

        targets: addresses of some expressions, by their hashes; the others are stored where there is room.
        """
        variables = [(frame, v) for frame in self._frames for v in frame.live_variables()]
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
            start = self._reserve(len(rest))
            places |= {key: start.offset(k) for k, key in enumerate(rest)}
            stored |= {key: self._symbols(places[key], ()).item() for key in expressions}
            computed += expressions.values()
        self._compute_to(computed, [self._addresses[e.element_hash()][0] for e in stored.values()])

        def read_back(value: Value) -> Value:
            if self._is_materialised(value):
                return value
            flat = np.empty(value.size, dtype=object)
            for i, e in enumerate(value.ravel().tolist()):
                flat[i] = stored.get(e.element_hash(), e) if isinstance(e, ca.SX) else e
            return self._mark_materialised(flat.reshape(value.shape))

        for frame, v in variables:
            frame.environment[v] = read_back(frame.environment[v])
        return [read_back(value) for value in values]

    def _is_materialised(self, value: Value) -> bool:
        """Whether an array is known to consist of symbols and constants only."""
        return not is_traced(value) or id(value) in self._materialised

    def _mark_materialised(self, value: Value) -> Value:
        self._materialised[id(value)] = value
        return value

    def _compute(self, elements: list[Any], address: Address) -> None:
        """Straight-line code that writes elements to contiguous addresses."""
        self._compute_to(elements, [address.offset(k) for k in range(len(elements))])

    def _compute_to(self, elements: list[Any], addresses: Sequence[Address]) -> None:
        """Straight-line code that writes elements to addresses."""
        if not elements:
            return
        results = ca.vertcat(*(e if isinstance(e, ca.SX) else ca.SX(e) for e in elements))
        symbols = [s for s in ca.symvar(results) if s.element_hash() in self._addresses]
        argument = ca.vertcat(*symbols) if symbols else ca.SX(0, 1)
        function = ca.Function("part", [argument, self.zero], [ca.densify(results)])
        reads = [self._addresses[s.element_hash()][0] for s in symbols]
        self._statements.append(Compute(function, reads, addresses))

    def _symbols(self, start: Address, shape: Sequence[int]) -> Value:
        """Scalars that stand for consecutive numbers from an address on."""
        flat = np.empty(math.prod(shape), dtype=object)
        for k in range(flat.size):
            address = start.offset(k)
            flat[k] = symbol = ca.SX.sym(address.element)
            self._addresses[symbol.element_hash()] = address, symbol
        return flat.reshape(shape)

    def _address(self, element: Any) -> Address | None:
        """The address of a symbol, None of anything else."""
        if isinstance(element, ca.SX) and element.is_symbolic():
            return self._addresses[element.element_hash()][0]
        return None

    def _reserve(self, size: int) -> Address:
        return Address("m", self._spans.reserve(size))


def _positions_read(statements: Sequence[AnyStatement], sizes: Sequence[int]) -> set[int]:
    """Positions of the arguments that statements read; all of an argument that not only straight-line code reads.

    sizes: of the arguments.
    """
    ends = [*itertools.accumulate(sizes)]
    positions: set[int] = set()
    for statement in statements:
        if isinstance(statement, Loop):
            positions |= _positions_read(statement.body, sizes)
            continue
        for address in statement.addresses():
            if address.array != "x":
                continue
            positions.add(address.position)
            if not isinstance(statement, Compute) and address.position < ends[-1]:
                k = bisect.bisect_right(ends, address.position)
                positions |= set(range(ends[k] - sizes[k], ends[k]))
    return positions


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
