"""Structures of linear models: the entries of A, B, C, D, K and of the first state that are known, and the parameters.

    canonical    observability form: C_i = (0 .. 1 .. 0); A has ones above the diagonal within the block of each output, and a
                 free last row of the block; B is free. The states are the outputs and their derivatives (next samples in
                 discrete time), for each output as many as its index
    companion    one input: A has ones above the diagonal and a free last row, B = (0 .. 0 1), C is free (Torren 2014, eq. 2.1)
    free         all entries; directions that only change the state coordinates are excluded from each step
    grey box     a function of physical parameters

D and K are zero or free. K is the gain of the discrete model also in continuous time, see `model`.

References: L. Ljung, System Identification (1999), appendix 4A; T. McKelvey, A. Helmersson, T. Ribarits, Data driven local
coordinates for multivariable linear systems and their application to system identification, Automatica 40 (2004).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from rotorid.errors import SettingError
from rotorid.identification.linear.model import LinearModel
from rotorid.models.system import Parameter

_SINGULAR = 1e10  # condition number


class Matrices(NamedTuple):
    """The matrices of a linear model.

    A: matrix from states to states. B: matrix from inputs to states. C: matrix from states to outputs. D: matrix from inputs
    to outputs. K: gain of the discrete model; None: 0. x0: state at the first row; None: 0, or estimated.
    """

    A: Any
    B: Any
    C: Any
    D: Any
    K: Any = None
    x0: Any = None


@dataclasses.dataclass(frozen=True, eq=False)
class Structure:
    """A family of linear models.

    parameters: scalars with start value, unit and bounds. Their std is the size of the parameter: a larger standard deviation
    means that the data do not identify it. Parameters with std 0 are known.
    matrices: function in JAX of the values of all parameters by name.
    dt: sampling interval, s; 0: continuous time.
    gauge: function of the values of the free parameters; its columns are the directions in which only the state coordinates
    change; None if there are none.
    layout: key of compiled functions; structures with the same key and the same parameter names have the same `matrices`.
    entries: if the parameters are entries of A, B, C, D, K: these matrices, and the indices of the free entries, in the
    order of the parameters.
    """

    parameters: tuple[Parameter, ...]
    matrices: Callable[[Mapping[str, Any]], Matrices]
    dt: float
    gauge: Callable[[np.ndarray], np.ndarray] | None = None
    layout: Hashable = None
    entries: tuple[Mapping[str, np.ndarray], Mapping[str, tuple[np.ndarray, ...]]] | None = None

    @property
    def _kind(self) -> Hashable:
        """Key of compiled functions, which do not depend on the start values."""
        kinds = tuple(
            (p.name, p.bounds, p.soft, p.value if p.std == 0 or p.soft else None, p.std > 0)
            for p in self.parameters
        )
        return kinds, self.dt, self.matrices if self.layout is None else self.layout

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Structure) and self._kind == other._kind

    def __hash__(self) -> int:
        return hash(self._kind)

    def __post_init__(self) -> None:
        names = [p.name for p in self.parameters]
        for p in self.parameters:
            if len(p.values) != 1:
                raise SettingError(
                    f"parameter {p.name!r} has {len(p.values)} values: give one parameter for each"
                )
        if len(set(names)) < len(names):
            raise SettingError("two parameters have the same name: names must be unique")
        if not self.free:
            raise SettingError(
                "all parameters are known (std 0): give a positive std to those to be estimated"
            )

    @property
    def free(self) -> tuple[Parameter, ...]:
        """The parameters that are estimated."""
        return tuple(p for p in self.parameters if p.std > 0)


def grey_box_structure(
    matrices: Callable[[Mapping[str, Any]], Matrices],
    parameters: Sequence[Parameter],
    *,
    dt: float = 0.0,
    disturbance: bool = False,
) -> Structure:
    """Make a structure of physical parameters.

    Args:
        matrices: function in jax.numpy from the parameters by name to A, B, C, D and, where it has them, the gain K at the
            samples and the first state x0.
        parameters: scalars with start value, unit and bounds; those with std 0 are known.
        dt: sampling interval of a discrete model, s; 0: continuous time.
        disturbance: whether every entry of K is a free parameter too.
    Returns:
        The structure, for `fit_prediction_error`.
    Raises:
        SettingError: a parameter with several numbers, two of one name, or no free one.
    """
    if not disturbance:
        return Structure(tuple(parameters), matrices, dt)
    values = {p.name: np.asarray(p.value, dtype=float) for p in parameters}
    A, _, C, *_ = matrices(values)
    n, l = len(np.asarray(A)), len(np.asarray(C))  # noqa: E741
    gains = [Parameter(f"K[{i + 1},{j + 1}]", 0.0, std=1.0) for i in range(n) for j in range(l)]

    def with_gain(values: Mapping[str, Any]) -> Matrices:
        return matrices(values)._replace(K=jnp.stack([values[p.name] for p in gains]).reshape(n, l))

    return Structure((*parameters, *gains), with_gain, dt, layout=(matrices, n, l))


def free_structure(
    model: LinearModel, dt: float, *, feedthrough: bool = False, disturbance: bool = False
) -> Structure:
    """Make the structure in which every entry of A, B and C is free, in balanced coordinates.

    Args:
        model: the start values.
        dt: sampling interval of the data, s.
        feedthrough: whether D is free; else it is 0.
        disturbance: whether the gain K is free; else it is 0.
    Returns:
        The structure, for `fit_prediction_error`.
    Source: McKelvey, Helmersson and Ribarits (2004).
    """
    model = model.balance(dt)
    free = _all_entries(model, feedthrough, disturbance)
    n, shapes = model.order, [name for name in "ABCDK" if name in free]

    def gauge(theta: np.ndarray) -> np.ndarray:
        """dA = T A - A T, dB = T B, dC = -C T, dK = T K, for each entry of T."""
        M, start = {name: np.zeros_like(getattr(model, name)) for name in "DK"}, 0
        for name in shapes:
            shape = getattr(model, name).shape
            M[name] = theta[start : start + shape[0] * shape[1]].reshape(shape)
            start += shape[0] * shape[1]
        columns = []
        for k in range(n * n):
            T = np.zeros((n, n))
            T.flat[k] = 1.0
            change = {"A": T @ M["A"] - M["A"] @ T, "B": T @ M["B"], "C": -M["C"] @ T}
            change |= {"D": np.zeros_like(M["D"]), "K": T @ M["K"]}
            columns.append(np.concatenate([change[name].ravel() for name in shapes]))
        return np.stack(columns, axis=1)

    return _structure_of_entries(model, free, gauge)


def canonical_structure(
    model: LinearModel,
    *,
    indices: Sequence[int] | None = None,
    feedthrough: bool = False,
    disturbance: bool = False,
) -> Structure:
    """Make the observability form of a model.

    Args:
        model: the start values.
        indices: number of states for each output, which sum to the order; None: as equal as possible.
        feedthrough: whether D is free; else it is 0.
        disturbance: whether the gain K is free; else it is 0.
    Returns:
        The structure, for `fit_prediction_error`.
    Raises:
        SettingError: invalid indices, or outputs whose derivatives (next samples in discrete time) up to
            these indices do not form a state.
    Source: Ljung (1999), appendix 4A.
    """
    n, l = model.order, len(model.C)  # noqa: E741
    if indices is None:
        indices = tuple(n // l + (i < n % l) for i in range(l))
    if len(indices) != l or sum(indices) != n or min(indices) < 0:
        raise SettingError(f"the indices {tuple(indices)} must be {l} numbers that sum to the order {n}")
    rows, power = [], model.C
    powers = [power]
    for _ in range(max(indices) - 1):
        power = power @ model.A
        powers.append(power)
    for i, index in enumerate(indices):
        rows += [powers[j][i] for j in range(index)]
    T = np.stack(rows)
    size = np.linalg.norm(T, axis=1)
    if not size.all() or np.linalg.cond(T / size[:, None]) > _SINGULAR:
        raise SettingError(
            f"the outputs do not form a state with the indices {tuple(indices)}: use other indices"
        )
    start = model.transform(T)
    free = _all_entries(start, feedthrough, disturbance)
    A, C = np.zeros((n, n), bool), np.zeros((l, n), bool)
    fixed = {"A": np.zeros((n, n)), "C": np.zeros((l, n))}
    first = 0
    for i, index in enumerate(indices):
        for j in range(first, first + index - 1):
            fixed["A"][j, j + 1] = 1.0
        if index:
            A[first + index - 1] = True
            fixed["C"][i, first] = 1.0
        else:
            C[i] = True
        first += index
    fixed["A"][A], fixed["C"][C] = start.A[A], start.C[C]
    return _structure_of_entries(
        dataclasses.replace(start, A=fixed["A"], C=fixed["C"]), free | {"A": A, "C": C}
    )


def companion_structure(
    model: LinearModel, *, feedthrough: bool = False, disturbance: bool = False
) -> Structure:
    """Make the controllable companion form of a model with one input.

    Args:
        model: the start values.
        feedthrough: whether D is free; else it is 0.
        disturbance: whether the gain K is free; else it is 0.
    Returns:
        The structure, for `fit_prediction_error`.
    Raises:
        SettingError: the model has several inputs, or states that the input does not reach.
    Source: Torren 2014, eq. 2.1.
    """
    n = model.order
    if model.B.shape[1] != 1:
        raise SettingError(
            f"the companion form needs one input; the model has {model.B.shape[1]}: use the canonical form"
        )
    columns = [model.B[:, 0]]
    for _ in range(n - 1):
        columns.append(model.A @ columns[-1])
    R = np.stack(columns, axis=1)
    size = np.linalg.norm(R, axis=0)
    if not size.all() or np.linalg.cond(R / size) > _SINGULAR:
        raise SettingError("the input does not reach every state of the model: use a lower order")
    a = np.poly(model.A)[::-1]
    A = np.diag(np.ones(n - 1), 1)
    A[-1] = -a[:-1].real
    B = np.zeros((n, 1))
    B[-1] = 1.0
    columns = [B[:, 0]]
    for _ in range(n - 1):
        columns.append(A @ columns[-1])
    start = model.transform(np.linalg.solve(R.T, np.stack(columns, axis=1).T).T)
    free = _all_entries(start, feedthrough, disturbance)
    last = np.zeros((n, n), bool)
    last[-1] = True
    return _structure_of_entries(
        dataclasses.replace(start, A=A, B=B), free | {"A": last, "B": np.zeros((n, 1), bool)}
    )


def _all_entries(model: LinearModel, feedthrough: bool, disturbance: bool) -> dict[str, np.ndarray]:
    names = "ABC" + "D" * feedthrough + "K" * disturbance
    return {name: np.ones(getattr(model, name).shape, bool) for name in names}


def _structure_of_entries(
    model: LinearModel,
    free: Mapping[str, np.ndarray],
    gauge: Callable[[np.ndarray], np.ndarray] | None = None,
) -> Structure:
    """A structure with these free entries. The other entries are those of the model; without free entries, D and K are 0."""
    parameters: list[Parameter] = []
    fixed = {name: np.asarray(getattr(model, name), dtype=float) for name in "ABCDK"}
    fixed |= {name: np.zeros_like(fixed[name]) for name in "DK" if name not in free}
    places: dict[str, tuple[np.ndarray, ...]] = {}
    for name, where in free.items():
        places[name] = np.nonzero(where)
        rms = np.sqrt(np.mean(fixed[name][where] ** 2)) if where.any() else 0.0
        for i, j in zip(*places[name], strict=True):
            value = float(fixed[name][i, j])
            size = max(abs(value), rms) if rms > 0 else 1.0
            unit = "1/s" if name == "A" and not model.dt else "1"
            parameters.append(Parameter(f"{name}[{i + 1},{j + 1}]", value, std=float(size), unit=unit))

    def matrices(values: Mapping[str, Any]) -> Matrices:
        named = {}
        for name in "ABCDK":
            M = jnp.asarray(fixed[name])
            if name in places and len(places[name][0]):
                i, j = places[name]
                M = M.at[i, j].set(
                    jnp.stack([values[f"{name}[{a + 1},{b + 1}]"] for a, b in zip(i, j, strict=True)])
                )
            named[name] = M
        return Matrices(**named)

    return Structure(tuple(parameters), matrices, model.dt, gauge, entries=(fixed, places))
