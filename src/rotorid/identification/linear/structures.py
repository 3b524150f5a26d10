"""Structures of linear models: which entries of A, B, C, D, K and of the first state are known, which follow from parameters.

    canonical    observability form: C_i = (0 .. 1 .. 0); A has ones above the diagonal inside the block of each output, and a
                 free row at its end; B is free. The states are outputs and what follows them, as many each as its index
    companion    one input: A has ones above the diagonal and a free last row, B = (0 .. 0 1), C is free (seed 002, eq. 2.1)
    free         every entry; which state coordinates they are in does not matter, and is left out of each step
    grey box     a function of physical parameters

D and K are zero or free. K is the gain at the samples, whatever the model's time is; see `linear_model`.

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

_SINGULAR = 1e10


class Matrices(NamedTuple):
    """A, B, C, D, the gain K at the samples, and the state at the first row; None: it is estimated, or zero."""

    A: Any
    B: Any
    C: Any
    D: Any
    K: Any = None
    x0: Any = None


@dataclasses.dataclass(frozen=True, eq=False)
class Structure:
    """A family of linear models.

    parameters: scalars with start value, unit and bounds; std is the size at which a standard deviation says that the data do
    not tell the parameter. Those of std 0 are known. matrices: from the values of all parameters by name, in JAX. dt: s between
    samples, 0 in continuous time. gauge: from the numbers of the free parameters the directions in which only the coordinates
    of the state change, as columns; None where there are none. layout: structures that share it and the names of their
    parameters share their `matrices`. entries: where the parameters are entries of A, B, C, D, K, those matrices and the places
    of the free entries, in the order of the parameters.
    """

    parameters: tuple[Parameter, ...]
    matrices: Callable[[Mapping[str, Any]], Matrices]
    dt: float
    gauge: Callable[[np.ndarray], np.ndarray] | None = None
    layout: Hashable = None
    entries: tuple[Mapping[str, np.ndarray], Mapping[str, tuple[np.ndarray, ...]]] | None = None

    @property
    def _kind(self) -> Hashable:
        """What its programs depend on: not the values to start from."""
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
                    f"parameter {p.name!r} has {len(p.values)} numbers: give one parameter for each"
                )
        if len(set(names)) < len(names):
            raise SettingError("two parameters have the same name: give each its own")
        if not self.free:
            raise SettingError("every parameter is known (std 0): give those to be found a positive std")

    @property
    def free(self) -> tuple[Parameter, ...]:
        """Those that are estimated."""
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
        matrices: function in jax.numpy from the parameters by name to A, B, C, D and, where it has them, the
            gain K at the samples and the first state x0.
        parameters: scalars with start value, unit and bounds; those with std 0 are known.
        dt: s between samples of a discrete model; 0: continuous time.
        disturbance: whether every entry of K is a free parameter too.
    Returns:
        The structure, for `fit_prediction_error`.
    Raises:
        SettingError: a parameter with several numbers, two of one name, or no free one.
    """
    if not disturbance:
        return Structure(tuple(parameters), matrices, dt)
    numbers = {p.name: np.asarray(p.value, dtype=float) for p in parameters}
    A, _, C, *_ = matrices(numbers)
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
        dt: s between the samples of the data.
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
        M, at = {name: np.zeros_like(getattr(model, name)) for name in "DK"}, 0
        for name in shapes:
            shape = getattr(model, name).shape
            M[name] = theta[at : at + shape[0] * shape[1]].reshape(shape)
            at += shape[0] * shape[1]
        columns = []
        for k in range(n * n):
            T = np.zeros((n, n))
            T.flat[k] = 1.0
            moved = {"A": T @ M["A"] - M["A"] @ T, "B": T @ M["B"], "C": -M["C"] @ T}
            moved |= {"D": np.zeros_like(M["D"]), "K": T @ M["K"]}
            columns.append(np.concatenate([moved[name].ravel() for name in shapes]))
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
            f"the outputs do not make a state with the indices {tuple(indices)}: take other indices"
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
    Source: seed 002, eq. 2.1.
    """
    n = model.order
    if model.B.shape[1] != 1:
        raise SettingError(
            f"the companion form is one of a single input, not of {model.B.shape[1]}: take the canonical one"
        )
    reached = [model.B[:, 0]]
    for _ in range(n - 1):
        reached.append(model.A @ reached[-1])
    R = np.stack(reached, axis=1)
    size = np.linalg.norm(R, axis=0)
    if not size.all() or np.linalg.cond(R / size) > _SINGULAR:
        raise SettingError("the input does not reach every state of the model: take a lower order")
    a = np.poly(model.A)[::-1]
    A = np.diag(np.ones(n - 1), 1)
    A[-1] = -a[:-1].real
    B = np.zeros((n, 1))
    B[-1] = 1.0
    wanted = [B[:, 0]]
    for _ in range(n - 1):
        wanted.append(A @ wanted[-1])
    start = model.transform(np.linalg.solve(R.T, np.stack(wanted, axis=1).T).T)
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
    """The structure whose free entries are these, the others being those of the model (D and K zero)."""
    parameters: list[Parameter] = []
    fixed = {name: np.asarray(getattr(model, name), dtype=float) for name in "ABCDK"}
    fixed |= {name: np.zeros_like(fixed[name]) for name in "DK" if name not in free}
    places: dict[str, tuple[np.ndarray, ...]] = {}
    for name, where in free.items():
        places[name] = np.nonzero(where)
        usual = np.sqrt(np.mean(fixed[name][where] ** 2)) if where.any() else 0.0
        for i, j in zip(*places[name], strict=True):
            value = float(fixed[name][i, j])
            size = max(abs(value), usual) if usual > 0 else 1.0
            unit = "1/s" if name == "A" and not model.dt else "1"
            parameters.append(Parameter(f"{name}[{i + 1},{j + 1}]", value, std=float(size), unit=unit))

    def matrices(values: Mapping[str, Any]) -> Matrices:
        found = {}
        for name in "ABCDK":
            M = jnp.asarray(fixed[name])
            if name in places and len(places[name][0]):
                i, j = places[name]
                M = M.at[i, j].set(
                    jnp.stack([values[f"{name}[{a + 1},{b + 1}]"] for a, b in zip(i, j, strict=True)])
                )
            found[name] = M
        return Matrices(**found)

    return Structure(tuple(parameters), matrices, model.dt, gauge, entries=(fixed, places))
