"""The airframe that `rotorid identify` writes, from rotor commands and from rotor speeds, in every other command.

A model of rotor speeds has no thrust curve: what needs one, since it commands rotors, says so in one line.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import jax
import numpy as np
import pytest

from rotorid.control.cascade import cascade_controller
from rotorid.errors import AirframeError
from rotorid.export.targets import TARGETS, vehicle_files
from rotorid.identification.experiment_design.body_sensitivities import planned_vehicle
from rotorid.identification.open_loop.prediction import make_flight_model
from rotorid.live.estimation.session_estimators import SessionEstimators
from rotorid.live.settings import SessionSettings
from rotorid.models.airframe.airframe import Airframe, Quantity, airframe_toml, load_airframe
from rotorid.models.joint import Joint
from rotorid.models.registry import SYSTEMS, TRACKED_SYSTEMS, system_for
from rotorid.workflows.compare.batch import prepare_input
from rotorid.workflows.export.onboard import ExportSettings, exported_system
from rotorid.workflows.fly_back.validate import prediction_windows
from rotorid.workflows.identify.identify import identify
from rotorid.workflows.learn.training_rows import learning_rows
from rotorid.workflows.track.plausibility import plausibility_findings
from rotorid.workflows.track.track import prepare_flight
from rotorid.workflows.wrench.observe import prepare_wrench, with_rotors, wrench_system
from tests.export.vehicles import for_target
from tests.workflows.test_rotor_signals import airframe_for, log_with

SIGNALS = ("rotor_command", "rotor_speed")
NEED_CURVE = ("px4", "ardupilot", "gazebo", "drone-models", "isaac-lab", "rl-tools")


@pytest.fixture(scope="module")
def identified(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Airframe]:
    """The airframe of a log with this signal of its rotors, written and read."""
    folder, written = tmp_path_factory.mktemp("identified"), {}

    def airframe(name: str) -> Airframe:
        if name not in written:
            prior = airframe_for(name)
            mass = Quantity((1.1,), "kg", (0.2,))
            prior = dataclasses.replace(prior, quantities={**prior.quantities, "mass": mass})
            with jax.enable_x64(True):
                found = identify([log_with(name)], prior, ("mass", "drag"))
            written[name] = Path(folder / f"{name}.toml")
            written[name].write_text(airframe_toml(found.airframe))
        return load_airframe(written[name])

    return airframe


def needs_curve(airframe: Airframe, *, is_needed: bool = True) -> AbstractContextManager:
    """Expects the one line that asks for a thrust curve, where a command needs one and the airframe has none."""
    if airframe.thrust_curve is not None or not is_needed:
        return nullcontext()
    return pytest.raises(AirframeError, match=rf"^{airframe.source}: .*\[thrust_curve\]")


@pytest.mark.parametrize("name", SIGNALS)
def test_commands_that_take_a_log(identified: Callable[[str], Airframe], name: str) -> None:
    airframe, flight = identified(name), log_with(name)
    assert abs(airframe.mass.number - 1.0) < 0.05
    for system in TRACKED_SYSTEMS:
        prepared = prepare_flight(flight, airframe, system_for(flight, airframe, system))
        assert np.isfinite(np.asarray(prepared.samples.u)).all()
        assert not plausibility_findings(prepared.flight, airframe, prepared.t)
        assert len(prepare_input(flight, airframe, system).samples.t) == len(prepared.t)
    calibrated = system_for(flight, airframe, known_mass=1.0)
    assert "thrust_scale" in Joint(calibrated).quantities
    rotors = with_rotors(flight, airframe)
    _, samples = prepare_wrench(rotors, wrench_system(rotors, airframe))
    assert np.isfinite(np.asarray(samples.u)).all()
    held, left_out = prediction_windows(airframe, [flight], None, None, (0.1, 0.5))
    assert not left_out
    assert np.isfinite(make_flight_model(airframe, held[0]).thrust).all()
    assert learning_rows(flight, airframe).rotor_input == name


@pytest.mark.parametrize("name", SIGNALS)
def test_commands_that_take_an_airframe_alone(identified: Callable[[str], Airframe], name: str) -> None:
    airframe = identified(name)
    for target, entry in TARGETS.items():
        with needs_curve(airframe, is_needed=target in NEED_CURVE):
            found = vehicle_files(target, for_target(target, airframe), force=True)
            assert len(found) == len(entry.files)
    for system, entry in SYSTEMS.items():
        built = exported_system(system, airframe, ExportSettings())
        assert set(entry.rotor_inputs) & set(built.inputs)
    with needs_curve(airframe), jax.enable_x64(True):
        assert SessionEstimators(airframe, SessionSettings(wrench=True)).has_wrench
    with needs_curve(airframe):
        planned_vehicle(airframe)
    with needs_curve(airframe):
        cascade_controller(airframe)
