"""The quadrotor near hover: canonical and free forms compared with a grey box of its physical parameters.

    phi'' = 2 l b W (u_4 - u_2) / Ixx          theta'' = 2 l b W (u_3 - u_1) / Iyy
    psi'' = 2 d W (-u_1 + u_2 - u_3 + u_4) / Izz        z'' = 2 b W (u_1 + u_2 + u_3 + u_4) / m

The plant consists of four double integrators, so the flights use a PD controller with binary dither on each axis (seed
002, section 2.2.2, with the parameters of Bresciani's thesis). All eight poles are at 0. A form with free entries has
104 parameters. Most true entries are 0, and the standard deviations of their estimates are as large as the values. The
grey box has four unknown parameters; with all eight unknown, it gives the identifiable ratios.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from rotorid.identification.linear.fit import LinearFit
from rotorid.identification.linear.model import Experiment, LinearModel
from rotorid.identification.linear.prediction_error import fit_prediction_error, fit_state_space
from rotorid.identification.linear.residual_tests import compare_model
from rotorid.identification.linear.structures import (
    Matrices,
    Structure,
    canonical_structure,
    grey_box_structure,
)
from rotorid.identification.linear.subspace import fit_subspace
from rotorid.models.quadrotor.lpv import EIGHT
from rotorid.models.quadrotor.quadrotor import Quadrotor, hover_speed, quadrotor
from rotorid.models.system import Parameter, parameter_values
from rotorid.studies.lpv.standard import NOISE
from rotorid.studies.study_files import Row


class Hover(NamedTuple):
    """A flight near hover.

    run: eight states and four rotor speeds, relative to hover (nonlinear plant: relative to their means). speed: of a
    rotor in hover, rad/s. model: the linearised plant.
    """

    run: Experiment
    speed: float
    model: LinearModel


def hover_flight(
    rows: int = 3000, noise: float = NOISE, seed: int = 0, dither: float = 0.3, *, linear: bool = True
) -> Hover:
    """Simulate the quadrotor with a PD controller, with a step of 0.02 s.

    noise: of each measured state, relative to its standard deviation without noise; the controller uses the noisy
    states. dither: added accelerations of roll, pitch, yaw (rad/s^2) and z (m/s^2), binary, constant for 0.1 s,
    independent. The default keeps quadratic terms below the noise. linear: whether to simulate the linearised plant
    instead of the one with 12 states.
    """
    plant, dt = quadrotor(), 0.02
    speed = hover_speed(plant)
    inertia = plant.parameter("inertia").values
    mass, b, d = (
        plant.parameter(name).values[0] for name in ("mass", "thrust_coefficient", "torque_coefficient")
    )
    physical = {"mass": mass, "arm": plant.levers[0][0], "thrust_coefficient": b, "torque_coefficient": d}
    physical |= dict(zip(("inertia_x", "inertia_y", "inertia_z"), inertia, strict=True))
    matrices = linear_hover(physical, speed)
    A, B = np.asarray(matrices.A, dtype=float), np.asarray(matrices.B, dtype=float)
    model = LinearModel(A, B, np.eye(8), np.zeros((8, 4)), np.zeros((8, 8)), 0.0, np.eye(8))
    rng = np.random.default_rng(seed)
    mix = np.linalg.inv(B[1::2])
    dither_speeds = dither * np.sign(rng.normal(size=(-(-rows // 5), 4))).repeat(5, axis=0)[:rows] @ mix.T
    gain = np.zeros((4, 8))
    for k, (stiff, damp) in enumerate(((9.0, 6.0), (9.0, 6.0), (1.0, 2.0), (1.0, 2.0))):
        gain[:, 2 * k : 2 * k + 2] = np.outer(mix[:, k], (stiff, damp))
    unit_noise = rng.normal(size=(rows, 8))
    discrete = model.to_discrete(dt)
    with jax.enable_x64(True):

        def fly(noise: np.ndarray) -> tuple[np.ndarray, ...]:
            if linear:
                return _fly_linear(discrete, gain, dither_speeds, noise)
            return tuple(np.asarray(v) for v in _fly_nonlinear(plant, gain, speed, dt, dither_speeds, noise))

        noise_free, _ = fly(np.zeros((rows, 8)))
        y, u = fly(noise * noise_free.std(axis=0) * unit_noise)
    if not linear:
        y, u = y - y.mean(axis=0), u - u.mean(axis=0)
    names = tuple(f"rotor_speed_{k}" for k in range(4))
    return Hover(Experiment(y, u, dt, EIGHT, names), speed, model)


def linear_hover(p: Mapping[str, Any], speed: float) -> Matrices:
    """The eight states of the quadrotor near hover, with rotor speeds relative to that of hover (`speed`, rad/s) as inputs.

    phi'' = 2 l b W (u_4 - u_2) / Ixx, theta'' = 2 l b W (u_3 - u_1) / Iyy, psi'' = 2 d W (-u_1 + u_2 - u_3 + u_4) / Izz,
    z'' = 2 b W (u_1 + u_2 + u_3 + u_4) / m. The gyroscopic terms are of second order.
    """
    A = np.zeros((8, 8))
    A[[0, 2, 4, 6], [1, 3, 5, 7]] = 1.0
    arm = 2.0 * speed * p["arm"] * p["thrust_coefficient"]
    yaw = 2.0 * speed * p["torque_coefficient"] / p["inertia_z"]
    signs = np.array([[0, -1, 0, 1], [-1, 0, 1, 0], [-1, 1, -1, 1], [1, 1, 1, 1]], dtype=float)
    size = [
        arm / p["inertia_x"],
        arm / p["inertia_y"],
        yaw,
        2.0 * speed * p["thrust_coefficient"] / p["mass"],
    ]
    zero = jnp.zeros(4)
    B = jnp.stack([row for k in range(4) for row in (zero, size[k] * signs[k])])
    return Matrices(jnp.asarray(A), B, jnp.eye(8), jnp.zeros((8, 4)))


PHYSICAL: tuple[tuple[str, float, str], ...] = (
    ("mass", 1.0, "kg"),
    ("arm", 0.24, "m"),
    ("inertia_x", 8.1e-3, "kg m^2"),
    ("inertia_y", 8.1e-3, "kg m^2"),
    ("inertia_z", 14.2e-3, "kg m^2"),
    ("thrust_coefficient", 54.2e-6, "N s^2"),
    ("torque_coefficient", 1.1e-6, "N m s^2"),
    ("rotor_inertia", 104e-6, "kg m^2"),
)
"""Parameters of Bresciani's quadrotor."""

KNOWN = ("mass", "arm", "inertia_z", "rotor_inertia")
"""Parameters of the grey box that are held fixed. Without any of them, only ratios are identifiable in hover."""

_WINDOW = 25  # rows

_RATIOS: tuple[tuple[str, Callable[[Mapping[str, Any]], Any], str], ...] = (
    ("thrust_coefficient / mass", lambda p: p["thrust_coefficient"] / p["mass"], "N s^2/kg"),
    (
        "arm * thrust_coefficient / inertia_x",
        lambda p: p["arm"] * p["thrust_coefficient"] / p["inertia_x"],
        "N s^2/(kg m)",
    ),
    ("torque_coefficient / inertia_z", lambda p: p["torque_coefficient"] / p["inertia_z"], "N s^2/(kg m)"),
)


def hover_structure(speed: float, known: tuple[str, ...] = KNOWN, start: float = 1.3) -> Structure:
    """The grey box of `linear_hover`. Unknown parameters are positive, with `start` times the true value as the initial
    value."""
    parameters = [
        Parameter(
            name, value * (1.0 if name in known else start), std=0.0 if name in known else value * start, unit=unit,
            bounds=(0.0, math.inf),
        )
        for name, value, unit in PHYSICAL
    ]  # fmt: skip
    return grey_box_structure(_matrices_at(speed), parameters)


@functools.cache
def _matrices_at(speed: float) -> Callable[[Mapping[str, Any]], Matrices]:
    return functools.partial(linear_hover, speed=speed)


def quadrotor_rows(
    rows: int = 3000, seeds: int = 3, plants: tuple[str, ...] = ("first order", "12 states")
) -> tuple[Row, ...]:
    """Canonical form, free form and grey box with the same flights, for the linearised plant and for that with 12 states.

    The nonlinear plant deviates from the model within a minute, so its data are split into windows of half a second
    with separate initial states. Rows are means over the seeds.
    """
    by_seed: list[list[Row]] = []
    for seed in range(seeds):
        rows_of_seed: list[Row] = []
        if "first order" in plants:
            rows_of_seed += _linear_rows(hover_flight(rows, seed=seed), hover_flight(rows, seed=1000 + seed))
        if "12 states" in plants:
            rows_of_seed += _nonlinear_rows(hover_flight(rows, seed=seed, linear=False))
        by_seed.append(rows_of_seed)
    means = []
    for group in zip(*by_seed, strict=True):
        values = np.array([r.value for r in group])
        has_error = seeds > 1 and bool(np.isfinite(values).all())
        error = float(values.std(ddof=1) / math.sqrt(seeds)) if has_error else math.nan
        means.append(
            dataclasses.replace(group[0], value=float(np.mean(values)), standard_error=error, flights=seeds)
        )
    return tuple(means)


def _fly_linear(
    model: LinearModel, gain: np.ndarray, dither: np.ndarray, noise: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Eight measured states, and the rotor speeds relative to hover."""
    x, y, u = np.zeros(8), np.empty((len(dither), 8)), np.empty((len(dither), 4))
    for k in range(len(dither)):
        y[k] = x + noise[k]
        u[k] = dither[k] - gain @ y[k]
        x = model.A @ x + model.B @ u[k]
    return y, u


@functools.partial(jax.jit, static_argnums=0)
def _fly_nonlinear(plant: Quadrotor, gain, speed, dt, dither, noise):
    """Eight measured states, and the rotor speeds relative to `speed`."""
    p, names = parameter_values(plant), tuple(name for name, _ in plant.states.blocks)
    indices = jnp.array([names.index(name) for name in EIGHT])

    def slope(x, u):
        rate = plant.dynamics(dict(zip(names, x, strict=True)), {"rotor_speed": speed + u}, p)
        return jnp.stack([rate[name] for name in names])

    def step(x, row):
        dither, noise = row
        y = x[indices] + noise
        u = dither - gain @ y
        a = slope(x, u)
        b = slope(x + 0.5 * dt * a, u)
        c = slope(x + 0.5 * dt * b, u)
        d = slope(x + dt * c, u)
        return x + dt / 6.0 * (a + 2.0 * b + 2.0 * c + d), (y, u)

    return jax.lax.scan(step, jnp.zeros(len(names)), (dither, noise))[1]


class _Rows:
    """Collects the rows of one plant."""

    def __init__(self, plant: str) -> None:
        self.rows: list[Row] = []
        self.setting = f"plant={plant}"

    def add(
        self, method: str, quantity: str, value: Any, unit: str = "1", published: float = math.nan
    ) -> None:
        row = Row(
            "standard: quadrotor",
            method,
            quantity,
            float(value),
            unit,
            setting=self.setting,
            published=published,
        )
        self.rows.append(row)


def _linear_rows(hover: Hover, new: Hover) -> list[Row]:
    rows, run = _Rows("first order"), hover.run
    for k, value in enumerate(hover.model.hankel_singular_values(run.dt, 50)):
        rows.add("plant", f"Hankel singular value {k + 1}, 1 s", value)
    rows.add("plant", "poles at 0", float(np.sum(np.abs(hover.model.poles) < 1e-12)))
    start = fit_subspace(run, 8)
    rows.add("subspace", "suggested order", start.suggested_order)
    canonical = fit_prediction_error(run, canonical_structure(_continuous(start.model)))
    free = fit_state_space(run, 8, form="free", disturbance=False)
    grey = fit_prediction_error(run, hover_structure(hover.speed))
    _add_entries(rows, canonical, hover)
    for method, fit in (("canonical", canonical), ("free", free)):
        _add_form(rows, method, fit)
    _add_parameters(rows, grey)
    for method, fit in (("canonical", canonical), ("free", free), ("grey box", grey)):
        simulated = compare_model(fit.model, new.run)
        for name in EIGHT[::2]:
            rows.add(method, f"fit of {name}, simulation of a new flight", simulated.fit[name], "%")
    all_free = fit_prediction_error(run, hover_structure(hover.speed, ()))
    rows.add("grey box, all free", "parameters without a value", len(all_free.unidentified))
    rows.add("grey box, all free", "unidentifiable directions", len(all_free.unidentifiable_directions))
    true = {name: value for name, value, _ in PHYSICAL}
    for name, ratio, unit in _RATIOS:
        value, std = all_free.derived_quantity(ratio)
        rows.add("grey box, all free", name, value, unit, published=float(ratio(true)))
        rows.add("grey box, all free", f"std of {name}", std, unit)
    return rows.rows


def _nonlinear_rows(hover: Hover) -> list[Row]:
    rows, run = _Rows("12 states"), hover.run
    cut = [
        dataclasses.replace(run, y=run.y[k : k + _WINDOW], u=run.u[k : k + _WINDOW])
        for k in range(0, len(run.y) - _WINDOW + 1, _WINDOW)
    ]
    start = fit_subspace(run, 8)
    rows.add("subspace", "suggested order", start.suggested_order)
    canonical = fit_prediction_error(cut, canonical_structure(_continuous(start.model)))
    _add_entries(rows, canonical, hover)
    _add_form(rows, "canonical", canonical)
    _add_parameters(rows, fit_prediction_error(cut, hover_structure(hover.speed)))
    return rows.rows


def _continuous(model: LinearModel) -> LinearModel:
    """The model in continuous time, without a Kalman gain."""
    return dataclasses.replace(model.to_continuous(), K=np.zeros_like(model.K))


def _add_entries(rows: _Rows, fit: LinearFit, hover: Hover) -> None:
    """Entries of the canonical form, which are those of the plant because the outputs are the state."""
    A, B, std = fit.model.A, fit.model.B, fit.matrix_std
    true_A, true_B = hover.model.A, hover.model.B
    is_covered = np.concatenate(
        [
            np.abs(M - true).ravel() <= 1.959964 * std[name].ravel()
            for name, M, true in (("A", A, true_A), ("B", B, true_B))
        ]
    )
    is_zero = true_B == 0
    for quantity, value in (
        ("entries of A and B", A.size + B.size),
        ("entries of A with a std above their value", np.sum(std["A"] > np.abs(A))),
        ("entries of B with a std above their value", np.sum(std["B"] > np.abs(B))),
        ("median std over value, entries of A that are 0", np.median((std["A"] / np.abs(A))[true_A == 0])),
        ("median std over value, nonzero entries of B", np.median((std["B"] / np.abs(B))[~is_zero])),
        (
            "largest relative error of nonzero entries of B",
            np.max((np.abs(B - true_B)[~is_zero]) / np.abs(true_B[~is_zero])),
        ),
        ("coverage of the 95 % intervals", np.mean(is_covered)),
    ):
        rows.add("canonical", quantity, float(value))


def _add_form(rows: _Rows, method: str, fit: LinearFit) -> None:
    values = fit.model.hankel_singular_values(0.02, 50)
    poles = fit.model.poles
    rows.add(method, "estimated parameters", fit.quality.estimated_count)
    rows.add(method, "converged", float(fit.search.converged))
    rows.add(method, "condition of the information", fit.search.condition)
    rows.add(method, "smallest over largest Hankel singular value, 1 s", float(values[-1] / values[0]))
    rows.add(method, "largest magnitude of a pole (0 expected)", float(np.abs(poles).max()), "1/s")
    rows.add(method, "largest real part of a pole (0 expected)", float(np.real(poles).max()), "1/s")
    rows.add(method, "largest std of a pole", float(fit.poles_std.max()), "1/s")


def _add_parameters(rows: _Rows, fit: LinearFit) -> None:
    for name, value, unit in PHYSICAL:
        if name in KNOWN:
            continue
        rows.add("grey box", name, fit.values[name], unit, published=value)
        rows.add("grey box", f"std of {name}", fit.std[name], unit)
        rows.add("grey box", f"relative error of {name}", abs(fit.values[name] / value - 1.0))
        rows.add("grey box", f"error of {name} over std", abs(fit.values[name] - value) / fit.std[name])
    rows.add("grey box", "condition of the information", fit.search.condition)
