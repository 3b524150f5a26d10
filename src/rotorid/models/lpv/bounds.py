"""Bounds of the parameters rho of an LPV model: boxes, their vertices, and models with fewer parameters.

A box of k parameters has 2^k vertices v, and every rho in it is a convex combination of them,

    rho = sum_v alpha_v v,    alpha_v = product_i (1 - t_i or t_i),    t_i = (rho_i - lower_i) / (upper_i - lower_i)

so that A(rho) = sum_v alpha_v A(v): what holds at the vertices, and is convex, holds in the box.

Reduction: constant parameters become numbers (`without_constants`, exact). Principal components replace parameters that are
correlated along flights (`reduce_parameters`), rho ~ mean + S U phi, where U are the leading left singular vectors of the
scaled samples: a tighter set with fewer vertices. It equals the System only with all components.

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

MAX_PARAMETERS: Final = 16
"""Largest number of parameters of a box with a list of vertices, 2^16."""

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
        """All 2^k corners; the last parameter changes fastest. Raises SettingError for more than `MAX_PARAMETERS`."""
        if len(self.names) > MAX_PARAMETERS:
            raise SettingError(
                f"a box of {len(self.names)} parameters has 2^{len(self.names)} vertices; reduce it to {MAX_PARAMETERS}"
            )
        ends = list(zip(self.lower, self.upper, strict=True))
        return np.array(list(itertools.product(*ends))).reshape(2 ** len(ends), len(ends))

    def coordinates(self, rho: Float[np.ndarray, "*batch k"]) -> Float[np.ndarray, "*batch vertices"]:
        """alpha: shares of the vertices in rho, of sum 1. A point outside of the box is moved to its edge."""
        width = np.where(self.width > 0, self.width, 1.0)
        t = np.clip((np.asarray(rho) - self.lower) / width, 0.0, 1.0)
        alpha = np.ones((*t.shape[:-1], 1))
        for k in range(t.shape[-1]):
            pair = np.stack([1.0 - t[..., k], t[..., k]], axis=-1)
            alpha = (alpha[..., :, None] * pair[..., None, :]).reshape(*alpha.shape[:-1], -1)
        return alpha

    def contains(self, rho: Float[np.ndarray, "*batch k"]) -> Bool[np.ndarray, "*batch"]:
        """Whether rho lies in the box, up to rounding."""
        tolerance = _WITHIN * (1.0 + np.maximum(np.abs(self.lower), np.abs(self.upper)))
        rho = np.asarray(rho)
        return np.asarray(np.all((rho >= self.lower - tolerance) & (rho <= self.upper + tolerance), axis=-1))

    def hull(self, other: Box) -> Box:
        """The smallest box that holds both."""
        return Box(self.names, np.minimum(self.lower, other.lower), np.maximum(self.upper, other.upper))

    def widen(self, share: float) -> Box:
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
    values: dict[str, Any] = dict(model.values)
    names = {*model.states, *model.inputs, *model.values}
    for name, (low, high) in ranges.items():
        if name not in names:
            raise SettingError(f"no {name!r} to give a range of; there are {', '.join(sorted(names))}")
        if not (np.isfinite(low) and np.isfinite(high) and low <= high):
            raise SettingError(
                f"the range of {name!r} is {low:g} to {high:g}; give two finite numbers, the lower first"
            )
        values[name] = Interval(float(low), float(high))
    is_whole = pieces == 1
    functions = (
        model.evaluate(values)
        if is_whole
        else [_in_pieces(model, k, values, pieces) for k in range(len(model.names))]
    )
    low, high = (
        np.array([float(np.min(f.lower)) if isinstance(f, Interval) else float(f) for f in functions]),
        np.array([float(np.max(f.upper)) if isinstance(f, Interval) else float(f) for f in functions]),
    )
    return Box(model.names, low, high)


class _RecordingValues(dict):
    """Values that record the names that are read."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        super().__init__(values)
        self.names_used: dict[str, None] = {}

    def __getitem__(self, name: str) -> Any:
        self.names_used[name] = None
        return super().__getitem__(name)


def _in_pieces(model: Lpv, k: int, values: Mapping[str, Any], pieces: int) -> Any:
    single = model.with_parameters([k], np.zeros(len(model.names)))
    recorder = _RecordingValues(values)
    single.evaluate(recorder)
    split = [name for name in recorder.names_used if isinstance(values[name], Interval)]
    if pieces ** len(split) > _CELLS:
        raise SettingError(
            f"{pieces} pieces of {len(split)} ranges are too many for {model.names[k]!r}; take fewer"
        )
    edges = [np.linspace(values[name].lower, values[name].upper, pieces + 1) for name in split]
    grids = [
        np.meshgrid(*(e[side] for e in edges), indexing="ij") for side in (slice(None, -1), slice(1, None))
    ]
    cells = {name: Interval(low.ravel(), high.ravel()) for name, low, high in zip(split, *grids, strict=True)}
    return single.evaluate({**values, **cells})[0]


def box_around(model: Lpv, rho: Float[np.ndarray, "n k"]) -> Box:
    """The smallest box around samples of rho (`Lpv.scheduling` along flights)."""
    return Box(model.names, np.min(rho, axis=0), np.max(rho, axis=0))


def without_constants(model: Lpv, box: Box) -> tuple[Lpv, Box]:
    """The model and box without constant and unused parameters, equal to the model in the box."""
    is_used = [bool(model.A[k].any() or model.B[k].any() or model.c[k].any()) for k in range(len(box.names))]
    indices = [k for k in range(len(box.names)) if is_used[k] and box.width[k] > 0.0]
    remainder = model.with_parameters(indices, box.centre)
    return remainder, Box(remainder.names, box.lower[indices], box.upper[indices])


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


def reduce_parameters(model: Lpv, rho: Float[np.ndarray, "n k"], count: int) -> Reduction:
    """The model with the leading `count` principal components of these samples of rho as its parameters.

    Raises SettingError where there are fewer samples or parameters than components.
    """
    n, k = rho.shape
    if not 1 <= count <= min(n, k):
        raise SettingError(f"{count} components of {k} parameters in {n} samples; take 1 to {min(n, k)}")
    low, high = rho.min(axis=0), rho.max(axis=0)
    scale = np.where(high > low, high - low, 1.0)
    mean = rho.mean(axis=0)
    normalised = (rho - mean) / scale
    _, singular, rows = np.linalg.svd(normalised, full_matrices=False)
    lead = rows[:count]
    U = lead.T * np.sign(lead[np.arange(count), np.argmax(np.abs(lead), axis=1)])
    phi = normalised @ U
    error = np.max(np.abs(normalised - phi @ U.T), axis=0)
    A0, B0, c0 = model.at(mean)
    mixing = scale[:, None] * U
    names = tuple(f"component_{i}" for i in range(count))
    reduced_model = dataclasses.replace(
        model,
        names=names,
        units=("1",) * count,
        A0=A0,
        B0=B0,
        c0=c0,
        A=np.tensordot(mixing.T, model.A, 1),
        B=np.tensordot(mixing.T, model.B, 1),
        c=mixing.T @ model.c,
        functions=tuple(
            _component(model, U[:, i] / scale, float(mean @ (U[:, i] / scale))) for i in range(count)
        ),
    )
    energy = singular**2
    shares = energy / energy.sum() if energy.sum() > 0 else energy
    return Reduction(
        reduced_model, box_around(reduced_model, phi), float(shares[:count].sum()), shares, error
    )


def _component(model: Lpv, weights: Float[np.ndarray, " k"], offset: float) -> Function:
    indices = [k for k in range(len(weights)) if weights[k] != 0.0]

    def component(values: Mapping[str, Any]) -> Any:
        total: Any = -offset
        for k in indices:
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
