"""Spaces that mix scalars, vectors and rotations, with plus and minus on their flat arrays.

A point is stored flat (a rotation takes four numbers), a difference lives in the tangent space (a rotation takes
three). Plus and minus satisfy x [+] 0 = x, x [+] (y [-] x) = y, (x [+] d) [-] x = d.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from rotorid.errors import SettingError
from rotorid.geometry import rotations


@dataclasses.dataclass(frozen=True)
class Block:
    """One named part of a space.

    shape: of the value that a model sees. dim: of its tangent. unit, frame: of the value. initial: the value where
    nothing is known (None: zeros, or the identity rotation). std: standard deviation of that initial value, in unit
    (rad for a rotation). noise: of a state, the standard deviation that process noise adds in one second (unit per
    square root of s); of an output, the standard deviation of one measurement. limit: of an input, the magnitude in unit that
    is physically impossible beyond; estimators do not use such values.
    """

    shape: tuple[int, ...]
    dim: int
    unit: str
    frame: str = "-"
    initial: tuple[float, ...] | None = None
    std: float = 1.0
    noise: float | tuple[float, ...] = 0.0
    rotation: bool = False
    limit: float = math.inf

    def __post_init__(self) -> None:
        noise = self.noise if isinstance(self.noise, tuple) else (self.noise,)
        if self.std < 0 or min(noise) < 0:
            raise SettingError("a standard deviation is negative: std and noise must be 0 or more")
        if self.initial is not None and len(self.initial) != self.size:
            raise SettingError(f"initial has {len(self.initial)} numbers where {self.size} are needed")

    @property
    def size(self) -> int:
        """Numbers stored."""
        return self.shape[0] if self.shape else 1

    @property
    def initial_value(self) -> tuple[float, ...]:
        if self.initial is not None:
            return self.initial
        return (1.0, 0.0, 0.0, 0.0) if self.rotation else (0.0,) * self.size

    @property
    def noise_vector(self) -> tuple[float, ...]:
        """noise, one number per tangent dimension."""
        return self.noise if isinstance(self.noise, tuple) else (float(self.noise),) * self.dim


def Scalar(  # noqa: N802
    unit: str = "1",
    *,
    initial: float | None = None,
    std: float = 1.0,
    noise: float = 0.0,
    frame: str = "-",
    limit: float = math.inf,
) -> Block:
    """Make the block of a scalar.

    Args:
        unit: unit of the value.
        initial: initial value, used without other information; None: 0.
        std: standard deviation of the initial value, in unit.
        noise: for a state, the standard deviation that process noise adds in 1 s (unit per square root of s); for an output,
            the standard deviation of one measurement.
        frame: coordinate frame of the value, "-" for none.
        limit: for an input, the largest magnitude that is physically possible, in unit.
    Returns:
        The block, one number.
    Raises:
        SettingError: a standard deviation is negative.
    """
    return Block((), 1, unit, frame, None if initial is None else (initial,), std, noise, limit=limit)


def Vector(  # noqa: N802
    size: int,
    unit: str = "1",
    *,
    initial: tuple[float, ...] | None = None,
    std: float = 1.0,
    noise: float | tuple[float, ...] = 0.0,
    frame: str = "-",
    limit: float = math.inf,
) -> Block:
    """Make the block of a vector.

    Args:
        size: number of components.
        unit: unit of the components.
        initial: initial value, used without other information, `size` numbers; None: zeros.
        std: standard deviation of each component of the initial value, in unit.
        noise: for a state, the standard deviation that process noise adds in 1 s (unit per square root of s); for an output,
            the standard deviation of one measurement. One number for all components, or one for each.
        frame: coordinate frame of the components, "-" for none.
        limit: for an input, the largest magnitude of a component that is physically possible, in unit.
    Returns:
        The block, `size` numbers.
    Raises:
        SettingError: a standard deviation is negative, or `initial` has another number of components.
    """
    return Block((size,), size, unit, frame, initial, std, noise, limit=limit)


def Rotation(  # noqa: N802
    *, initial: tuple[float, ...] | None = None, std: float = 1.0, noise: float | tuple[float, ...] = 0.0
) -> Block:
    """Make the block of an attitude: a unit quaternion (Hamilton, w x y z, body to world).

    Args:
        initial: initial quaternion, used without other information; None: the identity.
        std: standard deviation of the initial value, rad.
        noise: for a state, the standard deviation that process noise adds in 1 s (rad per square root of s); for an output,
            the standard deviation of one measurement (rad). One number for all axes, or three.
    Returns:
        The block, with four stored numbers and three in the tangent space.
    Raises:
        SettingError: a standard deviation is negative, or `initial` has not four numbers.
    """
    return Block((4,), 3, "1", "body to world", initial, std, noise, rotation=True)


@dataclasses.dataclass(frozen=True)
class Space(Mapping[str, Block]):
    """Named blocks in order: `Space.of(attitude=Rotation(), velocity=Vector(3, "m/s"))`.

    A point has the stored numbers of all blocks, one after another (`size` numbers). A tangent vector has three numbers for a
    rotation (`dim` numbers). `x [+] delta` moves a point by a tangent vector, and `a [-] b` is the tangent vector from b to
    a.

    blocks: name and block, in order.
    """

    blocks: tuple[tuple[str, Block], ...] = ()

    @classmethod
    def of(cls, **blocks: Block) -> Space:
        """The space of these blocks, in this order."""
        return cls(tuple(blocks.items()))

    def __getitem__(self, name: str) -> Block:
        return self._by_name[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_name)

    def __len__(self) -> int:
        return len(self.blocks)

    def __hash__(self) -> int:
        return hash(self.blocks)

    @cached_property
    def _by_name(self) -> dict[str, Block]:
        return dict(self.blocks)

    @cached_property
    def size(self) -> int:
        """Numbers stored by a point."""
        return sum(b.size for _, b in self.blocks)

    @cached_property
    def dim(self) -> int:
        """Dimension of the tangent space."""
        return sum(b.dim for _, b in self.blocks)

    @cached_property
    def stored(self) -> dict[str, slice]:
        """Slice of each block in a point, by name."""
        return _slices((name, b.size) for name, b in self.blocks)

    @cached_property
    def tangent(self) -> dict[str, slice]:
        """Slice of each block in a tangent vector, by name."""
        return _slices((name, b.dim) for name, b in self.blocks)

    def pack(self, values: Mapping[str, Float[Array, " ..."]]) -> Float[Array, " size"]:
        """The point with these values by block name."""
        return self._concatenate(values, [b.size for _, b in self.blocks])

    def pack_tangent(self, values: Mapping[str, Float[Array, " ..."]]) -> Float[Array, " dim"]:
        """The tangent vector with these values by block name, three numbers for a rotation."""
        return self._concatenate(values, [b.dim for _, b in self.blocks])

    def unpack(self, point: Float[Array | np.ndarray, "*batch size"]) -> dict[str, Any]:
        """The values of a point by block name, as arrays of the same kind. Leading axes are kept."""
        return {
            name: point[..., s] if self[name].shape else point[..., s.start]
            for name, s in self.stored.items()
        }

    def initial(self) -> tuple[float, ...]:
        """The point of the blocks' initial values."""
        return tuple(v for _, b in self.blocks for v in b.initial_value)

    def limit(self) -> tuple[float, ...]:
        """The largest possible magnitude of every stored number."""
        return tuple(v for _, b in self.blocks for v in (b.limit,) * b.size)

    def noise(self) -> tuple[float, ...]:
        """The noise of every tangent dimension."""
        return tuple(v for _, b in self.blocks for v in b.noise_vector)

    def std(self) -> tuple[float, ...]:
        """The initial standard deviation of every tangent dimension."""
        return tuple(v for _, b in self.blocks for v in (b.std,) * b.dim)

    def plus(self, x: Float[Array, " size"], delta: Float[Array, " dim"]) -> Float[Array, " size"]:
        """The point `x [+] delta`."""
        return self._apply(lambda b, s, t: rotations.plus(x[s], delta[t]) if b.rotation else x[s] + delta[t])

    def minus(self, a: Float[Array, " size"], b: Float[Array, " size"]) -> Float[Array, " dim"]:
        """The tangent vector `a [-] b`, in the tangent space at b."""
        return self._apply(lambda k, s, t: rotations.minus(a[s], b[s]) if k.rotation else a[s] - b[s])

    def lift(self, x: Float[Array, " size"], delta: Float[Array, " dim"]) -> Float[Array, " size"]:
        """Change of the stored numbers in `x [+] delta` to first order, linear in delta."""
        return self._apply(
            lambda b, s, t: rotations.multiply(x[s], _pure(0.5 * delta[t])) if b.rotation else delta[t]
        )

    def normalise(self, x: Float[Array, " size"]) -> Float[Array, " size"]:
        """The point with rotations as quaternions of length 1."""
        return self._apply(lambda b, s, t: rotations.normalize(x[s]) if b.rotation else x[s])

    def project(self, x: Float[Array, " size"], change: Float[Array, " size"]) -> Float[Array, " dim"]:
        """The tangent vector `(x + d) [-] x` of the change d of the stored numbers, to first order; the inverse of `lift`."""
        return self._apply(
            lambda b, s, t: (
                2.0 * rotations.multiply(rotations.inverse(x[s]), change[s])[1:] if b.rotation else change[s]
            )
        )

    def frame_rotation_jacobian(self, rate: Float[Array, " dim"]) -> Float[Array, "dim dim"]:
        """Contribution of the rotating frame to the Jacobian of an error's rate: in the block of a rotation, minus the
        cross-product matrix of the body rate.
        """
        jacobian = jnp.zeros((self.dim, self.dim), rate.dtype)
        for name, block in self.blocks:
            if block.rotation:
                s = self.tangent[name]
                jacobian = jacobian.at[s, s].set(-rotations.skew(rate[s]))
        return jacobian

    def chart_rate(self, delta: Float[Array, " dim"], rate: Float[Array, " dim"]) -> Float[Array, " dim"]:
        """Rate of delta where `x [+] delta` moves with this tangent rate."""
        return self._apply(lambda b, s, t: rotations.chart_rate(delta[t], rate[t]) if b.rotation else rate[t])

    def _apply(self, of_block) -> Float[Array, " n"]:
        parts, run = [], []
        for name, block in self.blocks:
            s, t = self.stored[name], self.tangent[name]
            if block.rotation or not run or run[-1][0].rotation:
                run.append((block, s, t))
            else:
                last, ls, lt = run[-1]
                run[-1] = (last, slice(ls.start, s.stop), slice(lt.start, t.stop))
        for block, s, t in run:
            parts.append(of_block(block, s, t))
        return parts[0] if len(parts) == 1 else jnp.concatenate(parts)

    def _concatenate(
        self, values: Mapping[str, Float[Array, " ..."]], sizes: list[int]
    ) -> Float[Array, " n"]:
        if set(values) != set(self._by_name):
            missing, unknown = set(self._by_name) - set(values), set(values) - set(self._by_name)
            raise SettingError(
                "a model returned other blocks than its space has: "
                f"missing {sorted(missing) or 'none'}, unknown {sorted(unknown) or 'none'}"
            )
        if not self.blocks:
            return jnp.zeros(0)
        parts = [jnp.ravel(jnp.asarray(values[name])) for name in self._by_name]
        for (name, _), part, size in zip(self.blocks, parts, sizes, strict=True):
            if part.shape[0] != size:
                raise SettingError(f"block {name!r} has {part.shape[0]} numbers where {size} are needed")
        return jnp.concatenate(parts)


def _pure(v: Float[Array, " 3"]) -> Float[Array, " 4"]:
    return jnp.concatenate([jnp.zeros(1, v.dtype), v])


def _slices(sizes: Iterator[tuple[str, int]]) -> dict[str, slice]:
    slices, start = {}, 0
    for name, size in sizes:
        slices[name] = slice(start, start + size)
        start += size
    return slices
