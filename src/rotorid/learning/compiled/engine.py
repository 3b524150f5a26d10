"""Training in C: an epoch of Adam, and the losses, of one member at a time on all cores."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import casadi as ca
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int

from rotorid.cores import available_cores
from rotorid.learning.compiled.library import lanes_of, training_library
from rotorid.learning.compiled.network import SIDE, weight_order
from rotorid.learning.compiled.stage import StageFunctions, known_values, stage_functions
from rotorid.learning.engines import AbstractEngine, Precision
from rotorid.learning.prediction import Weights
from rotorid.learning.windows import Windows
from rotorid.models.residual import LEARNED, Head
from rotorid.models.system import System, Values

_GROUPS = 4
_MOST_WINDOWS = 512  # of a group


class _Job(ctypes.Structure):
    """`job` of training.c."""

    _fields_ = [
        *((name, ctypes.c_void_p) for name in ("x", "u", "dt", "starts")),
        *((name, ctypes.c_int64) for name in ("batches", "size", "horizon", "group")),
        *((name, ctypes.c_void_p) for name in ("constants", "costs", "weights", "mean", "square")),
        ("rate", ctypes.c_double),
        ("count", ctypes.c_int64),
        *((name, ctypes.c_void_p) for name in ("gradients", "group_losses", "losses")),
        *((name, ctypes.c_int64) for name in ("threads", "next", "arrived", "turn", "failed")),
    ]


class CompiledTraining(AbstractEngine):
    """A training of residuals in C.

    The gradient is that of the discrete steps, as JAX's, to rounding. The numbers do not depend on the number of threads.
    """

    def __init__(
        self,
        system: System,
        heads: Sequence[Head],
        p: Sequence[Values],
        fixed: Sequence[Sequence[Values]],
        data: Windows,
        r: Float[np.ndarray, "members heads horizon"],
        precision: Precision,
        threads: int | None = None,
    ) -> None:
        """Trace and compile the training.

        Args:
            system: the physics.
            heads: of the residual.
            p, fixed: parameters and fixed weights of each member.
            data: rows and windows.
            r: error scales, see `prediction`.
            precision: of the numbers.
            threads: how many; None: one for each core.
        Raises:
            UnsupportedPrimitiveError, SettingError: an operation of the System has no C form.
            BuildError: there is no C compiler, or it failed.
        """
        shapes = tuple(_shapes(values) for values in (p[0], *fixed[0]))
        functions, self._library = _compiled(system, tuple(heads), shapes, precision)
        self._type = np.dtype(precision)
        self._lanes = lanes_of(precision)
        self._orders = [weight_order(layout) for layout in functions.heads]
        self._threads = threads or available_cores()
        self._horizon, self._validation = data.horizon, data.validation[None]
        self._rows = {
            name: np.ascontiguousarray(getattr(data, name), self._type) for name in ("x", "u", "dt")
        }
        self._constants = [
            self._constants_of(functions.constants, *known) for known in zip(p, fixed, strict=True)
        ]
        tiny = np.finfo(self._type).tiny
        self._inverse_squares = (
            1.0 / np.maximum(np.square(r.astype(self._type)), tiny).astype(float) / len(heads)
        )

    def _constants_of(self, function: ca.Function, p: Values, fixed: Sequence[Values]) -> np.ndarray:
        leaves = [np.asarray(leaf, float) for leaf in jax.tree.leaves(known_values(p, fixed))]
        return np.asarray(function(*leaves), self._type).ravel()

    def epoch(
        self,
        weights: tuple[Weights, ...],
        optimiser: Any,
        rate: float,
        batches: Int[np.ndarray, "batches size"],
    ) -> tuple[tuple[Weights, ...], Any, Float[np.ndarray, " members"]]:
        adam = optimiser[0]
        parts = (weights, adam.mu, adam.nu)
        found, losses = [], []
        for i in range(len(self._constants)):
            w, mean, square = (self._packed(part, i) for part in parts)
            losses.append(np.mean(self._run(i, batches, w, (mean, square, rate, int(adam.count[i])))))
            found.append((w, mean, square))
        weights, mu, nu = (
            self._unpacked([member[k] for member in found], part) for k, part in enumerate(parts)
        )
        adam = adam._replace(count=adam.count + len(batches), mu=mu, nu=nu)
        return weights, (adam, *optimiser[1:]), np.array(losses)

    def losses(self, weights: tuple[Weights, ...]) -> Float[np.ndarray, " members"]:
        members = range(len(self._constants))
        return np.array([self._run(i, self._validation, self._packed(weights, i), None)[0] for i in members])

    def _run(
        self,
        i: int,
        batches: Int[np.ndarray, "batches size"],
        weights: np.ndarray,
        adam: tuple[np.ndarray, np.ndarray, float, int] | None,
    ) -> Float[np.ndarray, " batches"]:
        """The loss of member i for each batch. adam: moments, rate and number of steps, to change them and the weights."""
        batches = np.ascontiguousarray(batches, np.int64)
        count, size = batches.shape
        block = SIDE * self._lanes
        group = min(-(-size // (_GROUPS * block)) * block, _MOST_WINDOWS)
        groups = -(-size // group)
        costs = np.ascontiguousarray(self._inverse_squares[i].T / (size * self._horizon), self._type)
        mean, square, rate, steps = (weights, weights, 0.0, 0) if adam is None else adam
        gradients = np.empty((groups if adam is not None else 0, len(weights)))
        group_losses, losses = np.empty(groups), np.empty(count)
        threads = min(self._threads, groups)
        job = _Job(
            *(self._rows[name].ctypes.data for name in ("x", "u", "dt")),
            batches.ctypes.data, count, size, self._horizon, group,
            self._constants[i].ctypes.data, costs.ctypes.data,
            weights.ctypes.data, mean.ctypes.data, square.ctypes.data, rate, steps,
            gradients.ctypes.data, group_losses.ctypes.data, losses.ctypes.data, threads,
        )  # fmt: skip
        call = functools.partial(self._library.run, ctypes.byref(job))
        with_gradient = ctypes.c_int(adam is not None)
        with ThreadPoolExecutor(max(1, threads - 1)) as pool:
            others = [pool.submit(call, ctypes.c_int64(k), with_gradient) for k in range(1, threads)]
            failed = call(ctypes.c_int64(0), with_gradient)
            for other in others:
                other.result()
        if failed:
            raise MemoryError(f"no memory for the training with a horizon of {self._horizon} rows")
        return losses

    def _packed(self, weights: tuple[Weights, ...], i: int) -> np.ndarray:
        """The learned weights of member i in the order of the C code."""
        parts = [
            np.concatenate([np.ravel(np.asarray(w[name])[i]) for name in _names(w)])[order]
            for w, order in zip(weights, self._orders, strict=True)
        ]
        return np.ascontiguousarray(np.concatenate(parts), self._type)

    def _unpacked(self, packed: Sequence[np.ndarray], like: tuple[Weights, ...]) -> tuple[Weights, ...]:
        """The weights of all members as those of `like`."""
        found, first = [], 0
        for w, order in zip(like, self._orders, strict=True):
            flat = np.empty((len(packed), len(order)), self._type)
            flat[:, order] = [member[first : first + len(order)] for member in packed]
            names = _names(w)
            edges = np.cumsum([np.size(w[name]) // len(packed) for name in names])[:-1]
            parts = zip(names, np.split(flat, edges, axis=1), strict=True)
            found.append({name: jnp.asarray(part.reshape(np.shape(w[name]))) for name, part in parts})
            first += len(order)
        return tuple(found)


_Shapes = tuple[tuple[str, tuple[int, ...]], ...]


def _shapes(values: Values) -> _Shapes:
    return tuple((name, np.shape(value)) for name, value in values.items())


@functools.lru_cache(maxsize=8)
def _compiled(
    system: System, heads: tuple[Head, ...], shapes: tuple[_Shapes, ...], precision: Precision
) -> tuple[StageFunctions, ctypes.CDLL]:
    """The functions and the C code of trainings of the same System and heads. shapes: of parameters and fixed weights."""
    p, *fixed = ({name: jnp.zeros(shape) for name, shape in values} for values in shapes)
    functions = stage_functions(system, heads, p, fixed)
    return functions, training_library(functions, precision)


def _names(weights: Weights) -> list[str]:
    return [name for name in LEARNED if name in weights]
