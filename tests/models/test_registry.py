"""The table of Systems, and the choice of the signal that drives one."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest

from rotorid.errors import AirframeError, SettingError, SignalError
from rotorid.logs.flight import Flight, Signal
from rotorid.models.airframe.airframe import Quantity, load_airframe
from rotorid.models.registry import (
    SYSTEMS,
    TRACKED_SYSTEMS,
    check_system,
    rotor_input_for,
    rotor_input_on_board,
    system_for,
    usable_inputs,
    with_rotor_signal,
)
from rotorid.models.system import System

WITH_CURVE = load_airframe("px4-sih-quad")
WITHOUT_CURVE = load_airframe("simulated-quad")
COEFFICIENT = Quantity((1e-6,), "N s^2", (1e-8,), "made")
WITH_COEFFICIENT = dataclasses.replace(
    WITH_CURVE, quantities={**WITH_CURVE.quantities, "thrust_coefficient": COEFFICIENT}
)


def log(**signals: tuple[int, float]) -> Flight:
    """A flight with signals of so many columns at such a rate, Hz."""
    made = {}
    for name, (columns, rate) in signals.items():
        t = np.arange(0.0, 2.0, 1.0 / rate)
        made[name] = Signal(name, t, np.full((len(t), columns), 0.5), "made")
    return Flight(made, Path("made.csv"), "made")


@pytest.mark.parametrize("name", SYSTEMS)
def test_the_builder_builds(name: str) -> None:
    entry = SYSTEMS[name]
    assert isinstance(entry.build(WITH_CURVE, rotor_input_on_board(WITH_CURVE, name)), System)
    with pytest.raises(SettingError, match="is not driven by 'steam'"):
        entry.build(WITH_CURVE, "steam")


def test_commands_are_preferred_where_the_airframe_has_a_curve() -> None:
    both = log(rotor_command=(4, 50.0), thrust=(1, 50.0))
    assert rotor_input_for(both, WITH_CURVE, "multirotor") == "rotor_command"
    assert rotor_input_for(both, dataclasses.replace(WITH_CURVE, thrust_curve=None), "multirotor") == "thrust"
    assert rotor_input_for(log(rotor_command=(4, 50.0)), WITHOUT_CURVE, "multirotor") == "rotor_command"
    with pytest.raises(AirframeError, match=r"no \[thrust_curve\]"):
        system_for(log(rotor_command=(4, 50.0)), dataclasses.replace(WITH_CURVE, thrust_curve=None))


def test_rotor_inputs_of_the_rigid_multirotor() -> None:
    every = log(rotor_thrust=(4, 50.0), rotor_speed=(4, 50.0), rotor_command=(4, 50.0))
    assert rotor_input_for(every, WITH_CURVE, "rigid-multirotor") == "rotor_thrust"
    two = log(rotor_speed=(4, 50.0), rotor_command=(4, 50.0))
    rare = log(rotor_speed=(4, 10.0), rotor_command=(4, 50.0))
    known = "thrust_coefficient" in WITH_CURVE.quantities
    assert rotor_input_for(two, WITH_CURVE, "rigid-multirotor") == (
        "rotor_speed" if known else "rotor_command"
    )
    assert rotor_input_for(rare, WITH_CURVE, "rigid-multirotor") == "rotor_command"
    with pytest.raises(AirframeError, match="the log has 6 columns of rotor_command"):
        system_for(log(rotor_command=(6, 50.0)), WITH_CURVE, "rigid-multirotor")


def test_thrusts_of_each_rotor_drive_a_track() -> None:
    thrusts = log(rotor_thrust=(4, 50.0), body_rate=(3, 50.0))
    assert rotor_input_for(thrusts, WITHOUT_CURVE, "multirotor") == "rotor_thrust"
    system = system_for(thrusts, WITHOUT_CURVE)
    u = {"rotor_thrust": jnp.array([1.0, 2.0, 3.0, 4.0]), "body_rate": jnp.zeros(3)}
    assert float(system.commanded_thrust(u)) == 10.0
    assert system.holds(u) is True


def test_the_inputs_of_a_model() -> None:
    every = log(rotor_thrust=(4, 50.0), rotor_speed=(4, 50.0), rotor_command=(4, 50.0))
    assert usable_inputs(every, WITH_COEFFICIENT) == ["rotor_command", "rotor_thrust", "rotor_speed"]
    without_curve = dataclasses.replace(WITH_COEFFICIENT, thrust_curve=None)
    assert usable_inputs(every, without_curve) == ["rotor_thrust", "rotor_speed"]
    rare = log(rotor_speed=(4, 10.0), rotor_command=(4, 50.0))
    assert usable_inputs(rare, WITH_COEFFICIENT) == ["rotor_command"]
    assert usable_inputs(rare, without_curve) == ["rotor_speed"]
    assert usable_inputs(log(rotor_speed=(4, 50.0)), WITHOUT_CURVE) == []


def test_a_flight_with_one_rotor_signal() -> None:
    every = log(rotor_thrust=(4, 50.0), rotor_command=(4, 50.0), thrust=(1, 50.0), body_rate=(3, 50.0))
    assert set(with_rotor_signal(every, "rotor_thrust").signals) == {"rotor_thrust", "body_rate"}


def test_a_log_without_rotors() -> None:
    for name in ("multirotor", "rigid-multirotor"):
        with pytest.raises(
            SignalError, match=rf"made\.csv: none of .* in this log, one of which {name} needs"
        ):
            system_for(log(velocity=(3, 50.0)), WITH_CURVE, name)


def test_the_rotors_of_the_log_are_counted() -> None:
    assert system_for(log(rotor_command=(6, 50.0)), WITH_CURVE).rotors == 6
    assert system_for(log(thrust=(1, 50.0)), WITH_CURVE).rotors == len(WITH_CURVE.rotors)


def test_names_and_settings() -> None:
    assert set(TRACKED_SYSTEMS) == {"multirotor", "multirotor-bare"}
    with pytest.raises(SettingError, match="no system 'blimp'; there are multirotor, multirotor-bare"):
        check_system("blimp")
    with pytest.raises(SettingError, match="multirotor-bare takes no known mass"):
        system_for(log(thrust=(1, 50.0)), WITH_CURVE, "multirotor-bare", 1.0)
