"""The study of the standard methods, in small: its numbers against what must come out."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rotorid.identification.linear.prediction_error import fit_prediction_error
from rotorid.models.quadrotor.lpv import EIGHT
from rotorid.models.quadrotor.quadrotor import hover_speed, quadrotor
from rotorid.models.system import parameter_values
from rotorid.studies.lpv.standard import STEP, third_order_data, third_order_rows, varying_rows
from rotorid.studies.lpv.standard_hover import (
    PHYSICAL,
    hover_flight,
    hover_structure,
    linear_hover,
    quadrotor_rows,
)
from rotorid.studies.study_files import Row


def _value(rows: tuple[Row, ...], method: str, quantity: str, setting: str = "") -> float:
    (row,) = [
        r for r in rows if r.method == method and r.quantity == quantity and r.setting.endswith(setting)
    ]
    return row.value


def test_the_third_order_example() -> None:
    rows = third_order_rows((4000,), 3)
    for method in ("subspace", "prediction error"):
        assert _value(rows, method, "largest error of an entry", "noise=0") < 1e-8
        assert _value(rows, method, "largest relative error of a coefficient", "noise=0.01") < 2e-3
    assert _value(rows, "prediction error", "coverage of the 95 % intervals", "noise=0.01") > 0.8
    assert _value(rows, "prediction error", "fit of x3", "noise=0.01") == pytest.approx(99.0, abs=0.1)


def test_a_parameter_that_varies() -> None:
    run = third_order_data(200, 0.0, 0, varying=True)
    still = third_order_data(200, 0.0, 0)
    assert np.abs(run.y - still.y).max() > 0.01
    t = STEP * np.arange(200)
    slope = np.gradient(run.y[:, 2], STEP)
    wanted = -run.y[:, 0] - 5.0 * run.y[:, 1] + (-6.0 + np.sin(t)) * run.y[:, 2] + run.u[:, 0]
    inside = np.arange(11, 200, 2)  # in the middle of a held input, where the slope is smooth
    assert np.corrcoef(slope[inside], wanted[inside])[0, 1] > 0.99
    rows = varying_rows(2000, 2)
    found = _value(rows, "prediction error", "A[3,3]")
    assert -5.98 < found < -5.8  # the thesis's: -5.871
    assert found == pytest.approx(_value(rows, "prediction error", "A[3,3], mean weighted by x3^2"), abs=0.05)
    assert _value(rows, "prediction error", "runs with residuals of x3 that are not white") == 1.0


def test_the_linear_quadrotor_is_the_slope_of_the_nonlinear_one_at_hover() -> None:
    plant = quadrotor()
    speed = hover_speed(plant)
    p, names = parameter_values(plant), [name for name, _ in plant.states.blocks]

    def rate(eight: jax.Array, u: jax.Array) -> jax.Array:
        x = {name: jnp.zeros(()) for name in names} | dict(zip(EIGHT, eight, strict=True))
        found = plant.dynamics(x, {"rotor_speed": speed + u}, p)
        return jnp.stack([found[name] for name in EIGHT])

    with jax.enable_x64(True):
        A, B = jax.jacfwd(rate, argnums=(0, 1))(jnp.zeros(8), jnp.zeros(4))
        around = linear_hover({name: value for name, value, _ in PHYSICAL}, speed)
        np.testing.assert_allclose(np.asarray(around.A), A, atol=1e-6)
        np.testing.assert_allclose(np.asarray(around.B), B, atol=1e-6)
    np.testing.assert_allclose(hover_flight(20).model.B, np.asarray(around.B), rtol=1e-6)
    assert hover_flight(20, linear=False).run.y.shape == (20, 8)


def test_the_quadrotor_in_small() -> None:
    rows = quadrotor_rows(300, 1, ("12 states",))
    assert _value(rows, "grey box", "relative error of inertia_x") < 0.02
    assert _value(rows, "grey box", "error of inertia_x over std") < 3.5
    assert _value(rows, "grey box", "condition of the information") < 100.0
    assert _value(rows, "canonical", "condition of the information") > 1e4
    assert _value(rows, "canonical", "entries of A with a std above their value") > 16


def test_hover_identifies_ratios_only() -> None:
    hover = hover_flight(300)
    found = fit_prediction_error(hover.run, hover_structure(hover.speed, ()))
    *scales, last = found.findings
    assert [f.values["names"] for f in scales] == [
        ("mass", "inertia_x", "inertia_y", "thrust_coefficient"),
        ("arm", "inertia_x", "inertia_y"),
        ("inertia_z", "torque_coefficient"),
    ]
    assert all(f.code == "not_separable" and f.values["is_common_scale"] for f in scales)
    assert (last.code, last.values["name"]) == ("not_identifiable", "rotor_inertia")
    value, std = found.derived_quantity(lambda p: p["thrust_coefficient"] / p["mass"])
    assert abs(value - 54.2e-6) < 3.5 * std < 54.2e-8
