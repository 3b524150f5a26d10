"""Learning what physics leaves unexplained: knowledge-based neural ODEs (seed 001, section III, eqs. 15-25).

    x^' = f(x^, u, p) + phi_theta(x^, u)                                              eq. 16
    L(theta) = mean over windows i, steps k <= alpha and blocks b of
               | x^_b(t_i+k) - x_b(t_i+k) |^2 / r_b(k)^2,       x^(t_i) = x(t_i)      eqs. 20-22

x^ by fourth-order Runge-Kutta steps from the measured state, with the inputs held over each; b are the blocks whose rates have
a head. r_b(k), which the seed leaves out, is the rms error after k steps without a residual: so a loss of 1 is that of physics
alone, blocks of different units weigh alike, and so do the first and the last step of the horizon. Adam takes a batch of
windows a step; the weights kept are those with the least loss on the windows held out.

Members are trained at once, in one program: several seeds, several priors of the parameters, or both.

References: T. Z. Jiahao, M. A. Hsieh, E. Forgoston, Knowledge-based learning of nonlinear dynamics and chaos, Chaos 31 (2021);
D. P. Kingma, J. Ba, Adam: a method for stochastic optimization, 2015.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, Int

from rotorid.errors import SettingError
from rotorid.learning.prediction import Rows, Weights, loss, missing_rates, on_device, scales
from rotorid.learning.windows import Windows
from rotorid.models.residual import LEARNED, Head, Residual, initial_weights, scaled_to
from rotorid.models.system import System, Values, parameter_values

Parameters = Mapping[str, float | tuple[float, ...]]

_RIDGE = 1e-6  # of the linear start, per sample: inputs have unit variance
_LEAST_RATE = 1e-9  # that a head is scaled to, where physics misses nothing at all
_CLEARLY = 1e-3  # share by which the loss must fall for patience to restart


@dataclasses.dataclass(frozen=True)
class Training:
    """How a residual is trained. rate: Adam's. batch: share of the training windows in a step. patience: epochs without a
    better validation loss after which it ends. epochs: at most. seeds: one member each. linear_start: whether L begins at
    the least squares of accelerations rather than at 0. precision: of the predictions and of Adam."""

    rate: float = 1e-3
    batch: float = 0.01
    patience: int = 100
    epochs: int = 1000
    seeds: tuple[int, ...] = (0,)
    linear_start: bool = True
    precision: Literal["float32", "float64"] = "float32"

    def __post_init__(self) -> None:
        if not (
            self.rate > 0 and 0 < self.batch <= 1 and self.patience >= 1 and self.epochs >= 1 and self.seeds
        ):
            raise SettingError(
                f"training with rate {self.rate:g}, batch {self.batch:g}, patience {self.patience}, epochs "
                f"{self.epochs} and {len(self.seeds)} seeds: take a positive rate, a batch in (0, 1], 1 or more of the rest"
            )

    def computing(self) -> AbstractContextManager[None]:
        """Within it, JAX computes in this precision."""
        return jax.enable_x64(self.precision == "float64")


@dataclasses.dataclass(frozen=True)
class TrainingState:
    """Where training stands: all that it needs to go on. Leading axis: members.

    weights, best: learned weights of each head, now and where the validation loss was least. optimiser: Adam's moments.
    least: that loss; since: epochs since it; epoch: epochs done. losses: of training and validation, one row an epoch.
    """

    weights: tuple[Weights, ...]
    best: tuple[Weights, ...]
    optimiser: Any
    least: Float[np.ndarray, " members"]
    since: Int[np.ndarray, " members"]
    epoch: int
    losses: Float[np.ndarray, "epochs members 2"]


@dataclasses.dataclass(frozen=True)
class Learned:
    """A trained residual. loss: on the windows held out, 1 being physics alone. losses: of training and validation, by epoch.

    epochs: trained. horizon: alpha.
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
    each_epoch: Callable[[TrainingState], None] | None = None,
) -> list[Learned]:
    """Train residuals of a System, one for each seed of each member.

    Args:
        system: the physics.
        data: training and validation windows of measured states and inputs.
        heads: of the residual, one for each state block that it corrects.
        training: settings; its seeds are those of each member.
        members: parameter values of the physics in which the members differ, by name.
        start: residuals with the same heads to start from, one for each result, as those of a shorter
            horizon.
        resume: function from the state of a training that has not begun to that at which it was interrupted;
            the training continues to the same result.
        each_epoch: called with the state after each epoch; may raise to stop the training.
    Returns:
        A trained residual for each member and seed, seeds of one member together.
    Raises:
        SettingError: heads that do not fit the System, or another number of residuals to start from.
    Source: seed 001, section III, eqs. 15-25.
    """
    _check(system, heads)
    heads = tuple(heads)
    ps = [parameter_values(system, **dict(member)) for member in members for _ in training.seeds]
    seeds = [seed for _ in members for seed in training.seeds]
    if start is None:
        begun = [_fresh(system, heads, data, training, p, seed) for p, seed in zip(ps, seeds, strict=True)]
    else:
        begun = [_taken_over(residual, heads) for residual in start]
    if len(begun) != len(ps):
        raise SettingError(f"{len(begun)} residuals to start from, for {len(ps)} members: give one for each")
    with training.computing():
        fixed, weights, p = _stacked([f for f, _ in begun]), _stacked([w for _, w in begun]), _stacked(ps)
        size = max(1, round(training.batch * len(data.training)))
        adam = optax.adam(training.rate)
        rows, held = on_device(data, data.training), on_device(data, data.validation)
        r = _scales(system, heads, p, rows)
        epoch = partial(_epochs, system, heads, training.rate)
        validate = partial(_losses, system, heads)
        state = _judged(
            TrainingState(weights, weights, jax.vmap(adam.init)(weights), *_nothing_yet(len(ps))),
            np.full(len(ps), np.nan),
            validate(weights, fixed, p, r, held),
        )
    if resume is not None:
        state = resume(state)
    while state.epoch < training.epochs and np.any(state.since < training.patience):
        order = np.random.default_rng([training.seeds[0], state.epoch]).permutation(data.training)
        with training.computing():
            batches = jnp.asarray(order[: len(order) // size * size].reshape(-1, size))
            new, optimiser, losses = epoch(state.weights, state.optimiser, fixed, p, r, rows, batches)
            state = dataclasses.replace(state, weights=new, optimiser=optimiser, epoch=state.epoch + 1)
            state = _judged(state, np.asarray(losses), validate(new, fixed, p, r, held))
        if each_epoch is not None:
            each_epoch(state)
    return [_learned(system, heads, data, state, i, _member(fixed, i), member) for i, member in enumerate(ps)]


@partial(jax.jit, static_argnums=(0, 1))
def _scales(system: System, heads: tuple[Head, ...], p: Values, rows: Rows) -> Float[Array, "members _ _"]:
    return jax.vmap(partial(scales, system, heads), (0, None))(p, rows)


@partial(jax.jit, static_argnums=(0, 1, 2))
def _epochs(
    system: System, heads: tuple[Head, ...], rate: float, weights: Any, *rest: Any
) -> tuple[Any, Any, Float[Array, " members"]]:
    """`_epoch` of all members."""
    one = partial(_epoch, system, heads, optax.adam(rate))
    return _for_members(one, (0, 0, 0, 0, 0, None, None))(weights, *rest)


@partial(jax.jit, static_argnums=(0, 1))
def _losses(system: System, heads: tuple[Head, ...], weights: Any, *rest: Any) -> Float[Array, " members"]:
    """`_loss` of all members."""
    return _for_members(partial(_loss, system, heads), (0, 0, 0, 0, None))(weights, *rest)


def _for_members(function: Callable[..., Any], axes: tuple[int | None, ...]) -> Callable[..., Any]:
    """A function of one member as one of all. `vmap` over a single one would make it twice as slow."""

    def of_all(*arguments: Any) -> Any:
        if len(jax.tree.leaves(arguments[0])[0]) > 1:
            return jax.vmap(function, axes)(*arguments)
        own = [a if axis is None else _member(a, 0) for a, axis in zip(arguments, axes, strict=True)]
        return jax.tree.map(lambda v: v[None], function(*own))

    return of_all


def _epoch(
    system: System,
    heads: tuple[Head, ...],
    adam: optax.GradientTransformation,
    weights: Any,
    optimiser: Any,
    fixed: Any,
    p: Values,
    r: Float[Array, "heads horizon"],
    rows: Rows,
    batches: Int[Array, "batches size"],
) -> tuple[Any, Any, Float[Array, ""]]:
    """Weights and Adam's state after one step a batch, and the mean loss on the way."""

    def one(carry, starts):
        weights, optimiser = carry
        some = rows | {"starts": starts}
        value, slope = jax.value_and_grad(partial(_loss, system, heads))(weights, fixed, p, r, some)
        change, optimiser = adam.update(slope, optimiser)
        return (optax.apply_updates(weights, change), optimiser), value

    (weights, optimiser), losses = jax.lax.scan(one, (weights, optimiser), batches)
    return weights, optimiser, jnp.mean(losses)


def _loss(
    system: System,
    heads: tuple[Head, ...],
    weights: Any,
    fixed: Any,
    p: Values,
    r: Float[Array, "heads horizon"],
    rows: Rows,
) -> Float[Array, ""]:
    return loss(system, heads, _joined(fixed, weights), p, r, rows)


def _judged(
    state: TrainingState, training: Float[np.ndarray, " members"], validation: Float[Array, " members"]
) -> TrainingState:
    """The state after these losses; the best weights are kept member by member."""
    now = np.asarray(validation)
    better, clearly = now < state.least, now < (1.0 - _CLEARLY) * state.least
    best = jax.tree.map(
        lambda new, old: jnp.where(better.reshape((-1,) + (1,) * (new.ndim - 1)), new, old),
        state.weights,
        state.best,
    )
    return dataclasses.replace(
        state,
        best=best,
        least=np.where(better, now, state.least),
        since=np.where(clearly, 0, state.since + 1),
        losses=np.concatenate([state.losses, np.stack([training, now], axis=1)[None]]),
    )


def _fresh(
    system: System, heads: tuple[Head, ...], data: Windows, training: Training, p: Values, seed: int
) -> tuple[tuple[Weights, ...], tuple[Weights, ...]]:
    """What heads keep of their inputs, and their weights before training."""
    found = missing_rates(system, heads, None, p, data, held_out=False)
    keys = jax.random.split(jax.random.key(seed), len(heads))
    both = [
        _fresh_head(head, *rows, training, key) for head, rows, key in zip(heads, found, keys, strict=True)
    ]
    return tuple(fixed for fixed, _ in both), tuple(weights for _, weights in both)


def _fresh_head(
    head: Head,
    inputs: Float[np.ndarray, "n inputs"],
    missing: Float[np.ndarray, "n output"],
    training: Training,
    key: jax.Array,
) -> tuple[Weights, Weights]:
    fixed = scaled_to(inputs, np.maximum(np.sqrt(np.mean(missing**2, axis=0)), _LEAST_RATE))
    weights = initial_weights(head, inputs.shape[1], missing.shape[1], key)
    if head.linear and training.linear_start:
        z = np.column_stack([(inputs - fixed["mean"]) / fixed["scale"], np.ones(len(inputs))])
        squares = z.T @ z + _RIDGE * len(z) * np.eye(z.shape[1])
        found = np.linalg.solve(squares, z.T @ (missing / fixed["unit"]))
        weights |= {"L": jnp.asarray(found[:-1].T), "b_2": jnp.asarray(found[-1])}
    return {name: jnp.asarray(value) for name, value in fixed.items()}, weights


def _taken_over(
    residual: Residual, heads: tuple[Head, ...]
) -> tuple[tuple[Weights, ...], tuple[Weights, ...]]:
    if residual.heads != heads:
        raise SettingError("the residual to start from has other heads than those to train; give the same")
    parts = [{name: jnp.asarray(v) for name, v in w.items()} for w in residual.weights]
    fixed = tuple({n: v for n, v in w.items() if n not in LEARNED} for w in parts)
    return fixed, tuple({n: v for n, v in w.items() if n in LEARNED} for w in parts)


def _learned(
    system: System,
    heads: tuple[Head, ...],
    data: Windows,
    state: TrainingState,
    i: int,
    fixed: Sequence[Weights],
    p: Values,
) -> Learned:
    """Member i, with its errors on what was held out."""
    weights = _joined(fixed, _member(state.best, i))
    held = missing_rates(system, heads, weights, p, data, held_out=True)
    without = missing_rates(system, heads, None, p, data, held_out=True)
    full = []
    for w, (_, left), (_, physics) in zip(weights, held, without, strict=True):
        learned = physics - left
        full.append(
            {name: np.asarray(value) for name, value in w.items()}
            | {"error": _rms(left), "typical": _rms(learned)}
        )
    losses = state.losses[:, i]
    return Learned(Residual(heads, tuple(full)), float(state.least[i]), losses, state.epoch, data.horizon)


def _rms(rows: Float[np.ndarray, "n k"]) -> Float[np.ndarray, " k"]:
    return np.sqrt(np.mean(rows**2, axis=0)) if len(rows) else np.full(rows.shape[1], np.inf)


def _joined(fixed: Sequence[Weights], weights: Sequence[Weights]) -> list[Weights]:
    return [{**f, **w} for f, w in zip(fixed, weights, strict=True)]


def _stacked(members: Sequence[Any]) -> Any:
    return jax.tree.map(lambda *values: jnp.asarray(np.stack(values)), *members)


def _member(stacked: Any, i: int) -> Any:
    return jax.tree.map(lambda v: v[i], stacked)


def _nothing_yet(members: int) -> tuple[np.ndarray, np.ndarray, int, np.ndarray]:
    return np.full(members, np.inf), np.zeros(members, int), 0, np.zeros((0, members, 2))


def _check(system: System, heads: Sequence[Head]) -> None:
    x, u = jnp.array(system.states.initial()), jnp.array(system.inputs.initial())
    known = set(system.regressors(system.states.unpack(x), system.inputs.unpack(u), parameter_values(system)))
    outputs = [head.output for head in heads]
    if not heads or len(set(outputs)) < len(outputs) or not set(outputs) <= set(system.states):
        raise SettingError(
            f"heads for {', '.join(outputs) or 'nothing'}: give one for each of some of {', '.join(system.states)}"
        )
    for head in heads:
        unknown = {*head.inputs, *((head.attitude,) if head.turned else ())} - known
        if unknown:
            raise SettingError(
                f"the head of {head.output} depends on {', '.join(sorted(unknown))}; there are {', '.join(sorted(known))}"
            )
