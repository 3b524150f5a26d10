"""Training of residuals: knowledge-based neural ODEs (Alharbat 2025, section III, eqs. 15-25).

    x^' = f(x^, u, p) + phi_theta(x^, u)                                              eq. 16
    L(theta) = mean over windows i, steps k <= alpha and blocks b of
               | x^_b(t_i+k) - x_b(t_i+k) |^2 / r_b(k)^2,       x^(t_i) = x(t_i)      eqs. 20-22

x^ is computed by fourth-order Runge-Kutta steps from the measured state, with constant inputs over each step. b are the
blocks whose rates have a head. r_b(k) is the rms error after k steps without residual; the article does not have this
scale. With it, the loss without residual is 1, and all blocks and all steps of the horizon have the same weight. Adam
uses one batch of windows for each step. The result has the weights with the smallest loss on the validation windows.

Several members (seeds, values of the parameters, or both) are trained at the same time. C or JAX computes, see `engines`.

References: T. Z. Jiahao, M. A. Hsieh, E. Forgoston, Knowledge-based learning of nonlinear dynamics and chaos, Chaos 31
(2021); D. P. Kingma, J. Ba, Adam: a method for stochastic optimization, 2015.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int

from rotorid.codegen.native import Engine
from rotorid.errors import SettingError
from rotorid.learning.engines import (
    Precision,
    join_weights,
    member_of,
    stack_members,
    training_engine,
)
from rotorid.learning.prediction import Weights, rate_errors
from rotorid.learning.windows import Windows
from rotorid.models.residual import LEARNED, Head, Residual, initial_weights, scaled_to
from rotorid.models.system import System, Values, parameter_values
from rotorid.numerics.products import full_products

Parameters = Mapping[str, float | tuple[float, ...]]

_RIDGE = 1e-6  # weight of the penalty of the linear start, per sample; inputs have unit variance
_MIN_RATE = 1e-9  # least scale of the output of a head
_MIN_DECREASE = 1e-3  # relative decrease of the loss that restarts the patience


@dataclasses.dataclass(frozen=True)
class Training:
    """Settings of a training.

    rate: learning rate of Adam. batch: share of the training windows in a step. patience: number of epochs without a smaller
    validation loss after which the training stops. epochs: largest number of epochs. seeds: seeds of the ensemble, one for
    each member. linear_start: whether the linear part L begins at the least-squares estimate from the rate errors, and not at
    0. precision: "float32" or "float64", of the predictions and of Adam.
    """

    rate: float = 1e-3
    batch: float = 0.01
    patience: int = 100
    epochs: int = 1000
    seeds: tuple[int, ...] = (0,)
    linear_start: bool = True
    precision: Precision = "float32"

    def __post_init__(self) -> None:
        if not (
            self.rate > 0 and 0 < self.batch <= 1 and self.patience >= 1 and self.epochs >= 1 and self.seeds
        ):
            raise SettingError(
                f"training with rate {self.rate:g}, batch {self.batch:g}, patience {self.patience}, epochs "
                f"{self.epochs} and {len(self.seeds)} seeds: the rate must be positive, the batch in (0, 1], and the "
                "others 1 or more"
            )

    @contextmanager
    def precision_context(self) -> Iterator[None]:
        """A context in which JAX computes in the precision of the settings."""
        with jax.enable_x64(self.precision == "float64"), full_products():
            yield


@dataclasses.dataclass(frozen=True)
class TrainingState:
    """The complete state of a training. The leading axis of all arrays but `losses` is that of the members.

    weights: learned weights of each head. best_weights: those with the smallest validation loss, best_loss. optimiser:
    moments of Adam. stagnant_epochs: number of epochs since the validation loss decreased. epoch: number of completed
    epochs. losses: of training and validation, one row for each epoch.
    """

    weights: tuple[Weights, ...]
    best_weights: tuple[Weights, ...]
    optimiser: Any
    best_loss: Float[np.ndarray, " members"]
    stagnant_epochs: Int[np.ndarray, " members"]
    epoch: int
    losses: Float[np.ndarray, "epochs members 2"]


@dataclasses.dataclass(frozen=True)
class TrainedResidual:
    """A trained residual.

    loss: on the validation windows, 1 without residual. losses: of training and validation, by epoch. epochs: number of
    epochs. horizon: alpha.
    """

    residual: Residual
    loss: float
    losses: Float[np.ndarray, "epochs 2"]
    epochs: int
    horizon: int


def learn_residual(
    system: System,
    data: Windows,
    heads: Sequence[Head],
    training: Training = Training(),
    *,
    members: Sequence[Parameters] = ({},),
    start: Sequence[Residual] | None = None,
    resume: Callable[[TrainingState], TrainingState] | None = None,
    on_epoch: Callable[[TrainingState], None] | None = None,
    engine: Engine = "auto",
) -> list[TrainedResidual]:
    """Train residuals of a System, one for each seed of each member.

    Args:
        system: the physics.
        data: training and validation windows of measured states and inputs.
        heads: heads of the residual, one for each state block that it corrects.
        training: settings; each member is trained with each of its seeds.
        members: values of the parameters, by name, in which the members differ.
        start: initial residuals with the same heads, one for each result; for example those of a shorter horizon.
        resume: function from the initial state of a training to the state at which it was interrupted; the training then
            continues to the same result.
        on_epoch: called with the state after each epoch; may raise to stop the training.
        engine: "auto" computes in C where that is possible, "c" always in C, "jax" always in JAX.
    Returns:
        A trained residual for each member and seed, in the order of the members.
    Raises:
        SettingError: heads that do not fit the System, the wrong number of initial residuals, or engine "c" where there is no
            C form.
    Source: Alharbat 2025, section III, eqs. 15-25.
    """
    _check_heads(system, heads)
    heads = tuple(heads)
    values = [parameter_values(system, **dict(member)) for member in members for _ in training.seeds]
    seeds = [seed for _ in members for seed in training.seeds]
    if start is None:
        initial = [
            _initial_parts(system, heads, data, training, p, seed)
            for p, seed in zip(values, seeds, strict=True)
        ]
    else:
        initial = [_parts_of(residual, heads) for residual in start]
    if len(initial) != len(values):
        raise SettingError(f"{len(initial)} initial residuals for {len(values)} members: give one for each")
    import optax  # slow to import, and rarely needed

    with training.precision_context():
        fixed, weights = (stack_members(part) for part in zip(*initial, strict=True))
        batch_size = max(1, round(training.batch * len(data.training)))
        computation = training_engine(
            system, heads, values, [part for part, _ in initial], data, training.precision, engine
        )
        state = _with_losses(
            TrainingState(
                weights,
                weights,
                jax.vmap(optax.adam(training.rate).init)(weights),
                *_empty_history(len(values)),
            ),
            np.full(len(values), np.nan),
            computation.losses(weights),
        )
    if resume is not None:
        state = resume(state)
    while state.epoch < training.epochs and np.any(state.stagnant_epochs < training.patience):
        order = np.random.default_rng([training.seeds[0], state.epoch]).permutation(data.training)
        batches = order[: len(order) // batch_size * batch_size].reshape(-1, batch_size)
        with training.precision_context():
            weights, optimiser, losses = computation.epoch(
                state.weights, state.optimiser, training.rate, batches
            )
            state = dataclasses.replace(state, weights=weights, optimiser=optimiser, epoch=state.epoch + 1)
            state = _with_losses(state, losses, computation.losses(weights))
        if on_epoch is not None:
            on_epoch(state)
    return [
        _trained_residual(system, heads, data, state, i, member_of(fixed, i), p) for i, p in enumerate(values)
    ]


def _with_losses(
    state: TrainingState, training: Float[np.ndarray, " members"], validation: Float[np.ndarray, " members"]
) -> TrainingState:
    """The state with the losses of an epoch added, and with the best weights of each member updated."""
    is_better = validation < state.best_loss
    is_clearly_better = validation < (1.0 - _MIN_DECREASE) * state.best_loss
    best_weights = jax.tree.map(
        lambda new, old: jnp.where(is_better.reshape((-1,) + (1,) * (new.ndim - 1)), new, old),
        state.weights,
        state.best_weights,
    )
    return dataclasses.replace(
        state,
        best_weights=best_weights,
        best_loss=np.where(is_better, validation, state.best_loss),
        stagnant_epochs=np.where(is_clearly_better, 0, state.stagnant_epochs + 1),
        losses=np.concatenate([state.losses, np.stack([training, validation], axis=1)[None]]),
    )


def _initial_parts(
    system: System, heads: tuple[Head, ...], data: Windows, training: Training, p: Values, seed: int
) -> tuple[tuple[Weights, ...], tuple[Weights, ...]]:
    """The fixed weights (scales of inputs and output) and the initial learned weights of all heads."""
    samples = rate_errors(system, heads, None, p, data, held_out=False)
    keys = jax.random.split(jax.random.key(seed), len(heads))
    parts = [
        _initial_head(head, *rows, training, key)
        for head, rows, key in zip(heads, samples, keys, strict=True)
    ]
    return tuple(fixed for fixed, _ in parts), tuple(weights for _, weights in parts)


def _initial_head(
    head: Head,
    inputs: Float[np.ndarray, "n inputs"],
    errors: Float[np.ndarray, "n output"],
    training: Training,
    key: jax.Array,
) -> tuple[Weights, Weights]:
    """The fixed and the learned weights of a head before the training. errors: see `rate_errors`."""
    fixed = scaled_to(inputs, np.maximum(np.sqrt(np.mean(errors**2, axis=0)), _MIN_RATE))
    weights = initial_weights(head, inputs.shape[1], errors.shape[1], key)
    if head.linear and training.linear_start:
        z = np.column_stack([(inputs - fixed["mean"]) / fixed["scale"], np.ones(len(inputs))])
        squares = z.T @ z + _RIDGE * len(z) * np.eye(z.shape[1])
        coefficients = np.linalg.solve(squares, z.T @ (errors / fixed["unit"]))
        weights |= {"L": jnp.asarray(coefficients[:-1].T), "b_2": jnp.asarray(coefficients[-1])}
    return {name: jnp.asarray(value) for name, value in fixed.items()}, weights


def _parts_of(residual: Residual, heads: tuple[Head, ...]) -> tuple[tuple[Weights, ...], tuple[Weights, ...]]:
    """The fixed and the learned weights of a residual."""
    if residual.heads != heads:
        raise SettingError(
            "the initial residual has other heads than those to train; give one with the same heads"
        )
    weights = [{name: jnp.asarray(v) for name, v in w.items()} for w in residual.weights]
    fixed = tuple({n: v for n, v in w.items() if n not in LEARNED} for w in weights)
    return fixed, tuple({n: v for n, v in w.items() if n in LEARNED} for w in weights)


def _trained_residual(
    system: System,
    heads: tuple[Head, ...],
    data: Windows,
    state: TrainingState,
    i: int,
    fixed: Sequence[Weights],
    p: Values,
) -> TrainedResidual:
    """The residual of member i, with its errors on the validation rows."""
    weights = join_weights(fixed, member_of(state.best_weights, i))
    with_residual = rate_errors(system, heads, weights, p, data, held_out=True)
    without_residual = rate_errors(system, heads, None, p, data, held_out=True)
    complete = []
    for w, (_, error), (_, physics_error) in zip(weights, with_residual, without_residual, strict=True):
        output = physics_error - error
        complete.append(
            {name: np.asarray(value) for name, value in w.items()}
            | {"error": _rms(error), "typical": _rms(output)}
        )
    residual = Residual(heads, tuple(complete))
    return TrainedResidual(residual, float(state.best_loss[i]), state.losses[:, i], state.epoch, data.horizon)


def _rms(rows: Float[np.ndarray, "n k"]) -> Float[np.ndarray, " k"]:
    return np.sqrt(np.mean(rows**2, axis=0)) if len(rows) else np.full(rows.shape[1], np.inf)


def _empty_history(members: int) -> tuple[np.ndarray, np.ndarray, int, np.ndarray]:
    """The last fields of a TrainingState before the first epoch."""
    return np.full(members, np.inf), np.zeros(members, int), 0, np.zeros((0, members, 2))


def _check_heads(system: System, heads: Sequence[Head]) -> None:
    x, u = jnp.array(system.states.initial()), jnp.array(system.inputs.initial())
    available = set(
        system.regressors(system.states.unpack(x), system.inputs.unpack(u), parameter_values(system))
    )
    outputs = [head.output for head in heads]
    if not heads or len(set(outputs)) < len(outputs) or not set(outputs) <= set(system.states):
        raise SettingError(
            f"heads for {', '.join(outputs) or 'nothing'}: give one or more, each for another of the states "
            f"{', '.join(system.states)}"
        )
    for head in heads:
        unknown = {*head.inputs, *((head.attitude,) if head.turned else ())} - available
        if unknown:
            raise SettingError(
                f"the head of {head.output} has the unknown inputs {', '.join(sorted(unknown))}; choose from "
                f"{', '.join(sorted(available))}"
            )
