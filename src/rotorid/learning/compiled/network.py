"""The networks of the heads in C, and their derivatives: for SIDE vectors of windows side by side, which share the weights.

The weights of a head, one after the other: of each hidden node those of its varying inputs, of its held inputs, its bias and
those of the outputs; then b_2; then L, output by output (varying, held). Gradients are summed over stages, steps and windows in
one vector of lanes for each weight.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Int

from rotorid.learning.compiled.stage import HeadLayout
from rotorid.models.residual import LEARNED

SIDE = 2
"""Vectors of windows side by side."""

_FUNCTIONS = {"relu": "relu", "tanh": "tanh_of"}


class _Sizes(NamedTuple):
    """Of a head. row: weights of a hidden node."""

    varying: int
    held: int
    hidden: int
    outputs: int

    @property
    def row(self) -> int:
        return self.varying + self.held + 1 + self.outputs

    @property
    def bias(self) -> int:
        return self.varying + self.held

    @property
    def after_rows(self) -> int:
        return self.hidden * self.row

    @property
    def linear(self) -> int:
        return self.after_rows + self.outputs


def _sizes(layout: HeadLayout) -> _Sizes:
    return _Sizes(len(layout.varying), len(layout.held), layout.head.hidden, layout.outputs)


def weight_order(layout: HeadLayout) -> Int[np.ndarray, " weights"]:
    """Where the weights of a head are among those of W_1, b_1, W_2, b_2 and L, each by rows."""
    s = _sizes(layout)
    order = [*layout.varying, *layout.held]
    shapes = {
        "W_1": (s.hidden, len(order)), "b_1": (s.hidden,), "W_2": (s.outputs, s.hidden), "b_2": (s.outputs,),
        "L": (s.outputs, len(order)),
    }  # fmt: skip
    places, first = {}, 0
    for name in LEARNED[: None if layout.head.linear else -1]:
        size = int(np.prod(shapes[name]))
        places[name] = first + np.arange(size).reshape(shapes[name])
        first += size
    rows = np.column_stack([places["W_1"][:, order], places["b_1"], places["W_2"].T])
    parts = [rows.ravel(), places["b_2"]]
    if layout.head.linear:
        parts.append(places["L"][:, order].ravel())
    return np.concatenate(parts)


def network_source(layouts: Sequence[HeadLayout]) -> str:
    """The functions `networks_held`, `networks_forward`, `networks_adjoint` and `networks_held_adjoint` of all heads."""
    heads = [_head_source(layout, k) for k, layout in enumerate(layouts)]
    return "\n".join([*heads, *_all_heads(layouts)])


def _all_heads(layouts: Sequence[HeadLayout]) -> Iterable[str]:
    first_weight, first_hidden, places = 0, 0, []
    for layout in layouts:
        places.append(
            (first_weight, first_hidden, layout.first_varying, layout.first_held, layout.first_output)
        )
        first_weight += len(weight_order(layout))
        first_hidden += layout.head.hidden
    wanted = {
        "held": ("h", "base", "start"),
        "forward": ("base", "start", "z", "o"),
        "adjoint": ("base", "z", "o_bar", "z_bar", "g", "hidden_sums", "output_sums"),
        "held_adjoint": ("hidden_sums", "output_sums", "h", "g"),
    }
    constant = {
        "held": "h",
        "forward": "base start z",
        "adjoint": "base z o_bar",
        "held_adjoint": "hidden_sums output_sums h",
    }
    by_vector = {"h", "z", "o", "o_bar", "z_bar"}
    for function, names in wanted.items():
        parameters = ", ".join(
            ["const real *w"]
            + [
                f"{'const ' if name in constant[function].split() else ''}num *{'const *' if name in by_vector else ''}{name}"
                for name in names
            ]
        )
        yield f"static void networks_{function}({parameters}) {{"
        for k, (weight, hidden, varying, held, output) in enumerate(places):
            offsets = {
                "h": held, "base": SIDE * hidden, "start": SIDE * output, "z": varying, "o": output, "o_bar": output,
                "z_bar": varying, "g": weight, "hidden_sums": SIDE * hidden, "output_sums": SIDE * output,
            }  # fmt: skip
            values = [f"w + {weight}"]
            for name in names:
                if name in by_vector:
                    values += [f"{name}[{v}] + {offsets[name]}" for v in range(SIDE)]
                else:
                    values.append(f"{name} + {offsets[name]}")
            yield f"  head_{k}_{function}({', '.join(values)});"
        yield "}"


def _head_source(layout: HeadLayout, k: int) -> str:
    functions = (_held, _forward, _adjoint, _held_adjoint)
    return "\n".join(line for function in functions for line in function(layout, f"head_{k}"))


def _vectors(name: str, *, writes: bool = False) -> str:
    return ", ".join(f"{'' if writes else 'const '}num *restrict {name}{v}" for v in range(SIDE))


def _load(name: str, size: int, local: str) -> Iterable[str]:
    """Local variables of an array's numbers, of each vector."""
    for v in range(SIDE):
        for i in range(size):
            yield f"  const num {local}{i}_{v} = {name}{v}[{i}];"


def _sum(start: str, terms: Iterable[str]) -> str:
    return " + ".join([start, *terms])


def _held(layout: HeadLayout, name: str) -> Iterable[str]:
    """What the held inputs and the biases give to hidden nodes (base) and outputs (start)."""
    s = _sizes(layout)
    yield f"static void {name}_held(const real *restrict w, {_vectors('h')}, num *restrict base, num *restrict start) {{"
    yield from _load("h", s.held, "h")
    yield f"  for (int j = 0; j < {s.hidden}; j++) {{"
    yield f"    const real *r = w + {s.row} * j;"
    for v in range(SIDE):
        total = _sum(f"NUM(r[{s.bias}])", (f"r[{s.varying + i}] * h{i}_{v}" for i in range(s.held)))
        yield f"    base[{SIDE} * j + {v}] = {total};"
    yield "  }"
    for o in range(s.outputs):
        row = s.linear + o * (s.varying + s.held) + s.varying
        for v in range(SIDE):
            linear = (f"w[{row + i}] * h{i}_{v}" for i in range(s.held if layout.head.linear else 0))
            yield f"  start[{SIDE * o + v}] = {_sum(f'NUM(w[{s.after_rows + o}])', linear)};"
    yield "}"


def _hidden(s: _Sizes, v: int) -> str:
    return _sum(f"base[{SIDE} * j + {v}]", (f"r[{i}] * z{i}_{v}" for i in range(s.varying)))


def _forward(layout: HeadLayout, name: str) -> Iterable[str]:
    """The outputs at a stage."""
    s = _sizes(layout)
    yield (
        f"static void {name}_forward(const real *restrict w, const num *restrict base, const num *restrict start, "
        f"{_vectors('z')}, {_vectors('o', writes=True)}) {{"
    )
    yield from _load("z", s.varying, "z")
    for o in range(s.outputs):
        row = s.linear + o * (s.varying + s.held)
        for v in range(SIDE):
            linear = (f"w[{row + i}] * z{i}_{v}" for i in range(s.varying if layout.head.linear else 0))
            yield f"  num o{o}_{v} = {_sum(f'start[{SIDE * o + v}]', linear)};"
    yield f"  for (int j = 0; j < {s.hidden}; j++) {{"
    yield f"    const real *r = w + {s.row} * j;"
    for v in range(SIDE):
        yield f"    const num a{v} = {_FUNCTIONS[layout.head.activation]}({_hidden(s, v)});"
    for o in range(s.outputs):
        for v in range(SIDE):
            yield f"    o{o}_{v} += r[{s.bias + 1 + o}] * a{v};"
    yield "  }"
    for v in range(SIDE):
        for o in range(s.outputs):
            yield f"  o{v}[{o}] = o{o}_{v};"
    yield "}"


def _adjoint(layout: HeadLayout, name: str) -> Iterable[str]:
    """Add to the gradients of the varying inputs and of the weights at a stage; the sums are for `_held_adjoint`."""
    s = _sizes(layout)
    yield (
        f"static void {name}_adjoint(const real *restrict w, const num *restrict base, {_vectors('z')}, {_vectors('b')}, "
        f"{_vectors('d', writes=True)}, num *restrict g, num *restrict hidden_sums, num *restrict output_sums) {{"
    )
    yield from _load("z", s.varying, "z")
    yield from _load("b", s.outputs, "b")
    for i in range(s.varying):
        for v in range(SIDE):
            rows = (
                s.linear + o * (s.varying + s.held) for o in range(s.outputs if layout.head.linear else 0)
            )
            linear = (f"w[{row + i}] * b{o}_{v}" for o, row in enumerate(rows))
            yield f"  num d{i}_{v} = {_sum(f'd{v}[{i}]', linear)};"
    yield f"  for (int j = 0; j < {s.hidden}; j++) {{"
    yield f"    const real *r = w + {s.row} * j;"
    yield f"    num *gr = g + {s.row} * j;"
    for v in range(SIDE):
        yield f"    const num a{v} = {_hidden(s, v)};"
    for v in range(SIDE):
        back = " + ".join(f"r[{s.bias + 1 + o}] * b{o}_{v}" for o in range(s.outputs))
        if layout.head.activation == "relu":
            yield f"    const num y{v} = relu(a{v}), e{v} = relu_adjoint(a{v}, {back});"
        else:
            yield f"    const num y{v} = tanh_of(a{v}), e{v} = (ONE - y{v} * y{v}) * ({back});"
    for i in range(s.varying):
        for v in range(SIDE):
            yield f"    d{i}_{v} += r[{i}] * e{v};"
        yield f"    gr[{i}] = {_sum(f'gr[{i}]', (f'e{v} * z{i}_{v}' for v in range(SIDE)))};"
    for o in range(s.outputs):
        at = s.bias + 1 + o
        yield f"    gr[{at}] = {_sum(f'gr[{at}]', (f'y{v} * b{o}_{v}' for v in range(SIDE)))};"
    for v in range(SIDE):
        yield f"    hidden_sums[{SIDE} * j + {v}] += e{v};"
    yield "  }"
    for i in range(s.varying):
        for v in range(SIDE):
            yield f"  d{v}[{i}] = d{i}_{v};"
    for o in range(s.outputs):
        for v in range(SIDE):
            yield f"  output_sums[{SIDE * o + v}] += b{o}_{v};"
        if layout.head.linear:
            for i in range(s.varying):
                at = s.linear + o * (s.varying + s.held) + i
                yield f"  g[{at}] = {_sum(f'g[{at}]', (f'b{o}_{v} * z{i}_{v}' for v in range(SIDE)))};"
    yield "}"


def _held_adjoint(layout: HeadLayout, name: str) -> Iterable[str]:
    """Add to the gradients of the weights of held inputs and of the biases, after the stages of a step."""
    s = _sizes(layout)
    yield (
        f"static void {name}_held_adjoint(const real *restrict w, const num *restrict hidden_sums, "
        f"const num *restrict output_sums, {_vectors('h')}, num *restrict g) {{"
    )
    yield from _load("h", s.held, "h")
    yield f"  for (int j = 0; j < {s.hidden}; j++) {{"
    yield f"    num *gr = g + {s.row} * j + {s.varying};"
    for v in range(SIDE):
        yield f"    const num e{v} = hidden_sums[{SIDE} * j + {v}];"
    for i in range(s.held):
        yield f"    gr[{i}] = {_sum(f'gr[{i}]', (f'e{v} * h{i}_{v}' for v in range(SIDE)))};"
    yield f"    gr[{s.held}] = {_sum(f'gr[{s.held}]', (f'e{v}' for v in range(SIDE)))};"
    yield "  }"
    for o in range(s.outputs):
        for v in range(SIDE):
            yield f"  const num b{o}_{v} = output_sums[{SIDE * o + v}];"
        at = s.after_rows + o
        yield f"  g[{at}] = {_sum(f'g[{at}]', (f'b{o}_{v}' for v in range(SIDE)))};"
        for i in range(s.held if layout.head.linear else 0):
            at = s.linear + o * (s.varying + s.held) + s.varying + i
            yield f"  g[{at}] = {_sum(f'g[{at}]', (f'b{o}_{v} * h{i}_{v}' for v in range(SIDE)))};"
    yield "}"
