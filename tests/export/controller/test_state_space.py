"""python-control loads the linear model at hover, and its matrices are the slopes of the System."""

from __future__ import annotations

import json

import control
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rotorid.export.controller.state_space import control_files, hover_model
from rotorid.models.airframe.airframe import load_airframe
from rotorid.models.multirotor.properties import hover_trim, vehicle_properties
from rotorid.models.multirotor.rigid import rigid_multirotor
from rotorid.models.system import parameter_values
from tests.export.test_follow import written
from tests.export.vehicles import accepted, skewed
from tests.loading import load_file


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return written(control_files(accepted(skewed())), tmp_path_factory.mktemp("control"))


def test_control_loads_it_and_its_slopes_are_those_of_differences(folder):
    """Central differences of the System in the chart about hover; the poles are those of the slopes."""
    model = load_file(folder / "hover.py").state_space()
    table = json.loads((folder / "state_space.json").read_text())
    assert isinstance(model, control.StateSpace)
    assert model.state_labels[:3] == ["attitude_x", "attitude_y", "attitude_z"]
    assert model.input_labels == [f"rotor_command_{k}" for k in range(4)]
    system = rigid_multirotor(skewed(), "rotor_command")
    states, inputs, outputs = system.states, system.inputs, system.outputs
    with jax.enable_x64(True):
        p = parameter_values(system)
        x0, y0, u0 = (jnp.asarray(table[name]) for name in ("x0", "y0", "u0"))

        @jax.jit
        @jax.vmap
        def near(d, du):
            x, u = states.unpack(states.plus(x0, d)), inputs.unpack(u0 + du)
            moved = outputs.minus(outputs.pack(system.observe(x, u, p)), y0)
            return jnp.concatenate([states.pack_tangent(system.dynamics(x, u, p)), moved])

        n, m, h = states.dim, inputs.size, 1e-5
        ways = h * np.concatenate([np.eye(n + m), -np.eye(n + m), np.zeros((1, n + m))])
        ahead, behind, here = np.split(np.asarray(near(ways[:, :n], ways[:, n:])), [n + m, 2 * (n + m)])
    slopes = ((ahead - behind) / (2.0 * h)).T
    np.testing.assert_allclose(here, 0.0, atol=1e-9)  # it hovers, and y0 is what it shows
    np.testing.assert_allclose(np.block([[model.A, model.B], [model.C, model.D]]), slopes, atol=1e-6)
    poles = np.sort_complex(np.linalg.eigvals(slopes[:n, :n]))
    near_zero = (
        np.abs(poles) < 1e-2
    )  # a chain of integrators: its eigenvalues are the sixth root of the rounding
    found = np.sort_complex(control.poles(model))
    np.testing.assert_allclose(found[~near_zero], poles[~near_zero], atol=1e-5)
    assert (np.abs(found[near_zero]) < 1e-2).all()
    assert near_zero.sum() == 6  # position, heading, and of the attitude two that only gravity moves


def test_entries_have_their_standard_deviations(folder):
    table = json.loads((folder / "state_space.json").read_text())
    for name in "ABCD":
        shape = np.shape(table[name])
        assert np.shape(table[f"{name}_std"]) == np.shape(table[f"{name}_std_known"]) == shape
    z = [x["name"] for x in table["states"]].index("velocity_z")
    drag, mass = 0.5, 1.0
    assert table["A"][z][z] == pytest.approx(-drag / mass)
    assert table["A_std"][z][z] == pytest.approx(np.hypot(0.4 / mass, drag / mass**2 * 0.3), rel=1e-4)
    assert table["A_std_known"][z][z]
    lag = [x["name"] for x in table["states"]].index("rotor_thrust_0")
    assert not table["A_std_known"][lag][lag]  # that of the motors' lag is not known
    assert table["A_std"][0][9] == 0.0


def test_it_says_whether_it_was_proved(folder):
    assert "Accepted by fly-back on dev.ulg" in (folder / "hover.py").read_text()


def test_rotors_may_be_known_by_their_thrust():
    """Of an airframe without a curve, whose rotors are tilted: they push in all directions at once."""
    airframe = load_airframe("fully-actuated-hexarotor")
    model, vehicle = hover_model(airframe), vehicle_properties(airframe, needs_thrust_curve=False)
    assert model.matrices["A"].shape == (12, 12)
    np.testing.assert_allclose(model.u0, hover_trim(vehicle).thrust, rtol=1e-12)
    np.testing.assert_allclose(
        model.matrices["B"][6:9], vehicle.rotors.axes.T / vehicle.body.mass, atol=1e-12
    )
    assert np.linalg.matrix_rank(model.matrices["B"]) == 6
