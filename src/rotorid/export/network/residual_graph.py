"""The graph of a learned residual in operators of ONNX (see `rotorid.models.residual`), for a batch of rows.

    z = (inputs - mean) / scale          d = |V z| / edge
    phi = unit (W_2 sigma(W_1 z + b_1) + b_2 + L z) (1 - 3 b^2 + 2 b^3),   b = clip(d - 1, 0, 1)
    std^2 = error^2 + (growth d)^2 + (typical max(d - 1, 0))^2

L is there for linear heads, the factor of b for heads that fade. Turned inputs are rotated into the body frame, and turned
outputs back, by the attitude q = (w, u):

    R(q) v = v + w t + u x t,   t = 2 u x v

Reference: ONNX operators, opset 17, https://onnx.ai/onnx/operators.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from rotorid.models.residual import Head, Residual

OPSET: Final = 17
IR_VERSION: Final = 8
"""Those of ONNX 1.12 (2022): what runtimes on board and older ones read as well."""

RATES: Final[Mapping[str, tuple[str, str]]] = {
    "velocity": ("acceleration", "m/s^2"),
    "body_rate": ("angular_acceleration", "rad/s^2"),
}
"""Block of a head: name and unit of its rate in the graph."""

EXTRAPOLATION: Final = "extrapolation"
"""Output: max(d - 1, 0), the largest of all heads."""

_SMALLEST: Final = 1e-12  # square of |V z|, as in `rotorid.models.residual`


@dataclasses.dataclass
class _Builder:
    """Nodes and constants of a graph. dtype: of all numbers. scope: what the names of the next nodes begin with."""

    dtype: type
    scope: str = ""
    nodes: list[Any] = dataclasses.field(default_factory=list)
    constants: dict[str, np.ndarray] = dataclasses.field(default_factory=dict)

    def constant(self, name: str, value: Any, dtype: type | None = None) -> str:
        """Add a constant; the name of its value is returned."""
        self.constants[name] = np.asarray(value, dtype or self.dtype)
        return name

    def node(self, operator: str, *inputs: str, name: str = "", **attributes: Any) -> str:
        """Add an operator; the name of its result is returned."""
        from onnx import helper

        name = name or f"{self.scope}{operator}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, inputs, [name], name=name, **attributes))
        return name

    def columns(self, x: str, indices: tuple[int, ...]) -> str:
        """Columns of a matrix."""
        chosen = self.constant("columns_" + "".join(map(str, indices)), indices, np.int64)
        return self.node("Gather", x, chosen, axis=1)

    def cross(self, a: str, b: str) -> str:
        """Vector product, row by row."""
        yzx, zxy = (1, 2, 0), (2, 0, 1)
        plus, minus = (
            self.node("Mul", self.columns(a, i), self.columns(b, j)) for i, j in ((yzx, zxy), (zxy, yzx))
        )
        return self.node("Sub", plus, minus)

    def rotate(self, attitude: str, vector: str, *, to_body: bool) -> str:
        """R(q) v, or R(q)^T v."""
        w, u = self.columns(attitude, (0,)), self.columns(attitude, (1, 2, 3))
        if to_body:
            u = self.node("Neg", u)
        t = self.node("Mul", self.constant("two", 2.0), self.cross(u, vector))
        return self.node("Add", self.node("Add", vector, self.node("Mul", w, t)), self.cross(u, t))

    def times(self, matrix: str, x: str, *offset: str) -> str:
        """matrix x + offset, row by row."""
        return self.node("Gemm", x, matrix, *offset, transB=1)


def residual_graph(residual: Residual, sizes: Mapping[str, int], dtype: type, documentation: str) -> Any:
    """Convert a residual to a graph.

    Args:
        residual: heads for the blocks of `RATES`.
        sizes: number of elements of each input by name, the attitude included where heads turn vectors.
        dtype: np.float64 or np.float32, of all inputs, weights and outputs.
        documentation: of the graph.
    Returns:
        An `onnx.GraphProto`. Inputs and outputs have the shape (batch, size); the outputs are, for each head, its rate and the
        standard deviation of it, and `EXTRAPOLATION` with size 1.
    """
    from onnx import helper, numpy_helper

    builder = _Builder(dtype)
    outputs, beyond = {}, []
    for head, weights in zip(residual.heads, residual.weights, strict=True):
        outputs |= dict.fromkeys(rate_names(head.output), weights["b_2"].size)
        beyond.append(_add_head(builder, head, weights))
    builder.node("Max", *beyond, name=EXTRAPOLATION)
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    inputs, results = (
        [helper.make_tensor_value_info(name, kind, ["batch", size]) for name, size in by_name.items()]
        for by_name in (sizes, {**outputs, EXTRAPOLATION: 1})
    )
    constants = [numpy_helper.from_array(value, name) for name, value in builder.constants.items()]
    return helper.make_graph(builder.nodes, "residual", inputs, results, constants, doc_string=documentation)


def rate_names(block: str) -> tuple[str, str]:
    """Names in the graph of the rate of a block and of its standard deviation."""
    rate, _ = RATES[block]
    return rate, f"{rate}_std"


def _add_head(builder: _Builder, head: Head, weights: Mapping[str, np.ndarray]) -> str:
    """Add the rate of a head and its standard deviation; the name of max(d - 1, 0) is returned."""
    builder.scope = f"{head.output}."

    def weight(name: str) -> str:
        return builder.constant(f"{head.output}.{name}", weights[name])

    parts = [
        builder.rotate(head.attitude, name, to_body=True) if name in head.turned else name
        for name in head.inputs
    ]
    inputs = builder.node("Concat", *parts, axis=1)
    z = builder.node("Div", builder.node("Sub", inputs, weight("mean")), weight("scale"))
    activation = {"tanh": "Tanh", "relu": "Relu"}[head.activation]
    hidden = builder.node(activation, builder.times(weight("W_1"), z, weight("b_1")))
    phi = builder.times(weight("W_2"), hidden, weight("b_2"))
    if head.linear:
        phi = builder.node("Add", phi, builder.times(weight("L"), z))
    phi = builder.node("Mul", weight("unit"), phi)
    zero, one = builder.constant("zero", 0.0), builder.constant("one", 1.0)
    d = _distance(builder, z, weight)
    past_edge = builder.node("Sub", d, one)
    beyond = builder.node("Max", past_edge, zero)
    if head.fades:
        b = builder.node("Clip", past_edge, zero, one)
        steep = builder.node(
            "Sub", builder.constant("three", 3.0), builder.node("Mul", builder.constant("two", 2.0), b)
        )
        lost = builder.node("Mul", builder.node("Mul", b, b), steep)
        phi = builder.node("Mul", builder.node("Sub", one, lost), phi)
    if head.output in head.turned:
        phi = builder.rotate(head.attitude, phi, to_body=False)
    rate, std = rate_names(head.output)
    builder.node("Identity", phi, name=rate)
    terms = [
        builder.node("Mul", d, weight("growth")),
        builder.node("Mul", beyond, weight("typical")),
    ]
    squares = [builder.node("Mul", term, term) for term in terms]
    error = builder.constant(f"{head.output}.error_squared", weights["error"] ** 2)
    builder.node("Sqrt", builder.node("Sum", error, *squares), name=std)
    return beyond


def _distance(builder: _Builder, z: str, weight: Callable[[str], str]) -> str:
    """d, a column."""
    v = builder.times(weight("V"), z)
    axis = builder.constant("last_axis", [1], np.int64)
    square = builder.node("ReduceSum", builder.node("Mul", v, v), axis, keepdims=1)
    square = builder.node("Add", square, builder.constant("smallest", _SMALLEST))
    return builder.node("Div", builder.node("Sqrt", square), weight("edge"))
