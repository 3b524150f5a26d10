"""The lines of a program as C files, its arrays packed into one memory m.

A line speaks of m as "m[7]" or "m + 7", of an array by its first number, and by the places that the spans have for now; see
`rotorid.export.memory`.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence

import casadi as ca

from rotorid.export.c_source import c_source
from rotorid.export.memory import Life, Packed, Spans, lives

_IN_MEMORY = re.compile(r"\bm(\[| \+ )(\d+)")


@dataclasses.dataclass
class Line:
    """A piece of a program: C text, or straight-line code that writes results of a function to places. turns: 1 where it
    begins a loop, -1 where it ends one."""

    text: str = ""
    part: ca.Function | None = None
    reads: Sequence[str] = ()
    writes: Sequence[str] = ()
    turns: int = 0

    def places(self) -> set[int]:
        """Where in m it reads or writes."""
        texts = [self.text, *self.reads, *self.writes]
        return {int(place) for text in texts for _, place in _IN_MEMORY.findall(text)}


@dataclasses.dataclass
class CProgram:
    """units: C files that define `void NAME(const num *x, num *y, num *m)`. memory: numbers that m holds."""

    units: list[str]
    memory: int


def listed(name: str, lines: Sequence[Line], spans: Spans, declared: Sequence[str]) -> CProgram:
    """The program of these lines. declared: what stands before it."""
    touched = [{spans.of(place) for place in line.places()} for line in lines]
    packed = Packed(spans.sizes, lives(touched, _loops(lines), len(spans.sizes)))

    def moved(match: re.Match[str]) -> str:
        span = spans.of(int(match[2]))
        return f"m{match[1]}{packed.places[span] + int(match[2]) - spans.starts[span]}"

    def placed(text: str) -> str:
        return _IN_MEMORY.sub(moved, text)

    head, body, units = list(declared), [], []
    for at, line in enumerate(lines):
        if line.part is None:
            body.append(placed(line.text))
            continue
        part = f"{name}_{len(head)}"
        reads, writes = ([placed(place) for place in places] for places in (line.reads, line.writes))
        units += c_source(line.part, part, reads, writes, lambda size, at=at: packed.fit(size, (at, at)))
        head.append(f"void {part}(const num *x, num *y, num *m);")
        body.append(f"{part}(x, y, m);")
    declarations, statements = "\n".join(head), "\n".join(body)
    text = f"void {name}(const num *x, num *y, num *m) {{\n{statements}\n}}\n"
    return CProgram(
        [f'#include "num.h"\n#include <string.h>\n\n{declarations}\n\n{text}', *units], packed.total
    )


def _loops(lines: Sequence[Line]) -> list[Life]:
    """First and last lines of the loops, inner ones first."""
    found, begun = [], []
    for at, line in enumerate(lines):
        if line.turns > 0:
            begun.append(at)
        elif line.turns < 0:
            found.append((begun.pop(), at))
    return found
