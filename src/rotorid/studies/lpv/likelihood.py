"""Maximum likelihood in the study of Torren 2014: its first test (section 4.1.1) and the effect of the amount of data (4.1.2).

The first test, eqs. 4.4-4.6, is equivalent to an ARMA(1, 1) process:

    theta_0 ~ N(0, I)      Y_t = [1 0] theta_t      theta_t = [x1 1; 0 0] theta_{t-1} + w_t      w_t ~ N(0, x3 [1 x2; x2 x2^2])

with x1 = 0.6, x2 = 0.3, x3 = 0.05; the estimates of the thesis are 0.599, 0.269 and 0.049. It gives neither V nor the
number of data. Here V = 0, as in dlmModARMA of R, which has the same matrices, and the number is ROWS. |x2| < 1,
because 1/x2 with x3 x2^2 gives the same data.

The varying form is x1 = x1c + x1t t with x1c = 0.6, x1t = 0.1. The thesis does not give the unit of t; here t is 0 to 3
s, because the process is unstable above 4 s.

The quadrotor is linearised in hover (8 states: angles, rates, altitude). Its rotor speeds are white noise after a
first-order filter, so B is part of the matrix of the augmented system, which is discretised by the matrix exponential:

    d/dt (x, nu) = [A B; 0 -I/tau] (x, nu)      G = exp([A B; 0 -I/tau] dt)      W = diag(0, (1 - exp(-2 dt/tau)) sigma^2 I)

The angles and the altitude are measured, and for measured inputs also the rotor speeds. The unknown parameters are Ixx,
or Ixx and Iyy; the thesis does not specify them.
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

from rotorid.estimators.dlm.filter import dlm_simulate
from rotorid.identification.likelihood.maximum_likelihood import DlmFit, fit_dlm
from rotorid.models.dlm.model import Dlm, dlm
from rotorid.models.quadrotor.quadrotor import hover_speed, quadrotor
from rotorid.models.system import Parameter

ROWS: Final = 500
"""Number of rows of the first test."""

SECONDS: Final = 3.0
"""Duration over which x1 changes, s."""

TRUE: Final = {"x1": 0.6, "x2": 0.3, "x3": 0.05}
PUBLISHED: Final = {"x1": 0.599, "x2": 0.269, "x3": 0.049}
"""Estimates of the thesis."""

VARYING: Final = {"x1c": 0.6, "x1t": 0.1, "x2": 0.3, "x3": 0.05}

DT, TAU = 0.02, 0.1  # s
SPEED_STD: Final = 20.0
"""Standard deviation of each rotor speed about hover, rad/s."""

_STATES: Final = (
    "roll", "roll_rate", "pitch", "pitch_rate", "yaw", "yaw_rate", "position_z", "velocity_z",
)  # fmt: skip
_MEASURED: Final = {"roll": 0.01, "pitch": 0.01, "yaw": 0.01, "position_z": 0.02}  # rad, m
_SPEED_NOISE: Final = 2.0  # rad/s
_INITIAL_STD: Final = 0.01  # of each state
_SHORT: Final = 400
"""Fits of up to this number of rows share one compiled program, longer ones another; the rest is padded with missing
rows."""

_INERTIAS: Final[tuple[str, ...]] = ("roll_inertia", "pitch_inertia")


@dataclasses.dataclass(frozen=True)
class MaximumLikelihoodFit:
    """A fit. seed: of its data. values, std: by parameter. relative: absolute error over the true value.
    log_likelihood: at the maximum. maxima: number of local maxima."""

    seed: int
    values: dict[str, float]
    std: dict[str, float]
    relative: dict[str, float]
    log_likelihood: float
    maxima: int
    converged: bool


@dataclasses.dataclass(frozen=True)
class VaryingFits:
    """Fits of data with a varying x1. constant: with a constant x1. varying: with x1 = x1c + x1t t. gain: difference of
    their log-likelihoods."""

    constant: MaximumLikelihoodFit
    varying: MaximumLikelihoodFit
    gain: float


@dataclasses.dataclass(frozen=True)
class QuadrotorFits:
    """Fits of the quadrotor with a number of rows.

    unknown: number of unknown parameters. inputs: "hidden" or "measured". relative: error of each parameter and seed,
    over the true value. predicted: estimated standard deviations, over the true value. failed: number of fits that did
    not converge or have no finite standard deviation.
    """

    rows: int
    unknown: int
    inputs: str
    relative: tuple[float, ...]
    predicted: tuple[float, ...]
    failed: int

    @property
    def median(self) -> float:
        """Median of the relative errors."""
        return float(np.median(self.relative))

    @property
    def largest(self) -> float:
        """Largest relative error."""
        return max(self.relative)


def first_test(seeds: Sequence[int], rows: int = ROWS) -> list[MaximumLikelihoodFit]:
    """Fits of the first test, one for each seed."""
    start = (Parameter("x1", 0.3, std=0.5), *_noise())
    return [_fit(_constant_process, start, TRUE, seed, rows) for seed in seeds]


def varying_test(seeds: Sequence[int], rows: int = ROWS) -> list[VaryingFits]:
    """Fits of data with x1 = 0.6 + 0.1 t, with a constant and with a varying x1, for each seed."""
    build = _varying_process(rows)
    start = (Parameter("x1c", 0.3, std=0.5), Parameter("x1t", 0.0, std=0.2), *_noise())
    results = []
    for seed in seeds:
        y = _simulate(build(_arrays(VARYING)), rows, seed)
        constant = _to_result(
            fit_dlm(y, _constant_process, (Parameter("x1", 0.3, std=0.5), *_noise()), starts=3),
            {"x2": VARYING["x2"], "x3": VARYING["x3"], "x1": VARYING["x1c"] + 0.5 * SECONDS * VARYING["x1t"]},
            seed,
        )
        varying = _to_result(fit_dlm(y, build, start, starts=3), VARYING, seed)
        results.append(VaryingFits(constant, varying, varying.log_likelihood - constant.log_likelihood))
    return results


def data_length(
    lengths: Sequence[int],
    seeds: Sequence[int],
    unknown: int = 1,
    inputs: str = "hidden",
) -> list[QuadrotorFits]:
    """Fits of the inertia of the quadrotor with the first rows of the data of each seed. unknown: 1 (Figure 4.1) or 2
    (4.2)."""
    build = _quadrotor_build(unknown, inputs)
    vehicle = quadrotor()
    inertia = vehicle.parameter("inertia").values
    names = _INERTIAS[:unknown]
    true: dict[str, float] = dict(zip(names, inertia, strict=False))
    start = [Parameter(n, 1.5 * v, std=v, unit="kg m^2", bounds=(0.0, math.inf)) for n, v in true.items()]
    longest = max(lengths)
    data = [_simulate(build(_arrays(true)), longest, seed) for seed in seeds]
    results = []
    for rows in lengths:
        relative, predicted, failed = [], [], 0
        for y in data:
            padded = y[: longest if rows > _SHORT else min(_SHORT, longest)]
            part = np.where(np.arange(len(padded))[:, None] < rows, padded, np.nan)
            fit = fit_dlm(part, build, start, starts=1)
            relative += [abs(fit.values[n] / v - 1.0) for n, v in true.items()]
            predicted += [fit.std[n] / v for n, v in true.items()]
            failed += not (fit.converged and all(math.isfinite(fit.std[n]) for n in names))
        results.append(QuadrotorFits(rows, unknown, inputs, tuple(relative), tuple(predicted), failed))
    return results


def _noise() -> tuple[Parameter, Parameter]:
    return (
        Parameter("x2", 0.1, std=0.3, bounds=(-1.0, 1.0)),
        Parameter("x3", 0.1, std=0.2, bounds=(0.0, math.inf)),
    )


def _constant_process(p: dict[str, Array]) -> Dlm:
    """Eqs. 4.4-4.6, with V = 0."""
    return _process(p, p["x1"])


def _process(p: dict[str, Array], x1: Float[Array, " *n"]) -> Dlm:
    one, zero = jnp.ones_like(x1), jnp.zeros_like(x1)
    G = jnp.stack([jnp.stack([x1, one], axis=-1), jnp.stack([zero, zero], axis=-1)], axis=-2)
    noise_gain = jnp.stack([jnp.ones_like(p["x2"]), p["x2"]])
    return dlm([0.0, 0.0], jnp.eye(2), [1.0, 0.0], 0.0, G, p["x3"] * jnp.outer(noise_gain, noise_gain))


@functools.lru_cache
def _varying_process(rows: int):
    t = np.linspace(0.0, SECONDS, rows)

    def build(p: dict[str, Array]) -> Dlm:
        return _process(p, p["x1c"] + p["x1t"] * t)

    return build


@functools.lru_cache
def _quadrotor_build(unknown: int, inputs: str):
    """The quadrotor in hover as a DLM with unknown moments of inertia."""
    vehicle = quadrotor()
    rotors, states = len(vehicle.levers), len(_STATES)
    nominal = {p.name: jnp.asarray(p.value, float) for p in vehicle.parameters}
    hover = jnp.full(rotors, hover_speed(vehicle))
    rest = {name: jnp.zeros(()) for name, _ in vehicle.states.blocks}

    def rate(x: Array, nu: Array, inertia: Array) -> Array:
        point = rest | dict(zip(_STATES, x, strict=True))
        derivatives = vehicle.dynamics(point, {"rotor_speed": hover + nu}, nominal | {"inertia": inertia})
        return jnp.stack([derivatives[name] for name in _STATES])

    H = np.array([[float(name == state) for state in _STATES] + [0.0] * rotors for name in _MEASURED])
    noise = [v**2 for v in _MEASURED.values()]
    if inputs == "measured":
        H = np.concatenate([H, np.eye(rotors, states + rotors, states)])
        noise += [_SPEED_NOISE**2] * rotors
    initial_covariance = np.diag([_INITIAL_STD**2] * states + [SPEED_STD**2] * rotors)
    W = np.diag([0.0] * states + [SPEED_STD**2 * (1.0 - math.exp(-2.0 * DT / TAU))] * rotors)

    def build(p: dict[str, Array]) -> Dlm:
        unknown_inertias = jnp.stack([p[n] for n in _INERTIAS[:unknown]])
        inertia = jnp.concatenate([unknown_inertias, nominal["inertia"][unknown:]])
        A, B = jax.jacfwd(rate, (0, 1))(jnp.zeros(states), jnp.zeros(rotors), inertia)
        augmented = jnp.block([[A, B], [jnp.zeros((rotors, states)), -jnp.eye(rotors) / TAU]])
        G = jax.scipy.linalg.expm(augmented * DT)
        return dlm(jnp.zeros(states + rotors), initial_covariance, H, np.diag(noise), G, W)

    return jax.jit(build)


def _arrays(values: Mapping[str, float]) -> dict[str, Array]:
    return {n: jnp.asarray(v, float) for n, v in values.items()}


def _simulate(model: Dlm, rows: int, seed: int) -> Float[np.ndarray, "n m"]:
    return np.array(dlm_simulate(model, rows, jax.random.key(seed))[1])


def _fit(build, start, true: dict[str, float], seed: int, rows: int) -> MaximumLikelihoodFit:
    y = _simulate(build(_arrays(true)), rows, seed)
    return _to_result(fit_dlm(y, build, start, starts=3), true, seed)


def _to_result(fit: DlmFit, true: dict[str, float], seed: int) -> MaximumLikelihoodFit:
    relative = {n: abs(fit.values[n] / v - 1.0) for n, v in true.items()}
    return MaximumLikelihoodFit(
        seed, dict(fit.values), dict(fit.std), relative, fit.log_likelihood, len(fit.optima), fit.converged
    )
