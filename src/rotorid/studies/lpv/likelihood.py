"""Maximum likelihood in the study of seed 002: its first test (section 4.1.1) and the effect of the data's length (4.1.2).

The first test, eqs. 4.4-4.6, is an ARMA(1, 1) process in disguise:

    theta_0 ~ N(0, I)      Y_t = [1 0] theta_t      theta_t = [x1 1; 0 0] theta_{t-1} + w_t      w_t ~ N(0, x3 [1 x2; x2 x2^2])

with x1 = 0.6, x2 = 0.3, x3 = 0.05; the seed finds 0.599, 0.269 and 0.049. It prints neither V nor how many data it took: V = 0
here, as in R's dlmModARMA, which makes the same matrices, and ROWS. |x2| < 1, as 1/x2 with x3 x2^2 makes the same data.

The varying form is x1 = x1c + x1t t with x1c = 0.6, x1t = 0.1. The seed prints no unit of t; here t is in s and runs from 0
to 3, as beyond 4 the process explodes.

The quadrotor is linearised in hover (8 states: angles, rates, altitude), driven by rotor speeds that a first-order filter of
white noise makes, so that B lies in the matrix of the whole, and discretised by the matrix exponential:

    d/dt (x, nu) = [A B; 0 -I/tau] (x, nu)      G = exp([A B; 0 -I/tau] dt)      W = diag(0, (1 - exp(-2 dt/tau)) sigma^2 I)

Measured are the angles and the altitude, and, where the inputs are said to be measured, the rotor speeds. Unknown are Ixx, or
Ixx and Iyy: the seed does not say which entries it took.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Mapping, Sequence
from typing import Final

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from rotorid.estimators.dlm import dlm_simulate
from rotorid.identification.likelihood.maximum_likelihood import DlmFit, fit_dlm
from rotorid.models.dlm.model import Dlm, dlm
from rotorid.models.quadrotor.quadrotor import hover_speed, quadrotor
from rotorid.models.system import Parameter

ROWS: Final = 500
"""Data of the first test."""

SECONDS: Final = 3.0
"""Through which x1 changes."""

TRUE: Final = {"x1": 0.6, "x2": 0.3, "x3": 0.05}
SEEDS_OWN: Final = {"x1": 0.599, "x2": 0.269, "x3": 0.049}
"""What the seed finds."""

VARYING: Final = {"x1c": 0.6, "x1t": 0.1, "x2": 0.3, "x3": 0.05}

DT, TAU = 0.02, 0.1  # s
SPREAD: Final = 20.0
"""Standard deviation of each rotor's speed about hover, rad/s."""

_STATES: Final = (
    "roll", "roll_rate", "pitch", "pitch_rate", "yaw", "yaw_rate", "position_z", "velocity_z",
)  # fmt: skip
_MEASURED: Final = {"roll": 0.01, "pitch": 0.01, "yaw": 0.01, "position_z": 0.02}  # rad, m
_SPEED_NOISE: Final = 2.0  # rad/s
_STARTED: Final = 0.01  # standard deviation of each state at first
_SHORT: Final = 400
"""Fits of up to so many rows share a program, those of more another: rows after the last are missing ones."""

_INERTIAS: Final[tuple[str, ...]] = ("roll_inertia", "pitch_inertia")


@dataclasses.dataclass(frozen=True)
class Estimated:
    """One fit. seed: of its data. values, std: by parameter. relative: |error| over the true value. log_likelihood: at the
    maximum. maxima: how many were found."""

    seed: int
    values: dict[str, float]
    std: dict[str, float]
    relative: dict[str, float]
    log_likelihood: float
    maxima: int
    converged: bool


@dataclasses.dataclass(frozen=True)
class Varying:
    """Data whose x1 changes. constant: a fit that takes it for constant. varying: one with x1 = x1c + x1t t. gain: of the
    log-likelihood of the second over the first."""

    constant: Estimated
    varying: Estimated
    gain: float


@dataclasses.dataclass(frozen=True)
class Length:
    """Fits of the quadrotor from so many rows. unknown: how many parameters. inputs: "hidden" or "measured". relative: error of
    each parameter and seed, over the true value. predicted: the fits' own standard deviation, likewise. failed: fits that did
    not converge or had no finite standard deviation."""

    rows: int
    unknown: int
    inputs: str
    relative: tuple[float, ...]
    predicted: tuple[float, ...]
    failed: int

    @property
    def median(self) -> float:
        """Of the relative errors."""
        return float(np.median(self.relative))

    @property
    def greatest(self) -> float:
        """Of the relative errors."""
        return max(self.relative)


def mle_of_the_seed(seeds: Sequence[int], rows: int = ROWS) -> list[Estimated]:
    """The first test, once for each seed."""
    start = (Parameter("x1", 0.3, std=0.5), *_noise())
    return [_fit(_first_test, start, TRUE, seed, rows) for seed in seeds]


def varying(seeds: Sequence[int], rows: int = ROWS) -> list[Varying]:
    """Data with x1 = 0.6 + 0.1 t, fitted as if x1 were constant, and with both of its parts, once for each seed."""
    build = _changing(rows)
    start = (Parameter("x1c", 0.3, std=0.5), Parameter("x1t", 0.0, std=0.2), *_noise())
    found = []
    for seed in seeds:
        y = _drawn(build(_arrays(VARYING)), rows, seed)
        constant = _estimated(
            fit_dlm(y, _first_test, (Parameter("x1", 0.3, std=0.5), *_noise()), starts=3),
            {"x2": VARYING["x2"], "x3": VARYING["x3"], "x1": VARYING["x1c"] + 0.5 * SECONDS * VARYING["x1t"]},
            seed,
        )
        both = _estimated(fit_dlm(y, build, start, starts=3), VARYING, seed)
        found.append(Varying(constant, both, both.log_likelihood - constant.log_likelihood))
    return found


def data_length(
    lengths: Sequence[int],
    seeds: Sequence[int],
    unknown: int = 1,
    inputs: str = "hidden",
) -> list[Length]:
    """How well the quadrotor's inertia is found from the first rows of each seed's data. unknown: 1 (Figure 4.1) or 2 (4.2)."""
    build = _quadrotor_build(unknown, inputs)
    vehicle = quadrotor()
    inertia = vehicle.parameter("inertia").values
    names = _INERTIAS[:unknown]
    true: dict[str, float] = dict(zip(names, inertia, strict=False))
    start = [Parameter(n, 1.5 * v, std=v, unit="kg m^2", bounds=(0.0, math.inf)) for n, v in true.items()]
    longest = max(lengths)
    drawn = {seed: _drawn(build(_arrays(true)), longest, seed) for seed in seeds}
    found = []
    for rows in lengths:
        relative, predicted, failed = [], [], 0
        for y in drawn.values():
            padded = y[: longest if rows > _SHORT else min(_SHORT, longest)]
            part = np.where(np.arange(len(padded))[:, None] < rows, padded, np.nan)
            fit = fit_dlm(part, build, start, starts=1)
            relative += [abs(fit.values[n] / v - 1.0) for n, v in true.items()]
            predicted += [fit.std[n] / v for n, v in true.items()]
            failed += not (fit.converged and all(math.isfinite(fit.std[n]) for n in names))
        found.append(Length(rows, unknown, inputs, tuple(relative), tuple(predicted), failed))
    return found


def _noise() -> tuple[Parameter, Parameter]:
    return (
        Parameter("x2", 0.1, std=0.3, bounds=(-1.0, 1.0)),
        Parameter("x3", 0.1, std=0.2, bounds=(0.0, math.inf)),
    )


def _first_test(p: dict[str, Array]) -> Dlm:
    """Eqs. 4.4-4.6, with V = 0."""
    return _process(p, p["x1"])


def _process(p: dict[str, Array], x1: Float[Array, " *n"]) -> Dlm:
    one, zero = jnp.ones_like(x1), jnp.zeros_like(x1)
    G = jnp.stack([jnp.stack([x1, one], axis=-1), jnp.stack([zero, zero], axis=-1)], axis=-2)
    moved = jnp.stack([jnp.ones_like(p["x2"]), p["x2"]])
    return dlm([0.0, 0.0], jnp.eye(2), [1.0, 0.0], 0.0, G, p["x3"] * jnp.outer(moved, moved))


@functools.lru_cache
def _changing(rows: int):
    t = np.linspace(0.0, SECONDS, rows)

    def build(p: dict[str, Array]) -> Dlm:
        return _process(p, p["x1c"] + p["x1t"] * t)

    return build


@functools.lru_cache
def _quadrotor_build(unknown: int, inputs: str):
    """The quadrotor in hover as a DLM of its unknown inertias."""
    vehicle = quadrotor()
    rotors, states = len(vehicle.levers), len(_STATES)
    known = {p.name: jnp.asarray(p.value, float) for p in vehicle.parameters}
    hover = jnp.full(rotors, hover_speed(vehicle))
    rest = {name: jnp.zeros(()) for name, _ in vehicle.states.blocks}

    def rate(x: Array, nu: Array, inertia: Array) -> Array:
        point = rest | dict(zip(_STATES, x, strict=True))
        moved = vehicle.dynamics(point, {"rotor_speed": hover + nu}, known | {"inertia": inertia})
        return jnp.stack([moved[name] for name in _STATES])

    sees = np.array([[float(name == state) for state in _STATES] + [0.0] * rotors for name in _MEASURED])
    noise = [v**2 for v in _MEASURED.values()]
    if inputs == "measured":
        sees = np.concatenate([sees, np.eye(rotors, states + rotors, states)])
        noise += [_SPEED_NOISE**2] * rotors
    at_first = np.diag([_STARTED**2] * states + [SPREAD**2] * rotors)
    drives = np.diag([0.0] * states + [SPREAD**2 * (1.0 - math.exp(-2.0 * DT / TAU))] * rotors)

    def build(p: dict[str, Array]) -> Dlm:
        given = [p[n] for n in _INERTIAS[:unknown]]
        inertia = jnp.concatenate([jnp.stack(given), known["inertia"][unknown:]])
        A, B = jax.jacfwd(rate, (0, 1))(jnp.zeros(states), jnp.zeros(rotors), inertia)
        whole = jnp.block([[A, B], [jnp.zeros((rotors, states)), -jnp.eye(rotors) / TAU]])
        G = jax.scipy.linalg.expm(whole * DT)
        return dlm(jnp.zeros(states + rotors), at_first, sees, np.diag(noise), G, drives)

    return jax.jit(build)


def _arrays(values: Mapping[str, float]) -> dict[str, Array]:
    return {n: jnp.asarray(v, float) for n, v in values.items()}


def _drawn(model: Dlm, rows: int, seed: int) -> Float[np.ndarray, "n m"]:
    return np.array(dlm_simulate(model, rows, jax.random.key(seed))[1])


def _fit(build, start, true: dict[str, float], seed: int, rows: int) -> Estimated:
    y = _drawn(build(_arrays(true)), rows, seed)
    return _estimated(fit_dlm(y, build, start, starts=3), true, seed)


def _estimated(fit: DlmFit, true: dict[str, float], seed: int) -> Estimated:
    relative = {n: abs(fit.values[n] / v - 1.0) for n, v in true.items()}
    return Estimated(
        seed, dict(fit.values), dict(fit.std), relative, fit.log_likelihood, len(fit.optima), fit.converged
    )
