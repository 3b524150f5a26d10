"""Where the parameters rho of an LPV model lie: boxes, their vertices, and models with fewer parameters.

A box of k parameters has 2^k vertices v, and every rho in it is a convex combination of them,

    rho = sum_v alpha_v v,    alpha_v = product_i (1 - t_i or t_i),    t_i = (rho_i - lower_i) / (upper_i - lower_i)

so that A(rho) = sum_v alpha_v A(v): what holds at the vertices, and is convex, holds in the box.

Reduction: parameters that do not move become numbers (`without_constants`, exact); and of those that move together along
flights, the principal components replace them (`reduced`), rho ~ mean + S U phi, where U are the leading left singular
vectors of the scaled samples: a tighter set with fewer vertices, no longer equal to the System but for all components.

Reference: A. Kwiatkowski, H. Werner, PCA-based parameter set mappings for LPV models with fewer parameters and less
overbounding, IEEE Trans. Control Syst. Technol. 16 (2008) 781-788.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
from jaxtyping import Bool, Float

from rotorid.errors import SettingError
from rotorid.models.lpv.intervals import Interval
from rotorid.models.lpv.model import Function, Lpv

MOST: Final = 16
"""Parameters of a box whose vertices are listed: 2^16 of them."""

_CELLS: Final = 200_000
_WITHIN: Final = 1e-9


@dataclasses.dataclass(frozen=True)
class Box:
    """lower <= rho <= upper, parameter by parameter."""

    names: tuple[str, ...]
    lower: Float[np.ndarray, " k"]
    upper: Float[np.ndarray, " k"]

    def __post_init__(self) -> None:
        for name, a, b in zip(self.names, self.lower, self.upper, strict=True):
            if not (np.isfinite(a) and np.isfinite(b) and a <= b):
                raise SettingError(
                    f"the bounds of {name!r} are {a:g} and {b:g}; give two finite ones, the lower first"
                )

    @property
    def width(self) -> Float[np.ndarray, " k"]:
        """upper - lower."""
        return self.upper - self.lower

    @property
    def centre(self) -> Float[np.ndarray, " k"]:
        """Halfway between lower and upper."""
        return 0.5 * (self.lower + self.upper)

    def vertices(self) -> Float[np.ndarray, "vertices k"]:
        """All 2^k corners; the last parameter changes fastest. Raises SettingError for more than `MOST` parameters."""
        if len(self.names) > MOST:
            raise SettingError(
                f"a box of {len(self.names)} parameters has 2^{len(self.names)} vertices; reduce it to {MOST} or fewer"
            )
        ends = list(zip(self.lower, self.upper, strict=True))
        return np.array(list(itertools.product(*ends))).reshape(2 ** len(ends), len(ends))

    def coordinates(self, rho: Float[np.ndarray, "*batch k"]) -> Float[np.ndarray, "*batch vertices"]:
        """alpha: shares of the vertices in rho, of sum 1. What is outside of the box is taken at its edge."""
        width = np.where(self.width > 0, self.width, 1.0)
        t = np.clip((np.asarray(rho) - self.lower) / width, 0.0, 1.0)
        alpha = np.ones((*t.shape[:-1], 1))
        for k in range(t.shape[-1]):
            both = np.stack([1.0 - t[..., k], t[..., k]], axis=-1)
            alpha = (alpha[..., :, None] * both[..., None, :]).reshape(*alpha.shape[:-1], -1)
        return alpha

    def contains(self, rho: Float[np.ndarray, "*batch k"]) -> Bool[np.ndarray, "*batch"]:
        """Whether rho lies in the box, rounding aside."""
        room = _WITHIN * (1.0 + np.maximum(np.abs(self.lower), np.abs(self.upper)))
        rho = np.asarray(rho)
        return np.asarray(np.all((rho >= self.lower - room) & (rho <= self.upper + room), axis=-1))

    def hull(self, other: Box) -> Box:
        """The smallest box that holds both."""
        return Box(self.names, np.minimum(self.lower, other.lower), np.maximum(self.upper, other.upper))

    def widened(self, share: float) -> Box:
        """A box that is this share of its width larger on either side."""
        return Box(self.names, self.lower - share * self.width, self.upper + share * self.width)


def parameter_box(model: Lpv, ranges: Mapping[str, tuple[float, float]], *, pieces: int = 1) -> Box:
    """Bound the scheduling parameters rho for ranges of states, inputs and parameters.

    Args:
        model: LPV form of a System.
        ranges: lower and upper limit by scalar name, in its unit; parameters that are not named keep the
            model's value.
        pieces: number of parts into which each range is cut, which tightens functions that use a variable
            twice.
    Returns:
        The box of rho by interval arithmetic (`intervals`), k lower and k upper bounds in the units of rho.
    Raises:
        SettingError: a name is unknown, a range is not finite or has its limits exchanged, a range that a
            scheduling function needs is missing, a range that holds 0 is divided by, or there are too many
            pieces.
    """
    known: dict[str, Any] = dict(model.values)
    names = {*model.states, *model.inputs, *model.values}
    for name, (low, high) in ranges.items():
        if name not in names:
            raise SettingError(f"no {name!r} to give a range of; there are {', '.join(sorted(names))}")
        if not (np.isfinite(low) and np.isfinite(high) and low <= high):
            raise SettingError(
                f"the range of {name!r} is {low:g} to {high:g}; give two finite numbers, the lower first"
            )
        known[name] = Interval(float(low), float(high))
    whole = pieces == 1
    found = (
        model.evaluate(known)
        if whole
        else [_in_pieces(model, k, known, pieces) for k in range(len(model.names))]
    )
    low, high = (
        np.array([float(np.min(f.lower)) if isinstance(f, Interval) else float(f) for f in found]),
        np.array([float(np.max(f.upper)) if isinstance(f, Interval) else float(f) for f in found]),
    )
    return Box(model.names, low, high)


class _Seen(dict):
    """Values that remember which were asked for."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        super().__init__(values)
        self.asked: dict[str, None] = {}

    def __getitem__(self, name: str) -> Any:
        self.asked[name] = None
        return super().__getitem__(name)


def _in_pieces(model: Lpv, k: int, known: Mapping[str, Any], pieces: int) -> Any:
    one = model.with_parameters([k], np.zeros(len(model.names)))
    seen = _Seen(known)
    one.evaluate(seen)
    cut = [name for name in seen.asked if isinstance(known[name], Interval)]
    if pieces ** len(cut) > _CELLS:
        raise SettingError(
            f"{pieces} pieces of {len(cut)} ranges are too many for {model.names[k]!r}; take fewer"
        )
    edges = [np.linspace(known[name].lower, known[name].upper, pieces + 1) for name in cut]
    grids = [
        np.meshgrid(*(e[side] for e in edges), indexing="ij") for side in (slice(None, -1), slice(1, None))
    ]
    cells = {name: Interval(low.ravel(), high.ravel()) for name, low, high in zip(cut, *grids, strict=True)}
    return one.evaluate({**known, **cells})[0]


def box_around(model: Lpv, rho: Float[np.ndarray, "n k"]) -> Box:
    """The smallest box around samples of rho (`Lpv.scheduling` along flights)."""
    return Box(model.names, np.min(rho, axis=0), np.max(rho, axis=0))


def without_constants(model: Lpv, box: Box) -> tuple[Lpv, Box]:
    """The model and box without the parameters that do not move or stand nowhere, equal to the model in the box."""
    used = [bool(model.A[k].any() or model.B[k].any() or model.c[k].any()) for k in range(len(box.names))]
    kept = [k for k in range(len(box.names)) if used[k] and box.width[k] > 0.0]
    rest = model.with_parameters(kept, box.centre)
    return rest, Box(rest.names, box.lower[kept], box.upper[kept])


@dataclasses.dataclass(frozen=True)
class Reduction:
    """A model whose parameters phi are principal components of rho, and the box around phi along the samples.

    share: of the scaled samples' variance that the components hold. shares: of each component that there is. error: largest
    |rho - its reconstruction| along the samples, over the width of rho's range, by parameter.
    """

    model: Lpv
    box: Box
    share: float
    shares: Float[np.ndarray, " all"]
    error: Float[np.ndarray, " k"]


def reduced(model: Lpv, rho: Float[np.ndarray, "n k"], count: int) -> Reduction:
    """The model with the leading `count` principal components of these samples of rho as its parameters.

    Raises SettingError where there are fewer samples or parameters than components.
    """
    n, k = rho.shape
    if not 1 <= count <= min(n, k):
        raise SettingError(f"{count} components of {k} parameters in {n} samples; take 1 to {min(n, k)}")
    low, high = rho.min(axis=0), rho.max(axis=0)
    scale = np.where(high > low, high - low, 1.0)
    mean = rho.mean(axis=0)
    scaled = (rho - mean) / scale
    _, singular, rows = np.linalg.svd(scaled, full_matrices=False)
    lead = rows[:count]
    U = lead.T * np.sign(lead[np.arange(count), np.argmax(np.abs(lead), axis=1)])
    phi = scaled @ U
    error = np.max(np.abs(scaled - phi @ U.T), axis=0)
    A0, B0, c0 = model.at(mean)
    mix = scale[:, None] * U
    names = tuple(f"component_{i}" for i in range(count))
    small = dataclasses.replace(
        model,
        names=names,
        units=("1",) * count,
        A0=A0,
        B0=B0,
        c0=c0,
        A=np.tensordot(mix.T, model.A, 1),
        B=np.tensordot(mix.T, model.B, 1),
        c=mix.T @ model.c,
        functions=tuple(
            _component(model, U[:, i] / scale, float(mean @ (U[:, i] / scale))) for i in range(count)
        ),
    )
    energy = singular**2
    shares = energy / energy.sum() if energy.sum() > 0 else energy
    return Reduction(small, box_around(small, phi), float(shares[:count].sum()), shares, error)


def _component(model: Lpv, weights: Float[np.ndarray, " k"], offset: float) -> Function:
    used = [k for k in range(len(weights)) if weights[k] != 0.0]

    def component(values: Mapping[str, Any]) -> Any:
        total: Any = -offset
        for k in used:
            total = total + float(weights[k]) * model.functions[k](values)
        return total

    return component


def tracked_range(
    value: Float[np.ndarray, " n"] | Sequence[float],
    std: Float[np.ndarray, " n"] | Sequence[float] | float = 0.0,
    *,
    deviations: float = 3.0,
) -> tuple[float, float]:
    """Find the range of a tracked parameter from its values and their standard deviations.

    Args:
        value: along a Track (`track.quantities["mass"]`), n numbers, in its unit.
        std: standard deviations of the values, n numbers or one for all, in the same unit.
        deviations: number of standard deviations.
    Returns:
        Least of value - deviations * std and greatest of value + deviations * std, in the unit of the values.
    Raises:
        SettingError: there are no values, or a number is not finite.
    """
    value, std = np.asarray(value, dtype=float), np.asarray(std, dtype=float)
    if value.size == 0 or not (np.isfinite(value).all() and np.isfinite(std).all()):
        raise SettingError(
            "a tracked parameter with numbers that are not finite has no range; leave those rows out"
        )
    return float(np.min(value - deviations * std)), float(np.max(value + deviations * std))
