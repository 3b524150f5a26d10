"""What computes a training: C where there is a compiler and the System has a C form, otherwise JAX; JAX on a GPU.

Both take the same steps of Adam on the same batches. Their numbers differ by rounding.
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from rotorid.codegen.native import BuildError, check_engine, compiler, no_c_form, warn_not_compiled
from rotorid.errors import SettingError
from rotorid.learning.prediction import Weights, WindowBatch, error_scales, loss, window_batch
from rotorid.learning.windows import Windows
from rotorid.models.residual import Head
from rotorid.models.system import System, Values

if TYPE_CHECKING:
    import optax

Precision = Literal["float32", "float64"]


class AbstractEngine(abc.ABC):
    """A training of several members. The leading axis of weights and states of Adam is that of the members."""

    @abc.abstractmethod
    def epoch(
        self,
        weights: tuple[Weights, ...],
        optimiser: Any,
        rate: float,
        batches: Int[np.ndarray, "batches size"],
    ) -> tuple[tuple[Weights, ...], Any, Float[np.ndarray, " members"]]:
        """Weights and state of Adam after one step for each batch, and the mean loss of the batches.

        optimiser: state of `optax.adam`. rate: of learning. batches: first rows of the windows of each.
        """

    @abc.abstractmethod
    def losses(self, weights: tuple[Weights, ...]) -> Float[np.ndarray, " members"]:
        """The losses on the validation windows."""


def training_engine(
    system: System,
    heads: tuple[Head, ...],
    p: Sequence[Values],
    fixed: Sequence[tuple[Weights, ...]],
    data: Windows,
    precision: Precision,
    engine: str = "auto",
) -> AbstractEngine:
    """The engine of a training.

    Args:
        system: the physics.
        heads: of the residual.
        p, fixed: parameters and fixed weights of each member.
        data: rows and windows.
        precision: of the predictions and of Adam; the engine is used where JAX has this precision.
        engine: "auto" is C where it is possible and JAX computes on the CPU, "c" always C, "jax" always JAX.
    Raises:
        SettingError: an unknown engine, or "c" where it is not possible.
    """
    check_engine(engine)
    r = _error_scales(system, heads, stack_members(p), window_batch(data, data.training))
    is_c_faster = compiler() is not None and jax.default_backend() == "cpu"
    if engine == "c" or (engine == "auto" and is_c_faster):
        from rotorid.learning.compiled.engine import CompiledTraining

        try:
            return CompiledTraining(system, heads, p, fixed, data, np.asarray(r), precision)
        except (BuildError, SettingError) as error:
            if engine == "c":
                raise no_c_form("training", error) from error
            if isinstance(error, BuildError):
                warn_not_compiled(error, stacklevel=3)
    return JaxTraining(system, heads, p, fixed, data, r)


class JaxTraining(AbstractEngine):
    """A training in JAX, of all members at the same time in one program."""

    def __init__(
        self,
        system: System,
        heads: tuple[Head, ...],
        p: Sequence[Values],
        fixed: Sequence[tuple[Weights, ...]],
        data: Windows,
        r: Float[Array, "members heads horizon"],
    ) -> None:
        """r: error scales. For the others see `training_engine`."""
        self._static = system, heads
        self._members = stack_members(fixed), stack_members(p), r
        self._training, self._validation = (
            window_batch(data, starts) for starts in (data.training, data.validation)
        )

    def epoch(
        self,
        weights: tuple[Weights, ...],
        optimiser: Any,
        rate: float,
        batches: Int[np.ndarray, "batches size"],
    ) -> tuple[tuple[Weights, ...], Any, Float[np.ndarray, " members"]]:
        weights, optimiser, losses = _epochs(
            *self._static, rate, weights, optimiser, *self._members, self._training, jnp.asarray(batches)
        )
        return weights, optimiser, np.asarray(losses)

    def losses(self, weights: tuple[Weights, ...]) -> Float[np.ndarray, " members"]:
        return np.asarray(_losses(*self._static, weights, *self._members, self._validation))


@partial(jax.jit, static_argnums=(0, 1))
def _error_scales(
    system: System, heads: tuple[Head, ...], p: Values, batch: WindowBatch
) -> Float[Array, "members _ _"]:
    return jax.vmap(partial(error_scales, system, heads), (0, None))(p, batch)


@partial(jax.jit, static_argnums=(0, 1, 2))
def _epochs(
    system: System, heads: tuple[Head, ...], rate: float, weights: Any, *arguments: Any
) -> tuple[Any, Any, Float[Array, " members"]]:
    """`_epoch` of all members."""
    import optax  # slow to import, and rarely needed

    function = partial(_epoch, system, heads, optax.adam(rate))
    return _for_members(function, (0, 0, 0, 0, 0, None, None))(weights, *arguments)


@partial(jax.jit, static_argnums=(0, 1))
def _losses(
    system: System, heads: tuple[Head, ...], weights: Any, *arguments: Any
) -> Float[Array, " members"]:
    """`_loss` of all members."""
    return _for_members(partial(_loss, system, heads), (0, 0, 0, 0, None))(weights, *arguments)


def _for_members(function: Callable[..., Any], axes: tuple[int | None, ...]) -> Callable[..., Any]:
    """A function of one member applied to all. A single member is computed without `vmap`, which is twice as fast."""

    def for_all(*arguments: Any) -> Any:
        if len(jax.tree.leaves(arguments[0])[0]) > 1:
            return jax.vmap(function, axes)(*arguments)
        first = [a if axis is None else member_of(a, 0) for a, axis in zip(arguments, axes, strict=True)]
        return jax.tree.map(lambda v: v[None], function(*first))

    return for_all


def _epoch(
    system: System,
    heads: tuple[Head, ...],
    adam: optax.GradientTransformation,
    weights: Any,
    optimiser: Any,
    fixed: Any,
    p: Values,
    r: Float[Array, "heads horizon"],
    windows: WindowBatch,
    batches: Int[Array, "batches size"],
) -> tuple[Any, Any, Float[Array, ""]]:
    """Weights and state of Adam after one step for each batch, and the mean loss of the batches."""
    from optax import apply_updates  # slow to import, and rarely needed

    def step(carry, starts):
        weights, optimiser = carry
        batch = windows | {"starts": starts}
        value, gradient = jax.value_and_grad(partial(_loss, system, heads))(weights, fixed, p, r, batch)
        updates, optimiser = adam.update(gradient, optimiser)
        return (apply_updates(weights, updates), optimiser), value

    (weights, optimiser), losses = jax.lax.scan(step, (weights, optimiser), batches)
    return weights, optimiser, jnp.mean(losses)


def _loss(
    system: System,
    heads: tuple[Head, ...],
    weights: Any,
    fixed: Any,
    p: Values,
    r: Float[Array, "heads horizon"],
    batch: WindowBatch,
) -> Float[Array, ""]:
    return loss(system, heads, join_weights(fixed, weights), p, r, batch)


def join_weights(fixed: Sequence[Weights], weights: Sequence[Weights]) -> list[Weights]:
    """The fixed and the learned weights of each head."""
    return [{**f, **w} for f, w in zip(fixed, weights, strict=True)]


def stack_members(members: Sequence[Any]) -> Any:
    """The arrays of all members, with a leading axis."""
    return jax.tree.map(lambda *values: jnp.asarray(np.stack(values)), *members)


def member_of(stacked: Any, i: int) -> Any:
    """The arrays of member i."""
    return jax.tree.map(lambda v: v[i], stacked)
