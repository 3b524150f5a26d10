"""Linear parameter-varying models: a System written as a linear one whose matrices vary (Torren 2014, eqs. 1.38-1.45).

    x' = A(rho) x + B(rho) u + c(rho),      A(rho) = A_0 + sum_i rho_i A_i,  B and c alike,      rho = sigma(x, u, p)

The model is affine in rho and equal to the System, not an approximation: with rho = sigma both have the same x'. Gravity, which
multiplies neither a state nor an input, is the offset c; `Lpv.with_constant_input` makes it a column of B, for an input that
is always 1.

A System has many such forms: theta' psi' is rho x with rho = theta', or with rho = psi', or half of each. `Term`s define the
form: a scheduling function sigma_i and its places in A, B or c. `lpv` computes A_0, B_0, c_0 from the System without the terms,
and raises an error if that is not linear. Formulas of `rotorid.models.lpv.intervals` let the same
functions give bounds of rho from ranges of states, inputs and parameters.

Reference: J. S. Shamma, An overview of LPV systems, in J. Mohammadpour, C. Scherer (eds.), Control of linear parameter
varying systems with applications, Springer, 2012.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from rotorid.errors import SettingError
from rotorid.geometry.spaces import Block, Space
from rotorid.models.system import System, parameter_values

CONSTANT_INPUT: Final = "1"
"""Column of a term in the offset c, and the name of the input that is always 1."""

Function = Callable[[Mapping[str, Any]], Any]
"""A scheduling function, of states, inputs and parameters by their scalar names; made of + - * /, powers and
`rotorid.models.lpv.intervals`, so that it takes numbers, arrays and Intervals."""

_AXES: Final = "xyz"
_TRIALS: Final = 8
_LINEARITY_TOLERANCE: Final = 1e-9
_NEGLIGIBLE: Final = 1e-11


@dataclasses.dataclass(frozen=True)
class Term:
    """A scheduling parameter `rho = sigma(x, u, p)`, and its places in A, B and c.

    name: name of rho. function: scheduling function sigma of states, inputs and parameters by their scalar names. places: row
    (a state), column (a state, an input, or "1" for the offset) and coefficient of each place. unit: unit of rho.
    """

    name: str
    function: Function
    places: tuple[tuple[str, str, float], ...]
    unit: str = "1"


@dataclasses.dataclass(frozen=True)
class Lpv:
    """A linear parameter-varying model `x' = A(rho) x + B(rho) u + c(rho)`, affine in rho. It is made by `lpv`.

    It has n states, m inputs and k scheduling parameters: `A(rho) = A_0 + sum_i rho_i A_i`, and B and c likewise.

    states: names of the states. inputs: names of the inputs. names: names of rho. units: units of rho. A0: A at rho = 0. A:
    A_i. B0: B at rho = 0. B: B_i. c0: c at rho = 0. c: c_i. functions: scheduling functions, which give rho. values: default
    values of parameters (the mass) in these functions.
    """

    states: tuple[str, ...]
    inputs: tuple[str, ...]
    names: tuple[str, ...]
    units: tuple[str, ...]
    A0: Float[np.ndarray, "n n"]
    A: Float[np.ndarray, "k n n"]
    B0: Float[np.ndarray, "n m"]
    B: Float[np.ndarray, "k n m"]
    c0: Float[np.ndarray, " n"]
    c: Float[np.ndarray, "k n"]
    functions: tuple[Function, ...]
    values: Mapping[str, float] = dataclasses.field(default_factory=dict)

    def scheduling(
        self,
        x: Float[np.ndarray, "*batch n"] | None = None,
        u: Float[np.ndarray, "*batch m"] | None = None,
        **values: Any,
    ) -> Float[np.ndarray, "*batch k"]:
        """rho at states x and inputs u, with any leading axes. values: values of parameters and of other arguments of the
        scheduling functions, by name.

        Raises SettingError if a function needs a value that is not given.
        """
        all_values: dict[str, Any] = dict(self.values)
        if x is not None:
            all_values |= {name: np.asarray(x)[..., i] for i, name in enumerate(self.states)}
        if u is not None:
            all_values |= {name: np.asarray(u)[..., j] for j, name in enumerate(self.inputs)}
        functions = self.evaluate(all_values | values)
        shape = np.broadcast_shapes(*(np.shape(f) for f in functions), () if x is None else np.shape(x)[:-1])
        rho = np.zeros((*shape, len(functions)))
        for k, value in enumerate(functions):
            rho[..., k] = value
        return rho

    def evaluate(self, values: Mapping[str, Any]) -> list[Any]:
        """Every scheduling function of these values: numbers, arrays or Intervals."""
        results = []
        for name, function in zip(self.names, self.functions, strict=True):
            try:
                results.append(function(values))
            except KeyError as error:
                raise SettingError(
                    f"parameter {name!r} of the LPV model needs {error.args[0]!r}; give it"
                ) from None
        return results

    def at(
        self, rho: Float[np.ndarray, " k"]
    ) -> tuple[Float[np.ndarray, "n n"], Float[np.ndarray, "n m"], Float[np.ndarray, " n"]]:
        """The matrices A, B and c at one rho."""
        return (
            self.A0 + np.tensordot(rho, self.A, 1),
            self.B0 + np.tensordot(rho, self.B, 1),
            self.c0 + rho @ self.c,
        )

    def rate(
        self, x: Float[np.ndarray, " n"], u: Float[np.ndarray, " m"], **values: float
    ) -> Float[np.ndarray, " n"]:
        """Rate of the states, x', at a state and input; it is equal to that of the System."""
        A, B, c = self.at(self.scheduling(x, u, **values))
        return A @ x + B @ u + c

    def with_constant_input(self) -> Lpv:
        """The model with c as the last column of B, for an input "1" that is always 1."""
        return dataclasses.replace(
            self,
            inputs=(*self.inputs, CONSTANT_INPUT),
            B0=np.concatenate([self.B0, self.c0[:, None]], axis=1),
            B=np.concatenate([self.B, self.c[:, :, None]], axis=2),
            c0=np.zeros_like(self.c0),
            c=np.zeros_like(self.c),
        )

    def part(self, states: Sequence[str], inputs: Sequence[str]) -> Lpv:
        """The rows and columns of some states and inputs, with all parameters."""
        i = [self.states.index(name) for name in states]
        j = [self.inputs.index(name) for name in inputs]
        return dataclasses.replace(
            self,
            states=tuple(states),
            inputs=tuple(inputs),
            A0=self.A0[np.ix_(i, i)],
            A=self.A[:, i][:, :, i],
            B0=self.B0[np.ix_(i, j)],
            B=self.B[:, i][:, :, j],
            c0=self.c0[i],
            c=self.c[:, i],
        )

    def with_parameters(self, indices: Sequence[int], rho: Float[np.ndarray, " k"]) -> Lpv:
        """The model with some parameters only; the others are constant at their values in rho."""
        constants = np.array(rho, dtype=float)
        constants[list(indices)] = 0.0
        A0, B0, c0 = self.at(constants)
        select = lambda items: tuple(items[k] for k in indices)  # noqa: E731
        index = np.array(indices, dtype=int)
        return dataclasses.replace(
            self,
            names=select(self.names),
            units=select(self.units),
            functions=select(self.functions),
            A0=A0,
            B0=B0,
            c0=c0,
            A=self.A[index],
            B=self.B[index],
            c=self.c[index],
        )


def lpv(
    system: System,
    terms: Sequence[Term],
    *,
    states: Sequence[str] | None = None,
    varying: Sequence[str] = (),
    seed: int = 0,
) -> Lpv:
    """Write a System in LPV form with given scheduling terms.

    Args:
        system: System without rotations, which is linear in states and inputs except for the terms.
        terms: scheduling functions and their places in A, B and c.
        states: scalar names of a subsystem that depends on no other state (attitude and altitude); None: all.
        varying: parameters of the System that may change; they may occur in scheduling functions only.
        seed: seed of the random points at which the linearity of the rest is checked.
    Returns:
        The model `x' = A(rho) x + B(rho) u + c(rho)`, equal to the System.
    Raises:
        SettingError: a name is unknown, the System has rotations, the System without the terms is not linear, or the
            subsystem depends on another state.
    Source: Torren 2014, eqs. 1.38, 1.39.
    """
    x_names, u_names = scalar_names(system.states), scalar_names(system.inputs)
    subsystem = tuple(states) if states is not None else x_names
    unknown = [name for name in subsystem if name not in x_names]
    if unknown:
        raise SettingError(
            f"no state {unknown[0]!r} in {type(system).__name__} (it has {', '.join(x_names)})"
        )
    A, B, c = (
        np.zeros((len(terms), len(subsystem), *extra)) for extra in ((len(x_names),), (len(u_names),), ())
    )
    for k, term in enumerate(terms):
        for row, column, coefficient in term.places:
            target, index = _place(term, row, column, subsystem, x_names, u_names)
            {"A": A, "B": B, "c": c}[target][(k, *index)] += coefficient
    rows = np.array([x_names.index(name) for name in subsystem])
    with jax.enable_x64(True):
        A0, B0, c0 = _constant_part(system, terms, (A, B, c), rows, x_names, u_names, varying, seed)
    others = [i for i, name in enumerate(x_names) if name not in subsystem]
    if A0[:, others].any() or A[:, :, others].any():
        dependency = next(x_names[i] for i in others if A0[:, i].any() or A[:, :, i].any())
        raise SettingError(f"the subsystem depends on {dependency!r}, which is not among its states; add it")
    return Lpv(
        subsystem,
        u_names,
        tuple(term.name for term in terms),
        tuple(term.unit for term in terms),
        A0[:, rows],
        A[:, :, rows],
        B0,
        B,
        c0,
        c,
        tuple(term.function for term in terms),
        _numbers(system),
    )


def scalar_names(space: Space) -> tuple[str, ...]:
    """Names of the numbers of a space: "yaw", "velocity_x", "rotor_speed_0". Raises SettingError where it has a rotation."""
    return tuple(name for block in space.blocks for name in _scalars(*block))


def _scalars(name: str, block: Block) -> tuple[str, ...]:
    if block.rotation:
        raise SettingError(
            f"state {name!r} is a rotation, which has no linear form; write the System with angles instead"
        )
    if not block.shape:
        return (name,)
    return tuple(f"{name}_{_AXES[k] if block.size == 3 else k}" for k in range(block.size))


def _place(
    term: Term, row: str, column: str, subsystem: tuple[str, ...], x: tuple[str, ...], u: tuple[str, ...]
) -> tuple[str, tuple[int, ...]]:
    if row not in subsystem:
        raise SettingError(f"term {term.name!r}: no state {row!r} (there are {', '.join(subsystem)})")
    if column == CONSTANT_INPUT:
        return "c", (subsystem.index(row),)
    if column in x:
        return "A", (subsystem.index(row), x.index(column))
    if column in u:
        return "B", (subsystem.index(row), u.index(column))
    raise SettingError(f"term {term.name!r}: no state or input {column!r} (there are {', '.join((*x, *u))})")


def _constant_part(
    system: System,
    terms: Sequence[Term],
    matrices: tuple[np.ndarray, np.ndarray, np.ndarray],
    rows: np.ndarray,
    x_names: tuple[str, ...],
    u_names: tuple[str, ...],
    varying: Sequence[str],
    seed: int,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A_0, B_0, c_0 of the System without its terms. Raises SettingError if it is not linear."""
    A, B, c = matrices
    n = len(x_names)

    # At the centre, one step of each number away on either side, and at random points with other parameters.
    rng = np.random.default_rng(seed)
    centre = np.array([*system.states.initial(), *system.inputs.initial()])
    width = np.array([*system.states.std(), *system.inputs.std()])
    width[width == 0.0] = 1.0
    size = len(centre)
    steps = np.diag(width)
    trials = centre + width * rng.normal(size=(_TRIALS, size))
    w = np.concatenate([centre[None], centre + steps, centre - steps, trials])
    p = {
        name: np.tile(value, (len(w), *([1] * np.ndim(value))))
        for name, value in parameter_values(system).items()
    }
    for name in varying:
        nominal = p[name][-_TRIALS:]
        factors = rng.uniform(0.7, 1.4, (_TRIALS, *([1] * (nominal.ndim - 1))))
        p[name][-_TRIALS:] = np.where(nominal != 0, factors * nominal, rng.normal(size=nominal.shape))

    def rate_of(w: jax.Array, p: dict[str, jax.Array]) -> jax.Array:
        x, u = system.states.unpack(w[:n]), system.inputs.unpack(w[n:])
        return system.states.pack_tangent(system.dynamics(x, u, p))[rows]

    rate = np.asarray(jax.jit(jax.vmap(rate_of))(jnp.asarray(w), {k: jnp.asarray(v) for k, v in p.items()}))
    x, u = w[:, :n], w[:, n:]
    values = dict(zip((*x_names, *u_names), w.T, strict=True))
    for parameter in system.parameters:
        columns = p[parameter.name].reshape(len(w), -1).T
        values |= dict(zip(parameter.quantities, columns, strict=True))
    remainder = rate.copy()
    for k, term in enumerate(terms):
        remainder -= np.reshape(term.function(values), (-1, 1)) * (x @ A[k].T + u @ B[k].T + c[k])
    J = ((remainder[1 : size + 1] - remainder[size + 1 : 2 * size + 1]) / (2.0 * width[:, None])).T
    scale = 1.0 + np.max(np.abs(rate), axis=0)
    J[np.abs(J) * width < _NEGLIGIBLE * scale[:, None]] = 0.0
    c0 = remainder[0] - J @ centre
    c0[np.abs(c0) < _NEGLIGIBLE * scale] = 0.0
    is_nonlinear = np.abs(remainder - w @ J.T - c0) > _LINEARITY_TOLERANCE * (1.0 + np.abs(rate))
    if is_nonlinear.any():
        name = x_names[rows[int(np.argmax(is_nonlinear.any(axis=0)))]]
        raise SettingError(
            f"the rate of {name!r} is not linear without the terms: a product or function is missing among them"
        )
    return J[:, :n], J[:, n:], c0


def _numbers(system: System) -> dict[str, float]:
    """The System's own parameters by scalar names."""
    return {
        name: value for p in system.parameters for name, value in zip(p.quantities, p.values, strict=True)
    }
