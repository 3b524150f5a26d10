"""C programs as the text of one C99 file: static functions on `num`, a real number, that need nothing but libm.

The chunks of a program exchange values through its memory, so that a call takes a few kilobytes of stack for a program of any
size. Functions are not inlined: a compiler's time grows faster than the length of a function.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping

from rotorid.codegen.emit import CProgram

_HEAD = """\
#if defined(__GNUC__)
#define APART __attribute__((noinline))
#else
#define APART
#endif
#if defined(__GNUC__) && __GNUC__ >= 8 && !defined(__clang__)
#define ROLLED _Pragma("GCC unroll 1")
#else
#define ROLLED
#endif

/* A truth value is 1 or 0. */
typedef int mask;
#define NUM(c) ((num)(c))
#define ZERO NUM(0)
#define ONE NUM(1)
#define MASK(condition) (condition)
#define NOT(m) (!(m))
#define SELECT(m, yes, no) ((m) ? (yes) : (no))
#define PUT_MASK(m) ((num)(m))
#define GET_MASK(w) ((mask)(w))
"""

_CHOICES = {
    "max": "static num num_max(num a, num b) { return a >= b || a != a ? a : b; }",
    "min": "static num num_min(num a, num b) { return a <= b || a != a ? a : b; }",
    "sign": "static num num_sign(num a) { return a > ZERO ? ONE : a < ZERO ? -ONE : a; }",
}
"""As in JAX, max and min of a NaN are NaN."""

_FUSED = """\
#ifdef FP_FAST_FMA{limit}
#define num_fma fma{suffix}
#else
#define num_fma(a, b, c) ((a) * (b) + (c))
#endif"""
"""a b + c in one instruction, where the processor has it."""

_FUNCTION = re.compile(r"^void (\w+)\(([^)]*)\)( \{|;)$", re.MULTILINE)


@dataclasses.dataclass(frozen=True)
class Standalone:
    """text: of the functions, `static void NAME(const num *x, num *y, num *m)` for each program. memory: numbers of m."""

    text: str
    memory: int


def standalone(programs: Mapping[str, CProgram], *, single: bool) -> Standalone:
    """The C of programs by name, after a definition of `num`. single: whether num is a float, else it is a double."""
    texts = [
        re.sub(r"^#include .*\n", "", unit, flags=re.MULTILINE).strip()
        for program in programs.values()
        for unit in program.units
    ]
    body = _FUNCTION.sub(r"static APART void \1(\2)\3", "\n\n".join(map(_every_parameter_used, texts)))
    memory = max(program.memory for program in programs.values())
    return Standalone(f"{_HEAD}{_library_calls(body, single)}\n{body}\n", memory)


def _library_calls(body: str, single: bool) -> str:
    """Definitions of the functions on numbers that the code calls."""
    suffix = "f" if single else ""
    forms = _CHOICES | {"fma": _FUSED.format(suffix=suffix, limit=suffix.upper())}
    names = sorted(set(re.findall(r"\bnum_(\w+)\(", body)))
    lines = [forms.get(name, f"#define num_{name} {name}{suffix}") for name in names]
    return "".join(f"{line}\n" for line in lines)


def _every_parameter_used(unit: str) -> str:
    """Mark the unused parameters of functions."""

    def marked(match: re.Match[str]) -> str:
        signature, parameters, body = match.groups()
        names = [p.split("*")[-1].removeprefix("restrict ").strip() for p in parameters.split(",")]
        unused = [f"(void){name};" for name in names if not re.search(rf"\b{name}\b", body)]
        mark = f"  {' '.join(unused)}\n" if unused else ""
        return f"{signature}({parameters}) {{\n{mark}{body}\n}}"

    return re.sub(r"^(void \w+)\(([^)]*)\) \{\n(.*?)\n\}$", marked, unit, flags=re.MULTILINE | re.DOTALL)
