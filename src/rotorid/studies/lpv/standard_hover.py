"""The quadrotor near hover: why it defeats canonical and free forms, and what its parameters say from the same flights.

    phi'' = 2 l b W (u_4 - u_2) / Ixx          theta'' = 2 l b W (u_3 - u_1) / Iyy
    psi'' = 2 d W (-u_1 + u_2 - u_3 + u_4) / Izz        z'' = 2 b W (u_1 + u_2 + u_3 + u_4) / m

Four double integrators, unstable alone, so it flies under a PD law with binary dither on each axis (seed 002, section 2.2.2,
with the parameters of Bresciani's thesis). All eight poles lie at 0. A form of free entries has 104 numbers and does not know
that they do: most of its entries are 0 in truth, and have standard deviations as large as their values. The grey box has four
parameters, and knows the rest; where all eight are free, it says which ratios the flight tells.
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
    """A flight near hover. run: eight states and four rotor speeds, less those of hover (of 12 states: less their means).
    speed: of a rotor in hover, rad/s. model: the plant to first order there."""

    run: Experiment
    speed: float
    model: LinearModel


def hover_flight(
    rows: int = 3000, noise: float = NOISE, seed: int = 0, dither: float = 0.3, *, linear: bool = True
) -> Hover:
    """The quadrotor under a PD law, rows 0.02 s apart.

    noise: of each measured state, over its standard deviation without noise; the law sees it too. dither: acceleration asked of
    roll, pitch, yaw (rad/s^2) and z (m/s^2) beside the law's, binary, held for 0.1 s, each its own: as much as keeps the
    quadratic terms below the noise. linear: fly the plant to first order, else the one of 12 states.
    """
    plant, dt = quadrotor(), 0.02
    speed = hover_speed(plant)
    inertia = plant.parameter("inertia").values
    mass, b, d = (
        plant.parameter(name).values[0] for name in ("mass", "thrust_coefficient", "torque_coefficient")
    )
    physical = {"mass": mass, "arm": plant.levers[0][0], "thrust_coefficient": b, "torque_coefficient": d}
    physical |= dict(zip(("inertia_x", "inertia_y", "inertia_z"), inertia, strict=True))
    around = linear_hover(physical, speed)
    A, B = np.asarray(around.A, dtype=float), np.asarray(around.B, dtype=float)
    model = LinearModel(A, B, np.eye(8), np.zeros((8, 4)), np.zeros((8, 8)), 0.0, np.eye(8))
    rng = np.random.default_rng(seed)
    mix = np.linalg.inv(B[1::2])
    push = dither * np.sign(rng.normal(size=(-(-rows // 5), 4))).repeat(5, axis=0)[:rows] @ mix.T
    gain = np.zeros((4, 8))
    for k, (stiff, damp) in enumerate(((9.0, 6.0), (9.0, 6.0), (1.0, 2.0), (1.0, 2.0))):
        gain[:, 2 * k : 2 * k + 2] = np.outer(mix[:, k], (stiff, damp))
    drawn = rng.normal(size=(rows, 8))
    sampled = model.to_discrete(dt)
    with jax.enable_x64(True):

        def fly(noise: np.ndarray) -> tuple[np.ndarray, ...]:
            if linear:
                return _flown_linear(sampled, gain, push, noise)
            return tuple(np.asarray(v) for v in _flown(plant, gain, speed, dt, push, noise))

        quiet, _ = fly(np.zeros((rows, 8)))
        y, u = fly(noise * quiet.std(axis=0) * drawn)
    if not linear:
        y, u = y - y.mean(axis=0), u - u.mean(axis=0)
    names = tuple(f"rotor_speed_{k}" for k in range(4))
    return Hover(Experiment(y, u, dt, EIGHT, names), speed, model)


def linear_hover(p: Mapping[str, Any], speed: float) -> Matrices:
    """The eight states of the quadrotor around hover, the rotor speeds less that of hover (`speed`, rad/s) its inputs.

    phi'' = 2 l b W (u_4 - u_2) / Ixx, theta'' = 2 l b W (u_3 - u_1) / Iyy, psi'' = 2 d W (-u_1 + u_2 - u_3 + u_4) / Izz,
    z'' = 2 b W (u_1 + u_2 + u_3 + u_4) / m. The gyroscopic terms are of second order there.
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
"""Of Bresciani's quadrotor."""

KNOWN = ("mass", "arm", "inertia_z", "rotor_inertia")
"""What the grey box takes as weighed and measured. Without any of them, hover tells ratios alone."""

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
    """The grey box of `linear_hover`: what is not known starts at `start` times its value, and is free above 0."""
    parameters = [
        Parameter(
            name, value * (1.0 if name in known else start), std=0.0 if name in known else value * start, unit=unit,
            bounds=(0.0, math.inf),
        )
        for name, value, unit in PHYSICAL
    ]  # fmt: skip
    return grey_box_structure(_around(speed), parameters)


@functools.cache
def _around(speed: float) -> Callable[[Mapping[str, Any]], Matrices]:
    return functools.partial(linear_hover, speed=speed)


def quadrotor_rows(
    rows: int = 3000, seeds: int = 3, plants: tuple[str, ...] = ("first order", "12 states")
) -> tuple[Row, ...]:
    """The canonical and the free form beside the grey box on the same flights, of the plant to first order and of 12 states.

    The latter drifts off the model over a minute, so it is cut into windows of half a second, each with its own first state.
    Rows are means over the seeds.
    """
    found: list[list[Row]] = []
    for seed in range(seeds):
        rows_of: list[Row] = []
        if "first order" in plants:
            rows_of += _of_linear(hover_flight(rows, seed=seed), hover_flight(rows, seed=1000 + seed))
        if "12 states" in plants:
            rows_of += _of_full(hover_flight(rows, seed=seed, linear=False))
        found.append(rows_of)
    merged = []
    for same in zip(*found, strict=True):
        values = np.array([r.value for r in same])
        several = seeds > 1 and bool(np.isfinite(values).all())
        spread = float(values.std(ddof=1) / math.sqrt(seeds)) if several else math.nan
        merged.append(
            dataclasses.replace(same[0], value=float(np.mean(values)), standard_error=spread, flights=seeds)
        )
    return tuple(merged)


def _flown_linear(
    model: LinearModel, gain: np.ndarray, push: np.ndarray, noise: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Eight states as measured, and the rotor speeds less that of hover."""
    x, seen, u = np.zeros(8), np.empty((len(push), 8)), np.empty((len(push), 4))
    for k in range(len(push)):
        seen[k] = x + noise[k]
        u[k] = push[k] - gain @ seen[k]
        x = model.A @ x + model.B @ u[k]
    return seen, u


@functools.partial(jax.jit, static_argnums=0)
def _flown(plant: Quadrotor, gain, speed, dt, push, noise):
    """Eight states as measured, and the rotor speeds less `speed`."""
    p, names = parameter_values(plant), tuple(name for name, _ in plant.states.blocks)
    places = jnp.array([names.index(name) for name in EIGHT])

    def slope(x, u):
        rate = plant.dynamics(dict(zip(names, x, strict=True)), {"rotor_speed": speed + u}, p)
        return jnp.stack([rate[name] for name in names])

    def step(x, row):
        push, noise = row
        seen = x[places] + noise
        u = push - gain @ seen
        a = slope(x, u)
        b = slope(x + 0.5 * dt * a, u)
        c = slope(x + 0.5 * dt * b, u)
        d = slope(x + dt * c, u)
        return x + dt / 6.0 * (a + 2.0 * b + 2.0 * c + d), (seen, u)

    return jax.lax.scan(step, jnp.zeros(len(names)), (push, noise))[1]


class _Rows:
    """Rows about one plant."""

    def __init__(self, plant: str) -> None:
        self.found: list[Row] = []
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
        self.found.append(row)


def _of_linear(hover: Hover, new: Hover) -> list[Row]:
    rows, run = _Rows("first order"), hover.run
    for k, value in enumerate(hover.model.hankel_singular_values(run.dt, 50)):
        rows.add("plant", f"Hankel singular value {k + 1}, 1 s", value)
    rows.add("plant", "poles at 0", float(np.sum(np.abs(hover.model.poles) < 1e-12)))
    start = fit_subspace(run, 8)
    rows.add("subspace", "suggested order", start.suggested_order)
    canonical = fit_prediction_error(run, canonical_structure(_continuous(start.model)))
    free = fit_state_space(run, 8, form="free", disturbance=False)
    grey = fit_prediction_error(run, hover_structure(hover.speed))
    _of_entries(rows, canonical, hover)
    for method, fit in (("canonical", canonical), ("free", free)):
        _of_form(rows, method, fit)
    _of_parameters(rows, grey)
    for method, fit in (("canonical", canonical), ("free", free), ("grey box", grey)):
        simulated = compare_model(fit.model, new.run)
        for name in EIGHT[::2]:
            rows.add(method, f"fit of {name} on a new flight, simulated", simulated.fit[name], "%")
    every = fit_prediction_error(run, hover_structure(hover.speed, ()))
    rows.add("grey box, all free", "parameters without a value", len(every.unidentified))
    rows.add("grey box, all free", "unidentifiable directions", len(every.unidentifiable_directions))
    true = {name: value for name, value, _ in PHYSICAL}
    for name, ratio, unit in _RATIOS:
        value, std = every.derived_quantity(ratio)
        rows.add("grey box, all free", name, value, unit, published=float(ratio(true)))
        rows.add("grey box, all free", f"std of {name}", std, unit)
    return rows.found


def _of_full(hover: Hover) -> list[Row]:
    rows, run = _Rows("12 states"), hover.run
    cut = [
        dataclasses.replace(run, y=run.y[k : k + _WINDOW], u=run.u[k : k + _WINDOW])
        for k in range(0, len(run.y) - _WINDOW + 1, _WINDOW)
    ]
    start = fit_subspace(run, 8)
    rows.add("subspace", "suggested order", start.suggested_order)
    canonical = fit_prediction_error(cut, canonical_structure(_continuous(start.model)))
    _of_entries(rows, canonical, hover)
    _of_form(rows, "canonical", canonical)
    _of_parameters(rows, fit_prediction_error(cut, hover_structure(hover.speed)))
    return rows.found


def _continuous(model: LinearModel) -> LinearModel:
    """In continuous time, without a gain."""
    return dataclasses.replace(model.to_continuous(), K=np.zeros_like(model.K))


def _of_entries(rows: _Rows, fit: LinearFit, hover: Hover) -> None:
    """Of the canonical form, whose entries are those of the plant, as the outputs are the state."""
    A, B, std = fit.model.A, fit.model.B, fit.matrix_std
    true_A, true_B = hover.model.A, hover.model.B
    inside = np.concatenate(
        [
            np.abs(M - true).ravel() <= 1.959964 * std[name].ravel()
            for name, M, true in (("A", A, true_A), ("B", B, true_B))
        ]
    )
    gone = true_B == 0
    for quantity, value in (
        ("entries of A and B", A.size + B.size),
        ("entries of A with a std above their value", np.sum(std["A"] > np.abs(A))),
        ("entries of B with a std above their value", np.sum(std["B"] > np.abs(B))),
        ("median std over value, A where it is 0", np.median((std["A"] / np.abs(A))[true_A == 0])),
        ("median std over value, B where it is not 0", np.median((std["B"] / np.abs(B))[~gone])),
        (
            "largest relative error of B where it is not 0",
            np.max((np.abs(B - true_B)[~gone]) / np.abs(true_B[~gone])),
        ),
        ("95 % intervals that hold the truth", np.mean(inside)),
    ):
        rows.add("canonical", quantity, float(value))


def _of_form(rows: _Rows, method: str, fit: LinearFit) -> None:
    values = fit.model.hankel_singular_values(0.02, 50)
    poles = fit.model.poles
    rows.add(method, "numbers estimated", fit.quality.estimated_count)
    rows.add(method, "converged", float(fit.search.converged))
    rows.add(method, "condition of the information", fit.search.condition)
    rows.add(method, "least Hankel singular value over the largest, 1 s", float(values[-1] / values[0]))
    rows.add(method, "largest pole, absolute (0 in truth)", float(np.abs(poles).max()), "1/s")
    rows.add(method, "largest real part of a pole (0 in truth)", float(np.real(poles).max()), "1/s")
    rows.add(method, "largest std of a pole", float(fit.poles_std.max()), "1/s")


def _of_parameters(rows: _Rows, fit: LinearFit) -> None:
    for name, value, unit in PHYSICAL:
        if name in KNOWN:
            continue
        rows.add("grey box", name, fit.values[name], unit, published=value)
        rows.add("grey box", f"std of {name}", fit.std[name], unit)
        rows.add("grey box", f"relative error of {name}", abs(fit.values[name] / value - 1.0))
        rows.add("grey box", f"error of {name} over std", abs(fit.values[name] - value) / fit.std[name])
    rows.add("grey box", "condition of the information", fit.search.condition)
