"""Which parameters are free by default."""

from __future__ import annotations

from rotorid.models.airframe.airframe import load_airframe
from rotorid.workflows.identify.preparation import AvailableSignals
from rotorid.workflows.identify.request import NEED_TORQUES, identifiable_parameters


def test_without_torques_no_parameter_of_a_torque_is_free() -> None:
    """The flapping moment is one: alone of the rotors' aerodynamics, it is no force."""
    airframe = load_airframe("px4-sih-quad")
    with_torques, without = (
        set(identifiable_parameters(airframe, AvailableSignals("rotor_command", True, observable), "thrust"))
        for observable in (True, False)
    )
    assert {"flapping_moment", "rotor_momentum", "inertia", "rotor_drag"} <= with_torques
    assert {"mass", "drag", "rotor_drag", "rotor_inflow"} <= without
    assert not NEED_TORQUES & without
