"""Dynamic linear models: linear and Gaussian, in discrete time (Torren 2014, section 3.2, eqs. 3.2-3.4).

    theta_0 ~ N(m0, C0)
    Y_t     = F_t theta_t + v_t,          v_t ~ N(0, V_t)
    theta_t = G_t theta_{t-1} + w_t,      w_t ~ N(0, W_t)          t = 1 ... n

The names are those of the thesis and of R's package dlm (G. Petris, S. Petrone, P. Campagnoli, Dynamic Linear Models with R,
Springer 2009), which writes FF for F and GG for G. The first measurement comes one step after theta_0. In place of R's JFF, JV,
JGG, JW and X, a matrix that changes has a leading axis of time, one entry a row of data.

    dlm(m0=0, C0=10, F=1, V=1.4, G=1, W=0.2)       # eqs. 4.1-4.3 of the thesis, R's dlm(m0, C0, FF, V, GG, W)
    trend(2) + seasonal(12)                        # R's dlmModPoly(2) + dlmModSeas(12); see `models.dlm.terms`

A Dlm is a pytree of its six matrices: it goes through `jit`, `vmap` and `grad`, and may be made inside of them. Shapes are
always checked, values (finite, symmetric, no negative variance) where they are known.
"""

from __future__ import annotations

from typing import Any, Final, TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float

from rotorid.errors import SettingError

Numbers: TypeAlias = Any
"""A number, or numbers in lists or arrays, of numpy or JAX."""

_ASYMMETRY: Final = 1e-8
"""Relative: what a matrix may differ from its transpose, and how far below 0 its least eigenvalue may lie."""


class Dlm(eqx.Module):
    """A dynamic linear model with p states and m outputs. It is made by `dlm`, or by the terms such as `trend`, which check
    their arguments.

    `Y_t = F_t theta_t + v_t` and `theta_t = G_t theta_{t-1} + w_t` with v_t ~ N(0, V_t), w_t ~ N(0, W_t). F, V, G and W may
    each have a leading axis of time.

    m0: mean of theta_0. C0: covariance of theta_0. F: from states to outputs. V: covariance of the measurement noise. G: from
    the states of one row to those of the next. W: covariance of the state noise. states: a name for each state.
    """

    m0: Float[Array, " p"]
    C0: Float[Array, "p p"]
    F: Float[Array, "*f m p"]
    V: Float[Array, "*v m m"]
    G: Float[Array, "*g p p"]
    W: Float[Array, "*w p p"]
    states: tuple[str, ...] = eqx.field(static=True)

    @property
    def outputs(self) -> int:
        """Number of measurements in a row of data."""
        return self.F.shape[-2]

    @property
    def length(self) -> int | None:
        """Number of rows of the matrices that vary with time; None if none varies."""
        lengths = [matrix.shape[0] for matrix in (self.F, self.V, self.G, self.W) if matrix.ndim == 3]
        return lengths[0] if lengths else None

    def __add__(self, other: Dlm) -> Dlm:
        """The model whose output is the sum of both, each with its own states: R's `+` of two dlm.

        States one after another; V is the sum of both. Raises SettingError where the outputs or the lengths differ.
        """
        if self.outputs != other.outputs:
            raise SettingError(
                f"models of {self.outputs} and {other.outputs} outputs cannot be added; `block_diagonal` stacks them"
            )
        lengths = _common_length(self, other)
        return Dlm(
            _concatenate(self.m0, other.m0),
            _block_diagonal(self.C0, other.C0),
            _concatenate(*_with_common_length(self.F, other.F, lengths)),
            self.V + other.V,
            _block_diagonal(*_with_common_length(self.G, other.G, lengths)),
            _block_diagonal(*_with_common_length(self.W, other.W, lengths)),
            _unique(self.states + other.states),
        )


def block_diagonal(first: Dlm, second: Dlm) -> Dlm:
    """Combine two models that are independent of each other: R's `%+%`.

    Args:
        first: model with p1 states and m1 outputs.
        second: model with p2 states and m2 outputs.
    Returns:
        The model with p1 + p2 states and m1 + m2 outputs, those of the first before those of the second.
    Raises:
        SettingError: matrices that change over time have different lengths.
    """
    lengths = _common_length(first, second)
    return Dlm(
        _concatenate(first.m0, second.m0),
        _block_diagonal(first.C0, second.C0),
        _block_diagonal(*_with_common_length(first.F, second.F, lengths)),
        _block_diagonal(*_with_common_length(first.V, second.V, lengths)),
        _block_diagonal(*_with_common_length(first.G, second.G, lengths)),
        _block_diagonal(*_with_common_length(first.W, second.W, lengths)),
        _unique(first.states + second.states),
    )


def dlm(
    m0: Numbers,
    C0: Numbers,
    F: Numbers,
    V: Numbers,
    G: Numbers,
    W: Numbers,
    states: tuple[str, ...] | None = None,
) -> Dlm:
    """Make a dynamic linear model from its matrices: R's dlm(m0, C0, FF, V, GG, W).

    F, V, G and W have a leading axis of time where they change. A number stands for a 1 x 1 matrix, a row of p numbers for an
    F of one output.

    Args:
        m0: mean of theta_0, p numbers.
        C0: covariance of theta_0, p x p.
        F: matrix from states to outputs, m x p.
        V: covariance of the measurement noise, m x m.
        G: matrix from the states of one row to those of the next, p x p.
        W: covariance of the state noise, p x p.
        states: names of the p states; by default `theta_1`, `theta_2`, ...
    Returns:
        The model.
    Raises:
        SettingError: a shape is wrong, a number is not finite, C0, V or W is no covariance, matrices that change have
            different lengths, or there is not one name a state.
    Source: Torren 2014, section 3.2, eqs. 3.2-3.4.
    """
    mean = _array("m0", m0)
    mean = mean.reshape(1) if mean.ndim == 0 else mean
    if mean.ndim != 1 or mean.shape[0] == 0:
        raise SettingError(f"m0 is {_shape(mean)}; it must be one row of numbers, one a state")
    p = mean.shape[0]
    observation = _array("F", F)
    if observation.ndim < 2:
        observation = observation.reshape(1, -1)
    m = observation.shape[-2]
    if observation.ndim > 3 or observation.shape[-1] != p or m == 0:
        raise SettingError(
            f"F is {_shape(observation)}; with {_count(p, 'state')} in m0 it must be outputs x {p}, or times x outputs x {p}"
        )
    covariance = _square("C0", C0, p, "state", varying=False)
    noise = _square("V", V, m, "output")
    transition = _square("G", G, p, "state")
    state_noise = _square("W", W, p, "state")
    for name, matrix in (("C0", covariance), ("V", noise), ("W", state_noise)):
        _check_covariance(name, matrix)
    lengths = {
        n: x.shape[0]
        for n, x in {"F": observation, "V": noise, "G": transition, "W": state_noise}.items()
        if x.ndim == 3
    }
    if len(set(lengths.values())) > 1:
        rows = ", ".join(f"{name} {n}" for name, n in lengths.items())
        raise SettingError(f"matrices that change must have as many rows of time as each other; here {rows}")
    names = states if states is not None else tuple(f"theta_{i + 1}" for i in range(p))
    if len(names) != p:
        raise SettingError(f"{_count(len(names), 'name')} for {_count(p, 'state')}; give one a state")
    return Dlm(mean, covariance, observation, noise, transition, state_noise, tuple(names))


def _array(name: str, value: Numbers) -> Float[Array, " ..."]:
    if any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves(value)):
        return jnp.asarray(value, dtype=float)
    try:
        array = np.asarray(value, dtype=float)
    except (TypeError, ValueError):
        raise SettingError(f"{name} must be numbers in rows of equal length, not {value!r}") from None
    if not np.isfinite(array).all():
        raise SettingError(f"{name} holds a number that is not finite; only data may have missing numbers")
    return jnp.asarray(array)


def _square(
    name: str, value: Numbers, size: int, dimension: str, *, varying: bool = True
) -> Float[Array, "*times size size"]:
    array = _array(name, value)
    if array.ndim == 0 and size == 1:
        array = array.reshape(1, 1)
    if array.shape[-2:] != (size, size) or array.ndim > (3 if varying else 2):
        alternative = f", or times x {size} x {size}" if varying else ""
        raise SettingError(
            f"{name} is {_shape(array)}; with {_count(size, dimension)} it must be {size} x {size}{alternative}"
        )
    return array


def _check_covariance(name: str, matrix: Float[Array, " ..."]) -> None:
    if not _is_concrete(matrix) or matrix.size == 0:
        return
    C = np.asarray(matrix)
    scale = np.max(np.abs(C), initial=0.0)
    if np.max(np.abs(C - np.swapaxes(C, -1, -2))) > _ASYMMETRY * scale:
        raise SettingError(f"{name} is not symmetric, so it is no covariance; give ({name} + {name}') / 2")
    smallest = float(np.linalg.eigvalsh(C).min())
    if smallest < -_ASYMMETRY * scale:
        raise SettingError(
            f"{name} is not positive semidefinite (least eigenvalue {smallest:.3g}), so it is no covariance"
        )


def _is_concrete(array: Array) -> bool:
    return not isinstance(array, Tracer)


def _shape(array: Array) -> str:
    return " x ".join(map(str, array.shape)) if array.ndim else "one number"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _common_length(first: Dlm, second: Dlm) -> int | None:
    lengths = [n for n in (first.length, second.length) if n is not None]
    if len(set(lengths)) > 1:
        raise SettingError(
            f"models that change over {lengths[0]} and {lengths[1]} rows of time cannot be combined"
        )
    return lengths[0] if lengths else None


def _with_common_length(
    a: Float[Array, " ..."], b: Float[Array, " ..."], length: int | None
) -> tuple[Float[Array, " ..."], Float[Array, " ..."]]:
    """Both unchanged, or both with an axis of time."""
    if a.ndim == b.ndim or length is None:
        return a, b
    lib = _library(a, b)
    a, b = (x if x.ndim == 3 else jnp.asarray(lib.broadcast_to(x, (length, *x.shape))) for x in (a, b))
    return a, b


def _concatenate(a: Float[Array, " ..."], b: Float[Array, " ..."]) -> Float[Array, " ..."]:
    """a and b, concatenated along the last axis."""
    return jnp.asarray(_library(a, b).concatenate([a, b], axis=-1))


def _block_diagonal(a: Float[Array, " ..."], b: Float[Array, " ..."]) -> Float[Array, " ..."]:
    """a and b on the diagonal."""
    (ra, ca), (rb, cb), times, lib = a.shape[-2:], b.shape[-2:], a.shape[:-2], _library(a, b)
    upper = lib.concatenate([a, np.zeros((*times, ra, cb), a.dtype)], axis=-1)
    lower = lib.concatenate([np.zeros((*times, rb, ca), b.dtype), b], axis=-1)
    return jnp.asarray(lib.concatenate([upper, lower], axis=-2))


def _library(*arrays: Array) -> Any:
    """numpy for concrete numbers, which needs no compilation; jax.numpy for traced ones."""
    return np if all(_is_concrete(a) for a in arrays) else jnp


def _unique(names: tuple[str, ...]) -> tuple[str, ...]:
    """Names made unique by a number: level, level_2."""
    unique: list[str] = []
    for name in names:
        number, candidate = 2, name
        while candidate in unique:
            candidate, number = f"{name}_{number}", number + 1
        unique.append(candidate)
    return tuple(unique)
