"""Which parameters are free by default."""

from __future__ import annotations

import dataclasses

from rotorid.models.airframe.airframe import Airframe, Quantity, load_airframe
from rotorid.models.airframe.mass import with_exact_mass
from rotorid.workflows.identify.preparation import AvailableSignals
from rotorid.workflows.identify.request import NEED_TORQUES, identifiable_parameters, known_quantity


def natural(**std: float) -> Airframe:
    """A shipped airframe whose file gives only these standard deviations, over the values."""
    airframe = load_airframe("quadrotor-x")
    quantities = {
        name: Quantity(q.value, q.unit, tuple(std[name] * v for v in q.value) if name in std else None)
        for name, q in airframe.quantities.items()
    }
    return dataclasses.replace(airframe, quantities=quantities)


def test_a_mass_without_a_standard_deviation_is_less_sure_than_the_thrust() -> None:
    """30 % and 10 % by default; the better known one is held fixed."""
    assert known_quantity(natural(), None) == "thrust"
    assert known_quantity(natural(mass=0.005), None) == "mass"
    assert known_quantity(natural(mass=0.2), None) == "thrust"
    assert known_quantity(with_exact_mass(natural()), None) == "mass"
    assert known_quantity(natural(), None, "mass") == "mass"
    assert known_quantity(natural(mass=0.005), ("mass", "drag")) == "thrust"


def test_only_a_standard_deviation_of_0_holds_a_parameter_fixed() -> None:
    signals = AvailableSignals("rotor_command", True, True)
    assert {"torque_ratio", "inertia"} <= set(identifiable_parameters(natural(), signals, "mass"))
    fixed = identifiable_parameters(natural(torque_ratio=0.0, inertia=0.0), signals, "mass")
    assert not {"torque_ratio", "inertia"} & set(fixed)


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
