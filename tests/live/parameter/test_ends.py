"""Whole sessions with a parameter, on a virtual clock: whatever ends one, the pilot's value is restored or on the disk."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pymavlink.dialects.v20 import common

from rotorid.errors import LinkError, OutputError
from rotorid.live.command import _stop_on_interrupt
from rotorid.live.link.message_sender import MessageSender
from rotorid.live.parameter.followed import parse_parameter
from rotorid.live.parameter.store import stored_values
from rotorid.live.publisher import Publisher
from rotorid.live.recording.recorder import Recorder
from rotorid.live.runner import Runner
from rotorid.live.snapshot import Snapshot
from rotorid.live.terminal import parameter_line
from rotorid.models.airframe.airframe import Airframe
from tests.live.conftest import session
from tests.live.parameter.simulated_autopilot import (
    PX4_PARAMETERS,
    Autopilot,
    autopilot_version,
    float32,
    world,
)
from tests.live.scripted_vehicle import PX4, Flight, ScriptedVehicle
from tests.live.simulated_flight import Sender

HOVER = float32(0.49)
HOVERED = 1.2 * 9.81 / 20.0  # what 1.2 kg need


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ROTORID_STATE", str(tmp_path / "state"))
    return tmp_path / "state"


class WritableVehicle(ScriptedVehicle):
    """A scripted vehicle whose parameters can be written. sets: times and values."""

    def __init__(self, until: float, outages: tuple[tuple[float, float], ...] = ()) -> None:
        super().__init__(PX4, [Flight(1.0, 100.0)], until, outages=outages)
        self.parameters = {name: float32(value) for name, value in PX4_PARAMETERS.items()}
        self.sets: list[tuple[float, float]] = []
        self._own, self._reader = Sender(), common.MAVLink(None)

    def send(self, data: bytes) -> None:
        message: Any
        for message in self._reader.parse_buffer(bytearray(data)) or []:
            kind, name = message.get_type(), getattr(message, "param_id", "")
            is_identity = kind == "COMMAND_LONG" and message.command == 512
            if any(a <= self.now < b for a, b in self.outages) or not (
                is_identity or name in self.parameters
            ):
                continue
            if is_identity:
                self.push(self.now + 0.02, autopilot_version(self._own, 0xABC))
                return
            if kind == "PARAM_SET":
                self.parameters[name] = message.param_value
                self.sets.append((self.now, message.param_value))
            self.push(
                self.now + 0.02, self._own("PARAM_VALUE", name.encode(), self.parameters[name], 9, 900, 0)
            )
            return
        super().send(data)

    @property
    def value(self) -> float:
        return self.parameters["MPC_THR_HOVER"]


class At:
    """A consumer that acts once, at a time of the vehicle's clock."""

    def __init__(self, vehicle: WritableVehicle, t: float, act: Callable[[], None]) -> None:
        self.vehicle, self.t, self.act = vehicle, t, act
        self.texts: list[str] = []
        self.value = 0.0

    def show(self, snapshot: Snapshot) -> None:
        self.texts += [event.code for event in snapshot.events]
        if self.vehicle.now >= self.t:
            self.t, self.value = 1e9, self.vehicle.value
            self.act()

    def close(self) -> None: ...


def runner_of(airframe: Airframe, vehicle: WritableVehicle, recorder: Recorder | None = None) -> Runner:
    made = session(airframe)
    followed = parse_parameter("MPC_THR_HOVER", airframe)
    publisher = Publisher(made, MessageSender(vehicle), lambda: vehicle.now, followed)
    return Runner(
        made,
        vehicle,
        [],
        recorder,
        rate=25.0,
        publisher=publisher,
        now=lambda: vehicle.nanoseconds,
        clock=lambda: vehicle.now,
    )


def check(vehicle: WritableVehicle) -> None:
    points = [(-1e9, HOVER), *vehicle.sets]
    for k, (t, value) in enumerate(points):
        assert all(abs(w - value) <= 0.05 * HOVER * max(s - t, 0.5) * 1.0001 for s, w in points[k + 1 :])


def test_a_signal_ends_and_restores(airframe: Airframe) -> None:
    vehicle = WritableVehicle(60.0)
    runner = runner_of(airframe, vehicle)
    end = At(vehicle, 9.0, lambda: signal.raise_signal(signal.SIGTERM))
    runner.consumers.append(end)
    with _stop_on_interrupt(runner):
        handlers = {signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
        result = runner.run()
    assert len(handlers) == 1
    assert end.value > 1.02 * HOVER
    assert vehicle.value == HOVER
    assert not stored_values()
    check(vehicle)
    assert result.parameter is not None
    assert f"{len(vehicle.sets)} writes" in parameter_line(result)
    assert "0.49 is restored" in parameter_line(result)


def test_a_full_disk_ends_the_recording_and_restores(airframe: Airframe, tmp_path: Path) -> None:
    vehicle = WritableVehicle(60.0)
    recorder = Recorder(tmp_path / "a.mcap", "# made", {"a": "b"})

    def fill() -> None:
        with recorder._write_lock:
            recorder._file.close()
            recorder._file = open("/dev/full", "wb", buffering=0)  # noqa: SIM115

    runner = runner_of(airframe, vehicle, recorder)
    runner.consumers.append(full := At(vehicle, 9.0, fill))
    with pytest.raises(OutputError, match="the recording has stopped: No space left"):
        runner.run()
    assert full.value > 1.02 * HOVER
    assert vehicle.value == HOVER
    assert not stored_values()
    check(vehicle)


def test_an_exception_restores(airframe: Airframe) -> None:
    vehicle = WritableVehicle(60.0)
    runner = runner_of(airframe, vehicle)

    def fail() -> None:
        raise BrokenPipeError("the terminal was closed")

    runner.consumers.append(At(vehicle, 9.0, fail))
    with pytest.raises(BrokenPipeError):
        runner.run()
    assert vehicle.value == HOVER
    check(vehicle)


def test_a_link_that_is_closed_leaves_the_file(airframe: Airframe) -> None:
    vehicle = WritableVehicle(9.0)
    runner = runner_of(airframe, vehicle)
    with pytest.raises(LinkError):
        runner.run()
    assert vehicle.value > 1.02 * HOVER
    assert stored_values()[0].pilot == HOVER
    assert "the next session with this option restores it" in parameter_line(runner.result)


def test_a_lost_link_of_ten_seconds(airframe: Airframe) -> None:
    """With the estimators: before, during and after."""
    vehicle = WritableVehicle(60.0, outages=((9.0, 19.0),))
    runner = runner_of(airframe, vehicle)
    runner.consumers.append(At(vehicle, 24.5, runner.stop.set))
    runner.run()
    assert max(value for t, value in vehicle.sets if t < 9.0) > 1.02 * HOVER
    assert [value for t, value in vehicle.sets if 19.0 < t < 24.5][-1] == pytest.approx(HOVERED, rel=0.03)
    assert not [t for t, _ in vehicle.sets if 9.0 <= t < 19.0]
    assert vehicle.value == HOVER
    check(vehicle)


_CHILD = """
import sys
import jax
jax.config.update("jax_enable_x64", True)
from rotorid.models.airframe.airframe import load_airframe
from tests.live.parameter.simulated_autopilot import *
made = world(load_airframe("px4-sih-quad"))
while True:
    made.fly(0.5, 1.3)
    print(made.value, flush=True)
    if len(made.writes) > 5:
        sys.stdin.read()
"""


def test_a_killed_process_is_put_right_by_the_next_session(airframe: Airframe, state: Path) -> None:
    root = Path(__file__).parents[3]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(root), *sys.path])}
    with subprocess.Popen(
        [sys.executable, "-c", _CHILD],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    ) as child:
        assert child.stdout is not None
        value, deadline = HOVER, time.monotonic() + 100.0
        while value < 1.1 * HOVER and time.monotonic() < deadline:
            value = float(child.stdout.readline())
        child.kill()
    assert child.returncode == -signal.SIGKILL
    assert stored_values()[0].pilot == HOVER
    after = world(airframe, autopilot=Autopilot(PX4_PARAMETERS | {"MPC_THR_HOVER": value}))
    after.fly(12.0, None)
    assert after.codes[0] == "parameter_left"
    assert after.value == HOVER
    after.end()
    assert not list(state.rglob("*.json"))
