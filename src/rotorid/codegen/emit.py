"""A program as C files, its arrays packed into one memory m."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from rotorid.codegen.c_source import c_source
from rotorid.codegen.ir import Address, AnyStatement, Compute, Loop, Statement
from rotorid.codegen.memory import LiveRange, Packed, Spans, live_ranges


@dataclasses.dataclass
class CProgram:
    """units: C files that define `void NAME(const num *x, num *y, num *m)`. memory: how many numbers m holds."""

    units: list[str]
    memory: int


def emit(
    name: str, statements: Sequence[AnyStatement], spans: Spans, declarations: Sequence[str]
) -> CProgram:
    """Pack the arrays of a program and write it as C.

    Args:
        name: of the C function.
        statements: in their order, at addresses in the spans.
        spans: of the arrays in m.
        declarations: C that is written before the function.
    Returns:
        The C files and the size of m.
    Raises:
        SettingError: an operation has no C form.
    """
    lines, loops = _flattened(statements)
    spans_of_lines = [
        {spans.span_at(address.position) for address in line.addresses() if address.array == "m"}
        if not isinstance(line, str)
        else set()
        for line in lines
    ]
    packed = Packed(spans.sizes, live_ranges(spans_of_lines, loops, len(spans.sizes)))

    def place(address: Address) -> Address:
        if address.array != "m":
            return address
        span = spans.span_at(address.position)
        return Address("m", int(packed.addresses[span]) + address.position - spans.starts[span])

    head, body, units = list(declarations), [], []
    for index, line in enumerate(lines):
        if isinstance(line, str):
            body.append(line)
        elif isinstance(line, Statement):
            body.append(line.c_text(place))
        else:
            part = f"{name}_{len(head)}"
            reads, writes = (
                [place(address) for address in addresses] for addresses in (line.reads, line.writes)
            )
            units += c_source(
                line.function, part, reads, writes, lambda size, index=index: packed.fit(size, (index, index))
            )
            head.append(f"void {part}(const num *x, num *y, num *m);")
            body.append(f"{part}(x, y, m);")
    head_text, text = "\n".join(head), "\n".join(body)
    function = f"void {name}(const num *x, num *y, num *m) {{\n{text}\n}}\n"
    return CProgram(
        [f'#include "num.h"\n#include <string.h>\n\n{head_text}\n\n{function}', *units], packed.total
    )


def _flattened(statements: Sequence[AnyStatement]) -> tuple[list[Compute | Statement | str], list[LiveRange]]:
    """The lines of a program, heads and ends of loops as C text; first and last line of each loop, inner loops first."""
    lines: list[Compute | Statement | str] = []
    loops: list[LiveRange] = []

    def append(statement: AnyStatement) -> None:
        if not isinstance(statement, Loop):
            lines.append(statement)
            return
        first, k = len(lines), statement.counter
        lines.append(f"for (int {k} = 0; {k} < {statement.iterations}; {k}++) {{")
        for inner in statement.body:
            append(inner)
        loops.append((first, len(lines)))
        lines.append("}")

    for statement in statements:
        append(statement)
    return lines, loops
