"""Which System an export is of, and that it hovers with the inputs that samples are drawn with."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

from rotorid.errors import SettingError
from rotorid.models.airframe.airframe import load_airframe
from rotorid.models.multirotor.rigid import RigidMultirotor
from rotorid.models.registry import ROTOR_INPUTS
from rotorid.models.system import GRAVITY, parameter_values
from rotorid.workflows.export.onboard import ExportSettings, exported_system, hover_inputs


@pytest.mark.parametrize(
    ("system", "airframe", "asked", "rotor_input"),
    [
        ("multirotor", "px4-sih-quad", None, "rotor_command"),
        ("multirotor", "px4-sih-quad", "thrust", "thrust"),
        ("multirotor", "crazyflie-2.1", None, None),
        ("multirotor-bare", "simulated-quad", None, "thrust"),
        ("rigid-multirotor", "quadrotor-x", "rotor_thrust", "rotor_thrust"),
        ("rigid-multirotor", "quadrotor-x", "rotor_speed", "rotor_speed"),
        ("rigid-multirotor", "px4-sih-quad", None, "rotor_command"),
    ],
)
def test_it_hovers_with_the_inputs_that_samples_are_drawn_with(system, airframe, asked, rotor_input):
    made = exported_system(system, load_airframe(airframe), ExportSettings(rotor_input=asked))
    found = next(name for name in ROTOR_INPUTS if name in made.inputs)
    assert rotor_input in (None, found)
    u = hover_inputs(made, 200)
    p, mean = parameter_values(made), u[:, made.inputs.stored[found]].mean(axis=0)
    inputs = made.inputs.unpack(jnp.asarray(u.mean(axis=0)))
    if isinstance(made, RigidMultirotor):
        lift = float(jnp.sum(made.known_thrust(inputs, p)))
    elif found == "thrust":
        lift = float(mean[0] * p.get("thrust_scale", 1.0))
    else:
        lift = float(p["thrust_scale"] * made.commanded_thrust(inputs))
    assert lift == pytest.approx(GRAVITY * float(p["mass"]), rel=0.03)
    assert 0.02 < np.std(u[:, made.inputs.stored[found]]) / np.mean(mean) < 0.05


@pytest.mark.parametrize(
    ("system", "settings", "said"),
    [
        ("multirotor", ExportSettings(rotor_input="steam"), "has no rotor input 'steam'"),
        ("multirotor-bare", ExportSettings(rotor_input="rotor_command"), "choose from thrust"),
        ("rigid-multirotor", ExportSettings(known_mass=1.0), "--known-mass applies to the system multirotor"),
    ],
)
def test_what_does_not_fit_is_told(system, settings, said):
    with pytest.raises(SettingError, match=said):
        exported_system(system, load_airframe("px4-sih-quad"), settings)
