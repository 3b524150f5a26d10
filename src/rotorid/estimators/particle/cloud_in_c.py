"""What is done to every particle of a cloud, in C: custom calls inside of XLA's program.

    function of one particle ── rotorid.export ──> C for 8 at a time ── cloud.c ──> all of them

Their normal numbers are drawn and their ancestors fetched on the way, so that a step reads and writes the particles once. A
filter's `scan`, `jit` and `vmap` stay as they are: a call is for all filters of a `vmap`, and none takes both sides of a
choice. It needs float64, a CPU and a C compiler, and has no derivatives.
"""

from __future__ import annotations

import ctypes
import functools
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import jax
import jax.extend
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Bool, Float, Int32

from rotorid.codegen.casadi import UnsupportedPrimitiveError
from rotorid.codegen.fingerprint import fingerprint
from rotorid.codegen.native import FOLDER, build
from rotorid.codegen.program import c_program, straight_operations
from rotorid.estimators.compiled import NotCompiledError
from rotorid.estimators.particle.cloud import JAX, AbstractCloud, Moments, ResamplingStep, WeightUpdate
from rotorid.numerics import draws
from rotorid.numerics.draws import Stream
from rotorid.numerics.resampling import Scheme

MOST_OPERATIONS = 50_000
"""A function of more scalar operations is left to JAX."""

_LANES = 8
_FLAGS = "-O3", "-ffp-contract=fast", f"-I{jax.ffi.include_dir()}"


class CompiledCloud(AbstractCloud):
    """By custom calls."""

    def normals(self, source: Stream, shape: tuple[int, ...]) -> Float[Array, " ..."]:
        size = int(np.prod(shape))
        return _call(_common("draw"), _floats(size))(draws.stream(source)).reshape(shape)

    def resample(
        self,
        where: Bool[Array, ""],
        scheme: Scheme,
        source: Stream,
        weights: Float[Array, " n"],
        log_weights: Float[Array, " n"],
    ) -> ResamplingStep:
        if scheme != "systematic":
            return JAX.resample(where, scheme, source, weights, log_weights)
        n = weights.shape[0]
        results = [jax.ShapeDtypeStruct((n,), jnp.int32), _floats(n), _floats(n)]
        u = draws.uniforms(source, ())
        return ResamplingStep(*_call(_common("resample"), results)(where, u, weights, log_weights))

    def each(
        self,
        function: Callable[..., tuple[Array, ...]],
        *columns: Float[Array, " ..."],
        copied: tuple[Float[Array, " ..."], ...] = (),
        ancestors: Int32[Array, " n"] | None = None,
        drawn: tuple[Stream, int] | None = None,
        where: Bool[Array, ""] | bool = True,
    ) -> tuple[Array, ...]:
        if ancestors is None:
            columns, copied = (*copied, *columns), ()
        arguments: list[Array] = [*copied, *columns]
        n = arguments[0].shape[-1]
        one = [jax.ShapeDtypeStruct(value.shape[:-1], value.dtype) for value in arguments]
        count = 0 if drawn is None else drawn[1]
        if drawn is not None:
            one.insert(0, jax.ShapeDtypeStruct((count,), jnp.float64))
        closed, shapes = jax.make_jaxpr(function, return_shape=True)(*one)
        shared, closed = _split(closed)
        fetched = sum(value.size > 0 for value in copied)
        outs = [_floats(int(np.prod(s.shape)), n) for s in shapes if np.prod(s.shape)]
        if not outs:
            return tuple(jnp.zeros((*s.shape, n), s.dtype) for s in shapes)
        name = _target(closed, sum(s.size for s in shared), count, fetched)
        operands: list[Array] = [_flat(shared)]
        if fetched and ancestors is not None:
            operands.append(ancestors)
        if drawn is not None:
            operands += [draws.stream(drawn[0]), jnp.asarray(where)]
        operands += [value.astype(float).reshape(-1, n) for value in arguments if value.size]
        found = iter(_call(name, outs)(*operands))
        return tuple(
            (next(found) if np.prod(s.shape) else jnp.zeros((0, n))).reshape(*s.shape, n).astype(s.dtype)
            for s in shapes
        )

    def weigh(
        self, weights: Float[Array, " n"], log_weights: Float[Array, " n"], density: Float[Array, " n"]
    ) -> WeightUpdate:
        n = weights.shape[0]
        results = [_floats(n), _floats(n), _floats(), jax.ShapeDtypeStruct((), jnp.bool_), _floats()]
        return WeightUpdate(*_call(_common("weigh"), results)(log_weights, density, weights))

    def moments(self, x: Float[Array, "k n"], weights: Float[Array, " n"]) -> Moments:
        k = x.shape[0]
        if not k:
            return JAX.moments(x, weights)
        return Moments(*_call(_common("moments"), [_floats(k), _floats(k, k)])(x, weights))


def _floats(*shape: int) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(shape, jnp.float64)


def _call(name: str, results: Any) -> Callable[..., Any]:
    return jax.ffi.ffi_call(name, results, vmap_method="broadcast_all")


def _flat(values: Sequence[Array]) -> Float[Array, " all"]:
    parts = [jnp.ravel(value).astype(float) for value in values]
    return jnp.concatenate(parts) if parts else jnp.zeros(0)


def _split(closed: Any) -> tuple[list[Any], Any]:
    """What the particles share, and the jaxpr with that as its first arguments. They share what the jaxpr takes from the trace
    around it, and what follows from that alone, which is computed there, once."""
    outside = dict(zip(closed.jaxpr.constvars, closed.consts, strict=True))
    traced = {v for v, value in outside.items() if isinstance(value, Tracer)}
    equations = []
    for equation in closed.jaxpr.eqns:
        variables = [a for a in equation.invars if not isinstance(a, jax.extend.core.Literal)]
        if any(v in traced for v in variables) and all(v in outside for v in variables):
            alone = closed.jaxpr.replace(
                constvars=[], invars=variables, outvars=equation.outvars, eqns=[equation], debug_info=None
            )
            found = jax.extend.core.jaxpr_as_fun(jax.extend.core.ClosedJaxpr(alone, []))
            outside |= zip(equation.outvars, found(*(outside[v] for v in variables)), strict=True)
            traced |= set(equation.outvars)
        else:
            equations.append(equation)
    used = [a for e in equations for a in e.invars] + list(closed.jaxpr.outvars)
    needed = dict.fromkeys(a for a in used if not isinstance(a, jax.extend.core.Literal) and a in outside)
    shared, constants = [v for v in needed if v in traced], [v for v in needed if v not in traced]
    jaxpr = closed.jaxpr.replace(
        constvars=constants, invars=[*shared, *closed.jaxpr.invars], eqns=equations, debug_info=None
    )
    inner = jax.extend.core.ClosedJaxpr(jaxpr, [outside[v] for v in constants])
    return [outside[v] for v in shared], inner


_known: dict[tuple[str, int, int, int], str] = {}
_loaded: list[ctypes.CDLL] = []
_lock = threading.Lock()


def _target(closed: Any, shared: int, drawn: int, copied: int) -> str:
    """The name of the custom call that computes a jaxpr for every particle. Raises NotCompiledError, BuildError."""
    if straight_operations(closed.jaxpr) > MOST_OPERATIONS:
        raise NotCompiledError("what it does to each particle is too large")
    key = fingerprint(closed), shared, drawn, copied
    with _lock:
        if key not in _known:
            outputs = sum(int(np.prod(v.aval.shape)) for v in closed.jaxpr.outvars)
            inputs = sum(int(np.prod(v.aval.shape)) for v in closed.jaxpr.invars)

            def units() -> list[str]:
                try:
                    with jax.ensure_compile_time_eval():  # not in the trace around this
                        program = c_program(closed, "particle")
                except UnsupportedPrimitiveError as error:
                    raise NotCompiledError(str(error)) from error
                sizes = {"X_SIZE": inputs, "Y_SIZE": outputs, "M_SIZE": program.memory}
                text = "".join(f"#define {name} {size}\n" for name, size in sizes.items())
                return [text + (FOLDER / "cloud.c").read_text(), *program.units]

            sizes = {"SHARED": shared, "DRAWN": drawn, "COPIED": copied, "FUNCTION": "particle"}
            library = _built(f"cloud {key}", units, sizes)
            _known[key] = _registered(library, "cloud")
        return _known[key]


@functools.cache
def _common(name: str) -> str:
    """The name of a custom call that every filter needs."""
    return _registered(_built("particles", lambda: [(FOLDER / "particles.c").read_text()], {}), name)


def _built(key: str, units: Callable[[], Sequence[str]], defines: dict[str, Any]) -> ctypes.CDLL:
    table = np.ascontiguousarray(draws.table())
    about = {"TABLE_LINES": len(table), "TABLE_SHIFT": draws.SHIFT, "TABLE_LEAST": int(draws.LEAST)}
    library = build(key, units, {"LANES": _LANES, "QUICK": 1, **about, **defines}, _FLAGS)
    library.load_table(ctypes.c_void_p(table.ctypes.data))
    _loaded.append(library)
    return library


def _registered(library: ctypes.CDLL, function: str) -> str:
    """The name by which XLA knows a function. It tells the code, since XLA's programs outlive the process in its cache."""
    name = f"rotorid_{function}_{Path(library._name).stem}"
    jax.ffi.register_ffi_target(name, jax.ffi.pycapsule(getattr(library, function)), platform="cpu")
    return name
