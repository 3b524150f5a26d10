"""Operations on all particles of a cloud in C: custom calls inside of XLA's program.

    function of one particle ── rotorid.codegen ──> C for 8 at a time ── cloud.c ──> all particles

The same pass draws the normal numbers and copies the ancestors, so that a step reads and writes the particles once. `scan`,
`jit` and `vmap` of a filter are unchanged: a call is for all filters of a `vmap`, and only one branch of a condition is
computed. It needs float64, a CPU and a C compiler, and has no derivatives.
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
from rotorid.codegen.native import build, c_file, pointer
from rotorid.codegen.program import c_program, straight_operations
from rotorid.estimators.compiled.trace import NotCompiledError
from rotorid.estimators.particle.cloud import JAX, AbstractCloud, Moments, ResamplingStep, WeightUpdate
from rotorid.numerics import draws
from rotorid.numerics.draws import Stream
from rotorid.numerics.resampling import Scheme

MOST_OPERATIONS = 50_000
"""A function of more scalar operations runs in JAX."""

_LANES = 8
_FLAGS = "-O3", "-ffp-contract=fast", f"-I{jax.ffi.include_dir()}"


class CompiledCloud(AbstractCloud):
    """Operations on particles by custom calls of C code."""

    def normals(self, source: Stream, shape: tuple[int, ...]) -> Float[Array, " ..."]:
        size = int(np.prod(shape))
        return _call(_common_target("draw"), _floats(size))(draws.stream(source)).reshape(shape)

    def resample(
        self,
        condition: Bool[Array, ""],
        scheme: Scheme,
        source: Stream,
        weights: Float[Array, " n"],
        log_weights: Float[Array, " n"],
    ) -> ResamplingStep:
        if scheme != "systematic":
            return JAX.resample(condition, scheme, source, weights, log_weights)
        n = weights.shape[0]
        results = [jax.ShapeDtypeStruct((n,), jnp.int32), _floats(n), _floats(n)]
        u = draws.uniforms(source, ())
        return ResamplingStep(*_call(_common_target("resample"), results)(condition, u, weights, log_weights))

    def map_particles(
        self,
        function: Callable[..., tuple[Array, ...]],
        *columns: Float[Array, " ..."],
        inherited: tuple[Float[Array, " ..."], ...] = (),
        ancestors: Int32[Array, " n"] | None = None,
        normal_draws: tuple[Stream, int] | None = None,
        condition: Bool[Array, ""] | bool = True,
    ) -> tuple[Array, ...]:
        if ancestors is None:
            columns, inherited = (*inherited, *columns), ()
        arguments: list[Array] = [*inherited, *columns]
        n = arguments[0].shape[-1]
        particle_shapes = [jax.ShapeDtypeStruct(value.shape[:-1], value.dtype) for value in arguments]
        count = 0 if normal_draws is None else normal_draws[1]
        if normal_draws is not None:
            particle_shapes.insert(0, jax.ShapeDtypeStruct((count,), jnp.float64))
        closed, shapes = jax.make_jaxpr(function, return_shape=True)(*particle_shapes)
        shared, closed = _split(closed)
        inherited_count = sum(value.size > 0 for value in inherited)
        output_types = [_floats(int(np.prod(s.shape)), n) for s in shapes if np.prod(s.shape)]
        if not output_types:
            return tuple(jnp.zeros((*s.shape, n), s.dtype) for s in shapes)
        name = _target(closed, sum(s.size for s in shared), count, inherited_count)
        operands: list[Array] = [_flat(shared)]
        if inherited_count and ancestors is not None:
            operands.append(ancestors)
        if normal_draws is not None:
            operands += [draws.stream(normal_draws[0]), jnp.asarray(condition)]
        operands += [value.astype(float).reshape(-1, n) for value in arguments if value.size]
        results = iter(_call(name, output_types)(*operands))
        return tuple(
            (next(results) if np.prod(s.shape) else jnp.zeros((0, n))).reshape(*s.shape, n).astype(s.dtype)
            for s in shapes
        )

    def weigh(
        self, weights: Float[Array, " n"], log_weights: Float[Array, " n"], density: Float[Array, " n"]
    ) -> WeightUpdate:
        n = weights.shape[0]
        results = [_floats(n), _floats(n), _floats(), jax.ShapeDtypeStruct((), jnp.bool_), _floats()]
        return WeightUpdate(*_call(_common_target("weigh"), results)(log_weights, density, weights))

    def moments(self, x: Float[Array, "k n"], weights: Float[Array, " n"]) -> Moments:
        k = x.shape[0]
        if not k:
            return JAX.moments(x, weights)
        return Moments(*_call(_common_target("moments"), [_floats(k), _floats(k, k)])(x, weights))


def _floats(*shape: int) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(shape, jnp.float64)


def _call(name: str, results: Any) -> Callable[..., Any]:
    return jax.ffi.ffi_call(name, results, vmap_method="broadcast_all")


def _flat(values: Sequence[Array]) -> Float[Array, " all"]:
    parts = [jnp.ravel(value).astype(float) for value in values]
    return jnp.concatenate(parts) if parts else jnp.zeros(0)


def _split(closed: Any) -> tuple[list[Any], Any]:
    """Separate the values that all particles share; they become the first arguments of the jaxpr. These are the values from
    the surrounding trace, and the results that depend on them alone, which are computed there once."""
    outer_values = dict(zip(closed.jaxpr.constvars, closed.consts, strict=True))
    traced = {v for v, value in outer_values.items() if isinstance(value, Tracer)}
    equations = []
    for equation in closed.jaxpr.eqns:
        variables = [a for a in equation.invars if not isinstance(a, jax.extend.core.Literal)]
        if any(v in traced for v in variables) and all(v in outer_values for v in variables):
            single = closed.jaxpr.replace(
                constvars=[], invars=variables, outvars=equation.outvars, eqns=[equation], debug_info=None
            )
            evaluate = jax.extend.core.jaxpr_as_fun(jax.extend.core.ClosedJaxpr(single, []))
            outer_values |= zip(
                equation.outvars, evaluate(*(outer_values[v] for v in variables)), strict=True
            )
            traced |= set(equation.outvars)
        else:
            equations.append(equation)
    atoms = [a for e in equations for a in e.invars] + list(closed.jaxpr.outvars)
    required = dict.fromkeys(
        a for a in atoms if not isinstance(a, jax.extend.core.Literal) and a in outer_values
    )
    shared, constants = [v for v in required if v in traced], [v for v in required if v not in traced]
    jaxpr = closed.jaxpr.replace(
        constvars=constants, invars=[*shared, *closed.jaxpr.invars], eqns=equations, debug_info=None
    )
    inner = jax.extend.core.ClosedJaxpr(jaxpr, [outer_values[v] for v in constants])
    return [outer_values[v] for v in shared], inner


_targets: dict[tuple[str, int, int, int], str] = {}
_libraries: list[ctypes.CDLL] = []
_lock = threading.Lock()


def _target(closed: Any, shared: int, drawn: int, inherited: int) -> str:
    """The name of the custom call that computes a jaxpr for every particle. Raises NotCompiledError, BuildError."""
    if straight_operations(closed.jaxpr) > MOST_OPERATIONS:
        raise NotCompiledError("its function of a particle is too large")
    key = fingerprint(closed), shared, drawn, inherited
    with _lock:
        if key not in _targets:
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
                return [text + c_file("cloud.c"), *program.units]

            sizes = {"SHARED": shared, "DRAWN": drawn, "COPIED": inherited, "FUNCTION": "particle"}
            library = _build(f"cloud {key}", units, sizes)
            _targets[key] = _register(library, "cloud")
        return _targets[key]


@functools.cache
def _common_target(name: str) -> str:
    """The name of a custom call that all filters share."""
    return _register(_build("particles", lambda: [c_file("particles.c")], {}), name)


def _build(key: str, units: Callable[[], Sequence[str]], defines: dict[str, Any]) -> ctypes.CDLL:
    table = np.ascontiguousarray(draws.table())
    table_defines = {"TABLE_LINES": len(table), "TABLE_SHIFT": draws.SHIFT, "TABLE_LEAST": int(draws.LEAST)}
    library = build(key, units, {"LANES": _LANES, "QUICK": 1, **table_defines, **defines}, _FLAGS)
    library.load_table(pointer(table))
    _libraries.append(library)
    return library


def _register(library: ctypes.CDLL, function: str) -> str:
    """Register a function with XLA. The name identifies the code, since XLA caches programs beyond the process."""
    name = f"rotorid_{function}_{Path(library._name).stem}"
    jax.ffi.register_ffi_target(name, jax.ffi.pycapsule(getattr(library, function)), platform="cpu")
    return name
