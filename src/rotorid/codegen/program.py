"""A traced function as a C program: straight-line code, with the long loops of `jax.lax.scan` kept as loops.

    x ──> part 0 ──> m ──> for k: [ slice of m ──> body ──> carry in m ] ──> part 1 ──> y

What a loop needs, and what outlives one, waits in the memory m: whatever is computed before a loop is written there, and
read back as if it were an argument. A loop's body is a program in turn. Short loops are unrolled, so that what is known
in some of their turns is folded. What is done to every number of a large array alone (see `_WIDE`) is a loop too.
Nothing in m outlives a call: a program writes there before it reads.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import casadi as ca
import jax
import jax.extend
import numpy as np

from rotorid.export.c_source import constant, neighbours
from rotorid.export.casadi import evaluate, inner_jaxprs, scalar_operations, value_of
from rotorid.export.listing import CProgram, Line, listed
from rotorid.export.memory import Spans
from rotorid.export.primitives import Value, is_traced
from rotorid.export.routines import is_routine, overwrites, routine_lines

LOOPED = 4_000
"""A scan of more scalar operations, all turns together, stays a loop."""

LARGE = 200
"""Numbers of an array from which on an operation of `_WIDE` is a loop over them."""

_WIDE = {
    "select_n": "SELECT(MASK({0} != ZERO), {2}, {1})",
    "is_finite": "SELECT(MASK(num_fabs({0}) < NUM(INFINITY)), ONE, ZERO)",
    "reduce_and": "SELECT(MASK({0} != ZERO), all, ZERO)",
}
"""Formulas in C on numbers: of choosing, and of what leads from an array to whether all of it is finite."""

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


@dataclasses.dataclass
class _Frame:
    """A jaxpr under way: its values so far, and where it is."""

    jaxpr: Any
    known: dict[Any, Value]
    at: int = 0

    def live(self) -> list[Any]:
        """Variables that are used after the present equation."""
        later = [a for equation in self.jaxpr.eqns[self.at + 1 :] for a in equation.invars]
        atoms = [a for a in [*later, *self.jaxpr.outvars] if not isinstance(a, jax.extend.core.Literal)]
        return [v for v in dict.fromkeys(atoms) if v in self.known]


def c_program(closed: jax.extend.core.ClosedJaxpr, name: str, *, looped: int = LOOPED) -> CProgram:
    """The C program of a jaxpr that was traced in float64: from one column of all arguments to one of all results.

    They lie one after the other, each in C order. Arguments that are neither numbers nor truth values must be unused. looped:
    operations from which on a scan is a loop. Raises UnsupportedPrimitiveError for a primitive without a rule.
    """
    with jax.enable_x64(True):
        return _Writer(name, looped).whole(closed)


def straight_operations(jaxpr: Any) -> int:
    """About how many scalar operations the program has, a loop's body counted once."""
    total = 0
    for equation in jaxpr.eqns:
        inner = inner_jaxprs(equation)
        if _is_wide(equation):
            total += 1
        elif (inner and _is_loop(equation)) or (inner and equation.primitive.name in _CALLS):
            total += sum(map(straight_operations, inner))
        else:
            total += scalar_operations(equation)
    return total


class _Writer:
    """Writes one program."""

    def __init__(self, name: str, looped: int) -> None:
        self._name = name
        self._looped = looped
        self._lines: list[Line] = []
        self._frames: list[_Frame] = []
        self._spans = Spans()
        self._loops = 0
        self._tables: dict[str, str] = {}
        self._plain: dict[int, Value] = {}
        """Arrays of nothing but arguments and constants, by their identity."""

    def whole(self, closed: Any) -> CProgram:
        arguments, start = [], 0
        for variable in closed.jaxpr.invars:
            shape = variable.aval.shape
            if jax.numpy.issubdtype(variable.aval.dtype, jax.dtypes.extended):
                arguments.append(np.empty(0, dtype=object))
                continue
            arguments.append(_symbols("x", start, shape))
            start += math.prod(shape)
        results = self._block(closed.jaxpr, closed.consts, arguments)
        self._part([e for value in results for e in value.ravel().tolist()], "y", 0)
        tables = [f"static const num {name}[] = {{{numbers}}};" for numbers, name in self._tables.items()]
        return listed(self._name, self._lines, self._spans, tables)

    def _block(self, jaxpr: Any, constants: Sequence[Any], arguments: Sequence[Value]) -> list[Value]:
        """The results of a jaxpr; code is written where a loop asks for it."""
        known: dict[Any, Value] = dict(zip(jaxpr.constvars, map(np.asarray, constants), strict=True))
        frame = _Frame(jaxpr, known | dict(zip(jaxpr.invars, arguments, strict=True)))
        self._frames.append(frame)
        for frame.at, equation in enumerate(jaxpr.eqns):
            inputs = [value_of(atom, frame.known) for atom in equation.invars]
            if _is_loop(equation, self._looped) and any(map(is_traced, inputs)):
                outputs = self._loop(equation, inputs)
            elif is_routine(equation) and any(map(is_traced, inputs)):
                outputs = self._routine(equation, inputs)
            elif _is_wide(equation) and any(map(is_traced, inputs)):
                outputs = [self._wide(equation, inputs)]
            elif equation.primitive.name in _CALLS and _holds_loop(equation, self._looped):
                (inner,) = inner_jaxprs(equation, closed=True)
                outputs = self._block(inner.jaxpr, inner.consts, inputs)
            else:
                outputs = evaluate(equation, inputs)
            frame.known |= zip(equation.outvars, outputs, strict=True)
        self._frames.pop()
        return [value_of(atom, frame.known) for atom in jaxpr.outvars]

    def _loop(self, equation: Any, inputs: list[Value]) -> list[Value]:
        p = equation.params
        n, m, turns, body = p["num_consts"], p["num_consts"] + p["num_carry"], p["length"], p["jaxpr"]
        carry, xs = inputs[n:m], inputs[m:]
        row = sum(x.size // turns for x in xs)
        carry_at, xs_at = self._reserve(sum(c.size for c in carry)), self._reserve(turns * row)
        rows = [x.reshape(turns, -1).astype(object) for x in xs]
        constants = self._settle(inputs[:n])
        self._part([e for c in carry for e in c.ravel().tolist()], "m", carry_at)
        self._part([e for k in range(turns) for r in rows for e in r[k].tolist()], "m", xs_at)

        outer, self._frames, lines, self._lines = self._frames, [], self._lines, []
        slot = self._reserve(row)
        parts, start = [], slot
        for x in xs:
            parts.append(_symbols("m", start, x.shape[1:]))
            start += x.size // turns
        carried, start = [], carry_at
        for c in carry:
            carried.append(_symbols("m", start, c.shape))
            start += c.size
        results = self._block(body.jaxpr, body.consts, [*constants, *carried, *parts])
        new, made = results[: p["num_carry"]], results[p["num_carry"] :]
        made_row = sum(y.size for y in made)
        new_at, made_at, all_at = (
            self._reserve(size) for size in (sum(c.size for c in new), made_row, turns * made_row)
        )
        self._part([e for value in new for e in value.ravel().tolist()], "m", new_at)
        self._part([e for value in made for e in value.ravel().tolist()], "m", made_at)
        inside, self._frames, self._lines = self._lines, outer, lines

        counter = f"turn{self._loops}"
        self._loops += 1
        index = f"({turns - 1} - {counter})" if p["reverse"] else counter
        self._lines += [
            Line(f"for (int {counter} = 0; {counter} < {turns}; {counter}++) {{", turns=1),
            *_copied(slot, f"{xs_at} + {index} * {row}", row),
            *inside,
            *_copied(carry_at, new_at, sum(c.size for c in new)),
            *_copied(f"{all_at} + {index} * {made_row}", made_at, made_row),
            Line("}", turns=-1),
        ]
        table = _symbols("m", all_at, (turns, made_row))
        stacked, column = [], 0
        for y in made:
            stacked.append(table[:, column : column + y.size].reshape(turns, *y.shape))
            column += y.size
        return [*carried, *stacked]

    def _routine(self, equation: Any, inputs: list[Value]) -> list[Value]:
        """A matrix routine over memory."""
        places = []
        for value in self._settle(inputs):
            elements = value.ravel().tolist()
            if not is_traced(value) and not overwrites(equation):
                places.append(self._table(elements))
                continue
            names = [e.name() if isinstance(e, ca.SX) and e.is_symbolic() else "" for e in elements]
            if neighbours(names) and not overwrites(equation):
                places.append(f"&{names[0]}")
                continue
            at = self._reserve(value.size)
            self._part(elements, "m", at)
            places.append(f"m + {at}")
        shapes = [v.aval.shape for v in equation.outvars]
        results = [self._reserve(math.prod(shape)) for shape in shapes]
        self._lines.append(Line("\n".join(routine_lines(equation, places, [f"m + {at}" for at in results]))))
        return [self._now_plain(_symbols("m", at, shape)) for at, shape in zip(results, shapes, strict=True)]

    def _table(self, elements: Sequence[float]) -> str:
        """Name of a table of constants; equal ones are one."""
        numbers = ", ".join(constant(float(e)) for e in elements)
        if numbers not in self._tables:
            self._tables[numbers] = f"{self._name}_table{len(self._tables)}"
        return self._tables[numbers]

    def _wide(self, equation: Any, inputs: list[Value]) -> Value:
        """A loop over the numbers of arrays."""
        shape, formula = equation.outvars[0].aval.shape, _WIDE[equation.primitive.name]
        operands = [self._operand(value) for value in self._settle(inputs)]
        size, at = max(value.size for value in inputs), self._reserve(math.prod(shape))
        loop = f"for (int i = 0; i < {size}; i++)"
        if shape:
            self._lines.append(Line(f"{loop} m[{at} + i] = {formula.format(*operands)};"))
        else:
            self._lines.append(
                Line(f"{{ num all = ONE; {loop} all = {formula.format(*operands)}; m[{at}] = all; }}")
            )
        return self._now_plain(_symbols("m", at, shape))

    def _operand(self, value: Value) -> str:
        """Number i of an array that is settled, in C; written down once more where it does not lie in one piece."""
        elements = value.ravel().tolist()
        texts = [
            e.name() if isinstance(e, ca.SX) and e.is_symbolic() else constant(float(e)) for e in elements
        ]
        if texts.count(texts[0]) == len(texts):
            return texts[0]
        if neighbours(texts):
            return f"(&{texts[0]})[i]"
        at = self._reserve(len(elements))
        self._part(elements, "m", at)
        return f"m[{at} + i]"

    def _settle(self, values: list[Value]) -> list[Value]:
        """Write down what has been computed and is used later; the values, read back from there."""
        live = [(frame, v) for frame in self._frames for v in frame.live()]
        stored: dict[int, ca.SX] = {}
        computed: list[ca.SX] = []
        for value in [*values, *(frame.known[v] for frame, v in live)]:
            new = {
                e.element_hash(): e
                for e in (() if self._is_plain(value) else value.ravel().tolist())
                if isinstance(e, ca.SX) and not e.is_symbolic() and not e.is_constant()
            }
            new = {key: e for key, e in new.items() if key not in stored}
            stored |= zip(new, _symbols("m", self._reserve(len(new)), (len(new),)).tolist(), strict=True)
            computed += new.values()
        self._written_to(computed, [place.name() for place in stored.values()])

        def read_back(value: Value) -> Value:
            if self._is_plain(value):
                return value
            flat = np.empty(value.size, dtype=object)
            for i, e in enumerate(value.ravel().tolist()):
                flat[i] = stored.get(e.element_hash(), e) if isinstance(e, ca.SX) else e
            return self._now_plain(flat.reshape(value.shape))

        for frame, v in live:
            frame.known[v] = read_back(frame.known[v])
        return [read_back(value) for value in values]

    def _is_plain(self, value: Value) -> bool:
        """Whether nothing of an array waits to be computed, as far as is known without a look at its elements."""
        return not is_traced(value) or id(value) in self._plain

    def _now_plain(self, value: Value) -> Value:
        self._plain[id(value)] = value
        return value

    def _part(self, elements: list[Any], target: str, at: int) -> None:
        """Straight-line code that writes elements, one after the other."""
        self._written_to(elements, [f"{target}[{at + i}]" for i in range(len(elements))])

    def _written_to(self, elements: list[Any], places: Sequence[str]) -> None:
        """Straight-line code that writes elements to places."""
        if not elements:
            return
        results = ca.vertcat(*(e if isinstance(e, ca.SX) else ca.SX(e) for e in elements))
        symbols = ca.symvar(results)
        function = ca.Function(
            "part", [ca.vertcat(*symbols)] if symbols else [ca.SX(0, 1)], [ca.densify(results)]
        )
        self._lines.append(Line("", function, [s.name() for s in symbols], places))

    def _reserve(self, size: int) -> int:
        return self._spans.reserve(size)


def _symbols(where: str, at: int, shape: Sequence[int]) -> Value:
    """Scalars that stand for numbers in C, by their names."""
    flat = np.empty(math.prod(shape), dtype=object)
    for i in range(flat.size):
        flat[i] = ca.SX.sym(f"{where}[{at + i}]")
    return flat.reshape(shape)


def _copied(to: Any, source: Any, size: int) -> list[Line]:
    return [Line(f"memcpy(m + {to}, m + {source}, {size} * sizeof(num));")] if size else []


def _is_loop(equation: Any, looped: int = LOOPED) -> bool:
    return equation.primitive.name == "scan" and scalar_operations(equation) > looped


def _is_wide(equation: Any) -> bool:
    """Whether it is a loop over numbers: of all of an array, and with a choice that is between two."""
    name, into, out = equation.primitive.name, equation.invars, equation.outvars[0].aval
    if name not in _WIDE or into[-1].aval.size < LARGE:
        return False
    if name == "select_n":
        return len(into) == 3 and into[0].aval.shape in ((), out.shape) and into[0].aval.dtype == np.bool_
    return name != "reduce_and" or not out.shape


def _holds_loop(equation: Any, looped: int) -> bool:
    return any(
        _is_loop(e, looped)
        or is_routine(e)
        or _is_wide(e)
        or (e.primitive.name in _CALLS and _holds_loop(e, looped))
        for jaxpr in inner_jaxprs(equation)
        for e in jaxpr.eqns
    )
